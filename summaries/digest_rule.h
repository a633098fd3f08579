// Which cells a window is divided into, and which of their borders become entries of its digest:
// the definition behind window_digest.h, as arithmetic, so that a sorted window and one that was
// only counted come to the same bits.
//
// Cells. A node is a set of keys that lie next to one another in sorted order; the window is the
// first. At level s a key belongs to cell key >> s. A node of w keys is divided at level
// CellLevel(its minimum, its maximum, w, stride), on average stride / 16 to stride / 8 keys to a
// cell that it spans, so that what a border misses of the stride is little. A cell is light if at
// most `stride` keys are in it. A heavy one is a run if its keys are all equal, and otherwise a
// node of its own, divided in its turn. This ends: within one cell of level s, minimum and maximum
// differ below bit s, and the level of that node is less than s.
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

/// Cells that a node may span for each `stride` of its keys.
inline constexpr std::uint64_t kCellsPerStride = 8;
/// No node is divided more finely at once: what one core's first cache can count into.
inline constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 13;

/// Most cells that a node of `weight` keys spans: a power of two. REQUIRES: weight, stride >= 1.
constexpr std::uint64_t NodeCells(std::uint64_t weight, std::uint64_t stride) {
  const std::uint64_t strides = (weight - 1) / stride + 1;
  return std::bit_ceil(std::min(strides * kCellsPerStride, kMaxCells));
}

/// The least level at which the keys from `min` to `max` span at most NodeCells(weight, stride).
template <class Key>
constexpr int CellLevel(Key min, Key max, std::uint64_t weight, std::uint64_t stride) {
  const std::uint64_t cells = NodeCells(weight, stride);
  const int level = std::max(
      0, static_cast<int>(std::bit_width(static_cast<Key>(max - min))) - std::countr_zero(cells));
  // They span at most cells + 1 at this level: less than cells whole ones, and parts of two.
  return level + (static_cast<std::uint64_t>((max >> level) - (min >> level)) < cells ? 0 : 1);
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_DIGEST_RULE_H_
