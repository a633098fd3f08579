// How much a bucket of a quantile summary may forget, and when: the arithmetic of the error budget,
// apart from the keys, so that a test can drive it to 2^62 values.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) §5.2, which runs Greenwald and Khanna's
// merge and prune (PODS 2004) on an exponential histogram. The paper gives bucket b of a stream of
// known length n the error eps/2 + eps*b / (log(eps*n) + 1). We do not know n, so the budget is
// spent in a series that never exceeds it (below), and ranks are kept as an affine function of the
// position, not per entry.
//
// A bucket holds the samples x_1 <= … <= x_m of n = m*w values (w, m powers of two). Its shape
// (w, m, E) states: x_i is an element whose rank r(x_i) in the bucket, in one fixed order of equal
// keys, satisfies
//     i*w <= r(x_i) <= i*w + E,      so x_m is the maximum.                                     (1)
// A sorted window sampled at ranks w, 2w, … has E = 0.
//
// Merge, equal w. Let x = a_i stand behind exactly k samples of b, at position j = i + k of the
// merged samples. At least k*w elements of b stand before x; if k < m_b, then b_(k+1) stands after
// x, and at most (k+1)*w + E_b - 1 elements of b stand before x (if k = m_b: n_b = k*w). So
//     j*w <= r(x) <= j*w + w - 1 + E_a + E_b,      E' = w - 1 + E_a + E_b. (2)
// Nothing is lost for w = 1, E = 0.
// Prune. Keeping every second sample leaves (1) true with w' = 2w and the same E.
// Repeat. Writing every sample of b r times leaves (1) true with w' = w/r and E' = E + w - w':
// position j holds x_i, i = ceil(j/r), and j*w' <= i*w <= j*w' + w - w'. The samples are then no
// longer distinct elements; nothing here or in the answers takes them to be.
//
// Gap. w + E bounds how far rank bounds of neighbouring samples lie apart. Invariant of each
// bucket:
//     lossless (w = 1, E = 0), or w + E <= 2*eps*n.                                             (3)
// - A window of more than m0 = 2^ceil(log2(4/eps)) values is sampled to m0: w + E = n/m0 <=
// eps*n/4.
// - A merge of equal w has gap 2w - 1 + E_a + E_b < (w + E_a) + (w + E_b) <= 2*eps*(n_a + n_b).
// - A merge of unequal w first brings both to one w: to the coarser one by pruning, if (3) then
// holds
//   for the result (checked); else to the finer one by repeating, which leaves w + E as it was.
// - A prune happens only while m > m0 and only if the new gap is within
//       2*eps*n * (1 - 2^-(t+2)),   t = log2(m_new / m0),                                       (4)
//   so (3) holds after it. Where (4) forbids it, the bucket keeps all its samples.
// So (3) holds for ever, whatever the sizes and the order of the windows; no length is assumed.
//
// Size. With equal windows a merge leaves the relative gap as it was and a prune to m samples adds
// 1/(2m). Phase t (m = m0 * 2^t samples) may spend 2*eps * 2^-(t+2) (phase 0: three quarters of
// 2*eps, less the eps/4 of the sampling), which is at least 4 levels in each phase and 10 in phase
// 0: a bucket of 2^b values holds O(2^((b - b0)/4) / eps) samples, constant over the first ten
// doublings. Of the series tried (first shares of 0.25 to 0.5, ratios of 0.5 to 0.85, m0 of 2/eps
// and 4/eps) this one holds the fewest samples at eps = 0.1 % from 2^30 to 2^34 values.
//
// What an answer is worth. Take all samples of all B buckets in one order. Of neighbours x, y in
// it, the lower rank bound of x and the upper one of y are sums over the buckets and differ by at
// most
//     G = 1 + g,      g = sum of (w + E - 1).
// By (3), g <= 2*eps*n - 1 if any bucket is lossy, and g = 0 otherwise. With e = floor(eps*n),
// g <= 2e. For a target t let x be the last sample whose upper bound is <= t + e (the exact
// minimum, kept apart, has rank 1). Its successor's upper bound is >= t + e + 1, so x's lower bound
// is
// >= t + e + 1 - G >= t - e; and if x is the last one, it is the maximum, of rank n. So for every
// target an element exists whose rank is proven to lie within e of it.
#ifndef TIDEMARK_SUMMARIES_QUANTILE_RULE_H_
#define TIDEMARK_SUMMARIES_QUANTILE_RULE_H_

#include <cstdint>

namespace tidemark {

/// No summary takes in more values than this, so that ranks and their sums fit 64 bits.
inline constexpr std::uint64_t kMaxSummaryCount = (std::uint64_t{1} << 63) - 1;

/// (w, m, E) of the comment above.
struct BucketShape {
  std::uint64_t weight = 1;
  std::uint64_t samples = 0;
  std::uint64_t slack = 0;

  constexpr std::uint64_t count() const { return weight * samples; }
  constexpr bool lossless() const { return weight == 1 && slack == 0; }
  friend constexpr bool operator==(const BucketShape&, const BucketShape&) = default;
};

/// How two buckets of equal count become one: take every stride-th sample of each, write each
/// `repeat` times, merge, and keep every `keep`-th of the result.
struct CombinePlan {
  std::uint64_t stride_a = 1, stride_b = 1;
  std::uint64_t repeat_a = 1, repeat_b = 1;
  std::uint64_t keep = 1;
  BucketShape result;
};

class QuantileRule {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  explicit QuantileRule(double epsilon);

  double epsilon() const { return epsilon_; }
  /// m0: windows of up to so many values are kept whole.
  std::uint64_t base_samples() const { return base_samples_; }

  /// The shape in which a sorted window is kept. REQUIRES: `size` is a power of two.
  BucketShape ForWindow(std::uint64_t size) const;

  /// REQUIRES: a.count() == b.count() <= 2^61, both hold (3).
  CombinePlan Combine(const BucketShape& a, const BucketShape& b) const;

  /// (3), and that weight and samples are powers of two.
  bool Holds(const BucketShape& shape) const;

 private:
  /// (4): whether a bucket of `count` values may have gap `gap` with `samples` samples.
  bool MayPrune(std::uint64_t gap, std::uint64_t samples, std::uint64_t count) const;
  bool WithinBudget(std::uint64_t gap, std::uint64_t count) const;

  double epsilon_;
  std::uint64_t base_samples_;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_QUANTILE_RULE_H_
