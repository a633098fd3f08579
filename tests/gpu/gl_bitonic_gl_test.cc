// gl-bitonic against std::sort, to the bit, on whatever GL there is (Mesa's llvmpipe will do), and
// what it does when GL fails. Fails, rather than skips, where no GL context can be opened.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "gpu/egl/headless_context.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/gl_sorter_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

GlBitonicOptions Software() {
  GlBitonicOptions options;
  options.allow_software = true;
  return options;
}

// One sorter for the tests that do not break it: a context takes up to 140 ms to open.
class GlBitonicTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      sorter_ = std::make_unique<GlBitonicSorter>(Software());
      std::cout << "GL: " << sorter_->gl().vendor << ", " << sorter_->gl().renderer << ", "
                << sorter_->gl().version << '\n';
    } catch (const SorterError& error) {
      why_not_ = error.what();
    }
  }
  static void TearDownTestSuite() { sorter_.reset(); }
  void SetUp() override {
    ASSERT_NE(sorter_, nullptr)
        << "these tests need an EGL driver, Mesa's software rasteriser will "
           "do (Debian: libegl1 libegl-mesa0 libgl1-mesa-dri libopengl0): "
        << why_not_;
  }
  static GlBitonicSorter& sorter() { return *sorter_; }

 private:
  static inline std::unique_ptr<GlBitonicSorter> sorter_;
  static inline std::string why_not_;
};

TEST_F(GlBitonicTest, Reports) {
  EXPECT_TRUE(sorter().gl().available);
  EXPECT_EQ(sorter().gl().error, "");
  EXPECT_NE(sorter().gl().renderer, "");
  EXPECT_GE(sorter().window_max(), std::size_t{1} << 20);
}

TEST_F(GlBitonicTest, SortsTheLadder) {
  for (const std::size_t n : testing::LongLadder(1 << 13)) {
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, n)}, "");
    ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>("random", n, n)}, "");
  }
}

TEST_F(GlBitonicTest, SortsEveryDistribution) {
  for (const std::string& distribution : Distributions()) {
    for (const std::size_t n : {64, 1000, 1024}) {
      ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>(distribution, n, 5)},
                                            distribution);
      ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>(distribution, n, 5)},
                                            distribution);
    }
  }
}

TEST_F(GlBitonicTest, SortsOneToFourChannelsOfDifferentLengthsAndKinds) {
  std::vector<std::vector<std::uint32_t>> narrow;
  std::vector<std::vector<std::uint64_t>> wide;
  const std::vector<std::size_t> lengths = {700, 0, 1, 2048};
  const std::vector<std::string> kinds = {"all max", "random", "random", "reversed"};
  for (std::size_t c = 0; c < kChannels; ++c) {
    narrow.push_back(MakeKeys<std::uint32_t>(kinds[c], lengths[c], c));
    wide.push_back(MakeKeys<std::uint64_t>(kinds[c], lengths[c], c));
    ExpectSortsLikeStdSort(sorter(), narrow, "channels of different lengths");
    ExpectSortsLikeStdSort(sorter(), wide, "channels of different lengths");
  }
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {}, "no channel");
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {{}, {7}, {}, {}}, "nothing to sort");
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
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (std::size_t round = 0; round < 5; ++round) {
        const std::size_t n = 50 + 200 * round + 13 * t;
        ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", n, t)},
                                              "thread " + std::to_string(t));
        ExpectSortsLikeStdSort<std::uint64_t>(sorter(), {MakeKeys<std::uint64_t>("random", n, t)},
                                              "thread " + std::to_string(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GlBitonicTest, RefusesAWindowBeyondTheDevicesLimitAndGoesOn) {
  // A span that is never read: the length alone is refused.
  std::uint32_t key = 0;
  std::vector<std::span<std::uint32_t>> channels = {{&key, sorter().window_max() + 1}};
  EXPECT_THROW(sorter().Sort(Channels<std::uint32_t>(channels)), SorterError);
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 1)}, "");
}

TEST_F(GlBitonicTest, TwoSortersLiveSideBySide) {
  auto other = std::make_unique<GlBitonicSorter>(Software());
  ExpectSortsLikeStdSort<std::uint32_t>(*other, {MakeKeys<std::uint32_t>("random", 100, 1)}, "");
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 2)}, "");
  other.reset();
  ExpectSortsLikeStdSort<std::uint32_t>(sorter(), {MakeKeys<std::uint32_t>("random", 100, 3)}, "");
}

// Runs one Sort whose GL is disturbed at `step`; it must throw, leave the keys as they were, and
// the sorter must refuse to go on.
void ExpectFailsAt(const std::string& step, const std::function<void()>& disturb,
                   const std::string& message_part) {
  GlBitonicOptions options = Software();
  options.observer = [&](std::string_view now) {
    if (now == step) disturb();
  };
  GlBitonicSorter broken(options);
  std::vector<std::vector<std::uint64_t>> windows = {MakeKeys<std::uint64_t>("random", 777, 1),
                                                     MakeKeys<std::uint64_t>("random", 10, 2)};
  const std::vector<std::vector<std::uint64_t>> before = windows;
  std::vector<std::span<std::uint64_t>> channels(windows.begin(), windows.end());
  for (int request = 0; request < 2; ++request) {
    try {
      broken.Sort(Channels<std::uint64_t>(channels));
      FAIL() << "no exception at " << step;
    } catch (const SorterError& error) {
      const std::string expected =
          request == 0 ? message_part : "not used again since GL failed before: ";
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
    EXPECT_TRUE(windows == before) << "keys changed, step " << step;
  }
}

TEST_F(GlBitonicTest, KeepsTheKeysWhenAGlCallFails) {
  const auto raise_gl_error = [] { glBindTexture(GL_ARRAY_BUFFER, 0); };
  ExpectFailsAt("upload", raise_gl_error, "uploading windows to the GPU failed: GL_INVALID_ENUM");
  ExpectFailsAt("draw", raise_gl_error, "drawing the steps of the network failed: GL_INVALID_ENUM");
  ExpectFailsAt("read back", raise_gl_error, "reading sorted windows back from the GPU failed: ");
}

TEST_F(GlBitonicTest, KeepsTheKeysWhenTheGpuReturnsSomethingElse) {
  // What a context that was lost without notice looks like: nothing is drawn.
  ExpectFailsAt(
      "draw", [] { glEnable(GL_RASTERIZER_DISCARD); }, "checking the sorted windows");
  // A target that was cleared: ascending, but not the caller's keys.
  ExpectFailsAt(
      "read back",
      [] {
        const std::array<GLuint, 4> zero{};
        glClearBufferuiv(GL_COLOR, 0, zero.data());
        glClearBufferuiv(GL_COLOR, 1, zero.data());
      },
      "checking the sorted windows");
}

TEST_F(GlBitonicTest, KeepsTheKeysWhenTheDriverHangs) {
  std::promise<void> driver_comes_back;
  std::shared_future<void> back = driver_comes_back.get_future().share();
  GlBitonicOptions options = Software();
  options.observer = [back](std::string_view step) {
    if (step == "draw") back.wait();
  };
  options.time_limit = std::chrono::milliseconds(20);
  auto hanging = std::make_unique<GlBitonicSorter>(options);
  std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 500, 1);
  const std::vector<std::uint32_t> before = keys;
  std::vector<std::span<std::uint32_t>> channels = {keys};
  try {
    hanging->Sort(Channels<std::uint32_t>(channels));
    FAIL() << "no exception";
  } catch (const SorterError& error) {
    EXPECT_STREQ(error.what(),
                 "gl-bitonic: the GL driver did not answer within 20 ms (the GPU hangs)");
  }
  EXPECT_TRUE(keys == before);
  EXPECT_THROW(hanging->Sort(Channels<std::uint32_t>(channels)), SorterError);
  driver_comes_back.set_value();
  hanging.reset();  // waits for the thread, now that it goes on
  EXPECT_TRUE(keys == before) << "the late result was written";
}

TEST(GlFactory, GlBitonicByNameTakesASoftwareContext) {
  SorterOptions options;
  options.name = "gl-bitonic";
  options.measure_budget_ms = 20;
  const SorterSelection selection = MakeSorter(options);
  EXPECT_EQ(selection.sorter->name(), "gl-bitonic") << selection.report.reason;
  EXPECT_EQ(selection.report.active, "gl-bitonic");
  EXPECT_TRUE(selection.report.gl.available);
  std::cout << selection.report.reason << '\n';
  ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                        {MakeKeys<std::uint32_t>("random", 1500, 1)}, "by name");
  EXPECT_EQ(selection.sorter->failures(), 0);
}

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
