// The periodic balanced sorting network as data: the quads of routine 4.4, the 0-1 principle, the
// paper's count, and the floats that carry the keys. No GL; gl_pbsn_gl_test.cc runs it there.
#include "gpu/sort/pbsn_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "gpu/sort/blend_keys.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::MakeKeys;

TEST(PbsnPlan, HasAsManyStagesAsStepsAndHalvesTheBlock) {
  const std::vector<PbsnStep> expected = {{1, 3}, {1, 2}, {1, 1}, {2, 3}, {2, 2},
                                          {2, 1}, {3, 3}, {3, 2}, {3, 1}};
  EXPECT_EQ(PbsnPlan(3), expected);
  EXPECT_TRUE(PbsnPlan(0).empty());
  for (std::uint32_t log2 = 1; log2 <= kPbsnMaxLog2; ++log2) {
    EXPECT_EQ(PbsnPlan(log2).size(), std::size_t{log2} * log2);
  }
}

TEST(PbsnPlan, DrawsRowBlocksAndBlocksAsRoutine44) {
  // 32 keys: 4 columns, 8 rows. Blocks of 4 are rows: two quads of 2 columns and all rows.
  const PbsnSize size = PbsnSizeOf(5);
  EXPECT_EQ(size.width_log2, 2U);
  EXPECT_EQ(size.height_log2, 3U);
  EXPECT_EQ(QuadsOf({1, 2}, size, true), (PbsnQuads{0, 0, 2, 8, 4, 0, 2, 8, 4, 0, 1}));
  EXPECT_EQ(QuadsOf({1, 2}, size, false), (PbsnQuads{2, 0, 2, 8, 2, 0, 0, 8, 4, 0, 1}));
  EXPECT_EQ(QuadsOf({1, 1}, size, true), (PbsnQuads{0, 0, 1, 8, 2, 0, 1, 8, 2, 0, 2}));
  // Blocks of 16 are 4 rows: two blocks, mirrored in x and y.
  EXPECT_EQ(QuadsOf({1, 4}, size, true), (PbsnQuads{0, 0, 4, 2, 4, 4, 0, 2, 0, 4, 2}));
  EXPECT_EQ(QuadsOf({1, 4}, size, false), (PbsnQuads{0, 2, 4, 2, 4, 2, 0, 0, 0, 4, 2}));
}

// The quads of a step, drawn texel by texel over the keys' indices: every texel once, and each with
// its mirror image in its block.
TEST(PbsnPlan, ComparesEveryKeyWithItsMirrorImageOnce) {
  for (std::uint32_t log2 = 1; log2 <= 9; ++log2) {
    const PbsnSize size = PbsnSizeOf(log2);
    for (std::uint32_t block = 1; block <= log2; ++block) {
      std::vector<int> drawn(std::size_t{1} << log2);
      for (const bool smaller : {true, false}) {
        const PbsnQuads quads = QuadsOf({1, block}, size, smaller);
        for (std::uint32_t k = 0; k < quads.count; ++k) {
          for (std::uint32_t y = 0; y < quads.height; ++y) {
            for (std::uint32_t x = 0; x < quads.width; ++x) {
              // As the rasteriser interpolates: at the middle of the texel.
              const double right = (x + 0.5) / quads.width;
              const double up = (y + 0.5) / quads.height;
              const auto from_x = static_cast<std::uint32_t>(
                  std::floor(quads.from_x * (1 - right) + quads.to_x * right));
              const auto from_y =
                  static_cast<std::uint32_t>(std::floor(quads.from_y * (1 - up) + quads.to_y * up));
              const std::uint32_t left = k * quads.distance_x;
              const std::uint32_t below = k * quads.distance_y;
              const std::uint32_t i =
                  ((quads.y + y + below) << size.width_log2) + quads.x + x + left;
              const std::uint32_t partner = ((from_y + below) << size.width_log2) + from_x + left;
              ASSERT_EQ(partner, i ^ ((1U << block) - 1)) << "2^" << log2 << " block 2^" << block;
              ASSERT_EQ(smaller, i < partner);
              ++drawn[i];
            }
          }
        }
      }
      ASSERT_EQ(std::count(drawn.begin(), drawn.end(), 1), 1 << log2);
    }
  }
}

TEST(PbsnPlan, SortsEveryInputOfZerosAndOnesUpTo16Keys) {
  for (std::uint32_t log2 = 1; log2 <= 4; ++log2) {
    const std::vector<PbsnStep> plan = PbsnPlan(log2);
    const std::uint32_t n = 1U << log2;
    for (std::uint32_t input = 0; input < (1U << n); ++input) {
      std::vector<std::uint32_t> keys(n);
      for (std::uint32_t i = 0; i < n; ++i) keys[i] = (input >> i) & 1;
      RunPbsn(plan, keys);
      ASSERT_TRUE(std::is_sorted(keys.begin(), keys.end())) << "n " << n << " input " << input;
      ASSERT_EQ(std::count(keys.begin(), keys.end(), 1), std::popcount(input));
    }
  }
}

// log n stages are enough and, for some input, needed.
TEST(PbsnPlan, SortsNoLongerWithOneStageLess) {
  for (std::uint32_t log2 = 2; log2 <= 4; ++log2) {
    std::vector<PbsnStep> plan = PbsnPlan(log2);
    plan.resize(plan.size() - log2);
    const std::uint32_t n = 1U << log2;
    bool always_sorted = true;
    for (std::uint32_t input = 0; input < (1U << n) && always_sorted; ++input) {
      std::vector<std::uint32_t> keys(n);
      for (std::uint32_t i = 0; i < n; ++i) keys[i] = (input >> i) & 1;
      RunPbsn(plan, keys);
      always_sorted = std::is_sorted(keys.begin(), keys.end());
    }
    EXPECT_FALSE(always_sorted) << "2^" << log2;
  }
}

TEST(PbsnPlan, SortsEveryDistribution) {
  for (std::uint32_t log2 = 1; log2 <= 10; ++log2) {
    for (const std::string& distribution : Distributions()) {
      auto keys = MakeKeys<std::uint32_t>(distribution, std::size_t{1} << log2, log2);
      auto expected = keys;
      std::sort(expected.begin(), expected.end());
      RunPbsn(PbsnPlan(log2), keys);
      ASSERT_TRUE(keys == expected) << distribution << " 2^" << log2;
    }
  }
}

TEST(PbsnPlan, ComparesNLogSquaredNTimesAChannel) {
  for (std::uint32_t log2 = 1; log2 <= kPbsnMaxLog2; ++log2) {
    const std::uint64_t n = std::uint64_t{1} << log2;
    const PbsnSize size = PbsnSizeOf(log2);
    std::uint64_t compared = 0;
    for (const PbsnStep& step : PbsnPlan(log2)) {
      for (const bool smaller : {true, false}) {
        const PbsnQuads quads = QuadsOf(step, size, smaller);
        compared += std::uint64_t{quads.count} * quads.width * quads.height;
      }
    }
    EXPECT_EQ(compared, n * log2 * log2);
    const SortCounts counts = PbsnCounts(log2);
    EXPECT_EQ(counts.comparisons, 4 * n * log2 * log2);
    EXPECT_EQ(counts.passes, log2 * log2);
    // Blending reads 32 bytes a texel and writes 16; copying reads and writes 16.
    EXPECT_EQ(counts.bytes_moved, n * (80 * log2 * log2 + 32));
  }
}

TEST(BlendKeys, AreNormalFloatsInTheOrderOfTheirRanks) {
  const auto value = [](std::uint32_t rank) { return std::bit_cast<float>(BlendBits(rank)); };
  const auto expect_in_order = [&](std::uint32_t rank) {
    ASSERT_TRUE(std::isnormal(value(rank))) << rank;
    ASSERT_EQ(BlendRank(BlendBits(rank)), rank);
    if (rank > 0) {
      ASSERT_LT(value(rank - 1), value(rank)) << rank;
    }
  };
  for (std::uint32_t i = 0; i < 1000; ++i) {
    expect_in_order(i);
    expect_in_order(kBlendHalf - 500 + i);
    expect_in_order(kBlendRanks - 1 - i);
  }
  std::mt19937_64 random(2005);
  for (int i = 0; i < 100000; ++i)
    expect_in_order(static_cast<std::uint32_t>(random() % kBlendRanks));
}

}  // namespace
}  // namespace tidemark::sort
