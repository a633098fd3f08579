// A summary of a stream of pairs (x, y), from which the count, the sum and the average of y over
// the pairs with x <= v, or between two keys, or up to a quantile of x, can be answered with
// bounds, for ever and in any input order.
//
// With n pairs and Y the sum of all |y| (Y+ of the positive, Y- of the negative ones):
// Guarantee, for every key v at once, in the stream or not:
//   - the number of pairs with x <= v lies in a known interval that is at most 2 * floor(epsilon n)
//     wide: its middle is wrong by at most epsilon * n;
//   - the sum of the positive and that of the negative y over them lie in known intervals whose
//     widths together are at most 2 * epsilon * Y: so is that of the sum, and its middle is wrong
//     by at most epsilon * Y, also when a few y are huge or their signs alternate;
//   - for every rank t an element can be named whose rank of x is proven to lie within epsilon * n
//     of t (as in QuantileSummary), and the sums up to that element have the bounds above;
//   - while x has taken at most floor(1 / epsilon) different values, answers are exact, whatever n
//     is.
// Integers are summed exactly. A double y is cut off at a unit of at most Y * 2^-90 (fixed_sum.h);
// all bounds cover what was cut off, and the widths above may exceed theirs by it: by at most
// (n + 16) units, nothing while no bit was lost.
// Not guaranteed: a bound of the sum up to the true quantile q of x relative to Y. There is none in
// small space: as Ananthakrishna et al. prove, the pairs whose x cannot be told from q may carry
// any part of Y. What is proven about it: the interval of the answer holds the true sum, and is not
// wider than 4 * epsilon * Y and the |y| of the pairs whose x can take a rank within 2 * epsilon *
// n of t.
// Nor a bound relative to a sum itself (it may be 0 by cancellation), nor a bound of the size of
// the summary in the worst order (figures below).
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) §5.4; Ananthakrishna, Das, Gehrke, Korn,
// Muthukrishnan, Srivastava (TKDE 15(3), 2003), who give two variants of Greenwald and Khanna's
// quantile summary: ranks of x, or ranks weighted by y. Where we deviate: one array keeps both, so
// that rank and sum are within epsilon at once; it is fed by sorted windows in which every cut
// finds its exact mass, so that bounds never part; y may be negative; one heavy x does not cost its
// neighbours their bounds (atomic gaps, correlated_cuts.h).
// Explicit bounds, not the affine ranks of quantile_rule.h: samples at even ranks are not at even
// sums, so that the sums of y would need explicit bounds at each sample anyway, and a bucket for
// each power of two with them takes several times the memory of one array.
//
// Proof. The budget T(n, Y) = (2 * floor(epsilon n), 2 * epsilon * Y). Invariants: (I) the bounds
// at each cut are at most T apart; (II) each gap is atomic, or the upper bounds at its end and the
// lower ones at its start are at most T apart (its end, an element, not counted). A key at a cut
// has the cut's bounds, a key in an atomic gap those of its start, any other those of (II).
// - A window adds its exact mass up to c to both bounds at a cut c. A new cut inside a gap takes
// the
//   gap's bounds (or those of its start, if the gap is atomic), which are T apart at most by (I)
//   and (II), and the window's mass: (I). T never falls.
// - A gap that would break (II) is split at keys of the window. If a single key v is too heavy, the
//   cut at v - 1 leaves before it what the gap had before, within T, and an atomic gap behind it.
//   So (II) can always be had.
// - Dropping cuts is done only within (II), and leaves bounds as they are.
// - The union of two streams has the sums of the bounds; T_a + T_b <= T(n_a + n_b, Y_a + Y_b), and
//   each gap of the union lies inside one of a and one of b, or is split as above.
// - While all gaps are atomic and there are few keys, every key is a cut and no cut is dropped.
// - The unit of doubles grows: lower bounds are rounded down, upper ones up, and `rounding` units
//   are added to the budget to cover it, so that (II) can still be had.
// Rank t. Neighbouring elements p < q have at most B(q) - A(p) <= 2e, e = floor(epsilon n), where
// B(q) bounds the number of x < q and A(p) that of x <= p. Let p be the last with B(p) < t + e. If
// there is a next q, A(p) >= B(q) - 2e >= t - e; if not, p is the maximum and A(p) = n. So of the
// positions that p takes, the one nearest to t lies within e of it.
//
// Cost and size: see correlated_bench, docs/measurements.md.
#ifndef TIDEMARK_SUMMARIES_CORRELATED_SUMS_H_
#define TIDEMARK_SUMMARIES_CORRELATED_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "summaries/correlated_cuts.h"
#include "summaries/quantile_rule.h"

namespace tidemark {

/// What the y of a stream are.
enum class SumType : std::uint8_t { kInt64 = 1, kUint64 = 2, kFloat64 = 3 };

template <class Y>
struct SumTypeOf;
template <>
struct SumTypeOf<std::int64_t> {
  static constexpr SumType value = SumType::kInt64;
};
template <>
struct SumTypeOf<std::uint64_t> {
  static constexpr SumType value = SumType::kUint64;
};
template <>
struct SumTypeOf<double> {
  static constexpr SumType value = SumType::kFloat64;
};

/// What a summary held at one moment. Copying it copies a pointer. Any thread may read it.
template <class Key>
struct CorrelatedSnapshot {
  double epsilon = 0;
  SumType type = SumType::kInt64;
  int scale = 0;                                    ///< sums are in units of 2^scale
  std::shared_ptr<const CorrelatedCuts<Key>> cuts;  ///< not null
  /// The least and the greatest y, as EncodeKey maps them (key_codec.h); of no meaning if there are
  /// no pairs.
  std::uint64_t least_y = 0, greatest_y = 0;
};

/// Thread: one writer. Snapshot() must not run at the same time as a writing method (take it under
/// the writer's lock: it copies one pointer); what it returns may be read by any thread, without
/// lock.
template <class Key>
class CorrelatedSums {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  CorrelatedSums(double epsilon, SumType type);

  /// Takes in a window of any number of pairs (x[i], y[i]). `x` ascends; what the order of pairs
  /// with equal x is makes no difference. Not kept.
  /// Errors: throws std::invalid_argument if there are not as many y as x, if they are not of this
  /// summary's type, or if a y is a NaN or infinite; std::length_error when the summary would hold
  /// 2^63 pairs or more. Nothing has then changed.
  template <class Y>
  void AddWindow(std::span<const Key> x, std::span<const Y> y);

  /// Takes in all that `other` summarises. The guarantee holds for the union; the size is at most
  /// about the sum of both, and falls again as windows come.
  /// Errors: throws std::invalid_argument if epsilons or types differ, std::length_error as above.
  void Merge(const CorrelatedSums& other);

  double epsilon() const { return epsilon_; }
  SumType type() const { return type_; }
  /// While x takes no more different values, each of them is a cut.
  std::size_t exact_keys() const;
  std::uint64_t count() const { return cuts_->total().low.count; }
  std::size_t cuts() const { return cuts_->size(); }
  /// F is known at every key: answers are exact.
  bool exact() const { return cuts_->exact(); }
  /// Memory held, without what snapshots alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + cuts_->bytes(); }

  CorrelatedSnapshot<Key> Snapshot() const {
    return {epsilon_, type_, scale_, cuts_, least_y_, greatest_y_};
  }

  /// Little-endian; a varint holds 7 bits a byte, the lowest first, the top bit set in all but the
  /// last, and has no more bytes than it needs:
  ///   0  8  frame: magic "TMCS", version 1, key bits, 0 (byte_io.h)
  ///   8  8  epsilon, IEEE 754 double
  ///  16  1  type of y: 1 int64, 2 uint64, 3 float64
  ///  17  1  1 if sums of negative y follow at each cut, else 0
  ///  18  2  scale + 1074 for float64, else 0
  ///  20  8  rounding
  ///  28  8  least y, as EncodeKey maps it (0 if n = 0)
  ///  36  8  greatest y
  ///  44  8  number of cuts
  ///      then for each cut, ascending by key, as varints:
  ///         4 * (key - key before - 1) + 2 * element + atomic, the first key whole
  ///         count: lower bound less the one before, width of the bounds
  ///         sum of positive y: the same two
  ///         sum of negative y: the same two, if they follow
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong and where, for any bytes that are
  /// not a whole, undamaged summary of this key width.
  static CorrelatedSums Deserialize(std::string_view bytes);

 private:
  void CheckRoom(std::uint64_t more) const;
  /// Makes the unit coarse enough for `bits_before_point` more.
  void RaiseScaleFor(int bits_before_point);

  // Invariants: (I) and (II) of the comment above with the budget
  // BudgetOf(epsilon_, cuts_->total().low, rounding_); the first cut is the minimum, the last one
  // the maximum. The cuts are never changed once they are here.
  double epsilon_;
  SumType type_;
  int scale_;
  std::uint64_t rounding_ = 0;  ///< units that rounding may have added to the width of a gap
  std::uint64_t least_y_ = 0, greatest_y_ = 0;
  std::shared_ptr<const CorrelatedCuts<Key>> cuts_;
};

extern template class CorrelatedSums<std::uint32_t>;
extern template class CorrelatedSums<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_CORRELATED_SUMS_H_
