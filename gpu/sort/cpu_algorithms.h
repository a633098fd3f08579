// The ways in which this CPU can sort one window.
#ifndef TIDEMARK_GPU_SORT_CPU_ALGORITHMS_H_
#define TIDEMARK_GPU_SORT_CPU_ALGORITHMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Each function sorts n keys ascending in place; any thread.
struct CpuAlgorithm {
  std::string name;  ///< "vqsort-avx2", "radix-lsd-11", "std-sort"
  void (*sort_u32)(std::uint32_t* keys, std::size_t n) = nullptr;
  void (*sort_u64)(std::uint64_t* keys, std::size_t n) = nullptr;
  void (*sort_u128)(Key128* keys, std::size_t n) = nullptr;

  void Sort(std::uint32_t* keys, std::size_t n) const { sort_u32(keys, n); }
  void Sort(std::uint64_t* keys, std::size_t n) const { sort_u64(keys, n); }
  void Sort(Key128* keys, std::size_t n) const { sort_u128(keys, n); }
};

/// Every algorithm that this CPU can run; std::sort, the baseline and the last resort, is the last.
const std::vector<CpuAlgorithm>& CpuAlgorithms();

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_CPU_ALGORITHMS_H_
