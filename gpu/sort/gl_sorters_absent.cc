#include "gpu/sort/gl_sorters.h"

namespace tidemark::sort {

GlSorterOrReason OpenGlBitonic(bool /*allow_software*/) {
  GlSorterOrReason out;
  out.report.error = "built without libepoxy, so without any GL sorter";
  return out;
}

GlSorterOrReason OpenGlCompute(bool allow_software) { return OpenGlBitonic(allow_software); }

GlSorterOrReason OpenGlABiSort(bool allow_software) { return OpenGlBitonic(allow_software); }

GlSorterOrReason OpenGlPbsn(bool allow_software) { return OpenGlBitonic(allow_software); }

}  // namespace tidemark::sort
