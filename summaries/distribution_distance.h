// How far apart two distributions are, and whether one has moved: streams, windows of one stream,
// or a stream and what it was.
//
// The distance D is the largest difference, over all v, of the shares of values at or below v
// (Kolmogorov and Smirnov's statistic). With bounds a(v), A(v) and b(v), B(v) of the two shares:
//     low  = the largest of 0, a(v) - B(v) and b(v) - A(v),
//     high = the largest of A(v) - b(v) and B(v) - a(v).
// Guarantee: low <= D <= high. At each v the difference is at least and at most that; both are step
// functions of v, so that the passes over all steps miss no v.
// No better bounds follow from a, A, b and B: the high one is reached at one v if the two streams
// are as far apart there as they may be; and with d = low, max(a, b - d) and max(b, a - d) are
// distributions within the bounds (they ascend, and b - d <= A, a - d <= B) that are nowhere
// further apart than d. While both summaries are within epsilon, high - low <= 2 * (epsilon_a +
// epsilon_b).
//
// Windows by time, of which it is not known how many values they hold: the shares of the true
// windows lie within the same bounds (cdf_steps.h), and so does D.
//
// Counts are compared exactly (products of 128 bits); low and high are rounded outwards.
//
// Not guaranteed: anything about why values differ. SignificantDistance() says how far apart two
// samples of one distribution may well be.
//
// Cost: one pass over the steps of both.
#ifndef TIDEMARK_SUMMARIES_DISTRIBUTION_DISTANCE_H_
#define TIDEMARK_SUMMARIES_DISTRIBUTION_DISTANCE_H_

#include <cstdint>

#include "summaries/cdf_steps.h"
#include "summaries/outward_rounding.h"

namespace tidemark {

template <class Key>
struct DistributionDistance {
  double low = 0, high = 0;  ///< D lies between them
  /// A key at which the shares differ by `low` at least (for low = 0: where they may differ most).
  Key at = 0;
  /// The shares of values at or below `at`.
  RealBounds share_a, share_b;
};

/// Errors: throws std::invalid_argument if one of the two has no values.
template <class Key>
DistributionDistance<Key> DistanceOf(const CdfSteps<Key>& a, const CdfSteps<Key>& b);

enum class Moved { kNo, kYes, kCannotTell };

/// Whether D > threshold.
template <class Key>
Moved HasMoved(const DistributionDistance<Key>& distance, double threshold) {
  if (distance.low > threshold) return Moved::kYes;
  return distance.high <= threshold ? Moved::kNo : Moved::kCannotTell;
}

/// Two independent samples, of n_a and n_b draws of one distribution, whatever it is, differ by
/// more than this with a probability of at most `alpha`: for all sizes, by the inequality of
/// Dvoretzky, Kiefer, Wolfowitz with Massart's constant for each (alpha / 2 each) and their sum.
/// For large samples the limit of Smirnov's distribution is smaller (by a factor of about 1.5 at 1
/// %), but no bound for small ones. At most 1.
///
/// Values of a stream are seldom independent draws: without that it says nothing.
/// Errors: throws std::invalid_argument unless 0 < alpha < 1 and both numbers are above 0.
double SignificantDistance(double alpha, std::uint64_t n_a, std::uint64_t n_b);

extern template DistributionDistance<std::uint32_t> DistanceOf(const CdfSteps<std::uint32_t>&,
                                                               const CdfSteps<std::uint32_t>&);
extern template DistributionDistance<std::uint64_t> DistanceOf(const CdfSteps<std::uint64_t>&,
                                                               const CdfSteps<std::uint64_t>&);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_DISTRIBUTION_DISTANCE_H_
