// What every GL sorter must do, when GL fails it, too: for *_gl_test.cc.
#ifndef TIDEMARK_TESTS_GPU_GL_SORTER_CASES_H_
#define TIDEMARK_TESTS_GPU_GL_SORTER_CASES_H_

#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_texel_sorter.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort::testing {

/// Lengths 0 to 300, then both sides of every power of two up to `last`.
inline std::vector<std::size_t> LongLadder(std::size_t last) {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n <= 300; ++n) lengths.push_back(n);
  for (std::size_t power = 512; power <= last; power *= 2) {
    lengths.insert(lengths.end(), {power - 1, power, power + 1});
  }
  return lengths;
}

/// The i-th length of the i-th distribution, four windows a request. `carried` makes keys of such
/// as the sorter takes.
template <class Key>
void ExpectSortsLengths(
    WindowSorter& sorter, const std::vector<std::size_t>& lengths,
    const std::function<Key(Key)>& carried = [](Key key) { return key; }) {
  std::vector<std::vector<Key>> windows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string& distribution = Distributions()[i % Distributions().size()];
    windows.push_back(MakeKeys<Key>(distribution, lengths[i], i));
    for (Key& key : windows.back()) key = carried(key);
    if (windows.size() < kChannels && i + 1 < lengths.size()) continue;
    ExpectSortsLikeStdSort(sorter, windows, "lengths up to " + std::to_string(lengths[i]));
    windows.clear();
  }
}

/// 1 to 4097.
inline std::vector<std::size_t> EveryLength() {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 1; n <= 4097; ++n) lengths.push_back(n);
  return lengths;
}

/// Both sides of each power of two above those, each with every distribution
/// (ExpectSortsLengths).
inline std::vector<std::size_t> AroundPowers(std::size_t first_log2, std::size_t last_log2) {
  std::vector<std::size_t> lengths;
  for (std::size_t k = first_log2; k <= last_log2; ++k) {
    const std::size_t power = std::size_t{1} << k;
    for (std::size_t i = 0; i < Distributions().size(); ++i) {
      lengths.insert(lengths.end(), {power - 1, power, power + 1});
    }
  }
  return lengths;
}

/// A sorter whose driver hangs at `step` gives up, and leaves the keys as they were for ever.
template <class Sorter, class Options>
void ExpectKeepsTheKeysWhenTheDriverHangs(Options options, const std::string& step,
                                          const std::string& name) {
  std::promise<void> driver_comes_back;
  std::shared_future<void> back = driver_comes_back.get_future().share();
  options.observer = [back, step](std::string_view now) {
    if (now == step) back.wait();
  };
  options.time_limit = std::chrono::milliseconds(50);
  auto hanging = std::make_unique<Sorter>(options);
  std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("low bits only", 500, 1);
  const std::vector<std::uint32_t> before = keys;
  std::vector<std::span<std::uint32_t>> channels = {keys};
  try {
    hanging->Sort(Channels<std::uint32_t>(channels));
    FAIL() << "no exception";
  } catch (const SorterError& error) {
    EXPECT_EQ(error.what(), name + ": the GL driver did not answer within 50 ms (the GPU hangs)");
  }
  EXPECT_TRUE(keys == before);
  EXPECT_THROW(hanging->Sort(Channels<std::uint32_t>(channels)), SorterError);
  driver_comes_back.set_value();
  hanging.reset();  // waits for the thread, now that it goes on
  EXPECT_TRUE(keys == before) << "the late result was written";
}

/// By the factory, on a software context where there is no other.
inline void ExpectMadeByName(const std::string& name) {
  SorterOptions options;
  options.name = name;
  options.measure_budget_ms = 20;
  const SorterSelection selection = MakeSorter(options);
  EXPECT_EQ(selection.sorter->name(), name) << selection.report.reason;
  EXPECT_EQ(selection.report.active, name);
  EXPECT_EQ(selection.report.why, "asked_for");
  EXPECT_TRUE(selection.report.gl.available);
  ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                        {MakeKeys<std::uint32_t>("random", 1500, 1)}, "by name");
  ExpectSortsLikeStdSort<std::uint64_t>(*selection.sorter,
                                        {MakeKeys<std::uint64_t>("random", 1500, 1)}, "by name");
  EXPECT_EQ(selection.sorter->failures(), 0);
}

/// One sorter for the tests that do not break it: a context takes up to 140 ms to open.
template <class Sorter, class Options>
class GlSorterTest : public ::testing::Test {
 protected:
  static Options Software() {
    Options options;
    options.allow_software = true;
    return options;
  }
  static void SetUpTestSuite() {
    try {
      sorter_ = std::make_unique<Sorter>(Software());
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
  static Sorter& sorter() { return *sorter_; }

  /// Of a sorter that carries all keys of both widths.
  static void ExpectSortsTheLadder() {
    for (const std::size_t n : LongLadder(1 << 13)) ExpectSortsBothWidths("random", n, n);
  }
  static void ExpectSortsEveryLength() {
    ExpectSortsLengths<std::uint32_t>(sorter(), EveryLength());
    ExpectSortsLengths<std::uint64_t>(sorter(), EveryLength());
  }
  static void ExpectSortsAroundPowersOfTwo() {
    ExpectSortsLengths<std::uint32_t>(sorter(), AroundPowers(13, 16));
    ExpectSortsLengths<std::uint64_t>(sorter(), AroundPowers(13, 16));
  }
  static void ExpectSortsEveryDistribution() {
    for (const std::string& distribution : Distributions()) {
      for (const std::size_t n : {15, 64, 1000, 1024}) ExpectSortsBothWidths(distribution, n, 5);
    }
  }
  static void ExpectSortsOneToFourChannelsOfDifferentLengthsAndKinds() {
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

  /// Runs one Sort whose GL is disturbed at `step`; it must throw, leave the keys as they were, and
  /// the sorter must refuse to go on.
  template <class Key = std::uint32_t>
  static void ExpectFailsAt(const std::string& step, const std::function<void()>& disturb,
                            const std::string& message_part) {
    Options options = Software();
    options.observer = [&](std::string_view now) {
      if (now == step) disturb();
    };
    Sorter broken(options);
    // Of 32 bits such as every sorter carries in one request.
    const char* const kind = sizeof(Key) == 4 ? "low bits only" : "random";
    std::vector<std::vector<Key>> windows = {MakeKeys<Key>(kind, 777, 1),
                                             MakeKeys<Key>(kind, 10, 2)};
    const std::vector<std::vector<Key>> before = windows;
    std::vector<std::span<Key>> channels(windows.begin(), windows.end());
    for (int request = 0; request < 2; ++request) {
      try {
        broken.Sort(Channels<Key>(channels));
        FAIL() << "no exception at " << step;
      } catch (const SorterError& error) {
        const std::string expected =
            request == 0 ? message_part : "not used again since GL failed before: ";
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
      EXPECT_TRUE(windows == before) << "keys changed, step " << step;
    }
    EXPECT_EQ(broken.counts(), SortCounts{}) << "a failed request is not counted";
  }

  /// At every call site, and when what comes back is something else.
  template <class Key = std::uint32_t>
  static void ExpectKeepsTheKeysWhateverFails(const std::string& drawing) {
    const auto raise_gl_error = [] { glBindTexture(GL_ARRAY_BUFFER, 0); };
    ExpectFailsAt<Key>("upload", raise_gl_error,
                       "uploading windows to the GPU failed: GL_INVALID_ENUM");
    ExpectFailsAt<Key>("draw", raise_gl_error, drawing + " failed: GL_INVALID_ENUM");
    ExpectFailsAt<Key>("read back", raise_gl_error,
                       "reading sorted windows back from the GPU failed: ");
    // What a context that was lost without notice looks like: nothing is drawn.
    ExpectFailsAt<Key>(
        "draw", [] { glEnable(GL_RASTERIZER_DISCARD); }, "checking the sorted windows");
  }

  /// What GL has no memory for is refused, and others are sorted.
  static void ExpectRefusesWhatThereIsNoMemoryFor(const std::string& name) {
    bool full = true;
    Options options = Software();
    options.observer = [&](std::string_view step) {
      if (full && step == "upload") throw gl::GlOutOfMemory("making a texture failed: none left");
    };
    Sorter sorter(options);
    std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("low bits only", 500, 1);
    const std::vector<std::uint32_t> before = keys;
    const std::vector<std::span<std::uint32_t>> channels = {keys};
    try {
      sorter.Sort(Channels<std::uint32_t>(channels));
      FAIL() << "no exception";
    } catch (const SorterRefusal& refusal) {
      EXPECT_EQ(refusal.what(), name + ": making a texture failed: none left");
    }
    EXPECT_TRUE(keys == before);
    full = false;
    ExpectSortsLikeStdSort<std::uint32_t>(sorter, {keys}, "after a refusal");
  }

  static void ExpectKeepsTheKeysWhenTheDriverHangs(const std::string& name) {
    testing::ExpectKeepsTheKeysWhenTheDriverHangs<Sorter>(Software(), "draw", name);
  }

  /// One to four windows of random lengths and distributions; `carried` makes of 64-bit keys such
  /// as the sorter takes.
  static void ExpectSortsRandomRequests(
      int requests, const std::function<std::uint64_t(std::uint64_t)>& carried) {
    for (int seed = 1; seed <= requests; ++seed) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      const auto pick = [&](std::size_t below) { return random() % below; };
      std::vector<std::vector<std::uint32_t>> narrow(1 + pick(kChannels));
      std::vector<std::vector<std::uint64_t>> wide(1 + pick(kChannels));
      const std::size_t longest = std::size_t{2} << pick(11);
      const auto& distributions = Distributions();
      for (std::vector<std::uint32_t>& keys : narrow) {
        keys = MakeKeys<std::uint32_t>(distributions[pick(distributions.size())], pick(longest),
                                       random());
      }
      for (std::vector<std::uint64_t>& keys : wide) {
        keys = MakeKeys<std::uint64_t>(distributions[pick(distributions.size())], pick(longest),
                                       random());
        for (std::uint64_t& key : keys) key = carried(key);
      }
      ExpectSortsLikeStdSort(sorter(), narrow, "seed " + std::to_string(seed));
      ExpectSortsLikeStdSort(sorter(), wide, "seed " + std::to_string(seed));
    }
  }

  /// `sort(thread, keys)`: a request of so many keys.
  template <class SortSome>
  static void ExpectSortsForManyThreadsAtOnce(std::size_t thread_count, SortSome sort) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < thread_count; ++t) {
      threads.emplace_back([t, sort] {
        for (std::size_t round = 0; round < 5; ++round) sort(t, 50 + 200 * round + 13 * t);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static void ExpectSortsForManyThreadsAtOnce() {
    ExpectSortsForManyThreadsAtOnce(4, [](std::size_t t, std::size_t n) {
      ExpectSortsLikeStdSort<std::uint32_t>(
          sorter(), {MakeKeys<std::uint32_t>("low bits only", n, t)}, "a thread of several");
    });
  }

  static void ExpectRefusesAWindowBeyondTheDevicesLimitAndGoesOn() {
    // A span that is never read: the length alone is refused.
    std::uint32_t key = 0;
    std::vector<std::span<std::uint32_t>> channels = {{&key, sorter().window_max() + 1}};
    EXPECT_THROW(sorter().Sort(Channels<std::uint32_t>(channels)), SorterRefusal);
    ExpectSortsLikeStdSort<std::uint32_t>(sorter(),
                                          {MakeKeys<std::uint32_t>("low bits only", 100, 1)}, "");
  }

 private:
  static void ExpectSortsBothWidths(const std::string& distribution, std::size_t n,
                                    std::uint64_t seed) {
    ExpectSortsLikeStdSort<std::uint32_t>(
        sorter(), {MakeKeys<std::uint32_t>(distribution, n, seed)}, distribution);
    ExpectSortsLikeStdSort<std::uint64_t>(
        sorter(), {MakeKeys<std::uint64_t>(distribution, n, seed)}, distribution);
  }

  static inline std::unique_ptr<Sorter> sorter_;
  static inline std::string why_not_;
};

}  // namespace tidemark::sort::testing

#endif  // TIDEMARK_TESTS_GPU_GL_SORTER_CASES_H_
