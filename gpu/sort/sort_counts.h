// What a sort on a GPU costs, counted: the unit in which the papers state their sorters.
#ifndef TIDEMARK_GPU_SORT_SORT_COUNTS_H_
#define TIDEMARK_GPU_SORT_SORT_COUNTS_H_

#include <cstdint>

namespace tidemark::sort {

/// Counts are exact and follow from the sizes alone: no sorter here does more or less for other
/// keys. A plan foretells them and the GL side counts what it draws; tests hold the two together.
struct SortCounts {
  /// Comparisons of two keys, all windows together. A comparator whose two ends are computed by
  /// two fragments counts twice, as in the papers.
  std::uint64_t comparisons = 0;
  /// Passes that compute; a pass reads what the one before wrote.
  std::uint64_t passes = 0;
  /// Passes that copy what was written to where the next pass reads it.
  std::uint64_t copies = 0;
  std::uint64_t draw_calls = 0;
  /// Bytes that the passes and copies read and write on the device, caches aside; upload and
  /// read-back are not in it.
  std::uint64_t bytes_moved = 0;

  SortCounts& operator+=(const SortCounts& other) {
    comparisons += other.comparisons;
    passes += other.passes;
    copies += other.copies;
    draw_calls += other.draw_calls;
    bytes_moved += other.bytes_moved;
    return *this;
  }
  friend bool operator==(const SortCounts&, const SortCounts&) = default;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_SORT_COUNTS_H_
