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

GlSorterOrReason OpenGlBitonic(bool /*allow_software*/) {
  GlSorterOrReason out;
  out.report.error = kWhy;
  return out;
}

GlSorterOrReason OpenGlCompute(bool allow_software) { return OpenGlBitonic(allow_software); }

GlSorterOrReason OpenGlABiSort(bool allow_software) { return OpenGlBitonic(allow_software); }

GlSorterOrReason OpenGlPbsn(bool allow_software) { return OpenGlBitonic(allow_software); }

}  // namespace tidemark::sort
