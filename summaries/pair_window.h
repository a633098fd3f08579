// A window of pairs (x, y), sorted by x, as correlated sums read it: masses of stretches, runs of
// equal x, and how far a budget reaches.
#ifndef TIDEMARK_SUMMARIES_PAIR_WINDOW_H_
#define TIDEMARK_SUMMARIES_PAIR_WINDOW_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "summaries/correlated_cuts.h"
#include "summaries/fixed_sum.h"
#include "summaries/sorted_runs.h"

namespace tidemark::internal {

/// The mass of some y, in no order: the same for every order of them.
inline MassBounds SumOf(std::span<const std::uint64_t> ys, int /*scale*/) {
  Mass mass;
  mass.count = ys.size();
  // Halves of 32 bits do not overflow 64 within 2^31 additions.
  constexpr std::size_t kBlock = std::size_t{1} << 31;
  for (std::size_t begin = 0; begin < ys.size(); begin += kBlock) {
    std::uint64_t low = 0, high = 0;
    for (const std::uint64_t y : ys.subspan(begin, std::min(kBlock, ys.size() - begin))) {
      low += y & 0xFFFF'FFFF;
      high += y >> 32;
    }
    mass.positive += (static_cast<Uint128>(high) << 32) + low;
  }
  return {mass, mass};
}

inline MassBounds SumOf(std::span<const std::int64_t> ys, int /*scale*/) {
  Mass mass;
  mass.count = ys.size();
  constexpr std::size_t kBlock = std::size_t{1} << 31;
  for (std::size_t begin = 0; begin < ys.size(); begin += kBlock) {
    std::uint64_t low = 0, high = 0, negative_low = 0, negative_high = 0;
    for (const std::int64_t y : ys.subspan(begin, std::min(kBlock, ys.size() - begin))) {
      const auto bits = static_cast<std::uint64_t>(y);
      const std::uint64_t sign = std::uint64_t{0} - (bits >> 63);
      const std::uint64_t above = bits & ~sign, below = (std::uint64_t{0} - bits) & sign;
      low += above & 0xFFFF'FFFF;
      high += above >> 32;
      negative_low += below & 0xFFFF'FFFF;
      negative_high += below >> 32;
    }
    mass.positive += (static_cast<Uint128>(high) << 32) + low;
    mass.negative += (static_cast<Uint128>(negative_high) << 32) + negative_low;
  }
  return {mass, mass};
}

inline MassBounds SumOf(std::span<const double> ys, int scale) {
  // Without a branch on the sign: what is negative is added a second time.
  Uint128 all = 0, negative = 0;
  std::uint64_t cut = 0, negative_cut = 0;
  for (const double y : ys) {
    const Units units = ToUnits(y, scale);
    const std::uint64_t sign = std::bit_cast<std::uint64_t>(y) >> 63;
    all += units.value;
    negative += units.value & (Uint128{0} - sign);
    cut += units.cut;
    negative_cut += units.cut & sign;
  }
  const Mass low{ys.size(), all - negative, negative};
  return {low, {low.count, low.positive + (cut - negative_cut), negative + negative_cut}};
}

/// Least and greatest of some y.
template <class Y>
struct Extent {
  Y least, greatest;
};

/// Errors: throws std::invalid_argument for a NaN or an infinity. REQUIRES: not empty.
template <class Y>
Extent<Y> ExtentOf(std::span<const Y> ys) {
  Extent<Y> extent{ys[0], ys[0]};
  if constexpr (std::is_floating_point_v<Y>) {
    bool finite = true;
    for (const Y y : ys) {
      finite &= std::abs(y) <= std::numeric_limits<Y>::max();
      extent.least = y < extent.least ? y : extent.least;
      extent.greatest = y > extent.greatest ? y : extent.greatest;
    }
    if (!finite) {
      throw std::invalid_argument(
          "a window for correlated sums has a y that is not a finite number");
    }
  } else {
    for (const Y y : ys) {
      extent.least = std::min(extent.least, y);
      extent.greatest = std::max(extent.greatest, y);
    }
  }
  return extent;
}

template <class Key, class Y>
class PairWindow {
 public:
  /// `x` ascends; ys[i] belongs to x[i]. `scale` as in SumOf. Both outlive the window.
  PairWindow(std::span<const Key> x, std::span<const Y> ys, int scale)
      : x_(x), ys_(ys), scale_(scale) {}

  std::span<const Key> x() const { return x_; }
  MassBounds Sum(std::size_t begin, std::size_t end) {
    const std::size_t first = (begin + kBlock - 1) / kBlock, last = end / kBlock;
    if (blocks_.empty() ? end - begin < kLong : last <= first) return Direct(begin, end);
    if (blocks_.empty()) SumBlocks();
    return Direct(begin, first * kBlock) + (blocks_[last] - blocks_[first]) +
           Direct(last * kBlock, end);
  }
  /// The end of the run of equal x that begins at `at`.
  std::size_t EndOfRun(std::size_t at) const { return RunEnd(x_, at); }

  struct Reach {
    std::size_t end;
    MassBounds mass;  ///< `mass` and that of [begin, end)
  };
  /// The furthest end of a run of equal x, at most `limit`, so that fits(mass + Sum(begin, end))
  /// holds; `begin` if there is none. REQUIRES: `begin` and `limit` are borders of runs; fits(m)
  /// implies fits of what is less.
  template <class FitsPredicate>
  Reach Furthest(std::size_t begin, std::size_t limit, const MassBounds& mass, FitsPredicate fits) {
    constexpr std::size_t kFirstStep = 32;
    Reach reach{begin, mass};
    std::size_t step = kFirstStep;
    bool growing = true;
    while (reach.end < limit) {
      std::size_t next = limit - reach.end <= step ? limit : reach.end + step;
      if (next < limit && x_[next] == x_[next - 1]) {
        const auto from = x_.begin() + static_cast<std::ptrdiff_t>(reach.end);
        const auto to = x_.begin() + static_cast<std::ptrdiff_t>(next);
        next = static_cast<std::size_t>(std::lower_bound(from, to, x_[next]) - x_.begin());
        if (next == reach.end) next = EndOfRun(reach.end);
      }
      const MassBounds longer = reach.mass + Sum(reach.end, next);
      if (fits(longer)) {
        reach = {next, longer};
        if (growing) step *= 2;
        continue;
      }
      if (x_[reach.end] == x_[next - 1]) break;  // one run alone is too much
      growing = false;
      step = std::max<std::size_t>(1, std::min(step, next - reach.end) / 2);
    }
    return reach;
  }

 private:
  /// A stretch of so many pairs is not summed twice: sums of blocks are kept from the first one on.
  static constexpr std::size_t kBlock = 64, kLong = 1024;

  MassBounds Direct(std::size_t begin, std::size_t end) const {
    return SumOf(ys_.subspan(begin, end - begin), scale_);
  }
  void SumBlocks() {
    blocks_.reserve(x_.size() / kBlock + 1);
    blocks_.emplace_back();
    for (std::size_t end = kBlock; end <= x_.size(); end += kBlock) {
      blocks_.push_back(blocks_.back() + Direct(end - kBlock, end));
    }
  }

  std::span<const Key> x_;
  std::span<const Y> ys_;
  int scale_;
  std::vector<MassBounds> blocks_;  ///< of the first i * kBlock pairs; empty until they are needed
};

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_PAIR_WINDOW_H_
