// The `gl-abisort` sorter: adaptive bitonic sorting on an OpenGL device (gl_abisort_engine.h).
#ifndef TIDEMARK_GPU_SORT_GL_ABISORT_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_ABISORT_SORTER_H_

#include "gpu/sort/gl_abisort_engine.h"
#include "gpu/sort/gl_texel_sorter.h"

namespace tidemark::sort {

struct GlABiSortOptions : GlTexelOptions {
  ABiSortForm form;
};

/// Windows are padded to at least 16 keys, and three windows to four. A faithful form for
/// comparison: n log n comparisons, but every node that is compared is read through a pointer and
/// written twice. Threads, errors: GlTexelSorter.
class GlABiSortSorter final : public GlTexelSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlABiSortSorter(GlABiSortOptions options)
      : GlTexelSorter("gl-abisort", TexelLayout::kConcatenated, options,
                      [form = options.form](const StepObserver& observer) {
                        return std::make_shared<GlABiSortEngine>(observer, form);
                      }) {}
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_ABISORT_SORTER_H_
