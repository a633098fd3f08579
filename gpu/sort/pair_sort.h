// Sorts keys that carry something beside them: weights, or the y of pairs (x, y).
//
// A key and its index make one 64-bit composite, (key - least) * 2^b + index with 2^b >= the number
// of keys, which any WindowSorter sorts; the payloads then follow their indices. Where the keys of
// a window span more than 2^(64-b), their lowest bits are cut off, and runs of keys that agree in
// what is left are put in order one by one. The order of equal keys is that of their arrival. Keys
// of 128 bits have composites of 128 bits, with the same cut at 2^(128-b), or of 64 where they span
// no more than that.
#ifndef TIDEMARK_GPU_SORT_PAIR_SORT_H_
#define TIDEMARK_GPU_SORT_PAIR_SORT_H_

#include <cstdint>
#include <span>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Sorts `keys` ascending, stably, and moves payloads[i] along with keys[i].
/// REQUIRES: keys.size() == payloads.size() < 2^32.
/// Memory: a composite and a key for each, and the payloads' size, while it runs. Returns the name
/// of the sorter that sorted. Errors: throws SorterError; nothing has then changed.
template <class Key>
std::string_view SortPairs(std::span<Key> keys, std::span<std::uint64_t> payloads,
                           WindowSorter& sorter);

extern template std::string_view SortPairs(std::span<std::uint32_t>, std::span<std::uint64_t>,
                                           WindowSorter&);
extern template std::string_view SortPairs(std::span<std::uint64_t>, std::span<std::uint64_t>,
                                           WindowSorter&);
extern template std::string_view SortPairs(std::span<Key128>, std::span<std::uint64_t>,
                                           WindowSorter&);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_PAIR_SORT_H_
