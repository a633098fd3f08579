#include "gpu/sort/gl_sorters.h"

#include <utility>

#include "gpu/sort/gl_bitonic_sorter.h"

namespace tidemark::sort {

GlSorterOrReason OpenGlBitonic(bool allow_software) {
  GlSorterOrReason out;
  try {
    GlBitonicOptions options;
    options.allow_software = allow_software;
    auto sorter = std::make_unique<GlBitonicSorter>(std::move(options));
    out.report = sorter->gl();
    out.window_max = sorter->window_max();
    out.sorter = std::move(sorter);
  } catch (const SorterError& error) {
    out.report.error = error.what();
  }
  return out;
}

}  // namespace tidemark::sort
