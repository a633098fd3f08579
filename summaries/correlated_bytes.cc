// The serialized form of CorrelatedSums; its layout is in correlated_sums.h.
#include <array>
#include <string>

#include "summaries/byte_io.h"
#include "summaries/correlated_sums.h"
#include "summaries/key_codec.h"
#include "summaries/varint.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMCS";
constexpr std::uint8_t kElement = 2, kAtomic = 1;

struct Interval {
  Uint128 low, high;
};

/// Appends one part of a cut's bounds.
void PutInterval(ByteWriter& writer, Interval before, Interval bounds) {
  PutVarint(writer, bounds.low - before.low);
  PutVarint(writer, bounds.high - bounds.low);
}

/// Errors: refuses upper bounds that fall, and bounds above `most`.
Interval GetInterval(ByteReader& reader, Interval before, Uint128 most, const std::string& name) {
  const Uint128 step = GetVarint(reader), width = GetVarint(reader);
  if (step > most || width > most || before.low + step > most || before.low + step + width > most) {
    reader.Fail("has a bound at " + name + " that is out of range");
  }
  const Interval bounds{before.low + step, before.low + step + width};
  if (bounds.high < before.high) {
    reader.Fail("has an upper bound at " + name + " below the one before");
  }
  return bounds;
}

Interval Counts(const MassBounds& b) { return {b.low.count, b.high.count}; }
Interval Positives(const MassBounds& b) { return {b.low.positive, b.high.positive}; }
Interval Negatives(const MassBounds& b) { return {b.low.negative, b.high.negative}; }

}  // namespace

template <class Key>
std::string CorrelatedSums<Key>::Serialize() const {
  const bool negative = cuts_->total().high.negative > 0;
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(epsilon_);
  writer.Put(static_cast<std::uint8_t>(type_));
  writer.Put(static_cast<std::uint8_t>(negative ? 1 : 0));
  writer.Put(static_cast<std::uint16_t>(type_ == SumType::kFloat64 ? scale_ - kFinestScale : 0));
  writer.Put(rounding_);
  writer.Put(least_y_);
  writer.Put(greatest_y_);
  writer.Put(std::uint64_t{cuts_->size()});
  Cut<Key> before;
  for (std::size_t i = 0; i < cuts_->size(); ++i) {
    const Cut<Key> cut = (*cuts_)[i];
    const Uint128 step = i == 0 ? Uint128{cut.key} : Uint128{cut.key} - before.key - 1;
    PutVarint(writer, 4 * step + (cut.element ? kElement : 0) + (cut.atomic ? kAtomic : 0));
    PutInterval(writer, Counts(before.at_most), Counts(cut.at_most));
    PutInterval(writer, Positives(before.at_most), Positives(cut.at_most));
    if (negative) PutInterval(writer, Negatives(before.at_most), Negatives(cut.at_most));
    before = cut;
  }
  return writer.Finish();
}

namespace {

/// What a cut must keep to, so that no answer can go wrong. `budget` is that of the whole.
template <class Key>
void CheckCut(const ByteReader& reader, const Cut<Key>* before, const Cut<Key>& cut,
              const MassBudget& budget, const std::string& name) {
  const auto& [low, high] = cut.at_most;
  if (high.count - low.count > budget.count || high.weight() - low.weight() > budget.weight) {
    reader.Fail("has at " + name + " bounds that are wider than its epsilon allows");
  }
  if (before == nullptr) {
    if (!cut.atomic || !cut.element || low.count == 0) {
      reader.Fail("does not begin with its smallest key");
    }
    return;
  }
  const bool adjacent = cut.key == static_cast<Key>(before->key + 1);
  if (adjacent && !cut.atomic) reader.Fail("has a gap of one key at " + name + " as an open one");
  if (cut.atomic && !adjacent && !cut.element) {
    reader.Fail("has a closed gap without an element at " + name);
  }
  // Pairs may pile up at a key that is an element and all that its gap has; else they are somewhere
  // in the gap, or at a key of which nobody can say whether it is one.
  const bool alone = cut.atomic && cut.element;
  if (!alone && !Fits(before->at_most.low, high, cut.element, budget)) {
    reader.Fail("has at " + name + " a gap that is wider than its epsilon allows");
  }
  // Above a key that is no element stands one, in this gap or at its end.
  if (!before->element && cut.atomic && !adjacent) {
    reader.Fail("has at " + name + " a closed gap without the element that it begins with");
  }
  const std::uint64_t elements =
      (cut.element ? 1 : 0) + (!before->element && !(adjacent && cut.element) ? 1 : 0);
  // Else the upper bound inside the gap, without its element, would be below the one before.
  if (high.count - before->at_most.high.count < elements) {
    reader.Fail("has at " + name + " an element that is not counted");
  }
}

}  // namespace

template <class Key>
CorrelatedSums<Key> CorrelatedSums<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "summary of correlated sums");
  const double epsilon = reader.GetDouble();
  if (!(epsilon >= 0x1p-40 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  const auto type = reader.Get<std::uint8_t>();
  if (type < 1 || type > 3) reader.Fail("has y of the unknown type " + std::to_string(type));
  CorrelatedSums sums(epsilon, static_cast<SumType>(type));
  const auto negative = reader.Get<std::uint8_t>();
  if (negative > 1) reader.Fail("has an unknown mark at offset 17");
  const auto scale = reader.Get<std::uint16_t>();
  constexpr int kMostScale = 1024 + 63 - kFinestScale;  // of the sum of 2^63 of the largest doubles
  if (sums.type_ == SumType::kFloat64 ? scale > kMostScale : scale != 0) {
    reader.Fail("has the impossible scale " + std::to_string(scale));
  }
  if (sums.type_ == SumType::kFloat64) sums.scale_ = kFinestScale + scale;
  sums.rounding_ = reader.Get<std::uint64_t>();
  if (sums.rounding_ > (sums.type_ == SumType::kFloat64 ? std::uint64_t{1} << 63 : 0)) {
    reader.Fail("has an impossible rounding");
  }
  sums.least_y_ = reader.Get<std::uint64_t>();
  sums.greatest_y_ = reader.Get<std::uint64_t>();
  if (sums.least_y_ > sums.greatest_y_) reader.Fail("has a least y above the greatest");
  if (sums.type_ == SumType::kFloat64 &&
      !(std::isfinite(DecodeFloat64(sums.least_y_)) &&
        std::isfinite(DecodeFloat64(sums.greatest_y_))) &&
      sums.greatest_y_ != 0) {
    reader.Fail("has a least or greatest y that is not a finite number");
  }
  const auto size = reader.Get<std::uint64_t>();
  reader.NeedItems(size, negative != 0 ? 7 : 5);
  // Sums of fewer than 2^63 integers stay below 2^127, those of doubles below 2^126 and rounding.
  const Uint128 most_sum = (Uint128{1} << 127) - 1;
  std::vector<Cut<Key>> cuts;
  cuts.reserve(size);
  Cut<Key> before;
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::string name = "cut " + std::to_string(i);
    const Uint128 packed = GetVarint(reader);
    const Uint128 step = packed >> 2;
    const Uint128 key = i == 0 ? step : step + before.key + 1;
    if (step > static_cast<Key>(-1) || key > static_cast<Key>(-1)) {
      reader.Fail("has at " + name + " a key that is wider than its keys");
    }
    Cut<Key> cut;
    cut.key = static_cast<Key>(key);
    cut.element = (packed & kElement) != 0;
    cut.atomic = (packed & kAtomic) != 0;
    const Interval count = GetInterval(reader, Counts(before.at_most), kMaxSummaryCount, name);
    const Interval positive = GetInterval(reader, Positives(before.at_most), most_sum, name);
    Interval below{0, 0};
    if (negative != 0) below = GetInterval(reader, Negatives(before.at_most), most_sum, name);
    if (positive.high + below.high > most_sum) reader.Fail("has sums out of range at " + name);
    cut.at_most = {{static_cast<std::uint64_t>(count.low), positive.low, below.low},
                   {static_cast<std::uint64_t>(count.high), positive.high, below.high}};
    cuts.push_back(cut);
    before = cut;
  }
  reader.ExpectEnd();
  const MassBounds total = before.at_most;
  if (size > 0 && (!before.element || total.low.count != total.high.count)) {
    reader.Fail("does not end with its greatest key");
  }
  if (size == 0 && (sums.least_y_ | sums.greatest_y_ | sums.rounding_) != 0) {
    reader.Fail("is empty but has sums");
  }
  // So that later sums cannot overflow (fixed_sum.h).
  if (sums.type_ != SumType::kFloat64 && total.high.weight() > static_cast<Uint128>(total.low.count)
                                                                   << 64) {
    reader.Fail("has sums that its count of pairs cannot have");
  }
  if (negative != (total.high.negative > 0 ? 1 : 0)) {
    reader.Fail("has a mark of negative y that is not true");
  }
  const MassBudget budget = BudgetOf(epsilon, total.low, sums.rounding_);
  auto held = std::make_shared<CorrelatedCuts<Key>>();
  held->Reserve(cuts.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    CheckCut(reader, i == 0 ? nullptr : &cuts[i - 1], cuts[i], budget, "cut " + std::to_string(i));
    held->Append(cuts[i]);
  }
  sums.cuts_ = std::move(held);
  return sums;
}

template std::string CorrelatedSums<std::uint32_t>::Serialize() const;
template std::string CorrelatedSums<std::uint64_t>::Serialize() const;
template CorrelatedSums<std::uint32_t> CorrelatedSums<std::uint32_t>::Deserialize(std::string_view);
template CorrelatedSums<std::uint64_t> CorrelatedSums<std::uint64_t>::Deserialize(std::string_view);

}  // namespace tidemark
