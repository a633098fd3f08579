// Cuts: keys with bounds of how many pairs (x, y) have x at or below them, and of what their y add
// up to. The state of CorrelatedSums, apart from how it is fed.
//
// Let F(v) be the mass of the pairs with x <= v: their count, the sum of their positive y and the
// sum of -y over their negative ones. Cuts c_1 < … < c_m carry bounds of F(c_i), part by part. As
// F grows with v, a key strictly between two cuts has bounds, too: the lower one's and the upper
// one's. The gap (c_(i-1), c_i] (i = 1: all keys up to c_1) is called atomic if no pair lies
// strictly inside it, so that all of its mass stands at c_i: then F(v) = F(c_(i-1)) for v strictly
// inside, however heavy c_i is. A gap of a single key is atomic by itself, and this is how one
// heavy key is fenced in: by a cut at it and one at the key below it.
//
// A cut is an element of the stream, or (element = false) the key below one. In both cases an
// element can be named for it.
#ifndef TIDEMARK_SUMMARIES_CORRELATED_CUTS_H_
#define TIDEMARK_SUMMARIES_CORRELATED_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "summaries/cdf_steps.h"
#include "summaries/fixed_sum.h"

namespace tidemark {

/// Of a set of pairs; sums in units (fixed_sum.h).
struct Mass {
  std::uint64_t count = 0;
  Uint128 positive = 0;  ///< sum of the y above 0
  Uint128 negative = 0;  ///< sum of -y over the y below 0

  /// The sum of |y|.
  Uint128 weight() const { return positive + negative; }
  Mass& operator+=(const Mass& other) {
    count += other.count;
    positive += other.positive;
    negative += other.negative;
    return *this;
  }
  friend Mass operator+(Mass a, const Mass& b) { return a += b; }
  friend Mass operator-(const Mass& a, const Mass& b) {
    return {a.count - b.count, a.positive - b.positive, a.negative - b.negative};
  }
  friend bool operator==(const Mass&, const Mass&) = default;
};

/// Each part of the true mass lies between those of low and high.
struct MassBounds {
  Mass low, high;

  MassBounds& operator+=(const MassBounds& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend MassBounds operator+(MassBounds a, const MassBounds& b) { return a += b; }
  /// Of a set less a part of it whose bounds make up a part of its own.
  friend MassBounds operator-(const MassBounds& a, const MassBounds& b) {
    return {a.low - b.low, a.high - b.high};
  }
  friend bool operator==(const MassBounds&, const MassBounds&) = default;
};

/// In units of 2^bits of the old ones: low rounded down, high up.
MassBounds Coarsened(const MassBounds& bounds, int bits);

template <class Key>
struct Cut {
  Key key = 0;
  bool element = false;  ///< else key + 1 is one
  bool atomic = false;   ///< the gap that ends here
  MassBounds at_most;    ///< of F(key)

  friend bool operator==(const Cut&, const Cut&) = default;
};

/// How far the bounds at the two ends of a gap may lie apart: count and weight.
struct MassBudget {
  std::uint64_t count = 0;
  Uint128 weight = 0;
};

/// 2 * floor(epsilon * n), and floor(2 * epsilon * weight) + rounding, with epsilon not above what
/// was meant (fraction.h).
MassBudget BudgetOf(double epsilon, const Mass& total, std::uint64_t rounding);

/// Whether the gap from a cut whose lower bounds are `low` to one with the upper bounds `high` is
/// within the budget. An element at its end is not strictly inside, and so counts for one less.
inline bool Fits(const Mass& low, const Mass& high, bool element, const MassBudget& budget) {
  return high.count - low.count <= budget.count + (element ? 1 : 0) &&
         high.weight() - low.weight() <= budget.weight;
}

/// Thread: const methods from any thread.
template <class Key>
class CorrelatedCuts {
 public:
  std::size_t size() const { return keys_.size(); }
  bool empty() const { return keys_.empty(); }
  const std::vector<Key>& keys() const { return keys_; }
  bool element(std::size_t i) const { return (kinds_[i] & kElement) != 0; }
  bool atomic(std::size_t i) const { return (kinds_[i] & kAtomic) != 0; }
  /// Of F(keys()[i]).
  MassBounds BoundsAt(std::size_t i) const;
  Cut<Key> operator[](std::size_t i) const {
    return {keys_[i], element(i), atomic(i), BoundsAt(i)};
  }
  /// Of F at the last cut, the maximum; nothing if there is none.
  MassBounds total() const { return empty() ? MassBounds() : BoundsAt(size() - 1); }

  /// Of F(v) for any key.
  MassBounds AtMost(Key v) const;
  CountBounds CountAtMost(Key v) const;
  /// Of F(v) for v strictly inside the gap that ends at cut i; i = size(): above all cuts.
  MassBounds Inside(std::size_t i) const;

  /// The number of cuts whose key is at most v.
  std::size_t CutsAtMost(Key v) const;

  void Reserve(std::size_t cuts);
  /// REQUIRES: the key is above all others.
  void Append(const Cut<Key>& cut);

  /// Every gap is atomic: every key of the stream is a cut.
  bool closed() const;
  /// And every bound is closed: F is known at every key.
  bool exact() const;
  std::size_t bytes() const;

 private:
  static constexpr std::uint8_t kElement = 1, kAtomic = 2;

  // One array for each part: 53 bytes a cut of 32 bits, 85 from the first negative y on.
  std::vector<Key> keys_;
  std::vector<std::uint8_t> kinds_;
  std::vector<std::uint64_t> count_low_, count_width_;
  std::vector<Uint128> positive_low_, positive_width_;
  std::vector<Uint128> negative_low_, negative_width_;  // empty while there is no negative y
};

/// The cuts that are needed of `cuts` if no gap may exceed the budget: from each one kept, the
/// furthest that the budget allows, or else the next. First and last are kept.
/// REQUIRES: each gap is atomic or within the budget.
///
/// This is the least number of cuts: what fits from a cut to a later one fits from every cut
/// between, and to every one.
template <class Key>
CorrelatedCuts<Key> Condense(const std::vector<Cut<Key>>& cuts, const MassBudget& budget);

/// Cuts of the union of two streams, every gap atomic or within the sum of the two budgets.
template <class Key>
std::vector<Cut<Key>> UnionOf(const CorrelatedCuts<Key>& a, const CorrelatedCuts<Key>& b,
                              const MassBudget& budget);

/// All bounds in units that are 2^bits times coarser.
template <class Key>
CorrelatedCuts<Key> Coarsened(const CorrelatedCuts<Key>& cuts, int bits);

extern template class CorrelatedCuts<std::uint32_t>;
extern template class CorrelatedCuts<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_CORRELATED_CUTS_H_
