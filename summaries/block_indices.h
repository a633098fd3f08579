// The cells of keys in few blocks, many keys at once: where the blocks' shapes fit into vector
// registers, looking one up costs no load.
//
// Cost, measured (one core of an AMD EPYC, Zen 4; 2^20 random floats in 33,000 cells, million
// keys/s): counting them key by key 755, with indices taken here first 1,100; gathering shapes from
// memory instead gained nothing (AVX2 745, AVX-512 770), so that other machines do without.
#ifndef TIDEMARK_SUMMARIES_BLOCK_INDICES_H_
#define TIDEMARK_SUMMARIES_BLOCK_INDICES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "summaries/grid_kernels.h"

namespace tidemark::internal {

/// Whether this machine can: it has AVX-512F.
bool HasBlockIndices();

/// Keys that are looked at together.
inline constexpr std::size_t kIndexedTogether = 16;

/// indices[i] = cells(keys[i]). REQUIRES: HasBlockIndices(); cells.shapes has kFewBlocks entries;
/// keys.size() is a multiple of kIndexedTogether.
void BlockIndices(std::span<const std::uint32_t> keys, BlockCells<std::uint32_t> cells,
                  std::uint32_t* indices);
void BlockIndices(std::span<const std::uint64_t> keys, BlockCells<std::uint64_t> cells,
                  std::uint32_t* indices);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_BLOCK_INDICES_H_
