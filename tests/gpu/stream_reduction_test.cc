// Prefix sums and stream reduction as data, without GL; gl_reduce_gl_test.cc runs them there.
#include "gpu/reduce/stream_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>

#include "gpu/reduce/reduced_channel.h"

namespace tidemark::reduce {
namespace {

constexpr std::array kMethods = {ScanMethod::kHillisSteele, ScanMethod::kBlelloch};

std::vector<std::uint32_t> Wanted(std::span<const std::uint32_t> unwanted) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < unwanted.size(); ++i) {
    if (unwanted[i] == 0) places.push_back(i);
  }
  return places;
}

TEST(PrefixScan, SumsEveryBlockWithTheAdditionsOfTheLiterature) {
  std::mt19937 random(1);
  for (std::uint32_t log2_block = 0; log2_block <= 10; ++log2_block) {
    const std::size_t block = std::size_t{1} << log2_block, blocks = 3;
    std::vector<std::uint32_t> values(blocks * block);
    for (std::uint32_t& value : values) value = random() % 100;
    std::vector<std::uint32_t> expected = values;
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(b * block);
      std::partial_sum(begin, begin + static_cast<std::ptrdiff_t>(block), begin);
    }
    for (const ScanMethod method : kMethods) {
      std::vector<std::uint32_t> sums = values;
      const std::vector<ScanPass> schedule = ScanSchedule(method, log2_block);
      const std::uint64_t additions = RunScan(schedule, log2_block, sums);
      EXPECT_EQ(sums, expected) << "blocks of 2^" << log2_block;
      if (method == ScanMethod::kHillisSteele) {
        EXPECT_EQ(schedule.size(), log2_block);
        EXPECT_EQ(additions, blocks * (block * log2_block - (block - 1)));
      } else if (log2_block > 0) {
        EXPECT_EQ(schedule.size(), 2 * log2_block - 1);
        EXPECT_EQ(additions, blocks * (2 * block - 2 - log2_block));
      }
    }
  }
}

TEST(StreamReduction, OfEveryPatternOfSixteenElements) {
  for (std::uint32_t pattern = 0; pattern < (1U << 16); ++pattern) {
    std::vector<std::uint32_t> unwanted(16);
    for (std::uint32_t i = 0; i < 16; ++i) unwanted[i] = (pattern >> i) & 1;
    const std::vector<std::uint32_t> expected = Wanted(unwanted);
    ReductionCounts counts;
    ASSERT_EQ(ReduceByHorn(unwanted, kMethods[pattern % 2], counts), expected) << pattern;
    for (std::uint32_t block = 0; block <= 4; ++block) {
      const std::uint32_t width = block + (pattern >> 3) % (5 - block);
      ASSERT_EQ(ReduceByBlocks(unwanted, kMethods[pattern % 2], block, width, counts), expected)
          << pattern << ", blocks of 2^" << block << ", rows of 2^" << width;
    }
  }
}

TEST(StreamReduction, OfLargeStreamsByAnyShare) {
  std::mt19937 random(2);
  for (const std::uint32_t log2_size : {10U, 13U, 16U}) {
    for (const unsigned share : {0U, 1U, 30U, 60U, 99U, 100U}) {
      std::vector<std::uint32_t> unwanted(std::size_t{1} << log2_size);
      for (std::uint32_t& u : unwanted) u = random() % 100 < share ? 1 : 0;
      const std::vector<std::uint32_t> expected = Wanted(unwanted);
      for (const ScanMethod method : kMethods) {
        ReductionCounts horn, blocks;
        ASSERT_EQ(ReduceByHorn(unwanted, method, horn), expected);
        ASSERT_EQ(ReduceByBlocks(unwanted, method, 6, (log2_size + 1) / 2 + 1, blocks), expected);
        // §III-D: the search within blocks of 64 takes at most log 64 rounds, Horn's log n.
        EXPECT_LE(horn.search_steps, unwanted.size() * log2_size);
        EXPECT_LE(blocks.search_steps, unwanted.size() * 6);
        EXPECT_LE(blocks.search_steps, horn.search_steps);
        EXPECT_LT(blocks.additions, horn.additions);
        EXPECT_LE(blocks.lines, 2 * (unwanted.size() >> 6));
      }
    }
  }
}

TEST(StreamReduction, TheFirstPlacesOfABlockAreFoundAtOnceWhereNothingIsUnwanted) {
  std::vector<std::uint32_t> sums(64, 0);
  std::uint64_t steps = 0;
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(FindElement(sums, i, steps), i);
  EXPECT_EQ(steps, 0u) << "figure 5: the bounds meet";
}

TEST(StreamReduction, ALineThatLeavesItsRowGoesOnInTheNext) {
  // Blocks of 4 in rows of 8 (figures 6 and 7): 3, 4, 0 and 3 wanted, then 4.
  const std::vector<std::uint32_t> block_sums = {1, 1, 5, 6, 6};
  const std::vector<Segment> expected = {
      {0, 0, 3, 0}, {3, 0, 4, 4}, {7, 0, 1, 12}, {0, 1, 2, 13}, {2, 1, 4, 16}};
  EXPECT_EQ(ConcatenatingSegments(block_sums, 2, 3), expected);
}

TEST(ReducedChannel, RunsAndSamplesAreThoseOfTheWindow) {
  std::mt19937_64 random(3);
  for (std::size_t n = 0; n < 300; ++n) {
    std::vector<std::uint64_t> keys(n);
    for (std::uint64_t& key : keys) key = random() % (1 + n / 3);
    std::sort(keys.begin(), keys.end());
    std::vector<std::uint64_t> again;
    for (const KeyRun<std::uint64_t>& run : RunsOf<std::uint64_t>(keys)) {
      ASSERT_GT(run.end, again.size());
      again.resize(run.end, run.key);
    }
    EXPECT_EQ(again, keys);
    const SamplePlaces places{static_cast<std::uint32_t>(random() % 9),
                              static_cast<std::uint32_t>(1 + random() % 9)};
    const std::vector<std::uint64_t> samples = SamplesOf<std::uint64_t>(keys, places);
    ASSERT_EQ(samples.size(), places.Count(static_cast<std::uint32_t>(n)));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(samples[i], keys[places.first + i * places.stride]);
    }
  }
}

}  // namespace
}  // namespace tidemark::reduce
