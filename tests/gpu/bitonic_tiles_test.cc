// How the steps of the bitonic network are drawn, as data: every texel once, by quads that fit a
// tile; and the schedule that merges. No GL; gl_bitonic_gl_test.cc draws them there.
#include "gpu/sort/bitonic_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tidemark::sort {
namespace {

TEST(BitonicTiles, CoverTheKeysOfEitherKindOnceAndFitATile) {
  for (std::uint32_t log2 = 1; log2 <= 12; ++log2) {
    const std::uint32_t width_log2 = (log2 + 1) / 2;
    const std::uint32_t height_log2 = log2 / 2;
    for (const std::uint32_t tile : {1U, 4U, 16U, 64U}) {
      for (const std::uint32_t edge_min : {1U, 8U}) {
        const BitonicDrawing drawing = {tile, edge_min, true};
        for (const NetworkStep& step : BitonicMergeSchedule(log2)) {
          if (!DrawnAsTiles(step, width_log2, drawing)) continue;
          std::vector<int> drawn(std::size_t{1} << log2);
          for (const bool smaller : {true, false}) {
            const BitonicTiles tiles = TilesOf(step, width_log2, height_log2, drawing, smaller);
            ASSERT_LE(tiles.width, tile);
            ASSERT_LE(tiles.height, tile);
            for (std::uint32_t quad = 0; quad < tiles.count(); ++quad) {
              // Within one tile of the screen, whose edges are multiples of its own size.
              ASSERT_EQ(tiles.X(quad) % tiles.width, 0U);
              ASSERT_EQ(tiles.Y(quad) % tiles.height, 0U);
              if (quad > 0) {
                ASSERT_GE(tiles.Y(quad), tiles.Y(quad - 1)) << "row by row";
              }
              for (std::uint32_t y = 0; y < tiles.height; ++y) {
                for (std::uint32_t x = 0; x < tiles.width; ++x) {
                  const std::uint32_t i = ((tiles.Y(quad) + y) << width_log2) + tiles.X(quad) + x;
                  ASSERT_LT(i, drawn.size());
                  ASSERT_EQ(step.KeepsSmaller(i), smaller) << step << " at " << i;
                  ++drawn[i];
                }
              }
            }
          }
          ASSERT_EQ(std::count(drawn.begin(), drawn.end(), 1), 1 << log2) << step;
        }
      }
    }
  }
}

TEST(BitonicTiles, CutsThePapersQuadsInto64By64) {
  // 2^16 keys: 256 by 256. A step of distance 128 has one quad of 128 columns of either kind, which
  // is two tiles wide and four high; one of distance 2^15 is 128 rows of 256.
  const BitonicDrawing drawing = {64, 8, true};
  const BitonicTiles columns = TilesOf({16, 9, 128, false}, 8, 8, drawing, false);
  EXPECT_EQ(columns.columns, 2U);
  EXPECT_EQ(columns.rows, 4U);
  EXPECT_EQ(columns.X(0), 128U);
  EXPECT_EQ(columns.X(1), 192U);
  EXPECT_EQ(columns.Y(2), 64U);
  const BitonicTiles rows = TilesOf({16, 1, 1 << 15, true}, 8, 8, drawing, false);
  EXPECT_EQ(rows.columns, 4U);
  EXPECT_EQ(rows.rows, 2U);
  EXPECT_EQ(rows.Y(0), 128U);
}

TEST(BitonicTiles, DrawsNarrowStepsWithOneQuad) {
  const BitonicDrawing drawing = {64, 8, true};
  EXPECT_TRUE(DrawnAsTiles({16, 13, 8, false}, 8, drawing));
  EXPECT_FALSE(DrawnAsTiles({16, 14, 4, false}, 8, drawing));
  EXPECT_FALSE(DrawnAsTiles({16, 8, 256, false}, 8, drawing)) << "one row high";
  EXPECT_TRUE(DrawnAsTiles({16, 5, 2048, false}, 8, drawing)) << "eight rows high";
  EXPECT_FALSE(DrawnAsTiles({16, 1, 1 << 15, true}, 8, {0, 8, true})) << "tiles are off";
}

TEST(BitonicMergeSchedule, IsTheLastStage) {
  EXPECT_TRUE(BitonicMergeSchedule(0).empty());
  for (std::uint32_t log2 = 1; log2 <= 20; ++log2) {
    const std::vector<NetworkStep> merge = BitonicMergeSchedule(log2);
    ASSERT_EQ(merge.size(), log2);
    EXPECT_TRUE(merge.front().mirrored);
    for (const NetworkStep& step : merge) EXPECT_EQ(step.stage, log2);
  }
}

// Two ascending halves of zeros and ones are told by the number of ones in each: all of them.
TEST(BitonicMergeSchedule, MergesAllAscendingHalvesOfZerosAndOnes) {
  for (std::uint32_t log2 = 1; log2 <= 8; ++log2) {
    const std::vector<NetworkStep> merge = BitonicMergeSchedule(log2);
    const std::size_t half = std::size_t{1} << (log2 - 1);
    for (std::size_t zeros = 0; zeros <= half; ++zeros) {
      for (std::size_t more = 0; more <= half; ++more) {
        std::vector<std::uint8_t> keys(2 * half, 1);
        std::fill_n(keys.begin(), zeros, 0);
        std::fill_n(keys.begin() + static_cast<std::ptrdiff_t>(half), more, 0);
        RunSchedule<std::uint8_t>(merge, keys);
        ASSERT_TRUE(std::is_sorted(keys.begin(), keys.end())) << zeros << " and " << more;
        ASSERT_EQ(static_cast<std::size_t>(std::count(keys.begin(), keys.end(), 0)), zeros + more);
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
