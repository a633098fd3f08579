// How long a sorter takes for a request, as `auto` asks at start.
#ifndef TIDEMARK_GPU_SORT_MEASURE_REQUEST_H_
#define TIDEMARK_GPU_SORT_MEASURE_REQUEST_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <random>
#include <span>
#include <vector>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Seconds of one request of four windows of random keys on `gl`: the smallest of the rounds that
/// fit the budget, of one at least and three at most. The first request is not counted, however
/// long it takes: it allocates memory, and the driver may finish its programs and the GPU raise its
/// clocks meanwhile. Windows lie where the sorter wants them. Errors: throws SorterError.
template <class Key>
double MeasureRequest(WindowSorter& gl, std::size_t window,
                      std::chrono::steady_clock::duration budget,
                      const std::function<std::chrono::steady_clock::time_point()>& now) {
  constexpr int kRounds = 4;
  std::array<std::vector<Key>, kChannels> original;
  const std::shared_ptr<std::pmr::memory_resource> memory = gl.window_memory();
  const std::pmr::polymorphic_allocator<Key> allocator(
      memory != nullptr ? memory.get() : std::pmr::new_delete_resource());
  std::array<std::pmr::vector<Key>, kChannels> keys = {
      std::pmr::vector<Key>(allocator), std::pmr::vector<Key>(allocator),
      std::pmr::vector<Key>(allocator), std::pmr::vector<Key>(allocator)};
  std::array<std::span<Key>, kChannels> channels;
  std::mt19937_64 random(2005);
  for (std::size_t c = 0; c < kChannels; ++c) {
    original[c].resize(window);
    for (Key& key : original[c]) key = static_cast<Key>(random());
  }
  const auto end = now() + budget;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds && (round < 2 || now() < end); ++round) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      keys[c].assign(original[c].begin(), original[c].end());
      channels[c] = keys[c];
    }
    const auto start = now();
    gl.Sort(Channels<Key>(channels));
    const std::chrono::duration<double> seconds = now() - start;
    if (round > 0) best = std::min(best, seconds.count());
  }
  return best;
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_MEASURE_REQUEST_H_
