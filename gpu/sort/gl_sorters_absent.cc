#include "gpu/sort/gl_devices.h"
#include "gpu/sort/gl_sorters.h"

namespace tidemark::sort {
namespace {

constexpr const char* kWhy = "built without libepoxy, so without any GL sorter";

}  // namespace

GlDevices DescribeGlDevices() {
  GlDevices none;
  none.error = kWhy;
  return none;
}

GlSorterOrReason OpenGlBitonic(const GlOpening& /*how*/) {
  GlSorterOrReason out;
  out.report.error = kWhy;
  return out;
}

GlSorterOrReason OpenGlCompute(const GlOpening& how) { return OpenGlBitonic(how); }

GlSorterOrReason OpenGlABiSort(const GlOpening& how) { return OpenGlBitonic(how); }

GlSorterOrReason OpenGlPbsn(const GlOpening& how) { return OpenGlBitonic(how); }

}  // namespace tidemark::sort
