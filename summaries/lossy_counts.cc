#include "summaries/lossy_counts.h"

#include <limits>
#include <stdexcept>

#include "summaries/byte_io.h"
#include "summaries/fraction.h"
#include "summaries/quantile_rule.h"

namespace tidemark {

std::uint64_t DroppedBound(double epsilon, std::uint64_t n) {
  const std::uint64_t share = CeilFraction(epsilon, n);
  return share > 0 ? share - 1 : 0;
}

namespace internal {
namespace {

/// Checks entries one after the other, in whatever layout they came.
template <class Key>
class EntryChecker {
 public:
  EntryChecker(const ByteReader& reader, std::uint64_t dropped, std::uint64_t total)
      : reader_(reader), dropped_(dropped), total_(total), left_(total), kept_(dropped) {}

  std::string Name() const { return "entry " + std::to_string(kept_.size()); }

  void Take(const FrequencyEntry<Key>& entry) {
    if (kept_.size() > 0 && entry.key <= before_) reader_.Fail("has " + Name() + " out of order");
    if (entry.count == 0 || entry.count > left_) {
      reader_.Fail("has in " + Name() + " a count that its n does not allow");
    }
    // What was missed came, as what was counted, among n.
    if (entry.delta > dropped_ || entry.count + entry.delta <= dropped_ ||
        entry.count + entry.delta > total_) {
      reader_.Fail("has in " + Name() + " bounds that its n and epsilon do not allow");
    }
    left_ -= entry.count;
    before_ = entry.key;
    kept_.Append(entry);
  }

  FrequencyEntries<Key> Finish() { return std::move(kept_).Finish(); }

 private:
  const ByteReader& reader_;
  std::uint64_t dropped_, total_;
  std::uint64_t left_;
  Key before_ = 0;
  FrequencyEntriesWriter<Key> kept_;
};

std::uint64_t GetNumber(ByteReader& reader, unsigned bytes) {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    number |= std::uint64_t{reader.Get<std::uint8_t>()} << (8 * i);
  }
  return number;
}

/// One entry of the layout in frequency_entries.h. That its parts are no longer than need be is
/// left to the caller.
template <class Key>
FrequencyEntry<Key> GetEntry(ByteReader& reader, const std::string& name, Key before,
                             std::uint64_t dropped, std::uint64_t total) {
  const unsigned control = reader.Get<std::uint8_t>();
  const std::uint64_t distance = GetNumber(reader, (control & 7) + 1);
  if (distance > std::uint64_t{std::numeric_limits<Key>::max()} - before) {
    reader.Fail("has in " + name + " a key above the largest");
  }
  const unsigned excess_code = control >> 3 & 7;
  const std::uint64_t excess = GetNumber(reader, excess_code + (excess_code == kLongExcess));
  const unsigned delta_code = control >> 6;
  const std::uint64_t delta =
      GetNumber(reader, delta_code == kWideDelta ? ByteCount(dropped) : delta_code);
  if (excess > total || delta > dropped) {
    reader.Fail("has in " + name + " bounds that its n and epsilon do not allow");
  }
  return {static_cast<Key>(before + distance), dropped + 1 + excess - delta, delta};
}

}  // namespace

template <class Key>
LossyCounts<Key>::LossyCounts(const LossyKind& kind, double epsilon)
    : kind_(&kind), epsilon_(epsilon), entries_(std::make_shared<const FrequencyEntries<Key>>()) {
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    throw std::invalid_argument("epsilon of a " + std::string(kind.name) + " is " +
                                std::to_string(epsilon) +
                                ", expected a number above 0 and at most 0.5");
  }
}

template <class Key>
void LossyCounts<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - total_) {
    throw std::length_error("a " + std::string(kind_->name) + " of " + std::to_string(total_) +
                            " " + std::string(kind_->unit) + " cannot take in " +
                            std::to_string(more) + " more: the limit is 2^63 - 1");
  }
}

template <class Key>
void LossyCounts<Key>::Merge(const LossyCounts& other) {
  if (other.epsilon_ != epsilon_) {
    throw std::invalid_argument("frequency summaries with epsilon " + std::to_string(epsilon_) +
                                " and " + std::to_string(other.epsilon_) +
                                " cannot be merged: expected the same epsilon");
  }
  CheckRoom(other.total_);
  const std::uint64_t absent_here = dropped(), absent_there = other.dropped();
  const std::uint64_t after = DroppedBound(epsilon_, total_ + other.total_);
  FrequencyEntriesWriter<Key> kept(after, ExpectedBytes() + other.ExpectedBytes());
  const auto keep = [&](Key key, std::uint64_t count, std::uint64_t delta) {
    if (count + delta > after) kept.Append({key, count, delta});
  };
  typename FrequencyEntries<Key>::Reader here(*entries_), there(*other.entries_);
  Entry a, b;
  bool more_a = here.Next(a), more_b = there.Next(b);
  while (more_a || more_b) {
    if (!more_b || (more_a && a.key < b.key)) {
      keep(a.key, a.count, a.delta + absent_there);
      more_a = here.Next(a);
    } else if (!more_a || b.key < a.key) {
      keep(b.key, b.count, b.delta + absent_here);
      more_b = there.Next(b);
    } else {
      keep(a.key, a.count + b.count, a.delta + b.delta);
      more_a = here.Next(a);
      more_b = there.Next(b);
    }
  }
  const std::uint64_t total = total_ + other.total_;  // `other` may be this one
  entries_ = std::make_shared<const FrequencyEntries<Key>>(std::move(kept).Finish());
  total_ = total;
}

template <class Key>
std::string LossyCounts<Key>::Serialize() const {
  ByteWriter writer(kind_->magic, sizeof(Key), kind_->version);
  writer.PutDouble(epsilon_);
  writer.Put(total_);
  writer.Put(std::uint64_t{entries_->size()});
  writer.PutBytes(entries_->stream());
  return writer.Finish();
}

template <class Key>
LossyCounts<Key> LossyCounts<Key>::Deserialize(const LossyKind& kind, std::string_view bytes) {
  ByteReader reader(bytes, kind.magic, sizeof(Key), kind.name, kind.version);
  const double epsilon = reader.GetDouble();
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  LossyCounts counts(kind, epsilon);
  counts.total_ = reader.Get<std::uint64_t>();
  if (counts.total_ > kMaxSummaryCount) reader.Fail("has n above the limit of 2^63 - 1");
  const std::uint64_t dropped = counts.dropped();
  const auto size = reader.Get<std::uint64_t>();
  EntryChecker<Key> checker(reader, dropped, counts.total_);
  if (reader.version() == kind.version_fixed) {
    reader.NeedItems(size, sizeof(Key) + 16);
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto key = reader.Get<Key>();
      const auto count = reader.Get<std::uint64_t>();
      checker.Take({key, count, reader.Get<std::uint64_t>()});
    }
    reader.ExpectEnd();
    counts.entries_ = std::make_shared<const FrequencyEntries<Key>>(checker.Finish());
  } else {
    reader.NeedItems(size, 2);  // at least a control byte and one of the key
    const std::string_view stream = ByteReader(reader).GetBytes(reader.left());
    Key before = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto entry = GetEntry<Key>(reader, checker.Name(), before, dropped, counts.total_);
      checker.Take(entry);
      before = entry.key;
    }
    reader.ExpectEnd();
    counts.entries_ = std::make_shared<const FrequencyEntries<Key>>(checker.Finish());
    if (counts.entries_->stream() != stream) {
      reader.Fail("has an entry that takes more bytes than it needs");
    }
  }
  // Values in no entry though nothing was dropped are those that do not reach down to a level
  // (leveled_summary.h); where each has an item, whoever knows that asks exact() and the entries.
  return counts;
}

template class LossyCounts<std::uint32_t>;
template class LossyCounts<std::uint64_t>;

}  // namespace internal
}  // namespace tidemark
