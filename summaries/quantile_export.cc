#include "summaries/quantile_export.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/fraction.h"
#include "summaries/ranked_merge.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMQE";
constexpr std::string_view kWhat = "quantile export";

/// t_i of m targets among n ranks, i from 0.
std::uint64_t EvenTarget(std::uint64_t i, std::uint64_t m, std::uint64_t n) {
  if (m == 1) return 1;
  return 1 + static_cast<std::uint64_t>(static_cast<Uint128>(i) * (n - 1) / (m - 1));
}

/// How many targets leave at most `step` between neighbours.
std::uint64_t TargetsAtStep(std::uint64_t n, std::uint64_t step) {
  return n == 0 ? 0 : (n - 1) / step + ((n - 1) % step > 0 ? 1 : 0) + 1;
}

template <class Key>
void WriteEvenRanks(const QuantileView<Key>& view, ByteWriter& writer) {
  const std::uint64_t n = view.n(), promise = FloorFraction(view.epsilon(), n);
  const std::uint64_t gap = view.worst_gap();
  const std::uint64_t m = TargetsAtStep(n, 2 * (promise - gap) + 1);
  if (m > kExportKeysMax) {
    throw std::length_error("an export of " + std::to_string(n) + " values would take " +
                            std::to_string(m) + " keys, the limit is " +
                            std::to_string(kExportKeysMax));
  }
  std::vector<std::uint64_t> targets(m);
  for (std::uint64_t i = 0; i < m; ++i) targets[i] = EvenTarget(i, m, n);
  std::vector<Key> keys;
  keys.reserve(m);
  std::uint64_t off = 0;
  for (const auto& answer : view.AtRanks(targets)) {
    keys.push_back(answer.value);
    off = std::max({off, answer.target - std::min(answer.target, answer.rank_low),
                    answer.rank_high - std::min(answer.target, answer.rank_high)});
  }
  writer.Put(static_cast<std::uint32_t>(m));
  writer.Put(off);
  writer.PutKeys(keys.data(), keys.size());
}

/// Keys [first, last] are equal: of the values equal to them one has a rank of at most H (the last
/// rank that target `first` leaves), another or the same one of at least L.
template <class Key>
void AppendRun(RankedSamples<Key>& samples, Key key, std::uint64_t first_low, std::uint64_t high,
               std::uint64_t low, std::uint64_t last_high) {
  const auto append = [&](std::uint64_t at_least, std::uint64_t at_most) {
    if (!samples.low.empty()) at_least = std::max(at_least, samples.low.back() + 1);
    samples.keys.push_back(key);
    samples.low.push_back(at_least);
    samples.high.push_back(at_most);
  };
  if (low <= high) {
    append(low, high);
  } else {
    append(first_low, high);
    append(low, last_high);
  }
}

template <class Key>
RankedSamples<Key> ReadEvenRanks(ByteReader& reader, std::uint64_t n) {
  const std::uint64_t m = reader.Get<std::uint32_t>();
  const auto off = reader.Get<std::uint64_t>();
  if ((m == 0) != (n == 0) || (m == 1 && n > 1) || m > n || off > n) {
    reader.Fail("has " + std::to_string(m) + " keys, known within " + std::to_string(off) +
                ", of " + std::to_string(n) + " values");
  }
  reader.NeedItems(m, sizeof(Key));
  std::vector<Key> keys(m);
  reader.GetKeys(keys.data(), m);
  if (!std::is_sorted(keys.begin(), keys.end())) reader.Fail("has keys that do not ascend");
  const auto least = [&](std::uint64_t i) {
    const std::uint64_t target = EvenTarget(i, m, n);
    return i + 1 == m ? n : target - std::min(target - 1, off);
  };
  const auto most = [&](std::uint64_t i) {
    return i == 0 ? 1 : std::min(EvenTarget(i, m, n) + off, n);
  };
  RankedSamples<Key> samples{.count = n};
  for (std::uint64_t first = 0, last = 0; first < m; first = last + 1) {
    for (last = first; last + 1 < m && keys[last + 1] == keys[first];) ++last;
    AppendRun(samples, keys[first], least(first), most(first), least(last), most(last));
  }
  for (std::size_t i = samples.high.size(); i-- > 1;) {
    samples.high[i - 1] = std::min(samples.high[i - 1], samples.high[i] - 1);
  }
  return samples;
}

/// The widest bounds that a promise of `epsilon` over n values allows, at the upper end.
GapLimit PromisedLimit(double epsilon, TailEnd end, std::uint64_t n) {
  return {RankRule(epsilon, end).fraction(), n, true};
}

template <class Key>
void WriteRankBounds(const QuantileView<Key>& view, ByteWriter& writer) {
  RankedSamples<Key> samples = view.Samples();
  if (view.end() == TailEnd::kLower) internal::Mirror(samples);
  internal::Prune(samples, PromisedLimit(view.epsilon(), view.end(), view.n()));
  if (view.end() == TailEnd::kLower) internal::Mirror(samples);
  PackedSamples<Key>(samples).Write(writer);
}

template <class Key>
RankedSamples<Key> ReadRankBounds(ByteReader& reader, double epsilon, TailEnd end,
                                  std::uint64_t n) {
  RankedSamples<Key> samples = PackedSamples<Key>::Read(reader).Unpack();
  if (samples.count != n) {
    reader.Fail("has entries of " + std::to_string(samples.count) +
                " values, expected n = " + std::to_string(n));
  }
  RankedSamples<Key> upper = samples;
  if (end == TailEnd::kLower) internal::Mirror(upper);
  if (!internal::Within(upper, PromisedLimit(epsilon, end, n))) {
    reader.Fail("proves less than its epsilon");
  }
  return samples;
}

}  // namespace

template <class Key>
std::string ExportQuantiles(const QuantileView<Key>& view) {
  if (view.unseen() > 0) {
    throw std::logic_error("an export was asked of a view that has " +
                           std::to_string(view.unseen()) + " unseen values");
  }
  if (!view.WithinEpsilon()) {
    throw std::invalid_argument("an export was asked of a view that proves only " +
                                std::to_string(view.worst_gap()) + " of " +
                                std::to_string(view.n()) + " ranks, not its epsilon " +
                                std::to_string(view.epsilon()));
  }
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(view.epsilon());
  writer.Put(static_cast<std::uint8_t>(view.end()));
  writer.Put(view.n());
  if (view.end() == TailEnd::kNone) {
    WriteEvenRanks(view, writer);
  } else {
    WriteRankBounds(view, writer);
  }
  return writer.Finish();
}

template <class Key>
QuantileSnapshot<Key> ImportQuantiles(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), kWhat);
  QuantileSnapshot<Key> snapshot;
  snapshot.epsilon = reader.GetDouble();
  if (!(snapshot.epsilon >= 0x1p-40 && snapshot.epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(snapshot.epsilon) +
                ", expected above 0 and at most 0.5");
  }
  const auto end = reader.Get<std::uint8_t>();
  if (end > static_cast<std::uint8_t>(TailEnd::kLower)) {
    reader.Fail("has layout " + std::to_string(end) + ", expected 0, 1 or 2");
  }
  snapshot.end = static_cast<TailEnd>(end);
  snapshot.count = reader.Get<std::uint64_t>();
  if (snapshot.count > kMaxSummaryCount) {
    reader.Fail("has " + std::to_string(snapshot.count) + " values, the limit is 2^63 - 1");
  }
  RankedSamples<Key> samples =
      snapshot.end == TailEnd::kNone
          ? ReadEvenRanks<Key>(reader, snapshot.count)
          : ReadRankBounds<Key>(reader, snapshot.epsilon, snapshot.end, snapshot.count);
  reader.ExpectEnd();
  if (!samples.Consistent()) reader.Fail("has ranks that contradict one another");
  if (samples.Width() > 2 * FloorFraction(snapshot.epsilon, snapshot.count)) {
    reader.Fail("proves less than its epsilon");
  }
  if (snapshot.count > 0) {
    snapshot.ranked.push_back(std::make_shared<const RankedSamples<Key>>(std::move(samples)));
  }
  return snapshot;
}

template std::string ExportQuantiles(const QuantileView<std::uint32_t>&);
template std::string ExportQuantiles(const QuantileView<std::uint64_t>&);
template QuantileSnapshot<std::uint32_t> ImportQuantiles(std::string_view);
template QuantileSnapshot<std::uint64_t> ImportQuantiles(std::string_view);

}  // namespace tidemark
