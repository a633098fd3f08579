// Highway's vectorised quicksort, one entry for each instruction set that was compiled in and that
// this CPU has.
//
// Highway's own dispatch always takes the widest vectors. That is wrong on some CPUs (see
// vqsort_targets.cc), so each target is compiled here and can be called by name; which one sorts is
// decided by measurement (cpu_sorter.h).
#ifndef TIDEMARK_GPU_SORT_VQSORT_TARGETS_H_
#define TIDEMARK_GPU_SORT_VQSORT_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Each function sorts n keys ascending in place, in at most O(n log n), without the heap; any
/// thread.
struct VqsortTarget {
  std::string name;  ///< "vqsort-avx2", "vqsort-avx3", …: Highway's name of the target, lower case
  void (*sort_u32)(std::uint32_t* keys, std::size_t n) = nullptr;
  void (*sort_u64)(std::uint64_t* keys, std::size_t n) = nullptr;
  void (*sort_u128)(Key128* keys, std::size_t n) = nullptr;
};

/// False where the project was built without Highway (vqsort_targets_absent.cc).
bool BuiltWithVqsort();

/// The targets that this CPU supports, the widest vectors first. Empty where Highway has no vector
/// target for this architecture, or was not there to build with.
std::vector<VqsortTarget> SupportedVqsortTargets();

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_VQSORT_TARGETS_H_
