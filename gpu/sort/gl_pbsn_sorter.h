// The `gl-pbsn` sorter: the periodic balanced sorting network by blending (gl_pbsn_engine.h).
#ifndef TIDEMARK_GPU_SORT_GL_PBSN_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_PBSN_SORTER_H_

#include <cstdint>
#include <vector>

#include "gpu/sort/gl_texel_sorter.h"

namespace tidemark::sort {

/// What it takes: every window of 32-bit keys, and windows of 64-bit keys that are less than
/// 2^32 - 2^25 apart; others are refused (SorterRefusal), for blending compares floats of 32 bits
/// (blend_keys.h). A window of 32-bit keys that are further apart than that is cut in two by value,
/// each of which is sorted by itself, so that a request may need the GPU twice. A faithful form for
/// comparison: n log^2 n comparisons, and a copy of all keys a step.
///
/// Threads, other errors: GlTexelSorter.
class GlPbsnSorter final : public GlTexelSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlPbsnSorter(GlTexelOptions options);

  std::string_view Sort(Channels<std::uint32_t> channels) override;
  std::string_view Sort(Channels<std::uint64_t> channels) override;

 private:
  // Keys of one window that go to the GPU as ranks: key - base.
  struct Part {
    std::size_t channel = 0;
    std::uint64_t base = 0;
    std::vector<std::uint32_t> ranks;
  };

  template <class Key>
  void AddParts(std::size_t channel, std::span<const Key> keys, std::vector<Part>& parts) const;
  void SortParts(std::span<Part> parts);
  template <class Key>
  std::string_view SortAll(Channels<Key> channels);
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_PBSN_SORTER_H_
