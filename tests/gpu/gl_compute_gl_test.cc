// gl-compute against std::sort, to the bit, on whatever GL there is (Mesa's llvmpipe will do), and
// what it does when GL fails. Fails, rather than skips, where no GL context can be opened.
//
// llvmpipe runs one workgroup after the other and ends each call before the next: a barrier or a
// fence that is missing between dispatches does not show there.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/sort/gl_compute_sorter.h"
#include "gpu/sort/gl_devices.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/gl_compute_cases.h"
#include "tests/gpu/gl_sorter_cases.h"

namespace tidemark::sort {
namespace {

using testing::AroundPowers;
using testing::Distributions;
using testing::EveryLength;
using testing::ExpectSortsLengths;
using testing::ExpectSortsLikeStdSort;
using testing::Ladder;
using testing::MakeKeys;
using testing::SmallBlocks;
using testing::SmallBlocksWithoutBufferStorage;
using testing::Software;

using GlComputeTest = testing::GlComputeSorters;

TEST_F(GlComputeTest, Reports) {
  EXPECT_TRUE(device().gl().available);
  EXPECT_EQ(device().gl().error, "");
  EXPECT_NE(device().gl().renderer, "");
  EXPECT_GE(device().window_max(), std::size_t{1} << 20);
  EXPECT_GE(device().shape({32, false}).block_log2, 13);
  EXPECT_EQ(small().shape({32, false}).block_log2, 8);
  EXPECT_EQ(small().shape({64, true}).block_log2, 6);
  EXPECT_FALSE(masked().maps_buffers());
}

// Where the test run masks what is optional, it is masked.
TEST_F(GlComputeTest, SeesWhatTheRunLeavesIt) {
  if (std::getenv("TIDEMARK_TEST_MASKED") == nullptr) {
    EXPECT_TRUE(device().maps_buffers());
    return;
  }
  EXPECT_FALSE(device().maps_buffers());
  EXPECT_EQ(device().window_memory(), nullptr);
  const GlDevices found = DescribeGlDevices();
  ASSERT_GE(found.chosen, 0) << found.error;
  const GlDevice& chosen = found.devices[static_cast<std::size_t>(found.chosen)];
  EXPECT_TRUE(chosen.compute);
  for (const GlFeature& feature : chosen.features) {
    const bool optional = feature.name.find("OpenGL 4.3") == std::string::npos;
    EXPECT_EQ(feature.present, !optional) << feature.name;
  }
}

TEST_F(GlComputeTest, SortsEveryLengthUpTo4097) {
  for (GlComputeSorter* sorter : {&small(), &device()}) {
    ExpectSortsLengths<std::uint32_t>(*sorter, EveryLength());
    ExpectSortsLengths<std::uint64_t>(*sorter, EveryLength());
  }
}

TEST_F(GlComputeTest, SortsAroundPowersOfTwo) {
  ExpectSortsLengths<std::uint32_t>(device(), Ladder(1 << 12));
  ExpectSortsLengths<std::uint64_t>(device(), Ladder(1 << 12));
  ExpectSortsLengths<std::uint32_t>(device(), AroundPowers(13, 16));
  ExpectSortsLengths<std::uint64_t>(device(), AroundPowers(13, 16));
  ExpectSortsLengths<std::uint32_t>(small(), AroundPowers(13, 14));
  ExpectSortsLengths<std::uint64_t>(small(), AroundPowers(13, 14));
}

TEST_F(GlComputeTest, SortsALargeWindow) {
  ExpectSortsLengths<std::uint32_t>(device(), {std::size_t{1} << 18});
  ExpectSortsLengths<std::uint64_t>(device(), {(std::size_t{1} << 16) + 1});
}

template <class Key>
void ExpectSortsEveryDistribution(WindowSorter& sorter, std::size_t n) {
  const std::vector<std::string>& all = Distributions();
  for (std::size_t i = 0; i < all.size(); i += kChannels) {
    std::vector<std::vector<Key>> windows;
    std::string what;
    for (std::size_t c = i; c < std::min(i + kChannels, all.size()); ++c) {
      windows.push_back(MakeKeys<Key>(all[c], n + c, 5));
      what += all[c] + ", ";
    }
    ExpectSortsLikeStdSort<Key>(sorter, windows, what);
  }
}

TEST_F(GlComputeTest, SortsEveryDistribution) {
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    for (const std::size_t n : {64, 1000, 2048, 3000}) {
      ExpectSortsEveryDistribution<std::uint32_t>(*sorter, n);
      ExpectSortsEveryDistribution<std::uint64_t>(*sorter, n);
    }
  }
  ExpectSortsEveryDistribution<std::uint32_t>(device(), 10000);
  ExpectSortsEveryDistribution<std::uint64_t>(device(), 10000);
}

TEST_F(GlComputeTest, SortsOneToFourChannelsOfVeryDifferentLengths) {
  const std::vector<std::vector<std::size_t>> cases = {
      {}, {0}, {1, 0, 1}, {5000}, {0, 0, 0, 700}, {4000, 1, 0, 2}, {2, 4000, 3, 129}};
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    for (const std::vector<std::size_t>& lengths : cases) {
      ExpectSortsLengths<std::uint32_t>(*sorter, lengths);
      ExpectSortsLengths<std::uint64_t>(*sorter, lengths);
    }
  }
}

// A slot that held a larger request, or one of another kind, leaves nothing behind.
TEST_F(GlComputeTest, SortsSmallWindowsAfterLargeOnes) {
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    for (const std::size_t n : {1 << 13, 5, 300, 1 << 12, 2}) {
      ExpectSortsLengths<std::uint32_t>(*sorter, {n});
      ExpectSortsLengths<std::uint64_t>(*sorter, {n, n / 2});
    }
  }
}

template <class Key>
void ExpectSortsPairs(GlComputeSorter& sorter, const std::vector<std::size_t>& lengths,
                      const std::string& distribution, bool indices) {
  std::vector<std::vector<Key>> keys;
  std::vector<std::vector<std::uint32_t>> payloads;
  std::vector<std::vector<std::pair<Key, std::uint32_t>>> expected;
  for (const std::size_t n : lengths) {
    keys.push_back(MakeKeys<Key>(distribution, n, n));
    payloads.push_back(MakeKeys<std::uint32_t>("few distinct", n, n + 1));
    if (n > 2) payloads.back()[n / 2] = ~std::uint32_t{0};
    expected.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      if (indices) payloads.back()[i] = static_cast<std::uint32_t>(i);
      expected.back().emplace_back(keys.back()[i], payloads.back()[i]);
    }
    std::sort(expected.back().begin(), expected.back().end());
  }
  std::vector<KeysWithPayloads<Key>> channels;
  for (std::size_t c = 0; c < lengths.size(); ++c) channels.push_back({keys[c], payloads[c]});
  EXPECT_EQ(sorter.SortPairs(PairChannels<Key>(channels)), "gl-compute");
  for (std::size_t c = 0; c < lengths.size(); ++c) {
    bool equal = true;
    for (std::size_t i = 0; i < lengths[c]; ++i) {
      equal &= expected[c][i] == std::pair(keys[c][i], payloads[c][i]);
    }
    EXPECT_TRUE(equal) << distribution << ", " << 8 * sizeof(Key) << "-bit keys, channel " << c
                       << " of " << lengths[c];
  }
}

TEST_F(GlComputeTest, SortsKeysWithPayloads) {
  for (const std::string& distribution : Distributions()) {
    for (const bool indices : {false, true}) {
      ExpectSortsPairs<std::uint32_t>(small(), {1000, 0, 1, 2100}, distribution, indices);
      ExpectSortsPairs<std::uint64_t>(small(), {65, 1500, 700}, distribution, indices);
    }
  }
  ExpectSortsPairs<std::uint32_t>(masked(), {1000, 1001, 17}, "random", true);
  ExpectSortsPairs<std::uint64_t>(masked(), {1000, 1001, 17}, "few distinct", false);
  ExpectSortsPairs<std::uint32_t>(device(), {9000, 4096}, "few distinct", true);
  ExpectSortsPairs<std::uint64_t>(device(), {5000, 4097}, "zero and max", false);
}

// Windows that together exceed what one binding may have are sorted one binding after the other;
// one that exceeds it by itself is refused.
TEST_F(GlComputeTest, SplitsRequestsBeyondTheLimitOfABinding) {
  GlComputeOptions options = SmallBlocks();
  options.overrides.storage_block_bytes = 16384;
  GlComputeSorter split(options);
  EXPECT_EQ(split.window_max(), 16384 / 8);
  ExpectSortsLengths<std::uint32_t>(split, {4096, 4096, 100, 3000});
  ExpectSortsLengths<std::uint32_t>(split, {100, 2000, 4000, 4000});
  ExpectSortsLengths<std::uint64_t>(split, {2048, 0, 2048, 1});
  ExpectSortsPairs<std::uint64_t>(split, {1000, 2000, 2048, 30}, "random", true);
  ExpectSortsPairs<std::uint32_t>(split, {4096, 4, 4096, 2000}, "random", true);
  std::vector<std::uint64_t> keys(2049);
  std::vector<std::span<std::uint64_t>> channels = {keys};
  try {
    split.Sort(Channels<std::uint64_t>(channels));
    FAIL() << "no exception";
  } catch (const SorterError& error) {
    EXPECT_STREQ(error.what(), "gl-compute: a window of 2049 keys; this device takes at most 2048");
  }
  ExpectSortsLengths<std::uint64_t>(split, {2048});
}

TEST_F(GlComputeTest, SortsForManyThreadsAtOnce) {
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([t, sorter] {
        for (std::size_t round = 0; round < 5; ++round) {
          const std::size_t n = 50 + 200 * round + 13 * t;
          ExpectSortsLengths<std::uint32_t>(*sorter, {n, t});
          ExpectSortsLengths<std::uint64_t>(*sorter, {n + 1});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(GlComputeTest, TwoSortersLiveSideBySide) {
  auto other = std::make_unique<GlComputeSorter>(SmallBlocks());
  ExpectSortsLengths<std::uint32_t>(*other, {100});
  ExpectSortsLengths<std::uint32_t>(small(), {100});
  other.reset();
  ExpectSortsLengths<std::uint32_t>(small(), {100});
}

TEST_F(GlComputeTest, SaysWhatADeviceLacks) {
  GlComputeOptions options = Software();
  options.overrides.shared_bytes = 100;
  try {
    GlComputeSorter sorter(options);
    FAIL() << "no exception";
  } catch (const SorterError& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("setting up gl-compute failed: sorting 32-bit keys in compute shaders needs "
                  "256 bytes of shared memory and 4 invocations"),
        std::string::npos)
        << error.what();
  }
}

// Runs requests whose GL is disturbed at `step`; each must throw and leave the keys as they were,
// and the sorter must refuse to go on. Keys alone first, then keys with payloads.
void ExpectFailsAt(GlComputeOptions options, const std::string& step,
                   const std::function<void()>& disturb, const std::string& message_part) {
  options.observer = [&](std::string_view now) {
    if (now == step) disturb();
  };
  for (const bool pairs : {false, true}) {
    GlComputeSorter broken(options);
    std::vector<std::vector<std::uint64_t>> windows = {MakeKeys<std::uint64_t>("random", 777, 1),
                                                       MakeKeys<std::uint64_t>("random", 10, 2)};
    std::vector<std::vector<std::uint32_t>> payloads = {MakeKeys<std::uint32_t>("random", 777, 3),
                                                        MakeKeys<std::uint32_t>("random", 10, 4)};
    const auto before = std::pair(windows, payloads);
    const std::vector<std::span<std::uint64_t>> channels(windows.begin(), windows.end());
    const std::vector<KeysWithPayloads<std::uint64_t>> pair_channels = {{windows[0], payloads[0]},
                                                                        {windows[1], payloads[1]}};
    for (int request = 0; request < 2; ++request) {
      try {
        if (pairs) {
          broken.SortPairs(PairChannels<std::uint64_t>(pair_channels));
        } else {
          broken.Sort(Channels<std::uint64_t>(channels));
        }
        FAIL() << "no exception at " << step;
      } catch (const SorterError& error) {
        const std::string expected = request == 0 ? "gl-compute: " + message_part
                                                  : "not used again since GL failed before: ";
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
      EXPECT_TRUE(before == std::pair(windows, payloads)) << "keys changed, step " << step;
    }
  }
}

TEST_F(GlComputeTest, KeepsTheKeysWhenAGlCallFails) {
  const auto raise_gl_error = [] { glBindTexture(GL_ARRAY_BUFFER, 0); };
  for (const GlComputeOptions& options : {SmallBlocks(), SmallBlocksWithoutBufferStorage()}) {
    ExpectFailsAt(options, "upload", raise_gl_error,
                  "uploading windows to the GPU failed: GL_INVALID_ENUM");
    ExpectFailsAt(options, "sort", raise_gl_error,
                  "running the passes of the network failed: GL_INVALID_ENUM");
    ExpectFailsAt(options, "read back", raise_gl_error,
                  "reading sorted windows back from the GPU failed: GL_INVALID_ENUM");
    ExpectFailsAt(options, "wait", raise_gl_error,
                  "waiting for sorted windows failed: GL_INVALID_ENUM");
  }
}

TEST_F(GlComputeTest, KeepsTheKeysWhenTheGpuReturnsSomethingElse) {
  // Ascending, but not the caller's keys: a buffer that was cleared. It is bound for shaders then.
  const auto clear = [] {
    glClearBufferData(GL_SHADER_STORAGE_BUFFER, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, nullptr);
  };
  // Not ascending: the largest key there is comes first.
  const auto swap_order = [] {
    const std::array<std::uint64_t, 2> largest_first = {~std::uint64_t{0}, 0};
    GLuint elsewhere = 0;
    glGenBuffers(1, &elsewhere);
    glBindBuffer(GL_COPY_READ_BUFFER, elsewhere);
    glBufferData(GL_COPY_READ_BUFFER, sizeof(largest_first), largest_first.data(), GL_STATIC_DRAW);
    glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_SHADER_STORAGE_BUFFER, 0, 0, sizeof(largest_first));
    glDeleteBuffers(1, &elsewhere);
  };
  for (const GlComputeOptions& options : {SmallBlocks(), SmallBlocksWithoutBufferStorage()}) {
    ExpectFailsAt(options, "read back", clear, "checking the sorted windows");
    ExpectFailsAt(options, "read back", swap_order, "checking the sorted windows");
  }
}

TEST_F(GlComputeTest, KeepsTheKeysWhenTheDriverHangs) {
  for (const std::string step : {"upload", "sort", "read back", "wait"}) {
    testing::ExpectKeepsTheKeysWhenTheDriverHangs<GlComputeSorter>(SmallBlocks(), step,
                                                                   "gl-compute");
  }
}

// Callers that wait for a slot are told, too.
TEST_F(GlComputeTest, FailsEveryWindowInFlight) {
  std::atomic<int> requests{0};
  GlComputeOptions options = SmallBlocks();
  options.observer = [&](std::string_view step) {
    // The fourth request and all after it, so that some are under way and some wait.
    if (step == "sort" && ++requests > 3) glBindTexture(GL_ARRAY_BUFFER, 0);
  };
  GlComputeSorter broken(options);
  std::atomic<int> sorted{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 4; ++round) {
        std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 500, t);
        std::vector<std::uint32_t> expected = keys;
        const std::vector<std::span<std::uint32_t>> channels = {keys};
        try {
          broken.Sort(Channels<std::uint32_t>(channels));
          std::sort(expected.begin(), expected.end());
          ++sorted;
        } catch (const SorterError&) {
          ++failed;
        }
        EXPECT_TRUE(keys == expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sorted, 3);
  EXPECT_EQ(failed, 8 * 4 - 3);
}

TEST(GlComputeFactory, ByNameTakesASoftwareContext) { testing::ExpectMadeByName("gl-compute"); }

TEST(GlComputeFactory, AutoMeasuresBothGlSorters) {
  SorterOptions options;
  options.name = "auto";
  options.allow_software_gl = true;
  options.measure_budget_ms = 20;
  const SorterSelection selection = MakeSorter(options);
  std::cout << selection.report.reason << '\n';
  for (const char* name : {"gl-compute", "gl-bitonic"}) {
    bool measured = false;
    for (const SorterMeasurement& row : selection.report.measurements) {
      measured |= row.sorter == name && row.keys_per_second > 0;
    }
    EXPECT_TRUE(measured) << name;
  }
}

}  // namespace
}  // namespace tidemark::sort
