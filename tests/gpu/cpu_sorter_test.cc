// Every CPU algorithm against std::sort, to the bit, and the measurement that chooses among them.
// What is tested elsewhere: the factory's report (sorter_factory_test.cc), GL
// (gl_bitonic_gl_test.cc).
#include "gpu/sort/cpu_sorter.h"

#include <gtest/gtest.h>

#include <thread>

#include "gpu/sort/radix_sort.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::ExpectSortsLikeStdSort;
using testing::Ladder;
using testing::MakeKeys;

class CpuAlgorithmTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const CpuAlgorithm& algorithm() const { return CpuAlgorithms()[GetParam()]; }

  template <class Key>
  void SortsTheLadder() {
    CpuSorter sorter(UseOnly(algorithm()));
    for (const std::string& distribution : Distributions()) {
      for (const std::size_t n : Ladder(1 << 12)) {
        ExpectSortsLikeStdSort<Key>(sorter, {MakeKeys<Key>(distribution, n, n + 1)},
                                    algorithm().name + ", " + distribution);
      }
    }
  }

  template <class Key>
  void SortsLargeWindows() {
    CpuSorter sorter(UseOnly(algorithm()));
    for (const std::string& distribution : Distributions()) {
      for (const std::size_t n : {std::size_t{1} << 14, (std::size_t{1} << 16) + 3}) {
        ExpectSortsLikeStdSort<Key>(sorter, {MakeKeys<Key>(distribution, n, n)},
                                    algorithm().name + ", " + distribution);
      }
    }
  }

  // Keys that lie anywhere in memory, with neighbours that must not change.
  template <class Key>
  void StaysWithinItsWindow() {
    for (std::size_t offset = 1; offset <= 17; ++offset) {
      for (const std::size_t n : {1, 2, 15, 63, 64, 65, 255, 700, 4100}) {
        std::vector<Key> memory = MakeKeys<Key>("random", n + 2 * offset, n * 31 + offset);
        std::vector<Key> expected = memory;
        std::sort(expected.begin() + static_cast<std::ptrdiff_t>(offset),
                  expected.end() - static_cast<std::ptrdiff_t>(offset));
        algorithm().Sort(memory.data() + offset, n);
        ASSERT_TRUE(memory == expected) << algorithm().name << " offset " << offset << " n " << n;
      }
    }
  }
};

TEST_P(CpuAlgorithmTest, SortsTheLadderOf32BitKeys) { SortsTheLadder<std::uint32_t>(); }
TEST_P(CpuAlgorithmTest, SortsTheLadderOf64BitKeys) { SortsTheLadder<std::uint64_t>(); }
TEST_P(CpuAlgorithmTest, SortsTheLadderOf128BitKeys) { SortsTheLadder<Key128>(); }
TEST_P(CpuAlgorithmTest, SortsLargeWindowsOf32BitKeys) { SortsLargeWindows<std::uint32_t>(); }
TEST_P(CpuAlgorithmTest, SortsLargeWindowsOf64BitKeys) { SortsLargeWindows<std::uint64_t>(); }
TEST_P(CpuAlgorithmTest, SortsLargeWindowsOf128BitKeys) { SortsLargeWindows<Key128>(); }
TEST_P(CpuAlgorithmTest, StaysWithinItsWindowOf32BitKeys) { StaysWithinItsWindow<std::uint32_t>(); }
TEST_P(CpuAlgorithmTest, StaysWithinItsWindowOf64BitKeys) { StaysWithinItsWindow<std::uint64_t>(); }
TEST_P(CpuAlgorithmTest, StaysWithinItsWindowOf128BitKeys) { StaysWithinItsWindow<Key128>(); }

INSTANTIATE_TEST_SUITE_P(All, CpuAlgorithmTest,
                         ::testing::Range(std::size_t{0}, CpuAlgorithms().size()),
                         [](const ::testing::TestParamInfo<std::size_t>& algorithm_info) {
                           std::string name = CpuAlgorithms()[algorithm_info.param].name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CpuAlgorithms, EndWithTheBaselineAndHaveRadixSort) {
  const std::vector<CpuAlgorithm>& all = CpuAlgorithms();
  EXPECT_EQ(all.back().name, "std-sort");
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const CpuAlgorithm& a) { return a.name == "radix-lsd-11"; }));
}

TEST(RadixSort, SortsMoreKeysThanAThreadKeepsScratchFor) {
  const std::size_t n = kRadixScratchBytes / sizeof(std::uint64_t) + 1;
  std::vector<std::uint64_t> keys = MakeKeys<std::uint64_t>("random", n, 1);
  std::vector<std::uint64_t> expected = keys;
  std::sort(expected.begin(), expected.end());
  RadixSort11(keys.data(), n);
  EXPECT_TRUE(keys == expected);
}

TEST(CpuSorter, SortsOneToFourChannelsOfDifferentLengths) {
  CpuSorter sorter(UseOnly(CpuAlgorithms().front()));
  std::vector<std::vector<std::uint32_t>> windows;
  for (const std::size_t n : {1000, 0, 1, 333}) {
    windows.push_back(MakeKeys<std::uint32_t>("random", n, n));
    ExpectSortsLikeStdSort(sorter, windows, "channels of different lengths");
  }
  ExpectSortsLikeStdSort<std::uint32_t>(sorter, {}, "no channel");
}

TEST(CpuSorter, UsesTheAlgorithmOfTheWindowsClass) {
  static int calls[kWindowClasses];
  // One marker for each class: a sort that only counts.
  static std::vector<CpuAlgorithm> markers;
  markers.assign(kWindowClasses, {});
  CpuChoice choice = UseOnly(CpuAlgorithms().back());
  const auto mark = [&]<std::size_t kClass>() {
    markers[kClass] = {"marker", [](std::uint32_t*, std::size_t) { ++calls[kClass]; }, nullptr};
    choice.algorithm[0][kClass] = &markers[kClass];
  };
  mark.operator()<0>();
  mark.operator()<1>();
  mark.operator()<2>();
  mark.operator()<3>();
  mark.operator()<4>();
  mark.operator()<5>();
  CpuSorter sorter(choice);
  for (std::size_t c = 0; c < kWindowClasses; ++c) {
    std::vector<std::uint32_t> keys(ClassWindow(c));
    std::vector<std::span<std::uint32_t>> channels = {keys};
    const int before = calls[c];
    sorter.Sort(Channels<std::uint32_t>(channels));
    EXPECT_EQ(calls[c], before + 1) << "class " << c;
  }
}

TEST(CpuSorter, SortsOnManyThreadsAtOnce) {
  std::vector<SorterMeasurement> measured;
  CpuSorter sorter(MeasureCpu(std::chrono::milliseconds(0), measured));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&sorter, t] {
      for (std::size_t round = 0; round < 20; ++round) {
        const std::size_t n = 100 + 701 * round + 13 * t;
        ExpectSortsLikeStdSort<std::uint32_t>(
            sorter,
            {MakeKeys<std::uint32_t>("random", n, t), MakeKeys<std::uint32_t>("random", n / 2, t)},
            "thread " + std::to_string(t));
        ExpectSortsLikeStdSort<std::uint64_t>(sorter, {MakeKeys<std::uint64_t>("random", n, t)},
                                              "thread " + std::to_string(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(MeasureCpu, ChoosesTheFastestRowOfEachWidthAndClass) {
  std::vector<SorterMeasurement> measured;
  const CpuChoice choice = MeasureCpu(std::chrono::milliseconds(0), measured);
  for (const int bits : {32, 64, 128}) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      const SorterMeasurement* chosen = nullptr;
      double fastest = 0;
      for (const SorterMeasurement& row : measured) {
        if (row.key_bits != bits || row.window != ClassWindow(c)) continue;
        EXPECT_GT(row.keys_per_second, 0);
        EXPECT_EQ(row.sorter, "cpu");
        fastest = std::max(fastest, row.keys_per_second);
        if (row.chosen) {
          EXPECT_EQ(chosen, nullptr) << "two rows are chosen";
          chosen = &row;
        }
      }
      ASSERT_NE(chosen, nullptr) << bits << " bits, class " << c;
      EXPECT_EQ(chosen->keys_per_second, fastest);
      EXPECT_EQ(choice.algorithm[static_cast<std::size_t>(bits / 64)][c]->name, chosen->algorithm);
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
