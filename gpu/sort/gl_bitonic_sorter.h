// The `gl-bitonic` sorter: four windows at once on an OpenGL device, by the improved bitonic
// network (gl_bitonic_engine.h).
#ifndef TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_

#include "gpu/sort/gl_texel_sorter.h"

namespace tidemark::sort {

struct GlBitonicOptions : GlTexelOptions {};

/// Keys lie in the channels of RGBA32UI texels (two render targets for 64-bit keys). Threads,
/// errors: GlTexelSorter.
class GlBitonicSorter final : public GlTexelSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlBitonicSorter(GlBitonicOptions options);
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
