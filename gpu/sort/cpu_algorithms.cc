#include "gpu/sort/cpu_algorithms.h"

#include <algorithm>

#include "gpu/sort/radix_sort.h"
#include "gpu/sort/vqsort_targets.h"

namespace tidemark::sort {
namespace {

template <class Key>
void StdSort(Key* keys, std::size_t n) {
  std::sort(keys, keys + n);
}

std::vector<CpuAlgorithm> Collect() {
  std::vector<CpuAlgorithm> all;
  for (const VqsortTarget& target : SupportedVqsortTargets()) {
    all.push_back({target.name, target.sort_u32, target.sort_u64, target.sort_u128});
  }
  all.push_back({"radix-lsd-11", RadixSort11, RadixSort11, RadixSort11});
  all.push_back({"radix-lsd-8", RadixSort8, RadixSort8, RadixSort8});
  all.push_back({"std-sort", StdSort<std::uint32_t>, StdSort<std::uint64_t>, StdSort<Key128>});
  return all;
}

}  // namespace

const std::vector<CpuAlgorithm>& CpuAlgorithms() {
  static const std::vector<CpuAlgorithm> all = Collect();
  return all;
}

}  // namespace tidemark::sort
