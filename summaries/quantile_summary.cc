#include "summaries/quantile_summary.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/merge_sorted.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMQS";

/// keys[stride - 1], keys[2 * stride - 1], …: `count` of them.
template <class Key>
void TakeEvery(const Key* keys, std::uint64_t stride, std::uint64_t count, Key* out) {
  if (stride == 1) {
    std::copy_n(keys, count, out);
  } else if (stride == 2) {  // the usual prune; a constant stride is vectorised
    for (std::uint64_t i = 0; i < count; ++i) out[i] = keys[2 * i + 1];
  } else {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = keys[(i + 1) * stride - 1];
  }
}

/// The samples as a merge takes them: strided or repeated if the plan says so, in place otherwise.
template <class Key>
class MergeInput {
 public:
  MergeInput(const SampleBucket<Key>& bucket, std::uint64_t stride, std::uint64_t repeat)
      : keys_(bucket.keys.get()), size_(bucket.shape.samples / stride * repeat) {
    if (stride == 1 && repeat == 1) return;
    changed_ = std::make_unique_for_overwrite<Key[]>(size_);
    if (repeat == 1) {
      TakeEvery(keys_, stride, size_, changed_.get());
    } else {
      for (std::uint64_t i = 0; i < size_; ++i) changed_[i] = keys_[i / repeat];
    }
    keys_ = changed_.get();
  }
  const Key* keys() const { return keys_; }
  std::uint64_t size() const { return size_; }

 private:
  const Key* keys_;
  std::uint64_t size_;
  std::unique_ptr<Key[]> changed_;
};

}  // namespace

template <class Key>
QuantileSummary<Key>::QuantileSummary(double epsilon) : rule_(epsilon) {}

template <class Key>
void QuantileSummary<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - count_) {
    throw std::length_error("a quantile summary of " + std::to_string(count_) +
                            " values cannot take in " + std::to_string(more) +
                            " more: the limit is 2^63 - 1");
  }
}

template <class Key>
void QuantileSummary<Key>::CheckWindow(std::uint64_t count) const {
  if (!std::has_single_bit(count)) {
    throw std::invalid_argument("a window of " + std::to_string(count) +
                                " keys was given to a quantile summary, expected a power of two");
  }
  CheckRoom(count);
}

template <class Key>
void QuantileSummary<Key>::AddWindow(std::span<const Key> sorted) {
  CheckWindow(sorted.size());
  SampleBucket<Key> bucket;
  bucket.shape = rule_.ForWindow(sorted.size());
  auto keys = std::make_shared_for_overwrite<Key[]>(bucket.shape.samples);
  TakeEvery(sorted.data(), bucket.shape.weight, bucket.shape.samples, keys.get());
  assert(std::is_sorted(keys.get(), keys.get() + bucket.shape.samples));
  bucket.keys = std::move(keys);
  AddBucket(std::move(bucket), sorted.front());
}

template <class Key>
void QuantileSummary<Key>::AddSamples(std::uint64_t count, Key smallest,
                                      std::span<const Key> samples) {
  CheckWindow(count);
  SampleBucket<Key> bucket;
  bucket.shape = rule_.ForWindow(count);
  if (samples.size() != bucket.shape.samples) {
    throw std::invalid_argument(
        std::to_string(samples.size()) + " samples of a window of " + std::to_string(count) +
        " keys were given to a quantile summary, expected " + std::to_string(bucket.shape.samples));
  }
  if (samples.front() < smallest || !std::is_sorted(samples.begin(), samples.end())) {
    throw std::invalid_argument(
        "samples were given to a quantile summary that do not ascend from the smallest key on");
  }
  auto keys = std::make_shared_for_overwrite<Key[]>(samples.size());
  std::copy(samples.begin(), samples.end(), keys.get());
  bucket.keys = std::move(keys);
  AddBucket(std::move(bucket), smallest);
}

template <class Key>
void QuantileSummary<Key>::AddBucket(SampleBucket<Key> bucket, Key smallest) {
  const std::uint64_t count = bucket.shape.count();
  Insert(std::move(bucket));
  min_ = count_ == 0 ? smallest : std::min(min_, smallest);
  count_ += count;
}

template <class Key>
void QuantileSummary<Key>::Insert(SampleBucket<Key> bucket) {
  auto at = buckets_.end();
  while (at != buckets_.begin() && std::prev(at)->shape.count() <= bucket.shape.count()) {
    --at;
    if (at->shape.count() < bucket.shape.count()) continue;  // smaller ones stay behind it
    bucket = Combine(*at, bucket);
    at = buckets_.erase(at);
    // Those behind `at` are smaller than the two that were combined, and so than their result.
  }
  buckets_.insert(at, std::move(bucket));
}

template <class Key>
SampleBucket<Key> QuantileSummary<Key>::Combine(const SampleBucket<Key>& a,
                                                const SampleBucket<Key>& b) const {
  const CombinePlan plan = rule_.Combine(a.shape, b.shape);
  const MergeInput<Key> from_a(a, plan.stride_a, plan.repeat_a);
  const MergeInput<Key> from_b(b, plan.stride_b, plan.repeat_b);
  assert(from_a.size() == from_b.size());
  assert(2 * from_a.size() == plan.result.samples * plan.keep);
  auto keys = std::make_shared_for_overwrite<Key[]>(plan.result.samples);
  if (plan.keep == 1) {
    MergeEqualLengths(from_a.keys(), from_b.keys(), from_a.size(), keys.get());
  } else {
    const auto merged = std::make_unique_for_overwrite<Key[]>(2 * from_a.size());
    MergeEqualLengths(from_a.keys(), from_b.keys(), from_a.size(), merged.get());
    TakeEvery(merged.get(), plan.keep, plan.result.samples, keys.get());
  }
  return {plan.result, std::move(keys)};
}

template <class Key>
void QuantileSummary<Key>::Merge(const QuantileSummary& other) {
  if (other.epsilon() != epsilon()) {
    throw std::invalid_argument("quantile summaries with epsilon " + std::to_string(epsilon()) +
                                " and " + std::to_string(other.epsilon()) +
                                " cannot be merged: expected the same epsilon");
  }
  if (other.count_ == 0) return;
  CheckRoom(other.count_);
  const std::vector<SampleBucket<Key>> theirs = other.buckets_;  // `other` may be this summary
  const Key low = other.min_;
  const std::uint64_t more = other.count_;
  for (auto bucket = theirs.rbegin(); bucket != theirs.rend(); ++bucket) Insert(*bucket);
  min_ = count_ == 0 ? low : std::min(min_, low);
  count_ += more;
}

template <class Key>
bool QuantileSummary<Key>::exact() const {
  return std::all_of(buckets_.begin(), buckets_.end(),
                     [](const SampleBucket<Key>& bucket) { return bucket.shape.lossless(); });
}

template <class Key>
std::size_t QuantileSummary<Key>::bytes() const {
  std::size_t total = sizeof(*this) + buckets_.capacity() * sizeof(SampleBucket<Key>);
  // make_shared keeps two counters and a pointer before the keys.
  constexpr std::size_t kControlBytes = 32;
  for (const auto& bucket : buckets_) total += kControlBytes + bucket.shape.samples * sizeof(Key);
  return total;
}

template <class Key>
std::string QuantileSummary<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(epsilon());
  writer.Put(count_);
  writer.Put(std::uint64_t{min_});
  writer.Put(static_cast<std::uint8_t>(buckets_.size()));
  for (const auto& [shape, keys] : buckets_) {
    writer.Put(static_cast<std::uint8_t>(std::countr_zero(shape.weight)));
    writer.Put(static_cast<std::uint8_t>(std::countr_zero(shape.samples)));
    writer.Put(shape.slack);
    writer.PutKeys(keys.get(), shape.samples);
  }
  return writer.Finish();
}

template <class Key>
QuantileSummary<Key> QuantileSummary<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "quantile summary");
  const double epsilon = reader.GetDouble();
  if (!(epsilon >= 0x1p-40 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  QuantileSummary summary(epsilon);
  const auto count = reader.Get<std::uint64_t>();
  const auto min = reader.Get<std::uint64_t>();
  if (min != static_cast<Key>(min)) reader.Fail("has a smallest key that is wider than its keys");
  const auto buckets = reader.Get<std::uint8_t>();
  std::uint64_t before = kMaxSummaryCount;  // of the bucket before
  for (int index = 0; index < buckets; ++index) {
    const std::string name = "bucket " + std::to_string(index);
    const auto log2_weight = reader.Get<std::uint8_t>();
    const auto log2_samples = reader.Get<std::uint8_t>();
    const auto slack = reader.Get<std::uint64_t>();
    if (log2_weight + log2_samples > 62) {
      reader.Fail("has in " + name + " 2^" + std::to_string(log2_weight + log2_samples) +
                  " values, more than the limit of 2^62");
    }
    const BucketShape shape{std::uint64_t{1} << log2_weight, std::uint64_t{1} << log2_samples,
                            slack};
    if (shape.count() >= before) reader.Fail("has " + name + " out of order");
    before = shape.count();
    if (!summary.rule_.Holds(shape)) {
      reader.Fail("has in " + name + " rank bounds that are wider than its epsilon allows");
    }
    reader.NeedItems(shape.samples, sizeof(Key));
    auto keys = std::make_shared_for_overwrite<Key[]>(shape.samples);
    reader.GetKeys(keys.get(), shape.samples);
    if (!std::is_sorted(keys.get(), keys.get() + shape.samples)) {
      reader.Fail("has samples that do not ascend in " + name);
    }
    if (keys[0] < min) reader.Fail("has a sample below its smallest key in " + name);
    summary.count_ += shape.count();
    summary.buckets_.push_back({shape, std::move(keys)});
  }
  reader.ExpectEnd();
  if (summary.count_ != count) {
    reader.Fail("has buckets of " + std::to_string(summary.count_) +
                " values, expected n = " + std::to_string(count));
  }
  if (count == 0 && min != 0) reader.Fail("is empty but has a smallest key");
  if (summary.exact() && count > 0 &&
      std::none_of(summary.buckets_.begin(), summary.buckets_.end(),
                   [&](const auto& bucket) { return bucket.keys[0] == min; })) {
    reader.Fail("holds every value but not its smallest key");
  }
  summary.min_ = static_cast<Key>(min);
  return summary;
}

template class QuantileSummary<std::uint32_t>;
template class QuantileSummary<std::uint64_t>;

}  // namespace tidemark
