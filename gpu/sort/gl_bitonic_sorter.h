// The `gl-bitonic` sorter: four windows at once on an OpenGL device, by the improved bitonic
// network (gl_bitonic_engine.h).
#ifndef TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/sort/bitonic_tiles.h"
#include "gpu/sort/gl_texel_sorter.h"

namespace tidemark::sort {

struct GlBitonicOptions : GlTexelOptions {
  BitonicDrawing drawing;
};

/// Keys lie in the channels of RGBA32UI texels (two render targets for 64-bit keys). Threads,
/// errors: GlTexelSorter.
class GlBitonicSorter final : public GlTexelSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlBitonicSorter(GlBitonicOptions options);

  /// Merges in place: channel c is two ascending runs, keys 0 … second[c] - 1 and the rest, of any
  /// lengths (Govindaraju et al. (Cache-Efficient Sorting, 2005), §5.3, for windows whose halves
  /// were sorted before). With n keys in the padded channel, log n passes instead of
  /// log n (log n + 1) / 2; both runs are padded to a power of two, so that n is up to four times
  /// the window where one run is short.
  /// Errors: throws std::invalid_argument where a run is not ascending or second[c] is beyond the
  /// channel, SorterRefusal and SorterError as Sort; the keys are then as they were.
  /// REQUIRES: second.size() == channels.size().
  void Merge(Channels<std::uint32_t> channels, std::span<const std::size_t> second);
  void Merge(Channels<std::uint64_t> channels, std::span<const std::size_t> second);

 private:
  template <class Key>
  void MergeAll(Channels<Key> channels, std::span<const std::size_t> second);
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
