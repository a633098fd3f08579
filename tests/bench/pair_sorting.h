// Ways to sort a window of pairs by x with sorters that know keys alone. The y follow by index.
//
// What the service needs: x ascending, y in the same order; equal x in any order.
#ifndef TIDEMARK_TESTS_BENCH_PAIR_SORTING_H_
#define TIDEMARK_TESTS_BENCH_PAIR_SORTING_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gpu/sort/window_sorter.h"

namespace tidemark {

/// Sorts pairs; x and y are written over. Keeps its scratch memory.
template <class Key, class Y>
class PairSorting {
 public:
  explicit PairSorting(sort::WindowSorter& sorter) : sorter_(sorter) {}

  /// The baseline: std::sort of structs.
  void SortStructs(std::span<Key> x, std::span<Y> y) {
    pairs_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) pairs_[i] = {x[i], y[i]};
    std::sort(pairs_.begin(), pairs_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = pairs_[i].first;
      y[i] = pairs_[i].second;
    }
  }

  /// The baseline: std::sort of indices.
  void SortIndices(std::span<Key> x, std::span<Y> y) {
    indices_.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) indices_[i] = static_cast<std::uint32_t>(i);
    std::sort(indices_.begin(), indices_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return x[a] < x[b]; });
    keys_.assign(x.begin(), x.end());
    ys_.assign(y.begin(), y.end());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = keys_[indices_[i]];
      y[i] = ys_[indices_[i]];
    }
  }

  /// The proposal: one key of 64 bits holds as much of x - min(x) as fits, then the index. Where
  /// all of it fits (keys of 32 bits always; of 64 bits if max - min has no more than 64 -
  /// log2(size) bits), that is all. Where not, runs that agree in what fits are sorted by the rest.
  void SortPacked(std::span<Key> x, std::span<Y> y) {
    const std::size_t size = x.size();
    if (size < 2) return;
    const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
    const std::uint64_t base = *least;
    const int index_bits = std::bit_width(size - 1);
    const int range_bits = std::bit_width(std::uint64_t{*greatest} - base);
    const int drop = std::max(0, range_bits + index_bits - 64);
    const std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
    packed_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      packed_[i] = (std::uint64_t{x[i]} - base) >> drop << index_bits | i;
    }
    const std::span<std::uint64_t> channel(packed_);
    sorter_.Sort(sort::Channels<std::uint64_t>(&channel, 1));
    ys_.assign(y.begin(), y.end());
    if (drop == 0) {
      for (std::size_t i = 0; i < size; ++i) {
        x[i] = static_cast<Key>(base + (packed_[i] >> index_bits));
        y[i] = ys_[packed_[i] & index_mask];
      }
      return;
    }
    keys_.assign(x.begin(), x.end());
    bool ties = false;
    for (std::size_t i = 0; i < size; ++i) {
      x[i] = keys_[packed_[i] & index_mask];
      y[i] = ys_[packed_[i] & index_mask];
      ties |= i > 0 && x[i] < x[i - 1];
    }
    if (ties) SortRuns(x, y, index_bits);
  }

 private:
  /// Runs of equal upper bits, by the whole key.
  void SortRuns(std::span<Key> x, std::span<Y> y, int index_bits) {
    for (std::size_t begin = 0, end; begin < x.size(); begin = end) {
      const std::uint64_t upper = packed_[begin] >> index_bits;
      for (end = begin + 1; end < x.size() && packed_[end] >> index_bits == upper;) ++end;
      if (end - begin < 2) continue;
      pairs_.resize(end - begin);
      for (std::size_t i = begin; i < end; ++i) pairs_[i - begin] = {x[i], y[i]};
      std::sort(pairs_.begin(), pairs_.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t i = begin; i < end; ++i) std::tie(x[i], y[i]) = pairs_[i - begin];
    }
  }

  sort::WindowSorter& sorter_;
  std::vector<std::pair<Key, Y>> pairs_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::uint64_t> packed_;
  std::vector<Key> keys_;
  std::vector<Y> ys_;
};

}  // namespace tidemark

#endif  // TIDEMARK_TESTS_BENCH_PAIR_SORTING_H_
