// What summaries need of a sorted window, which is most often far less than the window.
//
// (a) Every k-th key, for quantiles; (b) the run-length encoding, for frequencies. A reducer on a
// device gives the same, to the bit, as these functions do from the whole channel.
#ifndef TIDEMARK_GPU_REDUCE_REDUCED_CHANNEL_H_
#define TIDEMARK_GPU_REDUCE_REDUCED_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::reduce {

/// Windows that are reduced at once: those of one request to a sorter.
inline constexpr std::size_t kReducedChannels = 4;

/// A run of equal keys. `end`: how many keys of the channel lie up to its last one; the count is
/// the difference to the run before.
template <class Key>
struct KeyRun {
  Key key;
  std::uint32_t end;

  friend bool operator==(const KeyRun&, const KeyRun&) = default;
};

/// Which keys of a sorted channel are its samples: those at places first, first + stride, ...
struct SamplePlaces {
  std::uint32_t first = 0;
  std::uint32_t stride = 1;  ///< not 0

  /// Samples of a channel of `length` keys.
  constexpr std::uint32_t Count(std::uint32_t length) const {
    return length <= first ? 0 : (length - first - 1) / stride + 1;
  }
};

/// The runs of a sorted channel of fewer than 2^32 keys, ascending.
template <class Key>
std::vector<KeyRun<Key>> RunsOf(std::span<const Key> sorted) {
  std::vector<KeyRun<Key>> runs;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i + 1 == sorted.size() || sorted[i] != sorted[i + 1]) {
      runs.push_back({sorted[i], static_cast<std::uint32_t>(i + 1)});
    }
  }
  return runs;
}

template <class Key>
std::vector<Key> SamplesOf(std::span<const Key> sorted, const SamplePlaces& places) {
  std::vector<Key> samples;
  for (std::size_t i = places.first; i < sorted.size(); i += places.stride) {
    samples.push_back(sorted[i]);
  }
  return samples;
}

}  // namespace tidemark::reduce

#endif  // TIDEMARK_GPU_REDUCE_REDUCED_CHANNEL_H_
