// Least-significant-digit radix sort of unsigned keys: the alternative to vqsort where vectors are
// narrow. One pass counts all digits at once; a digit in which all keys agree costs nothing more.
#ifndef TIDEMARK_GPU_SORT_RADIX_SORT_H_
#define TIDEMARK_GPU_SORT_RADIX_SORT_H_

#include <cstddef>
#include <cstdint>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Sorts n keys ascending, with digits of 11 bits (3 passes for 32 bits, 6 for 64, 12 for 128) or 8
/// bits (4, 8 and 16 passes). Cost: O(n) a pass, and n keys of scratch memory, which the calling
/// thread keeps up to kRadixScratchBytes; without memory for it the keys are sorted by std::sort.
/// Any thread.
void RadixSort11(std::uint32_t* keys, std::size_t n);
void RadixSort11(std::uint64_t* keys, std::size_t n);
void RadixSort11(Key128* keys, std::size_t n);
void RadixSort8(std::uint32_t* keys, std::size_t n);
void RadixSort8(std::uint64_t* keys, std::size_t n);
void RadixSort8(Key128* keys, std::size_t n);

/// What a thread keeps between calls: the scratch of the largest usual window, 2^18 keys of 64
/// bits, or 2^17 of 128. A larger sort allocates its scratch and frees it again.
inline constexpr std::size_t kRadixScratchBytes = (std::size_t{1} << 18) * sizeof(std::uint64_t);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_RADIX_SORT_H_
