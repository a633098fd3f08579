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

/// Blocks that lie next to one another, in the cells of a level.
template <class Key>
struct BlockRange {
  std::span<const GridBlock> blocks;
  std::span<const GridCell<Key>> cells;  ///< of all blocks, by their indices
  std::size_t skip;                      ///< CellRange::skip, of the first block
  int level;
};

/// Calls whole(cells) for each block that is one cell of the level or several, and joined(blocks)
/// for those that are one cell of it together. The bits of cells are below 0 where they are larger
/// than those of the level.
template <class Key, class Whole, class Joined>
void ForEachBlock(const BlockRange<Key>& range, Whole whole, Joined joined) {
  const auto blocks = range.blocks;
  for (std::size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    const GridBlock& block = blocks[begin];
    const auto cell_of = [&](const GridBlock& any) {
      return any.number >> (range.level - any.block_level);
    };
    for (end = begin + 1; block.block_level < range.level && end < blocks.size() &&
                          blocks[end].block_level < range.level &&
                          cell_of(blocks[end]) == cell_of(block);) {
      ++end;
    }
    if (block.block_level < range.level) {
      joined(BlockRange<Key>{blocks.subspan(begin, end - begin), range.cells, 0, range.level});
    } else {
      whole(CellRange<Key>{range.cells.subspan(block.first, block.cells), range.level - block.level,
                           begin == 0 ? range.skip : 0, range.level},
            block);
    }
  }
}

/// What is counted in blocks.
template <class Key>
GridCell<Key> Sum(const BlockRange<Key>& range) {
  const GridBlock &first = range.blocks.front(), &last = range.blocks.back();
  return Sum(range.cells.subspan(first.first, last.first + last.cells - first.first));
}

/// The same for all cells that blocks are in.
template <class Key, class Undivided>
void AddLeaves(const BlockRange<Key>& range, DigestBuilder<Key>& builder, Undivided& undivided) {
  ForEachBlock(
      range,
      [&](const CellRange<Key>& cells, const GridBlock&) {
        if (cells.bits >= 0) return AddLeaves(cells, builder, undivided);
        const std::size_t count = Sum(cells.cells).count;
        if (count > 0) undivided(count, range.level);
      },
      [&](BlockRange<Key> cell) {
        const GridCell<Key> sum = Sum(cell);
        if (sum.count == 0) return;
        if (sum.count <= builder.reach()) {
          return builder.AddLight(builder.border() + sum.count, sum.max);
        }
        cell.level = RefinedLevel(cell.level, sum.count, builder.reach());
        AddLeaves(cell, builder, undivided);
      });
}

/// The same for all cells that blocks are in. `wanted`: of the cell of index 0.
template <class Key>
std::size_t MarkUndivided(const BlockRange<Key>& range, std::uint64_t stride,
                          std::uint8_t* wanted) {
  std::size_t marked = 0;
  ForEachBlock(
      range,
      [&](const CellRange<Key>& cells, const GridBlock& block) {
        std::uint8_t* const first = wanted + block.first;
        if (cells.bits >= 0) {
          marked += MarkUndivided(cells, stride, first);
        } else {
          std::fill_n(first, block.cells, std::uint8_t{1});
          marked += Sum(cells.cells).count;
        }
      },
      [&](BlockRange<Key> cell) {
        const std::size_t count = Sum(cell).count;
        if (count <= stride) return;
        cell.level = RefinedLevel(cell.level, count, stride);
        marked += MarkUndivided(cell, stride, wanted);
      });
  return marked;
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_CELL_WALK_H_
