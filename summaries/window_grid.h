// The digest of a window without its full order: keys are counted into cells, and only those of
// cells that are too heavy are looked at again.
//
// Guarantee: Digest(window, stride) is DigestSorted of the same keys in order, to the bit, whatever
// the keys and whatever was done to get it: every cell of a digest is a dyadic interval, so that
// its weight is the sum of finer ones that were counted, and what was not counted finely enough is
// sorted. So is the whole window where that costs least.
//
// What is done is chosen for each window from a sample of its keys (grid_plan.h): two for each
// stride, at places that have no period. In the order of their cost,
//   - count into cells of one level, with the largest key of each: nothing is moved;
//   - into cells of different levels, each as fine as the sample says that it must be, in 64 blocks
//     whose shapes stay in vector registers, of one level or by orders of magnitude (for integers
//     that crowd at the low end of their range), or in up to 1,024;
//   - part what is outside the few cells where nearly all keys lie, and do one of these within;
//   - sort everything.
// A sample can miss what lies between its places. So after three eighths of a window it is looked
// whether keys that were not expected pile up in single cells; if so, it is sorted; and the next
// windows of that stream are, too (GridMemory). Where blocks turned out too coarse, they are halved
// in the windows that follow.
//
// Cost, measured (tests/bench/digest_bench, one core of an AMD EPYC, medians), beside the same
// windows sorted with vqsort and read:
//   million keys/s       ε = 1 %, windows of 2^18             ε = 0.1 %, windows of 2^20
//                        32 bits          64 bits             32 bits          64 bits
//   uniform              1519, 5.1 times  747, 5.6            1205, 4.9 times  807, 5.7
//   sorted               1237, 4.2        1098, 6.5           1330, 5.2        1066, 7.1
//   lognormal floats     1337, 4.6        785, 5.0            1065, 4.2        656, 4.7
//   lognormal integers   888, 3.2         699, 4.5            1027, 4.1        567, 4.1
// The window must be large against the stride: at 0.1 % in windows of 2^18 uniform floats come to
// 473, 2.3 times.
// Not guaranteed: a cost below that of the sort on every input. Measured on 22 kinds of windows,
// orders that mislead the sample among them: at least 0.96 of the sort's rate in a stream, and 0.84
// for a window on its own. Windows of less than 2^13 keys are sorted.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) spend most of their time on the order
// within windows; a summary with sample stride k needs none within a bucket of k keys.
//
// Memory: up to 2^18 cells of 8 or 16 bytes, a byte for each, a copy of the keys of heavy cells.
// Thread: one at a time. Errors: what `sort` throws.
#ifndef TIDEMARK_SUMMARIES_WINDOW_GRID_H_
#define TIDEMARK_SUMMARIES_WINDOW_GRID_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "summaries/digest_builder.h"
#include "summaries/grid_kernels.h"
#include "summaries/grid_plan.h"
#include "summaries/grid_vectors.h"
#include "summaries/window_digest.h"

namespace tidemark {

/// How a digest came about.
enum class DigestPath : std::uint8_t {
  kSorted,   ///< all keys were sorted: the window is in order now
  kCounted,  ///< no key was copied
  kRefined,  ///< keys of heavy cells were copied and sorted
};

/// When counting is tried at all. The defaults are where it begins to pay; tests use others to take
/// every way with few keys.
struct GridTuning {
  /// Of sorting a random key of a large window, counting it taken as 1. 0: what was measured with
  /// vqsort on one core of an AMD EPYC (Zen 4). A slower sorter makes counting pay more often.
  double sort_cost = 0;
  std::size_t least_counted = std::size_t{1} << 13;  ///< keys in a window
  std::size_t least_planned = std::size_t{1} << 16;  ///< to plan more than cells of one level
  std::uint64_t least_stride = 12;                   ///< below, light cells are too small
  bool watch = true;                          ///< look again after three eighths of the window
  bool vectors = internal::HasGridVectors();  ///< vector instructions are used
};

/// What the last windows of a stream showed: where counting did not pay, the next ones are sorted
/// without a look, twice as many each time, up to 15. Changes what a digest costs, never the
/// digest.
struct GridMemory {
  std::uint8_t wait = 0;       ///< windows that are sorted before it is tried again
  std::uint8_t last_wait = 0;  ///< how long it was the last time; 0 after a window that paid
  std::uint8_t finer = 0;      ///< halvings of blocks beyond what a sample says: it missed cells
  std::uint8_t calm = 0;       ///< windows since in which none was missed
};

template <class Key>
class WindowGrid {
 public:
  /// Sorts keys ascending, in place.
  using SortKeys = std::function<void(std::span<Key>)>;

  explicit WindowGrid(SortKeys sort, const GridTuning& tuning = {});

  /// The digest of `window`, whose keys may be permuted. `memory`: of the stream that it is from.
  /// Errors: those of CheckDigestible.
  WindowDigest<Key> Digest(std::span<Key> window, std::uint64_t stride, GridMemory& memory);

  /// Of a window on its own.
  WindowDigest<Key> Digest(std::span<Key> window, std::uint64_t stride) {
    GridMemory none;
    return Digest(window, stride, none);
  }

  /// How the last one came about.
  DigestPath path() const { return path_; }

 private:
  using Builder = internal::DigestBuilder<Key>;
  using Cell = internal::GridCell<Key>;

  struct Layer {
    internal::GridPlan<Key> plan;
    std::vector<Cell> cells;
    std::vector<std::uint8_t> wanted;
    std::vector<Key> copied;
  };
  /// What a glance at a few keys says.
  struct Glance {
    bool sort = true;  ///< everything, at once
    bool looked = false;
    internal::RunEstimate runs{};
  };

  void AddWindow(std::span<Key> window, GridMemory& memory, Builder& builder);
  void SortWindow(std::span<Key> window, Builder& builder);
  void Learn(GridMemory& memory) const;
  /// Whether what was done for a window costs less than sorting it.
  bool Paid(const Glance& glance, std::size_t keys) const;
  Glance LookAt(std::span<const Key> keys, std::uint64_t stride);
  std::size_t SampleSize(std::size_t keys, std::uint64_t stride) const;

  // Each gives the leaves of all cells of `level` that these keys are in to the builder. REQUIRES:
  // they are all keys of these cells.
  void AddCells(std::span<Key> keys, int level, std::size_t depth, Builder& builder);
  void AddPlanned(const internal::GridTask<Key>& task, std::span<Key> keys, double runs,
                  std::size_t depth, Builder& builder);
  void AddBySort(std::span<Key> keys, int level, Builder& builder);
  void AddSplit(std::span<Key> keys, int level, std::size_t depth, Builder& builder);
  template <class Cells>
  void AddCounted(std::span<Key> keys, int level, Cells cells, std::size_t skip, Layer& layer,
                  Builder& builder);

  /// Counts all keys. Returns false, and has not, if far more than expected pile up in few cells.
  template <class Cells>
  bool CountAll(std::span<const Key> keys, Cells cells, std::uint64_t stride, Layer& layer) const;

  /// Keys in cells that hold more than `stride`, and more than one key.
  std::size_t PiledUp(const Layer& layer, std::uint64_t stride) const;

  static constexpr std::size_t kLayers = 3;  // a split, what is within it, and within that

  SortKeys sort_;
  GridTuning tuning_;
  DigestPath path_ = DigestPath::kSorted;
  bool missed_ = false;     // blocks of this window were not as fine as was planned
  double work_ = 0;         // done for this window without sorting, in the units of grid_plan.h
  std::size_t sorted_ = 0;  // keys that were sorted for it
  std::vector<Key> sample_;
  std::array<Layer, kLayers> layers_;
};

extern template class WindowGrid<std::uint32_t>;
extern template class WindowGrid<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_WINDOW_GRID_H_
