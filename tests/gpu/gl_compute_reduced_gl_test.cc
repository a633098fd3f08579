// gl-compute giving back samples and runs in place of windows, against the same from the sorted
// window, to the bit, and what it does when GL fails. Whole windows: gl_compute_gl_test.cc, which
// says what llvmpipe does not show. Fails, rather than skips, where no GL context can be opened.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu/sort/gl_compute_sorter.h"
#include "tests/gpu/gl_compute_cases.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::Distributions;
using testing::MakeKeys;
using testing::SmallBlocks;
using testing::SmallBlocksWithoutBufferStorage;
using testing::Software;

using GlComputeReducedTest = testing::GlComputeSorters;

// What is needed of a window of n keys: whole, samples at any places, runs, or both.
WindowNeeds DrawNeeds(std::size_t n, std::mt19937_64& random) {
  WindowNeeds needs;
  if (random() % 4 == 0) return needs;
  needs.runs = random() % 2 == 0;
  if (!needs.runs || random() % 2 == 0) {
    const auto stride = static_cast<std::uint32_t>(1 + random() % (n + 2));
    needs.samples = {
        static_cast<std::uint32_t>(random() % 2 == 0 ? stride - 1 : random() % (n + 2)),
        random() % 3 == 0 ? 1 : stride};
  }
  return needs;
}

// Sorts and reduces the windows; each must be what its sorted keys say. Returns how many channels
// came back as a whole though their runs were asked for.
template <class Key>
int ExpectReducesLikeTheReference(WindowSorter& sorter, std::vector<std::vector<Key>> windows,
                                  const std::vector<WindowNeeds>& needs, const std::string& what) {
  const std::vector<std::vector<Key>> original = windows;
  const std::vector<std::span<Key>> channels(windows.begin(), windows.end());
  std::vector<ReducedWindow<Key>> reduced(windows.size());
  for (ReducedWindow<Key>& left_over : reduced) left_over = {true, 7, {7}, {{7, 7}}};
  EXPECT_EQ(sorter.SortReduced(Channels<Key>(channels), needs, reduced), "gl-compute");
  int whole = 0;
  for (std::size_t c = 0; c < windows.size(); ++c) {
    SCOPED_TRACE(what + ", " + std::to_string(8 * sizeof(Key)) + "-bit keys, channel " +
                 std::to_string(c) + " of " + std::to_string(windows[c].size()));
    std::vector<Key> sorted = original[c];
    std::sort(sorted.begin(), sorted.end());
    const ReducedWindow<Key> expected = ReduceSorted<Key>(sorted, needs[c]);
    if (reduced[c].whole) {
      EXPECT_TRUE(windows[c] == sorted);
      EXPECT_TRUE(reduced[c].samples.empty() && reduced[c].runs.empty());
      if (needs[c].whole()) continue;
      EXPECT_TRUE(needs[c].runs) << "samples are never more than the window";
      const std::size_t runs = reduce::RunsOf<Key>(sorted).size();
      EXPECT_GT(runs * (sizeof(Key) + 4), sorted.size() * sizeof(Key));
      ++whole;
      continue;
    }
    EXPECT_FALSE(expected.whole);
    EXPECT_EQ(reduced[c].smallest, expected.smallest);
    EXPECT_TRUE(reduced[c].samples == expected.samples);
    EXPECT_TRUE(reduced[c].runs == expected.runs);
    EXPECT_TRUE(windows[c] == original[c]) << "the keys were touched";
  }
  return whole;
}

template <class Key>
void ExpectReducesEverything(GlComputeSorter& sorter, std::uint64_t seed, int requests) {
  std::mt19937_64 random(seed);
  int whole = 0;
  for (int request = 0; request < requests; ++request) {
    std::vector<std::vector<Key>> windows(1 + random() % kChannels);
    std::vector<WindowNeeds> needs;
    const std::size_t longest = std::size_t{1} << random() % 13;
    for (std::vector<Key>& keys : windows) {
      const std::size_t n = random() % 8 == 0 ? 0 : 1 + random() % longest;
      keys = MakeKeys<Key>(Distributions()[random() % Distributions().size()], n, random());
      needs.push_back(DrawNeeds(n, random));
    }
    whole += ExpectReducesLikeTheReference<Key>(
        sorter, windows, needs, "seed " + std::to_string(seed) + ", " + std::to_string(request));
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(whole, 0) << "no window had more runs than are worth it";
}

TEST_F(GlComputeReducedTest, AnythingOfWindowsOfMixedLengths) {
  for (GlComputeSorter* sorter : {&small(), &masked(), &device()}) {
    ExpectReducesEverything<std::uint32_t>(*sorter, 31, 150);
    ExpectReducesEverything<std::uint64_t>(*sorter, 32, 150);
  }
}

TEST_F(GlComputeReducedTest, EveryLengthUpTo300) {
  std::mt19937_64 random(33);
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    for (std::size_t n = 0; n <= 300; ++n) {
      std::vector<std::vector<std::uint32_t>> windows;
      for (std::size_t c = 0; c < kChannels; ++c) {
        windows.push_back(MakeKeys<std::uint32_t>("few distinct", c == 0 ? n : random() % 300, n));
      }
      const std::vector<WindowNeeds> needs = {{reduce::SamplePlaces{3, 4}, true},
                                              {reduce::SamplePlaces{0, 1}, false},
                                              {{}, true},
                                              {reduce::SamplePlaces{15, 16}, false}};
      ExpectReducesLikeTheReference(*sorter, windows, needs, "length " + std::to_string(n));
    }
  }
}

TEST_F(GlComputeReducedTest, ALargeWindowAndASmallOneAfterIt) {
  for (const std::size_t n : {std::size_t{1} << 16, std::size_t{100}}) {
    ExpectReducesLikeTheReference<std::uint64_t>(
        device(),
        {MakeKeys<std::uint64_t>("few distinct", n, 1), MakeKeys<std::uint64_t>("random", n / 2, 2),
         MakeKeys<std::uint64_t>("all equal", n, 3)},
        {{reduce::SamplePlaces{63, 64}, true}, {reduce::SamplePlaces{31, 32}, false}, {{}, true}},
        "large");
  }
}

TEST_F(GlComputeReducedTest, ForManyThreadsAtOnce) {
  for (GlComputeSorter* sorter : {&small(), &masked()}) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([t, sorter] {
        for (std::size_t round = 0; round < 5; ++round) {
          const std::size_t n = 50 + 200 * round + 13 * t;
          ExpectReducesLikeTheReference<std::uint32_t>(
              *sorter,
              {MakeKeys<std::uint32_t>("few distinct", n, t),
               MakeKeys<std::uint32_t>("random", t, n)},
              {{reduce::SamplePlaces{7, 8}, true}, {reduce::SamplePlaces{0, 2}, false}}, "threads");
          testing::ExpectSortsLikeStdSort<std::uint32_t>(
              *sorter, {MakeKeys<std::uint32_t>("random", n, t)}, "threads");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(GlComputeReducedTest, RefusesWhatDoesNotFitOneBindingAndGoesOn) {
  GlComputeOptions options = SmallBlocks();
  options.overrides.storage_block_bytes = 16384;
  GlComputeSorter narrow(options);
  std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 1025, 1);
  const std::vector<std::uint32_t> before = keys;
  const std::vector<std::span<std::uint32_t>> channel = {keys};
  const std::vector<WindowNeeds> needs = {{{}, true}};
  std::vector<ReducedWindow<std::uint32_t>> reduced(1);
  EXPECT_FALSE(narrow.Reduces(0, {1025, 0, 0, 0}));
  EXPECT_FALSE(narrow.Reduces(1, {513, 0, 0, 0}));
  EXPECT_FALSE(narrow.Reduces(2, {1, 0, 0, 0}));
  EXPECT_TRUE(narrow.Reduces(0, {1024, 1024, 1024, 1024}));
  EXPECT_THROW(narrow.SortReduced(Channels<std::uint32_t>(channel), needs, reduced), SorterRefusal);
  EXPECT_TRUE(keys == before);
  keys.resize(1024);
  ExpectReducesLikeTheReference<std::uint32_t>(narrow, {keys}, needs, "what fits");
}

// A request whose GL is disturbed at `step` must throw, leave the keys and the results as they
// were, and the sorter must refuse to go on.
void ExpectReducingFailsAt(GlComputeOptions options, const std::string& step,
                           const std::function<void()>& disturb, const std::string& message_part,
                           bool runs_alone = false) {
  int seen = 0;
  options.observer = [&](std::string_view now) {
    if (now != step) return;
    ++seen;
    disturb();
  };
  GlComputeSorter broken(options);
  std::vector<std::vector<std::uint64_t>> windows = {
      MakeKeys<std::uint64_t>("few distinct", 777, 1), MakeKeys<std::uint64_t>("random", 400, 2)};
  for (std::uint64_t& key : windows[1]) key |= 1;
  for (std::uint64_t& key : windows[0]) key |= 1;
  const auto before = windows;
  const std::vector<std::span<std::uint64_t>> channels(windows.begin(), windows.end());
  std::vector<WindowNeeds> needs = {{{}, true}, {reduce::SamplePlaces{7, 8}, false}};
  if (runs_alone) needs[1] = needs[0];
  for (int request = 0; request < 2; ++request) {
    std::vector<ReducedWindow<std::uint64_t>> reduced(2);
    try {
      broken.SortReduced(Channels<std::uint64_t>(channels), needs, reduced);
      FAIL() << "no exception at " << step;
    } catch (const SorterRefusal& refusal) {
      FAIL() << "a failure, not a refusal: " << refusal.what();
    } catch (const SorterError& error) {
      const std::string expected =
          request == 0 ? "gl-compute: " + message_part : "not used again since GL failed before: ";
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
    EXPECT_TRUE(windows == before) << "keys changed, step " << step;
    EXPECT_TRUE(reduced[0].runs.empty() && reduced[1].samples.empty() && !reduced[0].whole);
  }
  EXPECT_GT(seen, 0) << "there is no step " << step;
}

TEST_F(GlComputeReducedTest, KeepsTheKeysWhenAGlCallFails) {
  const auto raise_gl_error = [] { glBindTexture(GL_ARRAY_BUFFER, 0); };
  for (const GlComputeOptions& options : {SmallBlocks(), SmallBlocksWithoutBufferStorage()}) {
    ExpectReducingFailsAt(options, "upload", raise_gl_error,
                          "uploading windows to the GPU failed: GL_INVALID_ENUM");
    ExpectReducingFailsAt(options, "sort", raise_gl_error,
                          "running the passes of the network failed: GL_INVALID_ENUM");
    ExpectReducingFailsAt(options, "reduce", raise_gl_error,
                          "making a buffer of 32 bytes failed: GL_INVALID_ENUM");
    ExpectReducingFailsAt(options, "read back", raise_gl_error,
                          "reading reduced windows back from the GPU failed: GL_INVALID_ENUM");
    ExpectReducingFailsAt(options, "wait", raise_gl_error,
                          "waiting for sorted windows failed: GL_INVALID_ENUM");
    ExpectReducingFailsAt(options, "read found", raise_gl_error,
                          "reading runs back from the GPU failed: GL_INVALID_ENUM");
  }
}

// Binding 0: the sorted windows, 1: counts, 2: what was last written of samples, 3: ends of runs.
std::function<void()> Fill(GLuint binding, std::uint32_t word) {
  return [binding, word] {
    GLint buffer = 0;
    glGetIntegeri_v(GL_SHADER_STORAGE_BUFFER_BINDING, binding, &buffer);
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, static_cast<GLuint>(buffer));
    glClearBufferData(GL_SHADER_STORAGE_BUFFER, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, &word);
  };
}

TEST_F(GlComputeReducedTest, KeepsTheKeysWhenTheGpuReturnsSomethingElse) {
  for (const GlComputeOptions& options : {SmallBlocks(), SmallBlocksWithoutBufferStorage()}) {
    for (const bool runs_alone : {false, true}) {
      ExpectReducingFailsAt(options, "reduce", Fill(0, 0), "checking the sorted windows",
                            runs_alone);
    }
    ExpectReducingFailsAt(options, "read back", Fill(0, 0), "checking the sorted windows");
    ExpectReducingFailsAt(options, "read back", Fill(1, 0),
                          "reducing windows failed: 0 runs of 777 keys");
    ExpectReducingFailsAt(options, "read back", Fill(1, 778),
                          "reducing windows failed: 778 runs of 777 keys");
    ExpectReducingFailsAt(options, "read back", Fill(1, 3), "checking the sorted windows");
    for (const std::uint32_t word : {0U, 1U, ~0U}) {
      ExpectReducingFailsAt(options, "read back", Fill(2, word), "checking the sorted windows");
      ExpectReducingFailsAt(options, "read found", Fill(3, word), "checking the sorted windows");
    }
  }
}

// A key of another value where nobody took a sample of: order, ends and samples are as they were.
TEST_F(GlComputeReducedTest, KeepsTheKeysWhenAKeyThatIsNotSeenIsAnother) {
  const auto change = [] {
    GLint buffer = 0;
    glGetIntegeri_v(GL_SHADER_STORAGE_BUFFER_BINDING, 0, &buffer);
    glBindBuffer(GL_COPY_READ_BUFFER, static_cast<GLuint>(buffer));
    constexpr GLintptr kKey = sizeof(std::uint64_t);
    // The second window begins at the next multiple of 256 bytes behind 777 keys.
    constexpr GLintptr kSecond = (777 * kKey + 255) / 256 * 256;
    glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_READ_BUFFER, kSecond + 9 * kKey,
                        kSecond + 10 * kKey, kKey);
  };
  for (const GlComputeOptions& options : {SmallBlocks(), SmallBlocksWithoutBufferStorage()}) {
    ExpectReducingFailsAt(options, "reduce", change, "checking the sorted windows");
  }
}

TEST_F(GlComputeReducedTest, KeepsTheKeysWhenTheDriverHangs) {
  for (const std::string step : {"upload", "sort", "reduce", "read back", "wait", "read found"}) {
    std::promise<void> driver_comes_back;
    std::shared_future<void> back = driver_comes_back.get_future().share();
    GlComputeOptions options = SmallBlocks();
    options.observer = [back, step](std::string_view now) {
      if (now == step) back.wait();
    };
    options.time_limit = std::chrono::milliseconds(1000);  // programs are compiled within it
    auto hanging = std::make_unique<GlComputeSorter>(options);
    std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("few distinct", 100, 1);
    const std::vector<std::uint32_t> before = keys;
    const std::vector<std::span<std::uint32_t>> channels = {keys};
    const std::vector<WindowNeeds> needs = {{{}, true}};
    std::vector<ReducedWindow<std::uint32_t>> reduced(1);
    try {
      hanging->SortReduced(Channels<std::uint32_t>(channels), needs, reduced);
      FAIL() << "no exception at " << step;
    } catch (const SorterError& error) {
      EXPECT_STREQ(error.what(),
                   "gl-compute: the GL driver did not answer within 1000 ms (the GPU hangs)");
    }
    EXPECT_TRUE(keys == before && reduced[0].runs.empty());
    driver_comes_back.set_value();
    hanging.reset();  // waits for the thread, now that it goes on
    EXPECT_TRUE(keys == before && reduced[0].runs.empty()) << "the late result was written";
  }
}

}  // namespace
}  // namespace tidemark::sort
