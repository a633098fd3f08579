// Counts, sums and averages of y over the pairs with x in some range, each with bounds: the answer
// side of CorrelatedSums.
//
// A view covers the pairs of a summary's snapshot and those of the open window (sorted by x, known
// exactly). Guarantee: every interval holds the truth, for every input order; those of Through()
// are at most 2 * floor(epsilon * n) wide in the count and 2 * epsilon * Y in the sum, Y the sum of
// all |y| (doubles: and the rounding of correlated_sums.h); those of Between() at most twice that.
// ThroughQuantile() names an element within epsilon * n of the rank asked for, with the sums
// through it; and it bounds the sums through the true quantile, without such a promise
// (correlated_sums.h says why there is none).
//
// The open window is never mixed into the summary: bounds add.
//
// Cost: one pass over the open window's y when the view is made; an answer through a key takes a
// binary search in the cuts and one in the open window, and adds up to kBlock of its y; one through
// a quantile takes as many as a key has bits.
#ifndef TIDEMARK_SUMMARIES_CORRELATED_VIEW_H_
#define TIDEMARK_SUMMARIES_CORRELATED_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "summaries/correlated_sums.h"
#include "summaries/outward_rounding.h"
#include "summaries/quantile_view.h"

namespace tidemark {

/// The open window's pairs: x ascends, y[i] belongs to x[i].
template <class Key>
struct OpenPairs {
  std::span<const Key> x;
  std::variant<std::span<const std::int64_t>, std::span<const std::uint64_t>,
               std::span<const double>>
      y;
};

/// The true sum lies between low and high, in units of 2^scale.
struct SumBounds {
  Int128 low = 0, high = 0;
  int scale = 0;

  /// As doubles, rounded down and up.
  double low_value() const { return LowerDouble(low, scale); }
  double high_value() const { return UpperDouble(high, scale); }
};

/// Of the pairs whose x lies in some range.
struct PairSums {
  CountBounds count;
  SumBounds sum;
  /// Of their y; nothing if there may be no pair. Within least and greatest y of the stream.
  std::optional<RealBounds> average;
};

template <class Key>
struct QuantileSums {
  /// An element, with the bounds of its rank.
  QuantileAnswer<Key> at;
  /// Of the pairs with x <= at.value.
  PairSums through_element;
  /// The true quantile lies in [value_low, value_high]; they need not be elements.
  Key value_low = 0, value_high = 0;
  /// Of the pairs with x at or below the true quantile.
  PairSums through_quantile;
};

/// Thread: const methods from any thread. Lifetime: the open pairs outlive the view.
template <class Key>
class CorrelatedView {
 public:
  /// Errors: throws std::invalid_argument if the open pairs have not as many y as x, y of another
  /// type than the snapshot, or a y that is not a finite number.
  explicit CorrelatedView(CorrelatedSnapshot<Key> snapshot, OpenPairs<Key> open = {});

  std::uint64_t n() const { return total_.low.count; }
  double epsilon() const { return snapshot_.epsilon; }
  SumType type() const { return snapshot_.type; }
  /// Answers are exact (of doubles: up to the rounding to the nearest doubles).
  bool exact() const { return snapshot_.cuts->exact(); }

  /// All pairs: exact.
  PairSums All() const { return SumsOf(total_); }
  /// Of the pairs with x <= v.
  PairSums Through(Key v) const { return SumsOf(AtMost(v)); }
  /// Of the pairs with first <= x <= last; nothing if first > last.
  PairSums Between(Key first, Key last) const;

  /// Errors: throw std::invalid_argument unless 0 <= phi <= 1, std::logic_error if n is 0.
  QuantileSums<Key> ThroughQuantile(double phi) const;
  /// Of the pairs above one quantile and at or below another: low_phi <= high_phi, 0 for "from the
  /// least". `elements`: between the elements that the two ThroughQuantile() name; `quantiles`:
  /// between the true ones. Errors: as above, and if low_phi > high_phi.
  struct Range {
    PairSums elements, quantiles;
  };
  Range BetweenQuantiles(double low_phi, double high_phi) const;

  /// Of the number of x < v and <= v.
  RankBounds Bounds(Key v) const;
  /// Of F(v), the mass of the pairs with x <= v, in units of 2^scale().
  MassBounds AtMost(Key v) const;
  /// Its count alone.
  CountBounds CountAtMost(Key v) const;
  int scale() const { return scale_; }
  /// The bounds of the number of x <= v for every v. Not all keys are elements.
  CdfSteps<Key> Steps() const;

 private:
  /// Sums of the open window are kept for each so many pairs.
  static constexpr std::size_t kBlock = 256;

  MassBounds SumOpen(std::size_t begin, std::size_t end) const;
  MassBounds FirstOpen(std::size_t pairs) const;
  MassBounds Less(Key v) const { return v == 0 ? MassBounds() : AtMost(static_cast<Key>(v - 1)); }
  /// From the keys above `below` (none: all) through those at or below `through`.
  PairSums Difference(const MassBounds& below, const MassBounds& through) const;
  PairSums SumsOf(const MassBounds& mass) const { return Difference({}, mass); }
  std::optional<RealBounds> Average(const CountBounds& count, const SumBounds& sum) const;
  QuantileAnswer<Key> Certify(Key v, std::uint64_t target) const;
  QuantileAnswer<Key> Select(std::uint64_t target) const;
  /// The least key whose count of x at or below it, by its upper or lower bound, reaches `target`.
  template <bool upper>
  Key LeastReaching(std::uint64_t target) const;
  /// Of F at the true quantile.
  MassBounds AtQuantile(std::uint64_t target) const;
  std::uint64_t TargetOf(double phi) const;
  Key ElementAt(std::size_t cut) const;

  CorrelatedSnapshot<Key> snapshot_;
  OpenPairs<Key> open_;
  int scale_ = 0;                   ///< of all sums here: at least that of the snapshot
  std::vector<MassBounds> blocks_;  ///< of the first i * kBlock open pairs
  MassBounds total_;
  double least_y_ = 0, greatest_y_ = 0;  ///< rounded outwards
};

extern template class CorrelatedView<std::uint32_t>;
extern template class CorrelatedView<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_CORRELATED_VIEW_H_
