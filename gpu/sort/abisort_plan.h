// Adaptive bitonic sorting on a stream machine (Greß, Zachmann (GPU-ABiSort, 2006), extended
// version) as plain data: which kernel runs over which blocks of which stream, operation by
// operation. abisort_streams.h runs a plan on the CPU, gl_abisort_engine.h on a GPU.
//
// A bitonic sequence of m = 2^j values is a bitonic tree: the first m - 1 values in order in a full
// binary tree, the last beside it ("spare"). Merging it takes j stages; stage k splits 2^k subtrees
// by j - k phases, each of which looks at one pair of nodes a subtree, exchanges them or not, and
// goes down on one side (§4.2):
//
//   phase 0   root > spare: exchange their values and the root's sons.   p, q = the root's sons
//   phase i   p > q: exchange their values and left sons, p, q = right sons; else p, q = left sons
//
// All 2^(log N - j) trees of level j go side by side. An operation writes node pairs to blocks of
// one stream of N / 2 pairs, T = trees (§5.3, table 1):
//
//   phase 0      [0, 2^k T)
//   phase 1      [2^k T, 2^(k+1) T)
//   phase i > 1  [(2^(k+i-1) + 2^k) T, (2^(k+i-1) + 2^(k+1)) T)
//
// Phase i of stage k may follow phase i + 1 of stage k - 1 at once (§5.4): step s runs phase s - 2
// k of every stage k that has it, 2 j - 1 steps a level instead of j (j + 1) / 2. So phase i of
// stage k is in step 2 k + i. (The paper's listing of this in §5.4 lets the first stage end too
// early; its figures 6 and 7 follow the rule, and so does this.)
//
// With `small_kernels` (§7) levels 1 to 3 are one kernel that sorts 8 values by odd-even
// transition, and the last four stages of every level are one kernel that merges 16; before it the
// 16 values of each subtree are gathered in order, after it they become trees again.
//
// Costs, N values in windows of n = 2^L (proofs: a stage k of level j compares 2^k (j - k) times
// for each of N / 2^j trees, and sum over k of 2^k (j - k) = 2^(j+1) - j - 2):
//
//   all adaptive   N / n (2 n L - 4 n + L + 4) comparisons, fewer than 2 N log n; as many node
//   pairs
//                  written; 2 j - 1 steps a level, L^2 in all
//   small kernels  28 / 8 N for the local sort, and for each level j from 4 on
//                  N / 2^j (2^(j+1) - j - 2 - 26 2^(j-4)) + 20 / 8 N: two kernels compute the two
//                  halves of a merge of 16 and repeat its first step. More comparisons (2.875 n log
//                  n at the most, not below 2 n log n), fewer steps (2 j - 5) and fewer bytes.
//
// Deviations: the four windows of a request lie one after the other in one stream, which the
// algorithm sorts as the trees of a level that has no further level; on the last level all trees
// are merged ascending. Root and spare of a level's first stage are read where they lie (the
// paper's notation to listing 5 allows it), so there is no operation that copies them. On level 4
// nothing is adaptive with small kernels, so that the sorted eights are merged without becoming
// trees before.
#ifndef TIDEMARK_GPU_SORT_ABISORT_PLAN_H_
#define TIDEMARK_GPU_SORT_ABISORT_PLAN_H_

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "gpu/sort/sort_counts.h"

namespace tidemark::sort {

/// Values that one local sort takes, and that one merge takes: log2.
inline constexpr std::uint32_t kABiSortLocalLog2 = 3;
inline constexpr std::uint32_t kABiSortMergeLog2 = 4;

enum class ABiSortKernel : std::uint8_t {
  kLoad,       ///< keys -> nodes of in-order trees; a node pair an instance
  kStep,       ///< one phase of each block's stage; a node pair an instance
  kRelink,     ///< the level's result -> nodes of in-order trees; a node pair an instance
  kLocalSort,  ///< keys -> sorted values; 8 values an instance
  kTraverse,   ///< subtrees of 16 nodes -> values in order; 8 values an instance
  kMerge,      ///< bitonic values -> sorted values; 8 of 16 values an instance
  kLink,       ///< values -> nodes of in-order trees; a node pair an instance
};

/// Where one phase of one stage writes, in node pairs of the stream. Starts and lengths are such
/// that a block is a rectangle in both layouts (stream_layout.h).
struct ABiSortBlock {
  std::uint32_t stage = 0;
  std::uint32_t phase = 0;
  std::uint32_t first = 0;
  std::uint32_t pairs = 0;
  std::uint32_t previous = 0;  ///< first of the block of the phase before; phase > 0
  std::uint32_t next = 0;      ///< first of the block of the phase after, if there is one
  friend bool operator==(const ABiSortBlock&, const ABiSortBlock&) = default;
};

struct ABiSortOperation {
  ABiSortKernel kernel = ABiSortKernel::kStep;
  std::uint32_t level = 0;           ///< j of the trees that it reads (kStep, kTraverse, kMerge) or
                                     ///< makes (the others); 3 for the local sort
  std::uint32_t instances = 0;       ///< of the kernel
  bool alternating = false;          ///< odd trees are sorted descending
  bool copied_back = false;          ///< what was written is read by a later kStep or kTraverse
  std::vector<ABiSortBlock> blocks;  ///< of kStep
};

struct ABiSortShape {
  std::uint32_t log2_keys = 0;     ///< n: keys of a window; at least 4 with small kernels
  std::uint32_t log2_windows = 0;  ///< windows that are sorted together
  bool overlapped = true;          ///< stages overlap: O(log^2 n) operations, not O(log^3 n)
  bool small_kernels = true;       ///< §7

  std::uint32_t log2_all() const { return log2_keys + log2_windows; }
};

/// The largest log2_all(): pairs of two streams, twice as many nodes, fit 32 bits.
inline constexpr std::uint32_t kABiSortMaxLog2 = 28;

/// Table 1. `log2_trees` is log N - j. REQUIRES: phase < level - stage.
ABiSortBlock BlockOf(std::uint32_t log2_trees, std::uint32_t level, std::uint32_t stage,
                     std::uint32_t phase);

/// The operations that sort the windows ascending, in order; none for log2_keys = 0.
/// REQUIRES: shape.log2_all() <= kABiSortMaxLog2, and log2_keys >= 4 with small kernels.
std::vector<ABiSortOperation> ABiSortPlan(const ABiSortShape& shape);

/// What the plan costs with nodes of 16 bytes (key or its high word, id, two sons). Not in it: the
/// low words of 64-bit keys, which are fetched where the high words are equal.
SortCounts CountsOf(const std::vector<ABiSortOperation>& plan);

/// "level 4 step: stage 0 phase 3 at 10+2, stage 1 phase 1 at 4+4".
std::ostream& operator<<(std::ostream& out, const ABiSortOperation& operation);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ABISORT_PLAN_H_
