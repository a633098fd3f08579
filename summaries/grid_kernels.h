// The inner loops of window_grid.h: counting keys into cells, and moving some of them.
//
// What each key costs is a load and two stores of its cell. Left to the compiler the plainest
// instruction set is the fastest (for AVX2, GCC 12 moves the largest key between registers, and
// takes six times as long); grid_vectors.h does better by hand.
#ifndef TIDEMARK_SUMMARIES_GRID_KERNELS_H_
#define TIDEMARK_SUMMARIES_GRID_KERNELS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark::internal {

/// What is counted of one cell's keys.
template <class Key>
struct GridCell {
  Key max;
  std::uint32_t count;
};

/// Cells of one level, one after the other, that make up one cell of another: the block.
struct GridBlock {
  std::uint32_t first;  ///< index of the first
  std::uint32_t cells;
  int level;
  int block_level = 0;       ///< of the block,
  std::uint64_t number = 0;  ///< and which one of that level it is: its least key >> block_level
};

/// Keys in cells that hold more than `stride`.
template <class Key>
std::size_t HeavyKeys(std::span<const GridCell<Key>> cells, std::uint64_t stride) {
  std::size_t keys = 0;
  for (const auto& cell : cells) keys += cell.count > stride ? cell.count : 0;
  return keys;
}

/// Cells of one level: a key's is key >> level, counted from `base`.
template <class Key>
struct EvenCells {
  int level;
  Key base;
  bool vectors;  ///< grid_vectors.h is to be used

  std::size_t operator()(Key key) const {
    return static_cast<std::size_t>(static_cast<Key>((key >> level) - base));
  }
};

/// How the cells of a block are numbered: its level in the lower bits, and above them the index of
/// the block's first cell less the number of that cell (its least key >> its level), mod 2^26.
struct BlockShape {
  static constexpr int kLevelBits = 6;
  static constexpr std::uint32_t kLevelMask = (std::uint32_t{1} << kLevelBits) - 1;
  static constexpr std::uint32_t kIndexMask = 0xFFFF'FFFFu >> kLevelBits;

  static constexpr std::uint32_t Make(std::uint32_t first, std::uint32_t number, int level) {
    return (first - number) << kLevelBits | static_cast<std::uint32_t>(level);
  }
};

/// Blocks whose shapes fit into registers (grid_vectors.h).
inline constexpr std::size_t kFewBlocks = 64;

/// Blocks of one level, each of cells of a level of its own.
template <class Key>
struct BlockCells {
  int level;  ///< of the blocks
  Key base;
  const std::uint32_t* shapes;  ///< of each block (BlockShape)
  bool vectors;                 ///< grid_vectors.h is to be used

  std::size_t operator()(Key key) const {
    constexpr std::uint32_t kShiftMask = 8 * sizeof(Key) - 1;  // spares the compiler its own
    const std::uint32_t shape =
        shapes[static_cast<std::size_t>(static_cast<Key>((key >> level) - base))];
    return (static_cast<std::uint32_t>(key >> (shape & kShiftMask)) +
            (shape >> BlockShape::kLevelBits)) &
           BlockShape::kIndexMask;
  }
};

/// Blocks that grow with the distance from `base`, as binary orders of magnitude do: for keys that
/// crowd at the low end of their range. Each of cells of a level of its own.
template <class Key>
struct LogCells {
  int level;  ///< of the block in which the middle key lies
  Key base;   ///< a multiple of every block's size
  const std::uint32_t* shapes;
  bool vectors;  ///< grid_vectors.h is to be used

  /// Blocks of one order of magnitude, [2^e, 2^(e+1)) above the base; what lies below the first one
  /// belongs to it.
  static constexpr int kParts = sizeof(Key) == 4 ? 2 : 1;
  static_assert(kParts * 8 * sizeof(Key) == kFewBlocks);

  /// Of the block in which keys so far above the base lie.
  static constexpr std::size_t BlockOf(Key distance) {
    const Key at = distance > 1 ? distance : 1;
    const int order = static_cast<int>(std::bit_width(at)) - 1;
    if constexpr (kParts == 1) return static_cast<std::size_t>(order);
    return static_cast<std::size_t>(order == 0 ? 0 : 2 * order + ((at >> (order - 1)) & 1));
  }

  std::size_t operator()(Key key) const {
    constexpr std::uint32_t kShiftMask = 8 * sizeof(Key) - 1;
    const std::uint32_t shape = shapes[BlockOf(static_cast<Key>(key - base))];
    return (static_cast<std::uint32_t>(key >> (shape & kShiftMask)) +
            (shape >> BlockShape::kLevelBits)) &
           BlockShape::kIndexMask;
  }
};

/// Keys are read from so many places in turn, so that neighbours of sorted keys, which fall into
/// one cell, do not wait for one another's stores; an odd number, as cells that are a multiple of
/// 4096 bytes apart wait for one another, too.
inline constexpr std::size_t kCountedPlaces = 7;

/// Adds keys to the cells that they are in. `clustered`: most keys lie in the cell of the key
/// before.
template <class Key>
void CountKeys(std::span<const Key> keys, EvenCells<Key> cells, bool clustered,
               GridCell<Key>* counts);
template <class Key>
void CountKeys(std::span<const Key> keys, BlockCells<Key> cells, bool clustered,
               GridCell<Key>* counts);
template <class Key>
void CountKeys(std::span<const Key> keys, LogCells<Key> cells, bool clustered,
               GridCell<Key>* counts);

/// Copies the keys of wanted cells (wanted[index] is 1, else 0) to `out`, in order. Writes one
/// place behind the last of them.
template <class Key>
void CopyWanted(std::span<const Key> keys, EvenCells<Key> cells, const std::uint8_t* wanted,
                Key* out);
template <class Key>
void CopyWanted(std::span<const Key> keys, BlockCells<Key> cells, const std::uint8_t* wanted,
                Key* out);
template <class Key>
void CopyWanted(std::span<const Key> keys, LogCells<Key> cells, const std::uint8_t* wanted,
                Key* out);

/// Permutes keys so that those from `low` to `high` come first. Returns how many they are.
template <class Key>
std::size_t PartitionRange(std::span<Key> keys, Key low, Key high);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_GRID_KERNELS_H_
