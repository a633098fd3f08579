// The seam between the factory and the GL sorters: implemented by gl_sorters.cc where the project
// is built with libepoxy, and by gl_sorters_absent.cc where it is not.
#ifndef TIDEMARK_GPU_SORT_GL_SORTERS_H_
#define TIDEMARK_GPU_SORT_GL_SORTERS_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

struct GlSorterOrReason {
  std::unique_ptr<WindowSorter> sorter;  ///< null when there is none; report.error says why
  std::size_t window_max = 0;            ///< the longest window that it takes
  GlReport report;
};

struct GlOpening {
  /// False: only a hardware device is opened.
  bool allow_software = false;
  /// A request that takes longer means that the GPU hangs.
  std::chrono::milliseconds time_limit = SorterOptions{}.gl_time_limit;
};

/// Opens "gl-bitonic". Never throws for a missing or failing GL.
GlSorterOrReason OpenGlBitonic(const GlOpening& how);
/// The same for "gl-compute".
GlSorterOrReason OpenGlCompute(const GlOpening& how);
/// The same for "gl-abisort".
GlSorterOrReason OpenGlABiSort(const GlOpening& how);
/// The same for "gl-pbsn".
GlSorterOrReason OpenGlPbsn(const GlOpening& how);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_SORTERS_H_
