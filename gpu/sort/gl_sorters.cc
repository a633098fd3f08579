#include "gpu/sort/gl_sorters.h"

#include <utility>

#include "gpu/sort/gl_abisort_sorter.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/gl_compute_sorter.h"
#include "gpu/sort/gl_pbsn_sorter.h"

namespace tidemark::sort {

namespace {

template <class Sorter, class Options>
GlSorterOrReason Open(bool allow_software) {
  GlSorterOrReason out;
  try {
    Options options;
    options.allow_software = allow_software;
    auto sorter = std::make_unique<Sorter>(std::move(options));
    out.report = sorter->gl();
    out.window_max = sorter->window_max();
    out.sorter = std::move(sorter);
  } catch (const SorterError& error) {
    out.report.error = error.what();
  }
  return out;
}

}  // namespace

GlSorterOrReason OpenGlBitonic(bool allow_software) {
  return Open<GlBitonicSorter, GlBitonicOptions>(allow_software);
}

GlSorterOrReason OpenGlCompute(bool allow_software) {
  return Open<GlComputeSorter, GlComputeOptions>(allow_software);
}

GlSorterOrReason OpenGlABiSort(bool allow_software) {
  return Open<GlABiSortSorter, GlABiSortOptions>(allow_software);
}

GlSorterOrReason OpenGlPbsn(bool allow_software) {
  return Open<GlPbsnSorter, GlTexelOptions>(allow_software);
}

}  // namespace tidemark::sort
