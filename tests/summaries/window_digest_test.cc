// Digests of sorted windows: what they promise, and that they are what digest_rule.h defines.
#include "summaries/window_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "summaries/digest_rule.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/digest_reference.h"
#include "tests/summaries/distributions.h"

namespace tidemark {
namespace {

using testing::CheckDigest;
using testing::DigestByDefinition;
using testing::RandomDigestWindow;

template <class Key>
class WindowDigestTest : public ::testing::Test {};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(WindowDigestTest, KeyTypes);

TYPED_TEST(WindowDigestTest, KeepsItsPromiseAndIsAsDefined) {
  using Key = TypeParam;
  const int cases = Cases(1500);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::vector<Key> keys = RandomDigestWindow<Key>(random);
    std::sort(keys.begin(), keys.end());
    const std::uint64_t stride = 1 + random() % (random() % 4 == 0 ? 2 * keys.size() + 1 : 40);
    const auto digest = DigestSorted<Key>(keys, stride);
    ASSERT_NO_FATAL_FAILURE(CheckDigest<Key>(digest, keys, stride));
    const auto expected = DigestByDefinition<Key>(keys, stride);
    ASSERT_EQ(digest.positions, expected.positions) << "stride " << stride;
    ASSERT_EQ(digest.keys, expected.keys) << "stride " << stride;
  }
}

TYPED_TEST(WindowDigestTest, LargeWindowsOfEveryDistribution) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    for (const std::size_t size : {std::size_t{1} << 14, std::size_t{50'000}}) {
      for (const std::uint64_t stride : {1, 7, 50, 500}) {
        SCOPED_TRACE(::testing::Message()
                     << testing::Name(distribution) << ' ' << size << " stride " << stride);
        std::vector<Key> keys = testing::Generate<Key>(distribution, size, 3);
        std::sort(keys.begin(), keys.end());
        const auto digest = DigestSorted<Key>(keys, stride);
        ASSERT_NO_FATAL_FAILURE(CheckDigest<Key>(digest, keys, stride));
        ASSERT_EQ(digest, DigestByDefinition<Key>(keys, stride));
      }
    }
  }
}

TYPED_TEST(WindowDigestTest, SmallCases) {
  using Key = TypeParam;
  EXPECT_TRUE(DigestSorted<Key>({}, 5).keys.empty());
  const std::vector<Key> one{7};
  EXPECT_EQ(DigestSorted<Key>(one, 5), (WindowDigest<Key>{1, 5, {7}, {1}}));
  const std::vector<Key> few{1, 2, 2, 9};
  EXPECT_EQ(DigestSorted<Key>(few, 1), (WindowDigest<Key>{4, 1, {1, 2, 2, 9}, {1, 2, 3, 4}}));
  EXPECT_EQ(DigestSorted<Key>(few, 9), (WindowDigest<Key>{4, 9, {1, 9}, {1, 4}}));
  EXPECT_EQ(DigestSorted<Key>(few, std::numeric_limits<std::uint64_t>::max()).positions,
            (std::vector<std::uint32_t>{1, 4}));
  // A run longer than the stride: both its ends, whatever stands before it.
  const std::vector<Key> run{5, 5, 5, 5, 5, 6};
  EXPECT_EQ(DigestSorted<Key>(run, 2), (WindowDigest<Key>{6, 2, {5, 5, 6}, {1, 5, 6}}));
  const std::vector<Key> all(100, std::numeric_limits<Key>::max());
  EXPECT_EQ(DigestSorted<Key>(all, 3), (WindowDigest<Key>{100, 3, {all[0], all[0]}, {1, 100}}));
  EXPECT_THROW(DigestSorted<Key>(few, 0), std::invalid_argument);
}

TYPED_TEST(WindowDigestTest, UniformKeysLeaveLittleOfTheStrideUnused) {
  using Key = TypeParam;
  std::vector<Key> keys =
      testing::Generate<Key>(testing::Distribution::kUniform, std::size_t{1} << 16, 1);
  std::sort(keys.begin(), keys.end());
  const auto digest = DigestSorted<Key>(keys, 65);
  EXPECT_LE(digest.keys.size(), keys.size() / 65 * 5 / 4);
}

TYPED_TEST(WindowDigestTest, LevelIsTheLeastThatSpansFewEnoughCells) {
  using Key = TypeParam;
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const int bits = static_cast<int>(random() % (8 * sizeof(Key)));
    const Key a = static_cast<Key>(random()),
              b = static_cast<Key>(a + (static_cast<Key>(random()) >> bits));
    const Key min = std::min(a, b), max = std::max(a, b);
    const std::uint64_t weight = 1 + random() % 300'000, stride = 1 + random() % 400;
    const std::uint64_t cells = internal::WindowCells(weight, stride);
    ASSERT_LE(cells, internal::kMaxCells);
    const int level = internal::CellLevel(min, max, weight, stride);
    ASSERT_LT(level, static_cast<int>(8 * sizeof(Key)));
    ASSERT_LT((max >> level) - (min >> level), cells);
    if (level > 0) {
      ASSERT_GE((max >> (level - 1)) - (min >> (level - 1)), cells);
    }
  }
}

}  // namespace
}  // namespace tidemark
