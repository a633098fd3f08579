// The schedule of the bitonic network, by the 0-1 principle: a network of comparators sorts every
// input if it sorts every input of zeros and ones. No GL; gl_bitonic_gl_test.cc runs it there.
#include "gpu/sort/network_schedule.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <sstream>

namespace tidemark::sort {
namespace {

TEST(NetworkSchedule, OfOneKeyIsEmpty) { EXPECT_TRUE(BitonicSchedule(0).empty()); }

TEST(NetworkSchedule, HasOneStepForEachStageAndDistance) {
  const std::vector<NetworkStep> expected = {{1, 1, 1, true}, {2, 1, 2, true},  {2, 2, 1, false},
                                             {3, 1, 4, true}, {3, 2, 2, false}, {3, 3, 1, false}};
  EXPECT_EQ(BitonicSchedule(3), expected);
  for (std::uint32_t k = 0; k <= 24; ++k) {
    EXPECT_EQ(BitonicSchedule(k).size(), std::size_t{k} * (k + 1) / 2);
  }
}

TEST(NetworkSchedule, PrintsAStepOnALine) {
  std::ostringstream out;
  for (const NetworkStep& step : BitonicSchedule(2)) out << step << '\n';
  EXPECT_EQ(out.str(),
            "stage 1 step 1: distance 1 mirrored\n"
            "stage 2 step 1: distance 2 mirrored\n"
            "stage 2 step 2: distance 1\n");
}

// The first step of a stage mirrors each block, as the first step of PBSN does (Govindaraju et al.
// (Cache-Efficient Sorting, 2005), fig. 4); the other steps compare at the distance itself, and
// never in the reverse direction.
TEST(NetworkSchedule, ReversesOnlyInTheFirstStepOfAStage) {
  for (const NetworkStep& step : BitonicSchedule(6)) {
    const std::uint32_t block = 1U << step.stage;
    for (std::uint32_t i = 0; i < 64; ++i) {
      const std::uint32_t partner = step.Partner(i);
      if (step.step == 1) {
        EXPECT_EQ(partner, i / block * block + (block - 1 - i % block)) << step << " at " << i;
      } else {
        EXPECT_EQ(std::max(partner, i) - std::min(partner, i), step.distance)
            << step << " at " << i;
      }
    }
  }
}

TEST(NetworkSchedule, PairsEveryKeyWithOneOtherAndTheLowerIndexKeepsTheSmaller) {
  for (std::uint32_t k = 1; k <= 8; ++k) {
    for (const NetworkStep& step : BitonicSchedule(k)) {
      for (std::uint32_t i = 0; i < (1U << k); ++i) {
        const std::uint32_t partner = step.Partner(i);
        ASSERT_LT(partner, 1U << k);
        ASSERT_NE(partner, i);
        ASSERT_EQ(step.Partner(partner), i);
        ASSERT_EQ(step.KeepsSmaller(i), i < partner) << step << " at " << i;
      }
    }
  }
}

TEST(NetworkSchedule, SortsEveryInputOfZerosAndOnesUpTo16Keys) {
  for (std::uint32_t k = 0; k <= 4; ++k) {
    const std::vector<NetworkStep> schedule = BitonicSchedule(k);
    const std::uint32_t n = 1U << k;
    for (std::uint32_t input = 0; input < (1U << n); ++input) {
      std::vector<std::uint8_t> keys(n);
      for (std::uint32_t i = 0; i < n; ++i) keys[i] = (input >> i) & 1;
      RunSchedule<std::uint8_t>(schedule, keys);
      ASSERT_TRUE(std::is_sorted(keys.begin(), keys.end())) << "n " << n << " input " << input;
      ASSERT_EQ(std::count(keys.begin(), keys.end(), 1), std::popcount(input));
    }
  }
}

TEST(NetworkSchedule, SortsRandomInputsOfZerosAndOnesUpTo1024Keys) {
  for (std::uint32_t k = 5; k <= 10; ++k) {
    const std::vector<NetworkStep> schedule = BitonicSchedule(k);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      std::mt19937_64 random(seed);
      const std::uint64_t ones_of_64 = random() % 65;  // from none to all
      std::vector<std::uint8_t> keys(std::size_t{1} << k);
      for (std::uint8_t& key : keys) key = random() % 64 < ones_of_64 ? 1 : 0;
      const auto ones = std::count(keys.begin(), keys.end(), 1);
      RunSchedule<std::uint8_t>(schedule, keys);
      ASSERT_TRUE(std::is_sorted(keys.begin(), keys.end())) << "k " << k << " seed " << seed;
      ASSERT_EQ(std::count(keys.begin(), keys.end(), 1), ones) << "k " << k << " seed " << seed;
    }
  }
}

// The principle can be seen to bite: without any one of its steps the network does not sort.
TEST(NetworkSchedule, SortsNoLongerWithoutOneStep) {
  const std::vector<NetworkStep> schedule = BitonicSchedule(4);
  for (std::size_t left_out = 0; left_out < schedule.size(); ++left_out) {
    std::vector<NetworkStep> broken = schedule;
    broken.erase(broken.begin() + static_cast<std::ptrdiff_t>(left_out));
    bool always_sorted = true;
    for (std::uint32_t input = 0; input < (1U << 16) && always_sorted; ++input) {
      std::vector<std::uint8_t> keys(16);
      for (std::uint32_t i = 0; i < 16; ++i) keys[i] = (input >> i) & 1;
      RunSchedule<std::uint8_t>(broken, keys);
      always_sorted = std::is_sorted(keys.begin(), keys.end());
    }
    EXPECT_FALSE(always_sorted) << "without " << schedule[left_out];
  }
}

}  // namespace
}  // namespace tidemark::sort
