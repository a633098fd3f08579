// A stream that is fed to the sliding summaries as the service does it, beside everything that
// came: what the truth about each window is taken from.
#ifndef TIDEMARK_TESTS_SUMMARIES_SLIDING_FEED_H_
#define TIDEMARK_TESTS_SUMMARIES_SLIDING_FEED_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/mixed_input.h"
#include "tests/summaries/reference.h"

namespace tidemark::testing {

/// What came, and the record of it.
template <class Key>
class SlidingSource {
 public:
  explicit SlidingSource(const SlidingOptions& options) : record(options) {}

  /// Calls take(sorted) for each block, after the record.
  template <class Take>
  void Append(std::span<const Key> batch, std::int64_t time_us, Take take) {
    const std::size_t size = record.rule().block_size();
    while (!batch.empty()) {
      const std::size_t count = std::min(batch.size(), size - open_.size());
      const auto part = batch.first(count);
      batch = batch.subspan(count);
      now_ = keys_.empty() ? time_us : std::max(now_, time_us);
      keys_.insert(keys_.end(), part.begin(), part.end());
      times_.insert(times_.end(), count, now_);
      open_.insert(open_.end(), part.begin(), part.end());
      marks_.push_back({count, time_us});
      if (open_.size() == size) Close(take);
    }
  }
  /// Nothing comes, and the stream is told the time.
  void Advance(std::int64_t now_us) {
    record.Advance(now_us);
    advanced_ = std::max(advanced_, now_us);
  }

  std::uint64_t n() const { return keys_.size(); }
  std::size_t open() const { return open_.size(); }
  /// The greatest recorded time.
  std::int64_t now() const { return now_; }
  std::span<const TimedCount> marks() const { return marks_; }

  std::uint64_t CountWithin(std::int64_t age_us, std::int64_t now_us) const {
    const std::int64_t border = std::max({now_, advanced_, now_us}) - age_us;
    return static_cast<std::uint64_t>(times_.end() -
                                      std::upper_bound(times_.begin(), times_.end(), border));
  }
  Oracle<Key> Truth(std::uint64_t values) const {
    return Oracle<Key>(
        std::vector<Key>(keys_.end() - static_cast<std::ptrdiff_t>(values), keys_.end()));
  }
  std::span<const Key> Newest(std::uint64_t values) const {
    return std::span<const Key>(keys_).last(values);
  }
  /// Those of range.later, sorted.
  std::vector<Key> Later(const SlidingRange& range) const {
    std::vector<Key> later(open_.end() - static_cast<std::ptrdiff_t>(range.later), open_.end());
    std::sort(later.begin(), later.end());
    return later;
  }

  SlidingRecord<Key> record;

 private:
  template <class Take>
  void Close(Take take) {
    auto arrived = std::make_shared_for_overwrite<Key[]>(open_.size());
    std::copy(open_.begin(), open_.end(), arrived.get());
    record.AddBlock(std::move(arrived), marks_);
    std::sort(open_.begin(), open_.end());
    take(std::span<const Key>(open_));
    open_.clear();
    marks_.clear();
  }

  std::vector<Key> keys_, open_;
  std::vector<std::int64_t> times_;  ///< of each value, as the stream's time counts it
  std::vector<TimedCount> marks_;    ///< of the open block
  std::int64_t now_ = 0, advanced_ = SlidingTimes::kNever;
};

template <class Key>
class SlidingFeed : public SlidingSource<Key> {
 public:
  using SlidingSource<Key>::record;

  explicit SlidingFeed(const SlidingOptions& options)
      : SlidingSource<Key>(options),
        quantiles(record.shared_rule()),
        frequencies(record.shared_rule()) {}

  void Append(std::span<const Key> batch, std::int64_t time_us) {
    SlidingSource<Key>::Append(batch, time_us, [this](std::span<const Key> sorted) {
      quantiles.AddBlock(sorted, record.expired());
      frequencies.AddBlock(sorted, record.expired());
    });
  }
  void Advance(std::int64_t now_us) {
    SlidingSource<Key>::Advance(now_us);
    quantiles.Expire(record.expired());
    frequencies.Expire(record.expired());
  }
  /// Written and read: what follows must be as if nothing had happened.
  void WriteAndRead() {
    record = SlidingRecord<Key>::Deserialize(record.Serialize());
    quantiles = SlidingQuantiles<Key>::Deserialize(quantiles.Serialize());
    frequencies = SlidingFrequencies<Key>::Deserialize(frequencies.Serialize());
  }

  SlidingQuantiles<Key> quantiles;
  SlidingFrequencies<Key> frequencies;
};

/// The window that `range` stands for holds the last `n` values of the feed.
template <class Key>
void CheckRange(const SlidingSource<Key>& feed, const SlidingRange& range, std::uint64_t n) {
  ASSERT_LE(range.n_low(), n);
  ASSERT_GE(range.n_high(), n);
  if (range.uncertain() > 0) {
    ASSERT_LE(range.uncertain(), FloorFraction(feed.record.rule().epsilon() / 8, range.n_low()));
  }
}

/// Half of `width`, rounded up.
inline std::uint64_t Half(std::uint64_t width) { return width / 2 + width % 2; }

template <class Key>
void CheckQuantiles(const SlidingFeed<Key>& feed, const SlidingRange& range, std::uint64_t n,
                    std::uint64_t seed) {
  ASSERT_NO_FATAL_FAILURE(CheckRange(feed, range, n));
  const Oracle<Key> truth = feed.Truth(n);
  const std::vector<Key> later = feed.Later(range);
  const auto cover = feed.quantiles.Cover(range, feed.record);
  const QuantileView<Key> view = cover.View(later);
  ASSERT_EQ(view.n(), range.n_high());
  const std::uint64_t within = FloorFraction(feed.record.rule().epsilon(), range.n_low());
  ASSERT_LE(view.worst_gap(), within);
  std::mt19937_64 random(seed);
  for (const double phi : {0.0, 1.0, 0.5, 0.99, std::uniform_real_distribution<>(0, 1)(random)}) {
    if (n == 0) break;
    SCOPED_TRACE(::testing::Message() << "phi " << phi);
    const auto answer = view.Quantile(phi);
    ASSERT_GT(truth.Count(answer.value), 0u) << answer.value << " is not in the window";
    const std::uint64_t first = truth.Less(answer.value) + 1, last = truth.AtMost(answer.value);
    const std::uint64_t position = std::clamp(answer.target, first, last);
    ASSERT_LE(answer.rank_low, position);
    ASSERT_GE(answer.rank_high, position);
    ASSERT_LE(answer.target, answer.rank_low + within);
    ASSERT_LE(answer.rank_high, answer.target + within);
    // Of the true number of values, too, and of that alone.
    const std::uint64_t target = TargetRank(phi, n);
    const std::uint64_t nearest = std::clamp(target, first, last);
    ASSERT_LE(nearest > target ? nearest - target : target - nearest, within);
  }
  for (int i = 0; i < 6; ++i) {
    const Key v = n > 0 && i < 4 ? static_cast<Key>(truth.sorted()[random() % n] + random() % 3 - 1)
                                 : static_cast<Key>(random());
    const RankBounds bounds = view.Bounds(v);
    ASSERT_LE(bounds.less_low, truth.Less(v)) << v;
    ASSERT_GE(bounds.less_high, truth.Less(v)) << v;
    ASSERT_LE(bounds.at_most_low, truth.AtMost(v)) << v;
    ASSERT_GE(bounds.at_most_high, truth.AtMost(v)) << v;
    ASSERT_LE(Half(bounds.less_high - bounds.less_low), within) << v;
    ASSERT_LE(Half(bounds.at_most_high - bounds.at_most_low), within) << v;
  }
}

template <class Key>
void CheckFrequencies(const SlidingFeed<Key>& feed, const SlidingRange& range, std::uint64_t n,
                      std::uint64_t seed) {
  ASSERT_NO_FATAL_FAILURE(CheckRange(feed, range, n));
  const Oracle<Key> truth = feed.Truth(n);
  const std::vector<Key> later = feed.Later(range);
  const auto cover = feed.frequencies.Cover(range, feed.record);
  const FrequencyView<Key> view = cover.View(later);
  ASSERT_EQ(view.n(), range.n_high());
  const std::uint64_t within = FloorFraction(feed.record.rule().epsilon(), range.n_low());
  ASSERT_TRUE(view.WithinEpsilon());
  std::mt19937_64 random(seed);
  const double support =
      std::max(view.MinimumSupport(), std::uniform_real_distribution<>(0, 0.2)(random));
  const auto wanted =
      static_cast<std::uint64_t>(std::max<std::uint64_t>(CeilFraction(support, n), 1));
  std::uint64_t heavy = 0;
  for (std::size_t i = 0; i < n;) {
    const Key key = truth.sorted()[i];
    const std::uint64_t count = truth.Count(key);
    const ItemCount<Key> item = view.Count(key);
    ASSERT_LE(item.count_low, count) << "key " << key;
    ASSERT_GE(item.count_high, count) << "key " << key;
    ASSERT_LE(item.count_high - item.count_low, within) << "key " << key;
    if (view.exact()) {
      ASSERT_EQ(item.count_low, item.count_high) << "key " << key;
    }
    heavy += count >= wanted ? 1 : 0;
    i += count;
  }
  const auto absent = view.Count(static_cast<Key>(random()));
  ASSERT_LE(absent.count_low, truth.Count(absent.key));
  ASSERT_GE(absent.count_high, truth.Count(absent.key));
  if (n == 0 || support <= 0 || support > 1) return;
  std::uint64_t found = 0;
  for (const auto& item : view.HeavyHitters(support)) {
    const std::uint64_t count = truth.Count(item.key);
    found += count >= wanted ? 1 : 0;
    ASSERT_GE(count + within + 1, wanted) << "key " << item.key << " came too seldom";
  }
  ASSERT_EQ(found, heavy);
}

/// Keys with a way in which they come: in what batches, at what times.
template <class Key>
struct SlidingInput {
  std::vector<Key> keys;
  SlidingOptions options;
  std::uint64_t seed = 0;
};

/// Windows by count, by time or both; streams of up to `most` values that mostly exceed them.
template <class Key>
SlidingInput<Key> DrawSliding(std::mt19937_64& random, std::size_t most) {
  SlidingInput<Key> input;
  auto mixed = DrawMixed<Key>(random, most);
  while (mixed.keys.size() < most / 2) {
    const auto more = DrawMixed<Key>(random, most - mixed.keys.size());
    mixed.keys.insert(mixed.keys.end(), more.keys.begin(), more.keys.end());
  }
  input.keys = std::move(mixed.keys);
  static constexpr double kEpsilons[] = {0.2, 0.15, 0.1, 0.05, 0.01};
  input.options.epsilon = kEpsilons[random() % std::size(kEpsilons)];
  input.options.block_size = 64;
  const auto by = random() % 3;
  if (by != 1) input.options.max_values = 1 + random() % most;
  if (by != 0) input.options.max_age_us = static_cast<std::int64_t>(1 + random() % 5000);
  input.seed = random();
  return input;
}

/// Feeds the keys in batches and calls check(feed, random) now and then. Times stand still, go on
/// value by value, jump over whole windows, or step back.
template <class Feed, class Key, class Check>
void FeedSliding(Feed feed, const SlidingInput<Key>& input, Check check) {
  std::mt19937_64 random(input.seed);
  const std::uint64_t largest = std::uint64_t{1} << (random() % 9);
  const std::uint64_t pauses = 1 + random() % 60;
  std::int64_t clock = static_cast<std::int64_t>(random() % 1000) - 500;
  std::span<const Key> left(input.keys);
  const std::uint64_t checks = 1 + left.size() / 400;
  while (!left.empty()) {
    const std::size_t count = std::min<std::size_t>(left.size(), 1 + random() % largest);
    switch (random() % 4) {
      case 0:
        break;
      case 1:
        clock += static_cast<std::int64_t>(random() % 3);
        break;
      case 2:
        clock += static_cast<std::int64_t>(count);
        break;
      default:
        if (random() % pauses == 0) {
          clock += static_cast<std::int64_t>(random() % 8000);
        } else if (random() % pauses == 0) {
          clock -= static_cast<std::int64_t>(random() % 3000);
        }
    }
    feed.Append(left.first(count), clock);
    left = left.subspan(count);
    if (random() % 200 == 0) feed.WriteAndRead();
    if (random() % 100 == 0) {
      const auto ahead = feed.now() + static_cast<std::int64_t>(random() % 6000);
      if (input.options.max_age_us > 0) feed.Advance(ahead);
    }
    // More often right before and behind the border of a block.
    const bool border = feed.open() <= 1 || feed.open() + 1 >= input.options.block_size;
    if (random() % (left.size() / checks + 1) == 0 || (border && random() % 64 == 0) ||
        left.empty()) {
      ASSERT_NO_FATAL_FAILURE(check(feed, random));
    }
  }
}

template <class Key, class Check>
void FeedSliding(const SlidingInput<Key>& input, Check check) {
  FeedSliding(SlidingFeed<Key>(input.options), input, check);
}

/// Calls check(range, n) for some windows that the feed answers for.
template <class Key, class Check>
void ForWindows(const SlidingSource<Key>& feed, std::mt19937_64& random, int windows, Check check) {
  const SlidingOptions& options = feed.record.rule().options();
  for (int i = 0; i < windows; ++i) {
    if (options.max_values > 0) {
      const std::uint64_t below = std::uint64_t{1} << (random() % 16);
      const std::uint64_t width = 1 + random() % std::min(options.max_values, below);
      SCOPED_TRACE(::testing::Message() << "last " << width << " of " << feed.n());
      const std::uint64_t n = std::min(width, feed.n());
      ASSERT_NO_FATAL_FAILURE(check(feed.record.Last(width, feed.open()), n));
    }
    if (options.max_age_us > 0) {
      const auto most = static_cast<std::uint64_t>(options.max_age_us);
      const auto age = static_cast<std::int64_t>(random() % 8 == 0 ? most : 1 + random() % most);
      const std::int64_t now = feed.now() +
                               static_cast<std::int64_t>(random() % 4 == 0 ? random() % 2000 : 0) -
                               static_cast<std::int64_t>(random() % 4 == 0 ? random() % 2000 : 0);
      SCOPED_TRACE(::testing::Message()
                   << "within " << age << " us at " << now << ", n " << feed.n());
      ASSERT_NO_FATAL_FAILURE(
          check(feed.record.Within(age, now, feed.marks()), feed.CountWithin(age, now)));
    }
  }
}

/// Calls check(feed, range, n) for the widths from 1 to the widest that is answered, from 200 on
/// for every `step`-th of them: at the border of every fifteenth block, one value before and one
/// behind it.
template <class Key, class Check>
void ForEveryWidth(Distribution distribution, std::uint64_t step, Check check) {
  for (const double epsilon : {0.2, 0.07}) {
    SCOPED_TRACE(::testing::Message() << "epsilon " << epsilon);
    SlidingOptions options;
    options.epsilon = epsilon;
    options.max_values = 1500;
    options.block_size = 64;
    SlidingFeed<Key> feed(options);
    const auto keys = Generate<Key>(distribution, 4 * 960 + 64, 7);
    for (std::span<const Key> left(keys); !left.empty();) {
      // From one behind a border to one before the next, to it, and one behind it again.
      const std::size_t open = feed.open();
      const std::size_t count = open == 0 || open == 63 ? 1 : 63 - open;
      feed.Append(left.first(count), 0);
      left = left.subspan(count);
      if ((feed.n() + 1) % 960 > 2) continue;
      for (std::uint64_t width = 1; width <= options.max_values; width += width < 200 ? 1 : step) {
        SCOPED_TRACE(::testing::Message() << "last " << width << " of " << feed.n());
        ASSERT_NO_FATAL_FAILURE(
            check(feed, feed.record.Last(width, feed.open()), std::min(width, feed.n())));
      }
    }
  }
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_SLIDING_FEED_H_
