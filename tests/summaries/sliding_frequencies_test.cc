// Counts of items and heavy hitters over sliding windows against an exact oracle.
#include "summaries/sliding_frequencies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
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
class SlidingFrequenciesTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(SlidingFrequenciesTest, Keys);

template <class Key>
void CheckInput(const SlidingInput<Key>& input) {
  testing::FeedSliding(input, [](const SlidingFeed<Key>& feed, std::mt19937_64& random) {
    testing::ForWindows(feed, random, 3, [&](const SlidingRange& range, std::uint64_t n) {
      testing::CheckFrequencies(feed, range, n, random());
    });
  });
}

// Few items, so that counts are large: what lossy counting drops, and when.
template <class Key>
SlidingInput<Key> DrawItems(std::mt19937_64& random) {
  auto input = testing::DrawSliding<Key>(random, kMostKeys);
  const std::uint64_t items = 1 + random() % 60;
  const bool runs = random() % 2 == 0;
  for (std::size_t i = 0; i < input.keys.size(); ++i) {
    // Alike in value, or in time: a burst of one item that ends within a block.
    input.keys[i] = runs && i % 97 != 0 ? static_cast<Key>(i / 150 % items)
                                        : static_cast<Key>(input.keys[i] % items);
  }
  return input;
}

TYPED_TEST(SlidingFrequenciesTest, HoldWhateverComesWhenever) {
  testing::ForSeeds<SlidingInput<TypeParam>>(
      Cases(150), [](auto& random) { return testing::DrawSliding<TypeParam>(random, kMostKeys); },
      CheckInput<TypeParam>);
}

TYPED_TEST(SlidingFrequenciesTest, HoldForFewItems) {
  testing::ForSeeds<SlidingInput<TypeParam>>(Cases(300), DrawItems<TypeParam>,
                                             CheckInput<TypeParam>);
}

TYPED_TEST(SlidingFrequenciesTest, EveryWidth) {
  testing::ForEveryWidth<TypeParam>(
      Distribution::kZipf, 3,
      [](const SlidingFeed<TypeParam>& feed, const SlidingRange& range, std::uint64_t n) {
        testing::CheckFrequencies(feed, range, n, n);
      });
}

TYPED_TEST(SlidingFrequenciesTest, LargeWindowsOfEachDistribution) {
  using Key = TypeParam;
  std::mt19937_64 random(5);
  for (const Distribution distribution :
       {Distribution::kUniform, Distribution::kZipf, Distribution::kAllEqual,
        Distribution::kFewDistinct, Distribution::kSawtooth, Distribution::kFloatExtremes}) {
    SCOPED_TRACE(Name(distribution));
    SlidingOptions options;
    options.epsilon = 0.02;
    options.max_values = 60'000;
    options.max_age_us = 40'000;
    options.block_size = 128;
    SlidingFeed<Key> feed(options);
    const auto keys = testing::Generate<Key>(distribution, 100'000, 9);
    std::span<const Key> left(keys);
    std::int64_t clock = 0;
    while (!left.empty()) {
      const std::size_t count = std::min<std::size_t>(left.size(), 1 + random() % 900);
      feed.Append(left.first(count), clock += static_cast<std::int64_t>(random() % 1000));
      left = left.subspan(count);
      if (random() % 40 != 0 && !left.empty()) continue;
      const std::uint64_t width = 1 + random() % options.max_values;
      ASSERT_NO_FATAL_FAILURE(testing::CheckFrequencies(feed, feed.record.Last(width, feed.open()),
                                                        std::min(width, feed.n()), random()));
      const auto age = static_cast<std::int64_t>(1 + random() % 40'000);
      ASSERT_NO_FATAL_FAILURE(
          testing::CheckFrequencies(feed, feed.record.Within(age, clock, feed.marks()),
                                    feed.CountWithin(age, clock), random()));
    }
  }
}

TEST(SlidingFrequencies, KeysAreThoseThatAnswersMayNeed) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 2000;
  options.block_size = 64;
  SlidingFeed<std::uint32_t> feed(options);
  auto keys = testing::Generate<std::uint32_t>(Distribution::kZipf, 6000, 1);
  feed.Append(keys, 0);
  std::vector<std::uint32_t> kept;
  feed.record.ForEachKey([&](std::uint32_t key) { kept.push_back(key); });
  feed.frequencies.ForEachKey([&](std::uint32_t key) { kept.push_back(key); });
  std::sort(kept.begin(), kept.end());
  for (const std::uint64_t width : {1, 30, 500, 2000}) {
    const auto range = feed.record.Last(width, feed.open());
    const auto snapshot = feed.frequencies.Cover(range, feed.record).Snapshot();
    snapshot.ForEachKey(
        [&](std::uint32_t key) { EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), key)); });
  }
}

}  // namespace
}  // namespace tidemark
