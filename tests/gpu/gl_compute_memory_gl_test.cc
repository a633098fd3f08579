// gl-compute with windows that lie in its own memory, and when there is no memory.
#include <epoxy/gl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <memory_resource>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_compute_sorter.h"
#include "tests/gpu/gl_compute_cases.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::MakeKeys;
using testing::SmallBlocks;

template <class Key>
using MappedKeys = std::pmr::vector<Key>;

// `lengths` as channels, each in the sorter's memory or, by the bits of `elsewhere`, on the heap.
template <class Key>
std::vector<MappedKeys<Key>> MakeWindows(std::pmr::memory_resource* memory,
                                         const std::vector<std::size_t>& lengths,
                                         unsigned elsewhere) {
  std::vector<MappedKeys<Key>> windows;
  for (std::size_t c = 0; c < lengths.size(); ++c) {
    const auto keys = MakeKeys<Key>("few distinct", lengths[c], lengths[c] + c);
    windows.emplace_back(keys.begin(), keys.end(),
                         (elsewhere >> c & 1U) != 0 ? std::pmr::new_delete_resource() : memory);
  }
  return windows;
}

template <class Key>
void ExpectSortsInPlace(GlComputeSorter& sorter, const std::vector<std::size_t>& lengths,
                        unsigned elsewhere) {
  const auto memory = sorter.window_memory();
  auto windows = MakeWindows<Key>(memory.get(), lengths, elsewhere);
  std::size_t mapped = 0;
  for (std::size_t c = 0; c < windows.size(); ++c) {
    const bool there = windows[c].size() * sizeof(Key) >= WindowMemory::kSmallest;
    if (there && (elsewhere >> c & 1U) == 0) mapped += windows[c].size();
  }
  const auto before = sorter.mapped_keys();
  const std::vector<WindowNeeds> needs(windows.size(), {reduce::SamplePlaces{7, 8}, false});
  std::vector<ReducedWindow<Key>> reduced(windows.size());
  auto sorted = windows;
  for (auto& keys : sorted) std::sort(keys.begin(), keys.end());
  const std::vector<std::span<Key>> channels(windows.begin(), windows.end());
  const auto given = windows;
  sorter.SortReduced(Channels<Key>(channels), needs, reduced);
  EXPECT_TRUE(windows == given) << "the keys were touched";
  for (std::size_t c = 0; c < windows.size(); ++c) {
    EXPECT_TRUE(reduced[c].samples ==
                ReduceSorted<Key>(std::span<const Key>(sorted[c]), needs[c]).samples);
  }
  sorter.Sort(Channels<Key>(channels));
  EXPECT_TRUE(windows == sorted);
  EXPECT_EQ(sorter.mapped_keys() - before, 2 * mapped);
}

TEST(GlComputeMemory, WindowsAreReadWhereTheyLie) {
  GlComputeSorter sorter(SmallBlocks());
  ASSERT_NE(sorter.window_memory(), nullptr);
  for (unsigned elsewhere = 0; elsewhere < 16; ++elsewhere) {
    SCOPED_TRACE("on the heap: " + std::to_string(elsewhere));
    ExpectSortsInPlace<std::uint32_t>(sorter, {5000, 4096, 9001, 4097}, elsewhere);
    ExpectSortsInPlace<std::uint64_t>(sorter, {3000, 10, 2048}, elsewhere);
    ExpectSortsInPlace<std::uint64_t>(sorter, {0, 2500, 1, 6000}, elsewhere);
  }
}

TEST(GlComputeMemory, ForManyThreadsAtOnce) {
  GlComputeSorter sorter(SmallBlocks());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 6; ++t) {
    threads.emplace_back([t, &sorter] {
      const auto memory = sorter.window_memory();
      for (std::size_t round = 0; round < 6; ++round) {
        auto windows = MakeWindows<std::uint32_t>(memory.get(), {4100 + 100 * t, 5000 + round}, 0);
        auto sorted = windows;
        for (auto& keys : sorted) std::sort(keys.begin(), keys.end());
        const std::vector<std::span<std::uint32_t>> channels(windows.begin(), windows.end());
        sorter.Sort(Channels<std::uint32_t>(channels));
        EXPECT_TRUE(windows == sorted);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GlComputeMemory, WindowsOutliveTheSorterAndItsFailure) {
  GlComputeOptions options = SmallBlocks();
  options.observer = [](std::string_view step) {
    if (step == "sort") glBindTexture(GL_ARRAY_BUFFER, 0);
  };
  auto sorter = std::make_unique<GlComputeSorter>(options);
  auto memory = sorter->window_memory();
  auto windows = MakeWindows<std::uint64_t>(memory.get(), {5000, 2048}, 0);
  const auto given = windows;
  const std::vector<std::span<std::uint64_t>> channels(windows.begin(), windows.end());
  EXPECT_THROW(sorter->Sort(Channels<std::uint64_t>(channels)), SorterError);
  EXPECT_EQ(sorter->mapped_keys(), 7048U);
  sorter.reset();
  EXPECT_TRUE(windows == given);
  for (auto& keys : windows) std::sort(keys.begin(), keys.end());
  EXPECT_TRUE(std::is_sorted(windows[0].begin(), windows[0].end()));
}

TEST(GlComputeMemory, NoneWithoutBufferStorageOrRoomForIt) {
  GlComputeOptions options = SmallBlocks();
  options.window_memory_bytes = 0;
  EXPECT_EQ(GlComputeSorter(options).window_memory(), nullptr);
  options = SmallBlocks();
  options.overrides.buffer_storage = false;
  EXPECT_EQ(GlComputeSorter(options).window_memory(), nullptr);
}

// A request that there is no memory for is refused, whole or reduced; others are sorted.
TEST(GlComputeMemory, RefusesWhatThereIsNoMemoryForAndGoesOn) {
  for (const bool buffer_storage : {true, false}) {
    for (const std::string at : {"reserve", "reduce"}) {
      bool full = true;
      GlComputeOptions options = SmallBlocks();
      options.overrides.buffer_storage = buffer_storage;
      options.observer = [&](std::string_view step) {
        if (full && step == at) throw gl::GlOutOfMemory("making a buffer failed: GL_OUT_OF_MEMORY");
      };
      GlComputeSorter sorter(options);
      std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 3000, 1);
      const std::vector<std::uint32_t> before = keys;
      const std::vector<std::span<std::uint32_t>> channels = {keys};
      const std::vector<WindowNeeds> needs = {{reduce::SamplePlaces{7, 8}, true}};
      std::vector<ReducedWindow<std::uint32_t>> reduced(1);
      try {
        sorter.SortReduced(Channels<std::uint32_t>(channels), needs, reduced);
        FAIL() << "no exception at " << at;
      } catch (const SorterRefusal& refusal) {
        EXPECT_STREQ(refusal.what(), "gl-compute: making a buffer failed: GL_OUT_OF_MEMORY");
      }
      EXPECT_TRUE(keys == before && reduced[0].runs.empty());
      full = false;
      sorter.SortReduced(Channels<std::uint32_t>(channels), needs, reduced);
      EXPECT_FALSE(reduced[0].whole && reduced[0].runs.empty() && keys == before);
      testing::ExpectSortsLikeStdSort<std::uint32_t>(sorter, {before}, "after a refusal");
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
