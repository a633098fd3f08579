// What a caller may take of a sorted window in place of all its keys: less crosses the bus back.
//
// Samples and runs are those of gpu/reduce/reduced_channel.h, to the bit. Where the runs of a
// window are more bytes than its keys, the window itself comes back, sorted, as if nothing else had
// been asked for: so a request moves no more than a whole one. It is not cheaper then: the device
// has looked for the runs in vain, and the host has waited twice.
#ifndef TIDEMARK_GPU_SORT_REDUCED_WINDOW_H_
#define TIDEMARK_GPU_SORT_REDUCED_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/reduce/reduced_channel.h"

namespace tidemark::sort {

/// What is needed of one window. Neither samples nor runs: the whole window, sorted.
struct WindowNeeds {
  std::optional<reduce::SamplePlaces> samples;
  bool runs = false;

  bool whole() const { return !samples && !runs; }
};

template <class Key>
struct ReducedWindow {
  /// The window itself was sorted, in place; all below is empty.
  bool whole = false;
  Key smallest = 0;                       ///< 0 of an empty window
  std::vector<Key> samples;               ///< where they were asked for
  std::vector<reduce::KeyRun<Key>> runs;  ///< the same
};

/// The samples of a channel of which the runs are known. Cost: linear in both.
template <class Key>
std::vector<Key> SamplesOf(std::span<const reduce::KeyRun<Key>> runs,
                           const reduce::SamplePlaces& places) {
  std::vector<Key> samples;
  if (runs.empty()) return samples;
  samples.reserve(places.Count(runs.back().end));
  auto run = runs.begin();
  for (std::size_t i = places.first; i < runs.back().end; i += places.stride) {
    while (run->end <= i) ++run;
    samples.push_back(run->key);
  }
  return samples;
}

/// The same from the sorted window itself: the reference.
template <class Key>
ReducedWindow<Key> ReduceSorted(std::span<const Key> sorted, const WindowNeeds& needs) {
  ReducedWindow<Key> reduced;
  reduced.whole = needs.whole();
  if (reduced.whole || sorted.empty()) return reduced;
  reduced.smallest = sorted.front();
  if (needs.samples) reduced.samples = reduce::SamplesOf(sorted, *needs.samples);
  if (needs.runs) reduced.runs = reduce::RunsOf(sorted);
  return reduced;
}

/// Whether what a device found can be of a window that held the keys of `original` (sorted_check.h
/// says what such a check finds and what not). Runs: ascending keys, ascending ends up to the
/// window's, and the same sum as the window's keys.
template <class Key>
bool LooksLikeRuns(std::span<const Key> keys, std::span<const std::uint32_t> ends,
                   std::span<const Key> original) {
  Key before = 0;
  for (const Key key : original) before = static_cast<Key>(before + key);
  Key after = 0;
  std::uint32_t end = 0;
  bool ascending = true;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ascending &= ends[i] > end && (i == 0 || keys[i - 1] < keys[i]);
    after = static_cast<Key>(after + keys[i] * static_cast<Key>(ends[i] - end));
    end = ends[i];
  }
  return ascending && end == original.size() && before == after;
}

/// Samples: ascending, from the window's smallest key on up to its largest, which is the last
/// sample where that is the window's last key. That alone is true of many windows: whoever took
/// them also says that all keys were ascending and what they add up to (reduce::KeyChecks).
/// REQUIRES: as many as the places say; a window that is not empty.
template <class Key>
bool LooksLikeSamples(Key smallest, std::span<const Key> samples,
                      const reduce::SamplePlaces& places, std::span<const Key> original) {
  Key least = original.front();
  Key largest = original.front();
  for (const Key key : original) {
    least = std::min(least, key);
    largest = std::max(largest, key);
  }
  if (smallest != least) return false;
  if (samples.empty()) return true;
  const std::size_t last = places.first + (samples.size() - 1) * std::size_t{places.stride};
  return std::is_sorted(samples.begin(), samples.end()) && samples.front() >= least &&
         samples.back() <= largest && (last + 1 < original.size() || samples.back() == largest) &&
         (places.first > 0 || samples.front() == least);
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_REDUCED_WINDOW_H_
