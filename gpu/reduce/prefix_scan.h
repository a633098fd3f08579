// Parallel prefix sums as plain data: which elements a pass adds, and how far apart they lie.
//
// A pass takes every element i of a block that it is active for and adds the element i - distance
// as it was before the pass, so that all of a pass can be done at once. After the passes of a
// schedule element i holds the sum of elements 0 ... i of its block.
//
//   Hillis and Steele (1986): distances 1, 2, 4, ...; every element that has a partner in its
//   block. s log s additions in log s passes. Blelloch (1993): sums of ever larger subtrees going
//   up, then handed down: distances 1 ... s / 2 for the last element of each subtree, then s / 4
//   ... 1 for the middle of each. Fewer than 2 s additions in 2 log s - 1 passes.
//
// Source: Roger, Assarson, Holzschuch (Efficient Stream Reduction on the GPU, 2007), §III-B1, §IV
// and figure 3. Deviation: Blelloch's scan is exclusive (it clears the root before the way down);
// the search of figure 5 needs the inclusive one, so the way down adds to the elements between.
#ifndef TIDEMARK_GPU_REDUCE_PREFIX_SCAN_H_
#define TIDEMARK_GPU_REDUCE_PREFIX_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::reduce {

enum class ScanMethod : std::uint8_t { kHillisSteele, kBlelloch };

/// For which elements of a block a pass is active. The numbers are those that shaders know.
enum class ScanActive : std::uint32_t {
  kAll = 0,     ///< every element with a partner in its block
  kLast = 1,    ///< the last of every 2 * distance
  kMiddle = 2,  ///< the one in the middle of every 2 * distance but a block's first
};

struct ScanPass {
  std::uint32_t distance = 0;
  ScanActive active = ScanActive::kAll;

  /// `index` within its block.
  constexpr bool IsActive(std::uint32_t index) const {
    switch (active) {
      case ScanActive::kAll:
        return index >= distance;
      case ScanActive::kLast:
        return ((index + 1) & (2 * distance - 1)) == 0;
      case ScanActive::kMiddle:
        return ((index + 1) & (2 * distance - 1)) == distance && index >= 2 * distance;
    }
    return false;
  }

  friend bool operator==(const ScanPass&, const ScanPass&) = default;
};

/// The passes that sum blocks of 2^block_log2 elements; none for blocks of one.
/// REQUIRES: block_log2 <= 30.
std::vector<ScanPass> ScanSchedule(ScanMethod method, std::uint32_t block_log2);

/// Runs a schedule on blocks of 2^block_log2 elements, as a GPU does: each pass reads what the one
/// before left. Returns the number of additions. REQUIRES: sums.size() is a multiple of the block.
std::uint64_t RunScan(std::span<const ScanPass> schedule, std::uint32_t block_log2,
                      std::span<std::uint32_t> sums);

}  // namespace tidemark::reduce

#endif  // TIDEMARK_GPU_REDUCE_PREFIX_SCAN_H_
