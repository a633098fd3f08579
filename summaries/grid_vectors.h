// The inner loops of grid_kernels.h with vector instructions: the cells of many keys at once, and a
// cell's count and largest key together in one register. Shapes of few blocks are looked up in
// registers, too.
//
// Cost, measured (one core of an AMD EPYC, Zen 4; 2^20 random floats in 33,000 cells of 64 blocks,
// million keys/s): key by key 755; with indices taken first 1,095; and cells in registers 1,300.
// Gathering shapes from memory gained nothing (AVX2 745, AVX-512 770), so that other machines and
// more blocks do without.
#ifndef TIDEMARK_SUMMARIES_GRID_VECTORS_H_
#define TIDEMARK_SUMMARIES_GRID_VECTORS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "summaries/grid_kernels.h"

namespace tidemark::internal {

/// Whether this machine can: it has AVX-512F, VL and CD. Nothing below may be called otherwise.
bool HasGridVectors();

/// Keys whose indices are taken together; those of many such groups stay in the first cache.
inline constexpr std::size_t kIndexed = 256;

/// indices[i] = cells(keys[i]). REQUIRES: kIndexed keys; blocks are few.
template <class Key>
void IndexKeys(const Key* keys, EvenCells<Key> cells, std::uint32_t* indices);
template <class Key>
void IndexKeys(const Key* keys, BlockCells<Key> cells, std::uint32_t* indices);
template <class Key>
void IndexKeys(const Key* keys, LogCells<Key> cells, std::uint32_t* indices);

/// Adds keys to the cells that they are in, in the order of CountKeys. Returns how many: all but
/// the last few. REQUIRES: blocks are few.
template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, EvenCells<Key> cells, GridCell<Key>* counts);
template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, BlockCells<Key> cells, GridCell<Key>* counts);
template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, LogCells<Key> cells, GridCell<Key>* counts);

/// HeavyKeys() of cells. REQUIRES: stride < 2^32.
template <class Key>
std::size_t HeavyInVectors(std::span<const GridCell<Key>> cells, std::uint64_t stride);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_GRID_VECTORS_H_
