// gl-bitonic against std::sort, to the bit, on whatever GL there is (Mesa's llvmpipe will do), and
// what it does when GL fails. Fails, rather than skips, where no GL context can be opened.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <array>

#include "gpu/egl/headless_context.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/gl_sorter_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::ExpectMadeByName;
using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

class GlBitonicTest : public testing::GlSorterTest<GlBitonicSorter, GlBitonicOptions> {};

TEST_F(GlBitonicTest, Reports) {
  EXPECT_TRUE(sorter().gl().available);
  EXPECT_EQ(sorter().gl().error, "");
  EXPECT_NE(sorter().gl().renderer, "");
  EXPECT_GE(sorter().window_max(), std::size_t{1} << 20);
}

TEST_F(GlBitonicTest, SortsTheLadder) { ExpectSortsTheLadder(); }

TEST_F(GlBitonicTest, SortsEveryLengthUpTo4097) { ExpectSortsEveryLength(); }

TEST_F(GlBitonicTest, SortsAroundPowersOfTwo) { ExpectSortsAroundPowersOfTwo(); }

TEST_F(GlBitonicTest, SortsEveryDistribution) { ExpectSortsEveryDistribution(); }

TEST_F(GlBitonicTest, SortsOneToFourChannelsOfDifferentLengthsAndKinds) {
  ExpectSortsOneToFourChannelsOfDifferentLengthsAndKinds();
}

TEST_F(GlBitonicTest, SortsSmallWindowsAfterLargeOnes) {
  for (const std::size_t n : {1 << 14, 5, 300, 1 << 13, 2}) {
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, 1)}, "");
    ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>("random", n, 1)}, "");
  }
}

TEST_F(GlBitonicTest, SortsFourLargeWindows) {
  std::vector<std::vector<std::uint32_t>> narrow;
  std::vector<std::vector<std::uint64_t>> wide;
  for (std::size_t c = 0; c < kChannels; ++c) {
    narrow.push_back(MakeKeys<std::uint32_t>("random", std::size_t{1} << 16, c));
    wide.push_back(MakeKeys<std::uint64_t>("few distinct", (std::size_t{1} << 14) + 1 + c, c));
  }
  ExpectSortsLikeStdSort(sorter(), narrow, "2^16");
  ExpectSortsLikeStdSort(sorter(), wide, "2^14 and a little");
}

// 4 n log n (log n + 1) / 2 comparator ends for four channels, each in one pass a step.
TEST_F(GlBitonicTest, CountsWhatThePaperSays) {
  for (const std::uint64_t log2 : {1, 4, 9, 12}) {
    const std::uint64_t n = std::uint64_t{1} << log2;
    const std::uint64_t steps = log2 * (log2 + 1) / 2;
    SortCounts expected = sorter().counts();
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, 1)}, "");
    expected += {4 * n * steps, steps, 0, steps, 4 * n * steps * 12};
    EXPECT_EQ(sorter().counts(), expected);
    ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>("random", n, 1)}, "");
    expected += {4 * n * steps, steps, 0, steps, 4 * n * steps * 24};
    EXPECT_EQ(sorter().counts(), expected);
  }
}

// The paper's tiles, with few draw calls and with one a quad.
TEST_F(GlBitonicTest, EveryWayOfDrawingSorts) {
  const BitonicDrawing drawings[] = {{64, 8, true}, {64, 1, true},  {4, 2, true},
                                     {1, 1, true},  {64, 8, false}, {8, 4, false}};
  for (const BitonicDrawing& drawing : drawings) {
    GlBitonicOptions options = Software();
    options.drawing = drawing;
    GlBitonicSorter tiled(options);
    const std::string what = "tiles of " + std::to_string(drawing.tile);
    for (const std::size_t n : {2, 3, 16, 100, 1000, 4096, 9000, 5}) {
      if (n > 1000 && drawing.tile == 1) continue;  // one draw of thousands of texels after another
      const std::uint64_t log2 = static_cast<std::uint64_t>(std::bit_width(n - 1));
      SortCounts expected = tiled.counts();
      ExpectSortsLikeStdSort<std::uint32_t>(
          tiled, {MakeKeys<std::uint32_t>("random", n, 1), MakeKeys<std::uint32_t>("sorted", n, 1)},
          what);
      std::uint64_t draw_calls = 0;
      for (const NetworkStep& step : BitonicSchedule(static_cast<std::uint32_t>(log2))) {
        const auto width_log2 = static_cast<std::uint32_t>((log2 + 1) / 2);
        const auto height_log2 = static_cast<std::uint32_t>(log2 / 2);
        if (!DrawnAsTiles(step, width_log2, drawing)) {
          ++draw_calls;
        } else if (drawing.few_draw_calls) {
          draw_calls += 2;
        } else {
          draw_calls += 2 * TilesOf(step, width_log2, height_log2, drawing, true).count();
        }
      }
      const std::uint64_t steps = log2 * (log2 + 1) / 2;
      const std::uint64_t keys = std::uint64_t{4} << log2;
      expected += {keys * steps, steps, 0, draw_calls, keys * steps * 12};
      EXPECT_EQ(tiled.counts(), expected) << what << ", " << n;
      ExpectSortsLikeStdSort<std::uint64_t>(tiled, {MakeKeys<std::uint64_t>("random", n, 1)}, what);
    }
  }
}

// Two sorted runs a channel, of these lengths.
template <class Key>
void ExpectMerges(GlBitonicSorter& sorter, const std::vector<std::array<std::size_t, 2>>& runs,
                  const std::string& distribution) {
  std::vector<std::vector<Key>> windows;
  std::vector<std::size_t> second;
  for (const auto& [first_length, second_length] : runs) {
    auto keys = MakeKeys<Key>(distribution, first_length + second_length, windows.size());
    const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(first_length);
    std::sort(keys.begin(), middle);
    std::sort(middle, keys.end());
    windows.push_back(std::move(keys));
    second.push_back(first_length);
  }
  auto expected = windows;
  for (std::vector<Key>& keys : expected) std::sort(keys.begin(), keys.end());
  std::vector<std::span<Key>> channels(windows.begin(), windows.end());
  sorter.Merge(Channels<Key>(channels), second);
  EXPECT_TRUE(windows == expected) << distribution << ", " << runs[0][0] << " and " << runs[0][1];
}

TEST_F(GlBitonicTest, MergesRunsOfAnyLengths) {
  for (std::size_t n = 0; n <= 40; ++n) {
    for (std::size_t first = 0; first <= n; first += 1 + n / 8) {
      ExpectMerges<std::uint32_t>(sorter(), {{first, n - first}}, "random");
      ExpectMerges<std::uint64_t>(sorter(), {{first, n - first}}, "few distinct");
    }
  }
  for (const std::size_t half : {127, 128, 129, 1000, 2048, 4097}) {
    ExpectMerges<std::uint32_t>(sorter(), {{half, half}, {half, half - 3}, {half, 0}, {1, half}},
                                "random");
    ExpectMerges<std::uint64_t>(sorter(), {{half, half}, {0, half}}, "random");
  }
}

TEST_F(GlBitonicTest, MergesEveryDistribution) {
  for (const std::string& distribution : Distributions()) {
    ExpectMerges<std::uint32_t>(sorter(), {{300, 512}, {512, 512}}, distribution);
    ExpectMerges<std::uint64_t>(sorter(), {{300, 512}, {512, 512}}, distribution);
  }
}

TEST_F(GlBitonicTest, MergingTakesLogNPasses) {
  const SortCounts before = sorter().counts();
  ExpectMerges<std::uint32_t>(sorter(), {{1024, 1024}}, "random");
  SortCounts expected = before;
  expected += {4 * 2048 * 11, 11, 0, 11, 4 * 2048 * 11 * 12};
  EXPECT_EQ(sorter().counts(), expected);
}

TEST_F(GlBitonicTest, RefusesToMergeWhatIsNotSorted) {
  const auto refuses = [](std::vector<std::uint32_t> keys, std::size_t second,
                          const std::string& why) {
    const std::vector<std::uint32_t> before = keys;
    std::vector<std::uint32_t> fine = {1, 2};
    std::vector<std::span<std::uint32_t>> channels = {fine, keys};
    try {
      sorter().Merge(Channels<std::uint32_t>(channels), std::vector<std::size_t>{1, second});
      ADD_FAILURE() << "no exception";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "gl-bitonic: merging channel 1: " + why);
    }
    EXPECT_TRUE(keys == before);
  };
  refuses({1, 3, 2, 5}, 3,
          "expected ascending runs from 0 and 3, but key 2 is smaller than the one before it");
  refuses({1, 3, 5, 4}, 2,
          "expected ascending runs from 0 and 2, but key 3 is smaller than the one before it");
  refuses({1, 3}, 3, "the second run begins at 3, beyond its 2 keys");
  ExpectMerges<std::uint32_t>(sorter(), {{10, 10}}, "random");
}

TEST_F(GlBitonicTest, KeepsTheRunsWhenMergingFails) {
  GlBitonicOptions options = Software();
  options.observer = [](std::string_view step) {
    if (step == "draw") glEnable(GL_RASTERIZER_DISCARD);
  };
  GlBitonicSorter broken(options);
  std::vector<std::uint32_t> keys = {1, 5, 7, 2, 3};
  const std::vector<std::uint32_t> before = keys;
  std::vector<std::span<std::uint32_t>> channels = {keys};
  const std::vector<std::size_t> second = {3};
  EXPECT_THROW(broken.Merge(Channels<std::uint32_t>(channels), second), SorterError);
  EXPECT_TRUE(keys == before);
  EXPECT_THROW(broken.Sort(Channels<std::uint32_t>(channels)), SorterError) << "it is broken now";
}

TEST_F(GlBitonicTest, SortsForManyThreadsAtOnce) {
  ExpectSortsForManyThreadsAtOnce(8, [](std::size_t t, std::size_t n) {
    const std::string what = "thread " + std::to_string(t);
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, t)},
                                          what);
    ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>("random", n, t)},
                                          what);
  });
}

TEST_F(GlBitonicTest, RefusesAWindowBeyondTheDevicesLimitAndGoesOn) {
  ExpectRefusesAWindowBeyondTheDevicesLimitAndGoesOn();
}

TEST_F(GlBitonicTest, TwoSortersLiveSideBySide) {
  auto other = std::make_unique<GlBitonicSorter>(Software());
  ExpectSortsLikeStdSort<std::uint32_t>(*other, {MakeKeys<std::uint32_t>("random", 100, 1)}, "");
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 2)}, "");
  other.reset();
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 3)}, "");
}

TEST_F(GlBitonicTest, KeepsTheKeysWhateverFails) {
  ExpectKeepsTheKeysWhateverFails<std::uint64_t>("drawing the steps of the network");
}

// A target that was cleared: ascending, but not the caller's keys.
TEST_F(GlBitonicTest, KeepsTheKeysWhenTheTargetWasCleared) {
  ExpectFailsAt<std::uint64_t>(
      "read back",
      [] {
        const std::array<GLuint, 4> zero{};
        glClearBufferuiv(GL_COLOR, 0, zero.data());
        glClearBufferuiv(GL_COLOR, 1, zero.data());
      },
      "checking the sorted windows");
}

TEST_F(GlBitonicTest, RefusesWhatThereIsNoMemoryFor) {
  ExpectRefusesWhatThereIsNoMemoryFor("gl-bitonic");
}

TEST_F(GlBitonicTest, KeepsTheKeysWhenTheDriverHangs) {
  ExpectKeepsTheKeysWhenTheDriverHangs("gl-bitonic");
}

TEST_F(GlBitonicTest, IsMadeByName) { ExpectMadeByName("gl-bitonic"); }

TEST(GlFactory, AutoMeasuresASoftwareContextWhenTold) {
  SorterOptions options;
  options.name = "auto";
  options.allow_software_gl = true;
  options.measure_budget_ms = 20;
  const SorterSelection selection = MakeSorter(options);
  std::cout << selection.report.reason << '\n';
  EXPECT_TRUE(selection.report.gl.available) << selection.report.gl.error;
  bool measured = false;
  for (const SorterMeasurement& row : selection.report.measurements) {
    measured |= row.sorter == "gl-bitonic" && row.keys_per_second > 0;
  }
  EXPECT_TRUE(measured);
  ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                        {MakeKeys<std::uint32_t>("random", 1500, 1)}, "auto");
}

TEST(HeadlessContext, CountsDevicesWithoutOpeningOne) {
  const egl::DeviceCount count = egl::CountDevices();
  EXPECT_EQ(count.error, "");
  EXPECT_GE(count.hardware + count.software, 1);
}

TEST(HeadlessContext, NamesTheReasonWhereThereIsNoHardware) {
  if (egl::CountDevices().hardware > 0) GTEST_SKIP() << "there is a hardware device";
  try {
    egl::HeadlessContext::Open(false);
    FAIL() << "no exception";
  } catch (const egl::EglError& error) {
    EXPECT_NE(std::string(error.what()).find("no hardware GL device: EGL lists "),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tidemark::sort
