// From counted cells to the leaves of a digest (digest_rule.h): cells of a level that were counted
// in finer ones are added up, and heavy ones divided.
#ifndef TIDEMARK_SUMMARIES_CELL_WALK_H_
#define TIDEMARK_SUMMARIES_CELL_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "summaries/digest_builder.h"
#include "summaries/digest_rule.h"
#include "summaries/grid_kernels.h"

namespace tidemark::internal {

/// Counted cells that lie next to one another, and where they stand in the cells of a level.
template <class Key>
struct CellRange {
  std::span<const GridCell<Key>> cells;
  int bits;          ///< a cell of the level is 2^bits of them
  std::size_t skip;  ///< so many of the first one's are not among them: they hold nothing
  int level;
};

/// Calls visit(inside, begin) for each cell of the level: `inside` are the counted cells in it,
/// from index `begin`.
template <class Key, class Visit>
void ForEachCellOf(const CellRange<Key>& range, Visit visit) {
  const std::size_t group = std::size_t{1} << range.bits;
  const std::size_t size = range.cells.size();
  std::size_t end = std::min(size, group - (range.skip & (group - 1)));
  for (std::size_t begin = 0; begin < size; begin = end, end = std::min(size, end + group)) {
    visit(CellRange<Key>{range.cells.subspan(begin, end - begin), range.bits,
                         begin == 0 ? range.skip : 0, range.level},
          begin);
  }
}

/// What is counted in all of them.
template <class Key>
GridCell<Key> Sum(std::span<const GridCell<Key>> cells) {
  GridCell<Key> sum{0, 0};
  for (const auto& cell : cells) {
    sum.count += cell.count;
    sum.max = std::max(sum.max, cell.max);
  }
  return sum;
}

/// A heavy cell, divided: the cells of a lower level that it consists of. They are finer than what
/// was counted if their bits are below 0.
template <class Key>
CellRange<Key> Divide(CellRange<Key> cell, std::uint64_t count, std::uint64_t stride) {
  const int level = RefinedLevel(cell.level, count, stride);
  cell.bits -= cell.level - level;
  cell.level = level;
  return cell;
}

/// Gives the leaves of all cells of the level to `builder`; for a cell that would have to be
/// divided more finely than it was counted calls undivided(count, level of its cells) in its place.
template <class Key, class Undivided>
void AddLeaves(const CellRange<Key>& range, DigestBuilder<Key>& builder, Undivided& undivided) {
  const auto add = [&](const CellRange<Key>& cell, const GridCell<Key>& sum) {
    if (sum.count == 0) return;
    const std::size_t border = builder.border() + sum.count;
    if (sum.count <= builder.reach()) return builder.AddLight(border, sum.max);
    if (cell.level == 0) return builder.AddRun(border, sum.max);
    const CellRange<Key> divided = Divide(cell, sum.count, builder.reach());
    if (divided.bits < 0) return undivided(sum.count, divided.level);
    AddLeaves(divided, builder, undivided);
  };
  if (range.bits > 0) {
    ForEachCellOf(range,
                  [&](const CellRange<Key>& cell, std::size_t) { add(cell, Sum(cell.cells)); });
    return;
  }
  constexpr std::size_t kMany = 64;  // of fewer it costs more than it saves
  for (auto cells = range.cells; !cells.empty(); cells = cells.subspan(1)) {
    if (cells.size() >= kMany) cells = cells.subspan(builder.AddLights(cells));
    if (cells.empty()) return;
    add({cells.first(1), 0, 0, range.level}, cells.front());
  }
}

/// Sets wanted[i] to 1 for the counted cells in cells that AddLeaves calls undivided(), and returns
/// how many keys these hold.
template <class Key>
std::size_t MarkUndivided(const CellRange<Key>& range, std::uint64_t stride, std::uint8_t* wanted) {
  std::size_t marked = 0;
  ForEachCellOf(range, [&](const CellRange<Key>& cell, std::size_t begin) {
    const std::size_t count = Sum(cell.cells).count;
    if (count <= stride || cell.level == 0) return;
    const CellRange<Key> divided = Divide(cell, count, stride);
    if (divided.bits >= 0) {
      marked += MarkUndivided(divided, stride, wanted + begin);
    } else {
      std::fill_n(wanted + begin, cell.cells.size(), std::uint8_t{1});
      marked += count;
    }
  });
  return marked;
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_CELL_WALK_H_
