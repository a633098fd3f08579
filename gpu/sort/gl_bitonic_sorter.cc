#include "gpu/sort/gl_bitonic_sorter.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "gpu/sort/gl_bitonic_engine.h"

namespace tidemark::sort {
namespace {

// Throws std::invalid_argument unless the channel is two ascending runs.
template <class Key>
void CheckRuns(std::span<const Key> keys, std::size_t channel, std::size_t second) {
  std::ostringstream fault;
  if (second > keys.size()) {
    fault << "the second run begins at " << second << ", beyond its " << keys.size() << " keys";
  } else {
    auto at = std::is_sorted_until(keys.begin(), keys.begin() + static_cast<long>(second));
    if (at == keys.begin() + static_cast<long>(second)) at = std::is_sorted_until(at, keys.end());
    if (at == keys.end()) return;
    fault << "expected ascending runs from 0 and " << second << ", but key " << at - keys.begin()
          << " is smaller than the one before it";
  }
  throw std::invalid_argument("gl-bitonic: merging channel " + std::to_string(channel) + ": " +
                              fault.str());
}

}  // namespace

GlBitonicSorter::GlBitonicSorter(GlBitonicOptions options)
    : GlTexelSorter("gl-bitonic", TexelLayout::kInterleaved, options,
                    [drawing = options.drawing](const StepObserver& observer) {
                      return std::make_shared<GlBitonicEngine>(observer, drawing);
                    }) {}

void GlBitonicSorter::Merge(Channels<std::uint32_t> channels, std::span<const std::size_t> second) {
  MergeAll(channels, second);
}
void GlBitonicSorter::Merge(Channels<std::uint64_t> channels, std::span<const std::size_t> second) {
  MergeAll(channels, second);
}

template <class Key>
void GlBitonicSorter::MergeAll(Channels<Key> channels, std::span<const std::size_t> second) {
  assert(second.size() == channels.size());
  std::size_t longest = 0;
  std::size_t longest_run = 0;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    CheckRuns<Key>(channels[c], c, second[c]);
    longest = std::max(longest, channels[c].size());
    longest_run = std::max({longest_run, second[c], channels[c].size() - second[c]});
  }
  if (longest < 2) return;
  const std::size_t half = std::bit_ceil(longest_run);
  RefuseBeyondMax(2 * half);
  const std::shared_ptr<Texels> texels = MakeTexels(
      channels.size(), static_cast<std::uint32_t>(std::bit_width(half)), sizeof(Key) == 8);
  texels->sorted_halves = true;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (std::size_t i = 0; i < channels[c].size(); ++i) {
      PutKey(*texels, c, i < second[c] ? i : half + i - second[c], channels[c][i]);
    }
  }
  SortOnGl(texels, [&] {
    for (std::size_t c = 0; c < channels.size(); ++c) CheckSorted<Key>(*texels, c, channels[c]);
  });
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (std::size_t i = 0; i < channels[c].size(); ++i) channels[c][i] = KeyAt<Key>(*texels, c, i);
  }
}

}  // namespace tidemark::sort
