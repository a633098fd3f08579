#include "gpu/sort/gl_sorters.h"

#include <utility>

#include "gpu/sort/gl_abisort_sorter.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/gl_compute_sorter.h"
#include "gpu/sort/gl_pbsn_sorter.h"

namespace tidemark::sort {

namespace {

template <class Sorter, class Options>
GlSorterOrReason Open(const GlOpening& how) {
  GlSorterOrReason out;
  try {
    Options options;
    options.allow_software = how.allow_software;
    options.time_limit = how.time_limit;
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

GlSorterOrReason OpenGlBitonic(const GlOpening& how) {
  return Open<GlBitonicSorter, GlBitonicOptions>(how);
}

GlSorterOrReason OpenGlCompute(const GlOpening& how) {
  return Open<GlComputeSorter, GlComputeOptions>(how);
}

GlSorterOrReason OpenGlABiSort(const GlOpening& how) {
  return Open<GlABiSortSorter, GlABiSortOptions>(how);
}

GlSorterOrReason OpenGlPbsn(const GlOpening& how) {
  return Open<GlPbsnSorter, GlTexelOptions>(how);
}

}  // namespace tidemark::sort
