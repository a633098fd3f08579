// Which cells a window is divided into, and which of their borders become entries of its digest:
// the definition behind window_digest.h, as arithmetic, so that a sorted window and one that was
// only counted come to the same bits.
//
// Cells. At level s a key belongs to cell key >> s. The window is divided at level
// CellLevel(minimum, maximum, count, stride), the finest at which it spans few enough cells
// (WindowCells): where the stride is not small, stride / 8 to stride / 2 keys to a cell on
// average, so that what a border misses of the stride is little. A cell is light if at most
// `stride` keys are in it. A heavy one of level 0 is a run: its keys are equal. A heavy cell of a
// higher level is divided in its turn, RefineBits(its keys, stride) levels further down (at most to
// level 0), into 2 to 4 cells for each stride of its keys. Every cell is a dyadic interval, which
// depends on the window's keys by its level alone: whoever has counted finer cells can add them up
// to these.
//
// Leaves. The light cells and the runs, in ascending order; the border of a leaf is the number of
// keys up to its last one, and the entry at that border is {its largest key, border}: an element,
// at the last position that it takes.
//
// Entries. {minimum, 1}; then from the entry at p always the furthest border up to p + stride.
// Where that border lies before a run of key v and the run's first position is within p + stride
// too, {v, first position} is taken in its place; else it follows. Either is followed by the run's
// end. The last entry is {maximum, count}.
//
// So neighbours are at most `stride` apart or the two ends of one run; and of three entries in a
// row the outer ones are more than `stride` apart (of two furthest borders in a row the second was
// out of reach, and a run is longer than the stride): a digest of n keys holds at most
// 2 + 2 * (n - 1) / (stride + 1) of them.
#ifndef TIDEMARK_SUMMARIES_DIGEST_RULE_H_
#define TIDEMARK_SUMMARIES_DIGEST_RULE_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tidemark::internal {

/// Cells that a window may span for each `stride` of its keys, and for each key.
inline constexpr std::uint64_t kCellsPerStride = 4;
inline constexpr std::uint64_t kKeysPerCell = 4;
/// No window spans more at once: what a core's second cache can be counted into.
inline constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 15;

/// Most cells that a window of `count` keys spans: a power of two, 8 or more. REQUIRES: count,
/// stride >= 1.
constexpr std::uint64_t WindowCells(std::uint64_t count, std::uint64_t stride) {
  const std::uint64_t strides = (count - 1) / stride + 1;
  const std::uint64_t cells =
      std::min({strides * kCellsPerStride, count / kKeysPerCell, kMaxCells});
  return std::bit_ceil(std::max<std::uint64_t>(cells, 8));
}

/// The least level at which the keys from `min` to `max` span at most WindowCells(count, stride).
template <class Key>
constexpr int CellLevel(Key min, Key max, std::uint64_t count, std::uint64_t stride) {
  const std::uint64_t cells = WindowCells(count, stride);
  const int level = std::max(
      0, static_cast<int>(std::bit_width(static_cast<Key>(max - min))) - std::countr_zero(cells));
  // They span at most cells + 1 at this level: less than cells whole ones, and parts of two.
  return level + (static_cast<std::uint64_t>((max >> level) - (min >> level)) < cells ? 0 : 1);
}

/// How many levels further down a heavy cell is divided. REQUIRES: keys > stride >= 1.
constexpr int RefineBits(std::uint64_t keys, std::uint64_t stride) {
  return static_cast<int>(std::bit_width((keys - 1) / stride)) + 1;
}

/// The level at which a heavy cell of `level` is divided.
constexpr int RefinedLevel(int level, std::uint64_t keys, std::uint64_t stride) {
  return std::max(0, level - RefineBits(keys, stride));
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_DIGEST_RULE_H_
