#include "summaries/compact_quantiles.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/merge_sorted.h"
#include "summaries/ranked_merge.h"
#include "summaries/tail_digest.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMCQ";

}  // namespace

template <class Key>
CompactQuantiles<Key>::CompactQuantiles(double epsilon, TailEnd end) : rule_(epsilon, end) {}

template <class Key>
void CompactQuantiles<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - count_) {
    throw std::length_error("a quantile summary of " + std::to_string(count_) +
                            " values cannot take in " + std::to_string(more) +
                            " more: the limit is 2^63 - 1");
  }
}

template <class Key>
std::optional<std::uint64_t> CompactQuantiles<Key>::DigestStride(std::uint64_t count) const {
  if (rule_.tail() || count < rule_.collected()) return std::nullopt;
  return 1 + rule_.DigestLimit(count).Width(1);
}

template <class Key>
WindowDigest<Key> CompactQuantiles<Key>::DigestFor(std::span<const Key> sorted) const {
  const auto stride = DigestStride(sorted.size());
  if (!stride) return TailDigestSorted(sorted, rule_.DigestLimit(sorted.size()), rule_.end());
  return *stride == 1 ? internal::WholeDigest(sorted) : DigestSorted(sorted, *stride);
}

template <class Key>
void CompactQuantiles<Key>::AddWindow(std::span<const Key> sorted) {
  assert(std::is_sorted(sorted.begin(), sorted.end()));
  CheckRoom(sorted.size());
  if (sorted.size() < rule_.collected()) {
    Collect(sorted);
  } else {
    Insert(DigestFor(sorted));
  }
  count_ += sorted.size();
}

template <class Key>
void CompactQuantiles<Key>::AddDigest(const WindowDigest<Key>& digest) {
  CheckRoom(digest.count);
  if (digest.count < rule_.collected()) {
    Collect(AllKeys(digest));
  } else {
    CheckFineness(digest);
    Insert(digest);
  }
  count_ += digest.count;
}

template <class Key>
std::vector<Key> CompactQuantiles<Key>::AllKeys(const WindowDigest<Key>& digest) const {
  std::vector<Key> keys;
  keys.reserve(digest.count);
  for (std::size_t i = 0; i < digest.keys.size(); ++i) {
    const std::size_t copies = digest.positions[i] - keys.size();
    if (copies > 1 && (i == 0 || digest.keys[i - 1] != digest.keys[i])) break;
    keys.insert(keys.end(), copies, digest.keys[i]);
  }
  if (keys.size() != digest.count) {
    throw std::invalid_argument("the digest of a window of " + std::to_string(digest.count) +
                                " keys leaves some out; fewer than " +
                                std::to_string(rule_.collected()) + " are taken in whole");
  }
  return keys;
}

template <class Key>
void CompactQuantiles<Key>::CheckFineness(const WindowDigest<Key>& digest) const {
  const GapLimit limit = rule_.DigestLimit(digest.count);
  bool fine = digest.stride <= 1 + limit.Width(1);
  if (rule_.tail()) {
    RankedSamples<Key> window = internal::FromDigest(digest);
    if (rule_.end() == TailEnd::kLower) internal::Mirror(window);
    fine = internal::Within(window, limit);
  }
  if (!fine) {
    throw std::invalid_argument("the digest of a window of " + std::to_string(digest.count) +
                                " keys is coarser than epsilon " + std::to_string(epsilon()) +
                                " allows");
  }
}

template <class Key>
typename CompactQuantiles<Key>::Run CompactQuantiles<Key>::MergeRuns(const Run& a, const Run& b) {
  auto keys = std::make_shared_for_overwrite<Key[]>(a.size + b.size);
  if (a.size == b.size) {
    MergeEqualLengths(a.keys.get(), b.keys.get(), a.size, keys.get());
  } else {
    std::merge(a.keys.get(), a.keys.get() + a.size, b.keys.get(), b.keys.get() + b.size,
               keys.get());
  }
  return {std::move(keys), a.size + b.size};
}

template <class Key>
void CompactQuantiles<Key>::Collect(std::span<const Key> sorted) {
  if (sorted.empty()) return;
  auto keys = std::make_shared_for_overwrite<Key[]>(sorted.size());
  std::copy(sorted.begin(), sorted.end(), keys.get());
  Run run{std::move(keys), sorted.size()};
  std::size_t total = sorted.size();
  for (const Run& other : collected_) total += other.size;
  const bool full = total >= rule_.collected();
  while (!collected_.empty() && (full || collected_.back().size <= run.size)) {
    run = MergeRuns(collected_.back(), run);
    collected_.pop_back();
  }
  if (full) {
    Insert(internal::WholeDigest(run.span()));
  } else {
    collected_.push_back(std::move(run));
  }
}

template <class Key>
RankedSamples<Key> CompactQuantiles<Key>::Open(const Part& part) const {
  RankedSamples<Key> samples = part.samples->Unpack();
  if (rule_.end() == TailEnd::kLower) internal::Mirror(samples);
  return samples;
}

template <class Key>
typename CompactQuantiles<Key>::Part CompactQuantiles<Key>::Close(RankedSamples<Key> samples,
                                                                  int depth) const {
  internal::Prune(samples, rule_.Limit(samples.count, depth));
  if (rule_.end() == TailEnd::kLower) internal::Mirror(samples);
  return {std::make_shared<const PackedSamples<Key>>(samples), depth};
}

template <class Key>
void CompactQuantiles<Key>::Insert(const WindowDigest<Key>& digest) {
  assert(!digest.keys.empty() && digest.positions.front() == 1 &&
         digest.positions.back() == digest.count);
  WindowDigest<Key> mirrored;
  if (rule_.end() == TailEnd::kLower) {
    mirrored = digest;
    internal::Mirror(mirrored);
  }
  const WindowDigest<Key>& window = rule_.end() == TailEnd::kLower ? mirrored : digest;
  for (Part& part : parts_) {
    const GapLimit limit = rule_.Limit(part.samples->count() + window.count, part.depth);
    Part grown = Close(internal::UniteWhereNeeded(Open(part), window, limit), part.depth);
    if (grown.samples->size() <=
        std::max(part.samples->size(), rule_.EntryLimit(limit.count, part.depth))) {
      part = std::move(grown);
      return Carry();
    }
  }
  parts_.push_back(Close(internal::FromDigest(window), 0));
  Carry();
}

template <class Key>
void CompactQuantiles<Key>::Carry() {
  // A part that grew may now also be larger than those before it.
  for (std::size_t i = parts_.size(); i-- > 1;) {
    Part& larger = parts_[i - 1];
    const Part& smaller = parts_[i];
    if (!rule_.Unites(larger.samples->count(), smaller.samples->count())) continue;
    const int depth = rule_.tail() ? std::max(larger.depth, smaller.depth) + 1 : 0;
    larger = Close(internal::Unite(Open(larger), Open(smaller)), depth);
    parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

template <class Key>
void CompactQuantiles<Key>::Merge(const CompactQuantiles& other) {
  if (!(other.rule_ == rule_)) {
    throw std::invalid_argument("quantile summaries with epsilon " + std::to_string(epsilon()) +
                                " and " + std::to_string(other.epsilon()) +
                                " cannot be merged: expected the same epsilon and end");
  }
  CheckRoom(other.count_);
  const std::vector<Part> parts = other.parts_;  // `other` may be this summary
  const std::vector<Run> runs = other.collected_;
  const std::uint64_t more = other.count_;
  for (const Part& part : parts) {
    const auto smaller = [&](const Part& held) {
      return held.samples->count() < part.samples->count();
    };
    parts_.insert(std::find_if(parts_.begin(), parts_.end(), smaller), part);
    Carry();
  }
  for (const Run& run : runs) Collect(run.span());
  count_ += more;
}

template <class Key>
bool CompactQuantiles<Key>::exact() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.samples->width() == 0; });
}

template <class Key>
std::size_t CompactQuantiles<Key>::bytes() const {
  constexpr std::size_t kControlBytes = 32;  // make_shared keeps counters before what it makes
  std::size_t total =
      sizeof(*this) + parts_.capacity() * sizeof(Part) + collected_.capacity() * sizeof(Run);
  for (const Part& part : parts_) total += kControlBytes + part.samples->bytes();
  for (const Run& run : collected_) total += kControlBytes + run.size * sizeof(Key);
  return total;
}

template <class Key>
std::size_t CompactQuantiles<Key>::entries() const {
  std::size_t total = 0;
  for (const Part& part : parts_) total += part.samples->size();
  for (const Run& run : collected_) total += run.size;
  return total;
}

template <class Key>
QuantileSnapshot<Key> CompactQuantiles<Key>::Snapshot() const {
  QuantileSnapshot<Key> snapshot{.epsilon = epsilon(), .count = count_, .end = end()};
  for (const Run& run : collected_) {
    const Key least = run.keys[0];
    snapshot.min = snapshot.buckets.empty() ? least : std::min(snapshot.min, least);
    snapshot.buckets.push_back({{1, run.size, 0}, run.keys});
  }
  for (const Part& part : parts_) snapshot.packed.push_back(part.samples);
  return snapshot;
}

template <class Key>
std::string CompactQuantiles<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(epsilon());
  writer.Put(static_cast<std::uint8_t>(end()));
  writer.Put(count_);
  writer.Put(static_cast<std::uint8_t>(parts_.size()));
  for (const Part& part : parts_) {
    writer.Put(static_cast<std::uint8_t>(part.depth));
    part.samples->Write(writer);
  }
  writer.Put(static_cast<std::uint8_t>(collected_.size()));
  for (const Run& run : collected_) {
    writer.Put(static_cast<std::uint32_t>(run.size));
    writer.PutKeys(run.keys.get(), run.size);
  }
  return writer.Finish();
}

template <class Key>
void CompactQuantiles<Key>::ReadPart(ByteReader& reader) {
  const int depth = reader.Get<std::uint8_t>();
  auto samples = std::make_shared<const PackedSamples<Key>>(PackedSamples<Key>::Read(reader));
  if (samples->count() < rule_.collected() || samples->count() > kMaxSummaryCount - count_) {
    reader.Fail("has a part of " + std::to_string(samples->count()) +
                " values, fewer than are collected or more than there can be");
  }
  if (!parts_.empty() && rule_.Unites(parts_.back().samples->count(), samples->count())) {
    reader.Fail("has parts of like size that are not united");
  }
  parts_.push_back({std::move(samples), depth});
  const GapLimit limit = rule_.Limit(parts_.back().samples->count(), depth);
  if ((!rule_.tail() && depth != 0) || !internal::Within(Open(parts_.back()), limit)) {
    reader.Fail("has rank bounds that are wider than its epsilon allows");
  }
  count_ += limit.count;
}

template <class Key>
void CompactQuantiles<Key>::ReadRun(ByteReader& reader) {
  const std::size_t size = reader.Get<std::uint32_t>();
  if (size == 0 || (!collected_.empty() && size >= collected_.back().size)) {
    reader.Fail("has collected runs that are not in order of their length");
  }
  reader.NeedItems(size, sizeof(Key));
  auto keys = std::make_shared_for_overwrite<Key[]>(size);
  reader.GetKeys(keys.get(), size);
  if (!std::is_sorted(keys.get(), keys.get() + size)) {
    reader.Fail("has collected keys that do not ascend");
  }
  collected_.push_back({std::move(keys), size});
}

template <class Key>
CompactQuantiles<Key> CompactQuantiles<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "compact quantile summary");
  const double epsilon = reader.GetDouble();
  if (!(epsilon >= 0x1p-40 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  const auto end = reader.Get<std::uint8_t>();
  if (end > static_cast<std::uint8_t>(TailEnd::kLower)) {
    reader.Fail("has end " + std::to_string(end) + ", expected 0, 1 or 2");
  }
  CompactQuantiles summary(epsilon, static_cast<TailEnd>(end));
  const auto count = reader.Get<std::uint64_t>();
  for (auto parts = reader.Get<std::uint8_t>(); parts > 0; --parts) summary.ReadPart(reader);
  for (auto runs = reader.Get<std::uint8_t>(); runs > 0; --runs) summary.ReadRun(reader);
  reader.ExpectEnd();
  std::uint64_t collected = 0;
  for (const Run& run : summary.collected_) collected += run.size;
  if (collected >= summary.rule_.collected()) {
    reader.Fail("has " + std::to_string(collected) + " collected keys, expected fewer than " +
                std::to_string(summary.rule_.collected()));
  }
  if (collected > kMaxSummaryCount - summary.count_ || summary.count_ + collected != count) {
    reader.Fail("has " + std::to_string(summary.count_ + collected) +
                " values, expected n = " + std::to_string(count));
  }
  summary.count_ = count;
  return summary;
}

template class CompactQuantiles<std::uint32_t>;
template class CompactQuantiles<std::uint64_t>;

}  // namespace tidemark
