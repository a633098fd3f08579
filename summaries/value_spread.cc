#include "summaries/value_spread.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "summaries/fixed_sum.h"
#include "summaries/fraction.h"
#include "summaries/key_codec.h"
#include "summaries/quantile_view.h"

namespace tidemark {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RealBounds Difference(const RealBounds& a, const RealBounds& b) {
  return {SubDown(a.low, b.high), SubUp(a.high, b.low)};
}
/// count * value.
RealBounds Times(std::uint64_t count, const RealBounds& value) {
  if (count == 0) return {0, 0};
  return {MulDown(value.low < 0 ? CountUp(count) : CountDown(count), value.low),
          MulUp(value.high < 0 ? CountDown(count) : CountUp(count), value.high)};
}
RealBounds Negative(const RealBounds& a) { return {-a.high, -a.low}; }
/// (t - count) * value, a signed number of them.
RealBounds TimesDifference(std::uint64_t t, std::uint64_t count, const RealBounds& value) {
  return t >= count ? Times(t - count, value) : Negative(Times(count - t, value));
}

void RequireValues(std::uint64_t n) {
  if (n == 0) throw std::invalid_argument("a spread was asked of a stream without values");
}

/// The ranks that are left: (first, second].
std::pair<std::uint64_t, std::uint64_t> RanksLeft(std::uint64_t n, double share) {
  if (!(share >= 0 && share < 0.5)) {
    throw std::invalid_argument("a trimmed mean without a share of " + std::to_string(share) +
                                " at each end was asked, expected a number from 0 and below 0.5");
  }
  RequireValues(n);
  // A share just below 0.5 may round to half of an even n: something is always left.
  const std::uint64_t cut = std::min(FloorFraction(share, n), (n - 1) / 2);
  return {cut, n - cut};
}

/// Of the values of ranks (first, last].
template <class Key>
RealBounds SumOfRanks(const CdfSteps<Key>& steps, std::uint64_t first, std::uint64_t last,
                      const ValueOf<Key>& value_of) {
  RealBounds sum;
  if (first >= last) return sum;
  const auto add = [&](const std::vector<std::uint64_t>& reached, auto term) {
    std::uint64_t done = first;
    auto i = static_cast<std::size_t>(std::upper_bound(reached.begin(), reached.end(), done) -
                                      reached.begin());
    for (; done < last && i < reached.size(); ++i) {
      const std::uint64_t to = std::min(reached[i], last);
      if (to == done) continue;
      term(Times(to - done, value_of(steps.keys[i])));
      done = to;
    }
    return done == last;
  };
  if (first < steps.below) {
    sum.low = -kInfinity;
  } else {
    add(steps.high, [&](const RealBounds& term) { sum.low = AddDown(sum.low, term.low); });
  }
  if (!add(steps.low, [&](const RealBounds& term) { sum.high = AddUp(sum.high, term.high); })) {
    sum.high = kInfinity;  // unseen values may be anything
  }
  return sum;
}

/// Of the `t` least values, from the cut of a key.
template <class Key>
RealBounds SumFromKey(const CorrelatedView<Key>& sums, const CdfSteps<Key>& steps, Key key,
                      std::uint64_t t, const ValueOf<Key>& value_of) {
  const PairSums through = sums.Through(key);
  const RealBounds value = value_of(key);
  const std::uint64_t n = steps.n;
  const auto [fewest, most] = through.count;
  // Linear in C between its bounds: the extremes are at the ends, or (above) at C = t, where it is
  // 0.
  const double least =
      std::min(TimesDifference(t, fewest, value).low, TimesDifference(t, most, value).low);
  const auto above = [&](std::uint64_t count) {
    if (count == t) return 0.0;
    const Key next = t > count ? steps.ValueAt(t).high : steps.ValueAt(std::min(t + 1, n)).low;
    return TimesDifference(t, count, value_of(next)).high;
  };
  double greatest = std::max(above(fewest), above(most));
  if (fewest < t && t < most) greatest = std::max(greatest, 0.0);
  return {AddDown(through.sum.low_value(), least), AddUp(through.sum.high_value(), greatest)};
}

/// Of the `t` least values.
template <class Key>
RealBounds SumOfLeast(const CorrelatedView<Key>& sums, const CdfSteps<Key>& steps, std::uint64_t t,
                      const ValueOf<Key>& value_of) {
  const SumBounds all = sums.All().sum;
  const RealBounds total{all.low_value(), all.high_value()};
  if (t == 0) return {0, 0};
  if (t == steps.n) return total;
  RealBounds sum = Intersection(SumOfRanks(steps, 0, t, value_of),
                                Difference(total, SumOfRanks(steps, t, steps.n, value_of)));
  // The keys that may have t values at or below them, and their neighbours.
  const auto first = std::lower_bound(steps.high.begin(), steps.high.end(), t) - steps.high.begin();
  const auto last = std::lower_bound(steps.low.begin(), steps.low.end(), t) - steps.low.begin();
  const auto begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(first - 1, 0));
  const auto end = std::min(static_cast<std::size_t>(last) + 1, steps.keys.size());
  for (std::size_t i = begin; i < end; ++i) {
    sum = Intersection(sum, SumFromKey(sums, steps, steps.keys[i], t, value_of));
  }
  return sum;
}

TrimmedMean MeanOf(const RealBounds& sum, std::uint64_t count) {
  const double fewer = CountDown(count), more = CountUp(count);
  return {
      count,
      {DivDown(sum.low, sum.low < 0 ? fewer : more), DivUp(sum.high, sum.high < 0 ? more : fewer)}};
}

}  // namespace

RealBounds Intersection(const RealBounds& a, const RealBounds& b) {
  const RealBounds both{std::max(a.low, b.low), std::min(a.high, b.high)};
  return both.low <= both.high ? both : a;
}

RealBounds Float32Value(std::uint32_t key) {
  constexpr float kMost = std::numeric_limits<float>::infinity();
  const double value = DecodeFloat32(std::clamp(key, EncodeKey(-kMost), EncodeKey(kMost)));
  return {value, value};
}
RealBounds Uint32Value(std::uint32_t key) {
  const double value = key;
  return {value, value};
}
RealBounds Float64Value(std::uint64_t key) {
  const double value = DecodeFloat64(std::clamp(key, EncodeKey(-kInfinity), EncodeKey(kInfinity)));
  return {value, value};
}
RealBounds Int64Value(std::uint64_t key) {
  return {LowerDouble(DecodeInt64(key), 0), UpperDouble(DecodeInt64(key), 0)};
}
RealBounds Uint64Value(std::uint64_t key) {
  return {LowerDouble(Int128{key}, 0), UpperDouble(Int128{key}, 0)};
}

template <class Key>
QuantileRange<Key> RangeBetweenQuantiles(const CdfSteps<Key>& steps, double low_phi,
                                         double high_phi, const ValueOf<Key>& value_of) {
  if (!(low_phi >= 0 && low_phi <= high_phi && high_phi <= 1)) {
    throw std::invalid_argument("a range from quantile " + std::to_string(low_phi) + " to " +
                                std::to_string(high_phi) +
                                " was asked, expected numbers from 0 to 1 that ascend");
  }
  RequireValues(steps.n);
  QuantileRange<Key> range;
  range.low_quantile = steps.ValueAt(TargetRank(low_phi, steps.n));
  range.high_quantile = steps.ValueAt(TargetRank(high_phi, steps.n));
  const auto values = [&](const KeyBounds<Key>& keys) {
    return RealBounds{value_of(keys.low).low, value_of(keys.high).high};
  };
  range.range = Difference(values(range.high_quantile), values(range.low_quantile));
  range.range.low = std::max(range.range.low, 0.0);
  range.range.high += 0.0;  // not -0
  return range;
}

template <class Key>
TrimmedMean TrimmedMeanOf(const CdfSteps<Key>& steps, double share, const ValueOf<Key>& value_of) {
  const auto [first, last] = RanksLeft(steps.n, share);
  return MeanOf(SumOfRanks(steps, first, last, value_of), last - first);
}

template <class Key>
TrimmedMean TrimmedMeanOf(const CorrelatedView<Key>& sums_of_x, double share,
                          const ValueOf<Key>& value_of) {
  const auto [first, last] = RanksLeft(sums_of_x.n(), share);
  const CdfSteps<Key> steps = sums_of_x.Steps();
  const RealBounds sum = Intersection(SumOfRanks(steps, first, last, value_of),
                                      Difference(SumOfLeast(sums_of_x, steps, last, value_of),
                                                 SumOfLeast(sums_of_x, steps, first, value_of)));
  TrimmedMean mean = MeanOf(sum, last - first);
  // No mean is outside of the values, not even where their sum is beyond all doubles.
  const RealBounds values{value_of(steps.ValueAt(1).low).low,
                          value_of(steps.ValueAt(steps.n).high).high};
  mean.mean = Intersection(values, mean.mean);
  return mean;
}

template <class Key>
CountBounds DistinctValues(const CdfSteps<Key>& steps) {
  CountBounds distinct{steps.elements, steps.keys.size()};
  if (steps.n > 0) distinct.low = std::max<std::uint64_t>(distinct.low, 1);
  const auto add = [&](std::uint64_t keys, std::uint64_t values) {
    distinct.high = std::min(steps.n, distinct.high + std::min(keys, values));
  };
  if (!steps.keys.empty()) add(steps.keys.front(), steps.below);
  for (std::size_t i = 0; i < steps.keys.size(); ++i) {
    const Key next =
        i + 1 < steps.keys.size() ? steps.keys[i + 1] : std::numeric_limits<Key>::max();
    const bool past = i + 1 == steps.keys.size();
    const std::uint64_t between = std::uint64_t{next} - steps.keys[i] - (past ? 0 : 1);
    add(between, steps.high[i] - steps.low[i]);
  }
  if (steps.keys.empty()) distinct.high = steps.n;
  return distinct;
}

#define TIDEMARK_INSTANTIATE(Key)                                                              \
  template QuantileRange<Key> RangeBetweenQuantiles(const CdfSteps<Key>&, double, double,      \
                                                    const ValueOf<Key>&);                      \
  template TrimmedMean TrimmedMeanOf(const CdfSteps<Key>&, double, const ValueOf<Key>&);       \
  template TrimmedMean TrimmedMeanOf(const CorrelatedView<Key>&, double, const ValueOf<Key>&); \
  template CountBounds DistinctValues(const CdfSteps<Key>&);
TIDEMARK_INSTANTIATE(std::uint32_t)
TIDEMARK_INSTANTIATE(std::uint64_t)
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark
