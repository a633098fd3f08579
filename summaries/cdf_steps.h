// The distribution of a stream as what it is known to be: for every key at once, bounds of the
// number of values at or below it.
//
// Both bounds are step functions of the key, and a summary's steps are few. What is derived from a
// whole distribution (distances, spreads, trimmed means) is one pass over the steps. QuantileView
// and CorrelatedView make them.
//
// Guarantee: for keys[i] <= v < keys[i + 1] (the last one: every v from it on) the number of values
// <= v lies in [low[i], high[i]]; for v < keys[0] it is at most `below`.
//
// A window by time may hold fewer values than n (sliding_record.h): of u = `below` values it is not
// known whether they are inside. They are anywhere in the order; low counts none of them, high all.
// Let N = n - u + k be the true number, k <= u of them inside, and F(v) the true number of values
// <= v, so that low(v) <= F(v) <= high(v) - (u - k). Then, for every k, what is read from the steps
// as if all n were inside holds for the true window:
//   - Shares: low(v) / n <= F(v) / N <= high(v) / n. F(v) >= low(v) and N <= n; and N - F(v) >= n -
//     high(v), as F(v) + (u - k) <= high(v), so that 1 - F(v) / N >= (n - high(v)) / n.
//   - Quantiles: ValueAt(TargetRank(phi, n)) holds the value of rank t = TargetRank(phi, N). The
//     rank asked for, T, is at least t, so that low(v) >= T makes F(v) >= t; and T - t <= n - N = u
//     - k (one value more raises the rank by at most one), so that F(v) >= t makes high(v) >= T.
#ifndef TIDEMARK_SUMMARIES_CDF_STEPS_H_
#define TIDEMARK_SUMMARIES_CDF_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {

struct CountBounds {
  std::uint64_t low = 0, high = 0;
};

template <class Key>
struct KeyBounds {
  Key low = 0, high = 0;
};

template <class Key>
struct CdfSteps {
  std::uint64_t n = 0;                   ///< values
  std::uint64_t below = 0;               ///< values of which nothing is known but their number
  std::size_t elements = 0;              ///< so many of the keys surely are values; others may be
  std::vector<Key> keys;                 ///< ascending, none twice
  std::vector<std::uint64_t> low, high;  ///< ascending, to n - below and n

  /// Of any key.
  CountBounds AtMost(Key v) const;
  /// One for each of `ascending` keys, in one pass. Errors: throws std::invalid_argument unless
  /// they ascend (equal ones are allowed).
  std::vector<CountBounds> AtMost(std::span<const Key> ascending) const;

  /// Two keys between which the value of rank `rank` (from 1) surely lies, inclusive; each as tight
  /// as the bounds allow. From 0 or up to the greatest key where unseen values make it so.
  /// REQUIRES: 1 <= rank <= n.
  KeyBounds<Key> ValueAt(std::uint64_t rank) const;
};

extern template struct CdfSteps<std::uint32_t>;
extern template struct CdfSteps<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_CDF_STEPS_H_
