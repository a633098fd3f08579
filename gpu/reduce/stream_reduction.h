// Stream reduction: the elements of a stream that are wanted, side by side and in order, by steps
// that a GPU without scattered writes can do. The reference for the programs that run it there.
//
// Horn (2005): a prefix sum of the unwanted elements of the whole stream says how far each wanted
// one moves; a dichotomic search finds for each place of the output the element that moves there.
// Hierarchical (Roger, Assarson, Holzschuch, 2007): the same within blocks of s elements; then the
// reduced blocks are put one behind the other by drawing each as a line, which rasterisation fills.
//   n elements      Horn               hierarchical
//   sums            n log n            n log s (or 2 n with Blelloch's scan), and n / s block sums
//   search          n log n            n log s
//   lines           -                  n / s, two where one wraps around the edge of the texture
//
// Source: Roger, Assarson, Holzschuch (Efficient Stream Reduction on the GPU, 2007), §III, figures
// 3, 5, 6, 7. The prefix sum is inclusive, which figure 5 takes for granted: line 11 moves below an
// unwanted j, whose j - pSum[j] is that of the wanted element before it.
#ifndef TIDEMARK_GPU_REDUCE_STREAM_REDUCTION_H_
#define TIDEMARK_GPU_REDUCE_STREAM_REDUCTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/reduce/prefix_scan.h"

namespace tidemark::reduce {

/// What was done, for comparison with the paper's formulas.
struct ReductionCounts {
  std::uint64_t additions = 0;
  std::uint64_t search_steps = 0;  ///< rounds of the search's loop, over all places
  std::uint64_t lines = 0;
};

/// Figure 5: the place within the block of the element that moves to place i, or none where the
/// block has no more. `sums`: of the unwanted elements, inclusive, of this block. `steps` counts
/// the rounds of the loop.
std::optional<std::uint32_t> FindElement(std::span<const std::uint32_t> sums, std::uint32_t i,
                                         std::uint64_t& steps);

/// A line of a row, whose texels [x, x + length) take reduced elements from `source` on.
struct Segment {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t length = 0;
  std::uint32_t source = 0;

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Figures 6 and 7: where the blocks go in a texture of 2^width_log2 columns, as one or two lines
/// each; blocks without elements have none. `block_sums`: unwanted elements of blocks 0 ... b.
/// REQUIRES: block_log2 <= width_log2, so that a line wraps around at most once.
std::vector<Segment> ConcatenatingSegments(std::span<const std::uint32_t> block_sums,
                                           std::uint32_t block_log2, std::uint32_t width_log2);

/// The places of the elements that are wanted, ascending. `unwanted` holds 0 or 1 for each.
/// REQUIRES: unwanted.size() is a power of two, at least a block.
std::vector<std::uint32_t> ReduceByHorn(std::span<const std::uint32_t> unwanted, ScanMethod method,
                                        ReductionCounts& counts);
std::vector<std::uint32_t> ReduceByBlocks(std::span<const std::uint32_t> unwanted,
                                          ScanMethod method, std::uint32_t block_log2,
                                          std::uint32_t width_log2, ReductionCounts& counts);

}  // namespace tidemark::reduce

#endif  // TIDEMARK_GPU_REDUCE_STREAM_REDUCTION_H_
