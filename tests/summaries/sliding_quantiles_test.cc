// Quantiles over sliding windows against an exact oracle: every width, at block borders, after
// pauses, in bursts, when the clock steps back.
#include "summaries/sliding_quantiles.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/property.h"
#include "tests/summaries/sliding_feed.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::SlidingFeed;
using testing::SlidingInput;

constexpr std::size_t kMostKeys = 6000;

template <class Key>
class SlidingQuantilesTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(SlidingQuantilesTest, Keys);

template <class Key>
void CheckInput(const SlidingInput<Key>& input) {
  testing::FeedSliding(input, [](const SlidingFeed<Key>& feed, std::mt19937_64& random) {
    testing::ForWindows(feed, random, 3, [&](const SlidingRange& range, std::uint64_t n) {
      testing::CheckQuantiles(feed, range, n, random());
    });
  });
}

TYPED_TEST(SlidingQuantilesTest, HoldWhateverComesWhenever) {
  testing::ForSeeds<SlidingInput<TypeParam>>(
      Cases(300), [](auto& random) { return testing::DrawSliding<TypeParam>(random, kMostKeys); },
      CheckInput<TypeParam>);
}

TYPED_TEST(SlidingQuantilesTest, EveryWidth) {
  testing::ForEveryWidth<TypeParam>(
      Distribution::kLognormal, 1,
      [](const SlidingFeed<TypeParam>& feed, const SlidingRange& range, std::uint64_t n) {
        testing::CheckQuantiles(feed, range, n, n);
      });
}

TYPED_TEST(SlidingQuantilesTest, LargeWindowsOfEachDistribution) {
  using Key = TypeParam;
  std::mt19937_64 random(5);
  for (const Distribution distribution : testing::kDistributions) {
    SCOPED_TRACE(Name(distribution));
    SlidingOptions options;
    options.epsilon = 0.02;
    options.max_values = 100'000;
    options.max_age_us = 70'000;
    options.block_size = 128;
    SlidingFeed<Key> feed(options);
    const auto keys = testing::Generate<Key>(distribution, 150'000, 9);
    std::span<const Key> left(keys);
    std::int64_t clock = 0;
    while (!left.empty()) {
      const std::size_t count = std::min<std::size_t>(left.size(), 1 + random() % 900);
      feed.Append(left.first(count), clock += static_cast<std::int64_t>(random() % 1000));
      left = left.subspan(count);
      if (random() % 60 != 0 && !left.empty()) continue;
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t width = 1 + random() % options.max_values;
        ASSERT_NO_FATAL_FAILURE(testing::CheckQuantiles(feed, feed.record.Last(width, feed.open()),
                                                        std::min(width, feed.n()), random()));
        const auto age = static_cast<std::int64_t>(1 + random() % 70'000);
        ASSERT_NO_FATAL_FAILURE(
            testing::CheckQuantiles(feed, feed.record.Within(age, clock, feed.marks()),
                                    feed.CountWithin(age, clock), random()));
      }
    }
  }
}

TEST(SlidingQuantiles, EverythingExpiresAtOnce) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_age_us = 1000;
  options.block_size = 64;
  SlidingFeed<std::uint32_t> feed(options);
  const std::size_t empty = feed.quantiles.bytes() + feed.frequencies.bytes();
  const auto keys = testing::Generate<std::uint32_t>(Distribution::kUniform, 20'000, 1);
  for (int round = 0; round < 3; ++round) {
    feed.Append(keys, round * 10'000);
    for (const std::int64_t age : {1, 999, 1000}) {
      const auto range = feed.record.Within(age, 0, feed.marks());
      ASSERT_EQ(range.n_high(), 20'000u);
      ASSERT_NO_FATAL_FAILURE(testing::CheckQuantiles(feed, range, 20'000, 3));
    }
    // Seen from later, the window is empty, and then so is the summary.
    const auto later = feed.record.Within(1000, round * 10'000 + 1000, feed.marks());
    ASSERT_EQ(later.n_high(), 0u);
    EXPECT_EQ(feed.quantiles.Cover(later, feed.record).View({}).n(), 0u);
    EXPECT_THROW(feed.quantiles.Cover(later, feed.record).View({}).Quantile(0.5), std::logic_error);
    feed.Advance(round * 10'000 + 1000);
    EXPECT_EQ(feed.quantiles.samples(), 0u);
    EXPECT_LT(feed.quantiles.bytes() + feed.frequencies.bytes(), empty + 2048);
  }
}

TEST(SlidingQuantiles, AnswersKeepWhatTheyReadWhileTheSummaryGoesOn) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 3000;
  options.block_size = 64;
  SlidingFeed<std::uint64_t> feed(options);
  const auto keys = testing::Generate<std::uint64_t>(Distribution::kUniform, 9000, 1);
  feed.Append(keys, 0);
  const auto range = feed.record.Last(3000, feed.open());
  const auto cover = feed.quantiles.Cover(range, feed.record);
  const auto later = feed.Later(range);
  const auto before = cover.View(later).Quantile(0.3);
  feed.Append(keys, 0);
  const auto after = cover.View(later).Quantile(0.3);
  EXPECT_EQ(before.value, after.value);
  EXPECT_EQ(before.rank_low, after.rank_low);
  EXPECT_EQ(before.rank_high, after.rank_high);
  EXPECT_THROW(feed.quantiles.Cover(range, feed.record), std::logic_error);
}

TEST(SlidingQuantiles, UnseenValuesWidenTheBounds) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 3000;
  options.block_size = 64;
  SlidingFeed<std::uint32_t> feed(options);
  const auto keys = testing::Generate<std::uint32_t>(Distribution::kUniform, 5000, 1);
  feed.Append(keys, 0);
  ASSERT_GT(feed.open(), 0u);
  const auto range = feed.record.Last(2000, feed.open());
  const auto view = feed.quantiles.Cover(range, feed.record).View({});
  const auto truth = feed.Truth(2000);
  EXPECT_EQ(view.n(), 2000u);
  for (const auto key : keys) {
    const auto bounds = view.Bounds(key);
    EXPECT_LE(bounds.at_most_low, truth.AtMost(key));
    EXPECT_GE(bounds.at_most_high, truth.AtMost(key));
  }
}

TEST(SlidingQuantiles, RefusesWhatItCannotAnswer) {
  SlidingOptions options;
  options.max_values = 1000;
  options.block_size = 64;
  SlidingFeed<std::uint32_t> feed(options);
  EXPECT_THROW(feed.record.Last(0, 0), std::invalid_argument);
  EXPECT_THROW(feed.record.Last(1001, 0), std::invalid_argument);
  EXPECT_THROW(feed.record.Within(1, 0, {}), std::invalid_argument);
  const std::vector<std::uint32_t> few(63);
  EXPECT_THROW(feed.quantiles.AddBlock(few, 0), std::invalid_argument);
  EXPECT_THROW(feed.frequencies.AddBlock(few, 0), std::invalid_argument);
}

}  // namespace
}  // namespace tidemark
