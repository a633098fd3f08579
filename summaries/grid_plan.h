// How keys are to be counted, told from a sample of them.
//
// Guarantee: none is needed. A digest is the same whatever the plan (window_grid.h); the plan
// decides what it costs. It is a function of the task and the sample.
#ifndef TIDEMARK_SUMMARIES_GRID_PLAN_H_
#define TIDEMARK_SUMMARIES_GRID_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summaries/grid_kernels.h"

namespace tidemark::internal {

/// Keys that are to be divided into cells of a level (digest_rule.h).
template <class Key>
struct GridTask {
  std::size_t count;     ///< keys
  Key min, max;          ///< of all of them
  int level;             ///< at which they are divided
  std::uint64_t stride;  ///< of the digest
  int finer = 0;         ///< how often blocks are to be halved beyond what the sample says
  bool vectors = false;  ///< whether grid_vectors.h may be used
};

enum class GridWay : std::uint8_t {
  kSort,    ///< sort all keys
  kSplit,   ///< nearly all keys lie in few cells: part the others, and look again
  kEven,    ///< count into cells of one level
  kBlocks,  ///< count into cells of different levels
};

template <class Key>
struct GridPlan {
  GridWay way = GridWay::kSort;
  double left = 0;                    ///< share of keys expected in cells that must be sorted
  Key split_low = 0, split_high = 0;  ///< kSplit: least and greatest key of the few cells
  std::vector<GridBlock> blocks;      ///< kEven has one
  std::size_t cells = 0;              ///< of all blocks
  int block_level = 0;                ///< kBlocks: as BlockCells or LogCells has it
  Key block_base = 0;                 ///< (grid_kernels.h), also the next three
  bool few_blocks = false;            ///< so that grid_vectors.h can be used
  bool log_blocks = false;            ///< blocks are those of LogCells
  std::vector<std::uint32_t> shapes;
  std::vector<std::uint16_t> counts;  ///< scratch
};

/// What each key costs, counting it into even cells taken as 1 (measured with digest_bench).
inline constexpr double kEvenCost = 1;
inline constexpr double kBlocksCost = 1.5;
inline constexpr double kFewBlocksCost = 1.05;
inline constexpr double kLogBlocksCost = 1.2;
inline constexpr double kSplitCost = 0.8;
inline constexpr double kCopyCost = 0.6;        // to look whether it lies in a cell to be copied
inline constexpr double kCopyBlocksCost = 0.9;  // the same in cells of different levels
inline constexpr double kCopyFewBlocksCost = 0.7;
inline constexpr double kCellCost = 1.2;  // what a cell costs that is cleared and looked at

/// What an ascending sample says of runs: values that come more often than the stride.
struct RunEstimate {
  double share;       ///< of all keys
  double sort_cost;   ///< of sorting all keys, for each
  double run_cost;    ///< of sorting those in runs, for each of them
  bool sort_at_once;  ///< sorting everything costs less than what counting could save
};
/// Of `count` keys. `sort_cost`: of sorting a random key, counting one into even cells taken as 1.
/// `vectors`: GridTask's.
template <class Key>
RunEstimate EstimateRuns(std::size_t count, std::uint64_t stride, std::span<const Key> sample,
                         double sort_cost, bool vectors);

/// Plans cells of the task's level if by the sample (in any order) nearly no key lies in a heavy
/// one, and sets plan.left to the share of those that do. Returns whether it planned. Quicker than
/// PlanGrid, and right for most windows.
template <class Key>
bool PlanEven(const GridTask<Key>& task, std::span<const Key> sample, GridPlan<Key>& plan);

/// Plans whatever seems to cost least. `sample`: ascending. REQUIRES: plan.left is as PlanEven left
/// it, or 0.
template <class Key>
void PlanGrid(const GridTask<Key>& task, std::span<const Key> sample, double sort_cost,
              GridPlan<Key>& plan);

extern template RunEstimate EstimateRuns(std::size_t, std::uint64_t, std::span<const std::uint32_t>,
                                         double, bool);
extern template RunEstimate EstimateRuns(std::size_t, std::uint64_t, std::span<const std::uint64_t>,
                                         double, bool);
extern template bool PlanEven(const GridTask<std::uint32_t>&, std::span<const std::uint32_t>,
                              GridPlan<std::uint32_t>&);
extern template bool PlanEven(const GridTask<std::uint64_t>&, std::span<const std::uint64_t>,
                              GridPlan<std::uint64_t>&);
extern template void PlanGrid(const GridTask<std::uint32_t>&, std::span<const std::uint32_t>,
                              double, GridPlan<std::uint32_t>&);
extern template void PlanGrid(const GridTask<std::uint64_t>&, std::span<const std::uint64_t>,
                              double, GridPlan<std::uint64_t>&);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_GRID_PLAN_H_
