#include "gpu/sort/vqsort_targets.h"

namespace tidemark::sort {

bool BuiltWithVqsort() { return false; }

std::vector<VqsortTarget> SupportedVqsortTargets() { return {}; }

}  // namespace tidemark::sort
