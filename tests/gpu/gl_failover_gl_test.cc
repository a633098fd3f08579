// A real GL context that fails in the midst of requests of many threads, behind the route that the
// daemon uses: every window is sorted, whatever fails and when.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/gl_compute_sorter.h"
#include "gpu/sort/routed_sorter.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::MakeKeys;

constexpr std::size_t kThreads = 6;
constexpr std::size_t kRounds = 4;

std::unique_ptr<RoutedSorter> Behind(std::unique_ptr<WindowSorter> gl, std::size_t window_max) {
  RouteTable table;
  table.always_gl = true;
  table.gl_window_max = window_max;
  return std::make_unique<RoutedSorter>("routed", MakeUnmeasuredCpuSorter(), std::move(gl), table,
                                        [](const std::string&) {});
}

// Two windows, whole or reduced, as a sort worker would have them.
void ExpectSorted(RoutedSorter& sorter, std::size_t thread, std::size_t round) {
  const std::size_t n = 300 + 70 * thread + round;
  std::vector<std::vector<std::uint32_t>> windows = {
      MakeKeys<std::uint32_t>("low bits only", n, thread),
      MakeKeys<std::uint32_t>("few distinct", n / 2, round)};
  auto sorted = windows;
  for (auto& keys : sorted) std::sort(keys.begin(), keys.end());
  const std::vector<std::span<std::uint32_t>> channels(windows.begin(), windows.end());
  if ((thread + round) % 2 == 1) {
    const std::vector<WindowNeeds> needs = {{reduce::SamplePlaces{7, 8}, false}, {{}, true}};
    std::vector<ReducedWindow<std::uint32_t>> reduced(2);
    try {
      sorter.SortReduced(Channels<std::uint32_t>(channels), needs, reduced);
      for (std::size_t c = 0; c < 2; ++c) {
        const auto expected = ReduceSorted<std::uint32_t>(sorted[c], needs[c]);
        EXPECT_TRUE(reduced[c].whole || reduced[c].samples == expected.samples);
        EXPECT_TRUE(reduced[c].whole || reduced[c].runs == expected.runs);
      }
      return;
    } catch (const SorterRefusal&) {  // sorted whole, then
    }
  }
  sorter.Sort(Channels<std::uint32_t>(channels));
  EXPECT_TRUE(windows == sorted) << "thread " << thread << ", round " << round;
}

void ExpectSortsAll(RoutedSorter& sorter) {
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&sorter, thread] {
      for (std::size_t round = 0; round < kRounds; ++round) ExpectSorted(sorter, thread, round);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Calls `disturb` at the `nth` time that a step is reached.
std::function<void(std::string_view)> At(const std::string& step, int nth,
                                         std::function<void()> disturb) {
  const auto seen = std::make_shared<std::atomic<int>>(0);
  return [=](std::string_view now) {
    if (now == step && ++*seen == nth) disturb();
  };
}

GlComputeOptions Compute() {
  GlComputeOptions options;
  options.allow_software = true;
  options.overrides.shared_bytes = 1024;
  return options;
}

TEST(GlFailover, EveryWindowIsSortedWhereverGlFails) {
  for (const std::string step :
       {"reserve", "upload", "sort", "reduce", "read back", "wait", "read found"}) {
    for (const int nth : {1, 4}) {
      SCOPED_TRACE(step + ", time " + std::to_string(nth));
      GlComputeOptions options = Compute();
      options.observer = At(step, nth, [] { glBindTexture(GL_ARRAY_BUFFER, 0); });
      const auto sorter = Behind(std::make_unique<GlComputeSorter>(options), 1 << 20);
      ExpectSortsAll(*sorter);
      // A slot may be large enough before it is asked for a fourth time.
      if (step != "reserve" || nth == 1) {
        EXPECT_GT(sorter->failures(), 0U);
      }
    }
  }
}

TEST(GlFailover, EveryWindowIsSortedWhereverItHangs) {
  for (const std::string step : {"upload", "sort", "reduce", "wait"}) {
    SCOPED_TRACE(step);
    std::promise<void> comes_back;
    GlComputeOptions options = Compute();
    options.time_limit = std::chrono::milliseconds(1000);  // programs are compiled within it
    options.observer = At(step, 2, [back = comes_back.get_future().share()] { back.wait(); });
    auto sorter = Behind(std::make_unique<GlComputeSorter>(options), 1 << 20);
    ExpectSortsAll(*sorter);
    EXPECT_GT(sorter->failures(), 0U);
    EXPECT_NE(sorter->last_failure().find("hang"), std::string::npos) << sorter->last_failure();
    comes_back.set_value();
  }
}

TEST(GlFailover, WhatThereIsNoMemoryForIsNoFailure) {
  GlComputeOptions options = Compute();
  options.observer = [](std::string_view step) {
    if (step == "reduce") throw gl::GlOutOfMemory("making a buffer failed: GL_OUT_OF_MEMORY");
  };
  const auto sorter = Behind(std::make_unique<GlComputeSorter>(options), 1 << 20);
  ExpectSortsAll(*sorter);
  EXPECT_EQ(sorter->failures(), 0U);
  std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 1000, 1);
  const std::vector<std::span<std::uint32_t>> channel = {keys};
  EXPECT_EQ(sorter->Sort(Channels<std::uint32_t>(channel)), "gl-compute") << "GL works on";
}

TEST(GlFailover, TheSorterOfTexturesToo) {
  for (const std::string step : {"upload", "draw", "read back"}) {
    SCOPED_TRACE(step);
    GlBitonicOptions options;
    options.allow_software = true;
    options.observer = At(step, 3, [] { glBindTexture(GL_ARRAY_BUFFER, 0); });
    const auto sorter = Behind(std::make_unique<GlBitonicSorter>(options), 1 << 20);
    ExpectSortsAll(*sorter);
    EXPECT_GT(sorter->failures(), 0U);
  }
}

}  // namespace
}  // namespace tidemark::sort
