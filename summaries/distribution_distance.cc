#include "summaries/distribution_distance.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "summaries/fixed_sum.h"

namespace tidemark {
namespace {

/// count_a / n_a - count_b / n_b, times n_a * n_b: below 2^126.
Int128 Difference(std::uint64_t count_a, std::uint64_t n_a, std::uint64_t count_b,
                  std::uint64_t n_b) {
  return static_cast<Int128>(static_cast<Uint128>(count_a) * n_b) -
         static_cast<Int128>(static_cast<Uint128>(count_b) * n_a);
}

RealBounds ShareOf(const CountBounds& count, std::uint64_t n) {
  return {DivDown(CountDown(count.low), CountUp(n)),
          std::min(1.0, DivUp(CountUp(count.high), CountDown(n)))};
}

}  // namespace

template <class Key>
DistributionDistance<Key> DistanceOf(const CdfSteps<Key>& a, const CdfSteps<Key>& b) {
  if (a.n == 0 || b.n == 0) {
    throw std::invalid_argument("the distance of distributions was asked, but one has no values");
  }
  // Below the first step of both nothing is known but that some may be unseen.
  Int128 low = 0;
  Int128 high = std::max(Difference(a.below, a.n, 0, b.n), Difference(b.below, b.n, 0, a.n));
  Int128 low_high = -1;  // the greatest possible difference at the key that is kept
  DistributionDistance<Key> distance;
  std::size_t at_a = 0, at_b = 0;  // steps at or below the key
  CountBounds count_a{0, a.below}, count_b{0, b.below};
  const auto keep = [&](Key key) {
    distance.at = key;
    distance.share_a = ShareOf(count_a, a.n);
    distance.share_b = ShareOf(count_b, b.n);
  };
  const auto begins_at_0 = [](const CdfSteps<Key>& steps) {
    return !steps.keys.empty() && steps.keys.front() == 0;
  };
  if (!begins_at_0(a) && !begins_at_0(b)) {
    low_high = high;
    keep(0);
  }
  while (at_a < a.keys.size() || at_b < b.keys.size()) {
    const bool from_b =
        at_a == a.keys.size() || (at_b < b.keys.size() && b.keys[at_b] < a.keys[at_a]);
    const Key key = from_b ? b.keys[at_b] : a.keys[at_a];
    if (at_a < a.keys.size() && a.keys[at_a] == key) {
      count_a = {a.low[at_a], a.high[at_a]};
      ++at_a;
    }
    if (at_b < b.keys.size() && b.keys[at_b] == key) {
      count_b = {b.low[at_b], b.high[at_b]};
      ++at_b;
    }
    const Int128 surely = std::max(Difference(count_a.low, a.n, count_b.high, b.n),
                                   Difference(count_b.low, b.n, count_a.high, a.n));
    const Int128 possibly = std::max(Difference(count_a.high, a.n, count_b.low, b.n),
                                     Difference(count_b.high, b.n, count_a.low, a.n));
    high = std::max(high, possibly);
    if (surely > low || (low == 0 && surely <= 0 && possibly > low_high)) {
      low = std::max(low, surely);
      low_high = possibly;
      keep(key);
    }
  }
  const auto scale = static_cast<Int128>(static_cast<Uint128>(a.n) * b.n);
  distance.low = DivDown(LowerDouble(low, 0), UpperDouble(scale, 0));
  distance.high = std::min(1.0, DivUp(UpperDouble(high, 0), LowerDouble(scale, 0)));
  return distance;
}

double SignificantDistance(double alpha, std::uint64_t n_a, std::uint64_t n_b) {
  if (!(alpha > 0 && alpha < 1) || n_a == 0 || n_b == 0) {
    throw std::invalid_argument("a significant distance was asked for alpha " +
                                std::to_string(alpha) + " and samples of " + std::to_string(n_a) +
                                " and " + std::to_string(n_b) +
                                ", expected alpha in (0, 1) and samples that are not empty");
  }
  // P(sup |F_n - F| > s) <= 2 exp(-2 n s^2) is alpha / 2 for s^2 = ln(4 / alpha) / (2 n). ln(4) -
  // ln(alpha) does not overflow for the least alpha.
  const double log = std::log(4.0) - std::log(alpha);
  return std::min(1.0, std::sqrt(log / (2 * static_cast<double>(n_a))) +
                           std::sqrt(log / (2 * static_cast<double>(n_b))));
}

template DistributionDistance<std::uint32_t> DistanceOf(const CdfSteps<std::uint32_t>&,
                                                        const CdfSteps<std::uint32_t>&);
template DistributionDistance<std::uint64_t> DistanceOf(const CdfSteps<std::uint64_t>&,
                                                        const CdfSteps<std::uint64_t>&);

}  // namespace tidemark
