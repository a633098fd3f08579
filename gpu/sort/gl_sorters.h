// The seam between the factory and the GL sorters: implemented by gl_sorters.cc where the project
// is built with libepoxy, and by gl_sorters_absent.cc where it is not.
#ifndef TIDEMARK_GPU_SORT_GL_SORTERS_H_
#define TIDEMARK_GPU_SORT_GL_SORTERS_H_

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

/// Opens "gl-bitonic". Without `allow_software` only a hardware device is opened. Never throws for
/// a missing or failing GL.
GlSorterOrReason OpenGlBitonic(bool allow_software);
/// The same for "gl-compute".
GlSorterOrReason OpenGlCompute(bool allow_software);
/// The same for "gl-abisort".
GlSorterOrReason OpenGlABiSort(bool allow_software);
/// The same for "gl-pbsn".
GlSorterOrReason OpenGlPbsn(bool allow_software);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_SORTERS_H_
