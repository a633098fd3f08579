// What can be said of the values themselves, as numbers: distances between quantiles, trimmed
// means, and how many there are.
//
// Keys are order-preserving codes (key_codec.h); what a key's value is, the caller passes in. All
// results are intervals that surely hold the truth, rounded outwards.
//
// Range between two quantiles: each lies between two keys (CdfSteps::ValueAt), so that their
// distance lies between the nearest and the furthest of those.
//
// Trimmed mean: the mean of the values of ranks (t1, t2], t1 = floor(share * n), t2 = n - t1.
// - From the distribution alone: the value of rank r lies between ValueAt(r).low and .high. Summed
//   over the ranks, the interval is at most about 2 * epsilon * n * (the range of what is left)
//   wide.
// - From correlated sums of x over itself also from the sum G(t) of the t least values. For every
//   key c, with C values at or below it that add up to S:
//       G(t) >= S + (t - C) * c: of the values that must be added or taken away each is at least c
//       or at most c;
//       G(t) <= S + (t - C) * b if t >= C, b no less than the value of rank t, and
//       G(t) <= S - (C - t) * a if t < C, a no more than that of rank t + 1;
//   and G(t) is the sum of all values less that of the ranks above t. The tightest of all bounds is
//   taken; where the range of values is large against their mean (heavy tails) they are far tighter
//   than those from the distribution alone.
// Both are the same for all orders of input, and exact while nothing is lost.
//
// Windows by time, of which it is not known how many of the steps' n values they hold: with N = n -
// u + k values inside (cdf_steps.h) all that is answered from steps holds for the true window, for
// every k. Quantiles: there. Trimmed mean: with c(N) left out at either end, the value of rank r in
// the window is at least L(r + u - k) and at most H(r), the ends of ValueAt() as they ascend with
// the rank. Its mean is at least that of L over (c(N) + u - k, n - c(N)] and at most that of H over
// (c(N), N - c(N)]. As k grows c(N) grows by at most as much: both ends of the former do not rise,
// so that its mean is least for k = u, and both ends of the latter do not fall, so that its mean is
// greatest for k = u. These two are what is answered. TrimmedMean::count is that of N = n: for the
// true N it may differ by up to u - k. Different values: the elements are inside, and fewer values
// are no more different ones.
// Where u values may stand beyond all that are known, an end is the least or the greatest key.
#ifndef TIDEMARK_SUMMARIES_VALUE_SPREAD_H_
#define TIDEMARK_SUMMARIES_VALUE_SPREAD_H_

#include <cstdint>
#include <functional>

#include "summaries/cdf_steps.h"
#include "summaries/correlated_view.h"
#include "summaries/outward_rounding.h"

namespace tidemark {

/// The value that a key stands for, as doubles not above and not below it; ascending with the key.
template <class Key>
using ValueOf = std::function<RealBounds(Key)>;

/// Of floats, keys beyond those of the infinities, which no value has, stand for these.
RealBounds Float32Value(std::uint32_t key);
RealBounds Uint32Value(std::uint32_t key);
RealBounds Float64Value(std::uint64_t key);
RealBounds Int64Value(std::uint64_t key);
RealBounds Uint64Value(std::uint64_t key);

template <class Key>
struct QuantileRange {
  KeyBounds<Key> low_quantile, high_quantile;  ///< each true quantile lies between two keys
  RealBounds range;                            ///< the value of the higher less that of the lower
};

/// Of the quantiles of two shares; 0.25 and 0.75 make the inter-quartile range.
/// Errors: throws std::invalid_argument unless 0 <= low_phi <= high_phi <= 1 and there are values.
template <class Key>
QuantileRange<Key> RangeBetweenQuantiles(const CdfSteps<Key>& steps, double low_phi,
                                         double high_phi, const ValueOf<Key>& value_of);

/// What lies in both. Where nothing does, `a`: then one of them is of other values, as bounds made
/// of a forged summary can be.
RealBounds Intersection(const RealBounds& a, const RealBounds& b);

struct TrimmedMean {
  std::uint64_t count = 0;  ///< values that are left
  RealBounds mean;
};

/// Without the floor(share * n) least and as many greatest values.
/// Errors: throws std::invalid_argument unless 0 <= share < 0.5 and there are values.
template <class Key>
TrimmedMean TrimmedMeanOf(const CdfSteps<Key>& steps, double share, const ValueOf<Key>& value_of);

/// From sums whose y is the value of x. Without a trim, and while nothing is lost, as exact as sums
/// of the values are (correlated_sums.h): within 2^-52 of the mean of all |values| or so, which is
/// far from the mean itself where large values cancel out. Errors: as above.
template <class Key>
TrimmedMean TrimmedMeanOf(const CorrelatedView<Key>& sums_of_x, double share,
                          const ValueOf<Key>& value_of);

/// The number of different values: at least as many as there are keys that surely are values; at
/// most all keys, and between two of them as many more as there are keys between them or values
/// that may be there. Exact while nothing is lost (of QuantileView's steps).
template <class Key>
CountBounds DistinctValues(const CdfSteps<Key>& steps);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_VALUE_SPREAD_H_
