// What is derived from distributions (steps, distances, ranges between quantiles, trimmed means,
// numbers of different values) against an exact oracle: the truth lies within every interval, exact
// while nothing is lost, and the intervals are as narrow as promised.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "summaries/cdf_steps.h"
#include "summaries/correlated_view.h"
#include "summaries/distribution_distance.h"
#include "summaries/key_codec.h"
#include "summaries/quantile_view.h"
#include "summaries/value_spread.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/shrink.h"
#include "tests/summaries/wide_sum.h"

namespace tidemark {
namespace {

using testing::Oracle;
using testing::WideSum;

/// A stream as far as it was summarised: windows, an open window, values not seen yet.
template <class Key>
struct Fed {
  Fed(std::span<const Key> keys, std::uint64_t parts, std::size_t window, std::size_t not_seen)
      : summary(1.0 / static_cast<double>(parts)) {
    unseen = std::min(not_seen, keys.size());
    const auto seen = keys.first(keys.size() - unseen);
    testing::ForEachWindow(
        seen, [&] { return window; },
        [&](std::span<const Key> sorted) {
          if (sorted.size() < window) {
            open.assign(sorted.begin(), sorted.end());
            return;
          }
          summary.AddWindow(sorted);
        });
  }
  QuantileView<Key> View() const { return QuantileView<Key>(summary.Snapshot(), open, unseen); }

  QuantileSummary<Key> summary;
  std::vector<Key> open;
  std::size_t unseen = 0;
};

template <class Key>
std::string Print(const std::vector<Key>& keys) {
  std::ostringstream out;
  for (std::size_t i = 0; i < std::min<std::size_t>(keys.size(), 60); ++i) out << ' ' << keys[i];
  if (keys.size() > 60) out << " … " << keys.size() << " keys";
  return out.str();
}

template <class Key>
std::vector<Key> Draw(std::mt19937_64& random) {
  const auto distribution = testing::kDistributions[random() % std::size(testing::kDistributions)];
  auto keys = testing::Generate<Key>(distribution, 1 + random() % (random() % 4 == 0 ? 3000 : 200),
                                     random());
  if (random() % 3 == 0) {
    for (Key& key : keys) key = static_cast<Key>(key % 50 + 1000 * (random() % 2));
  }
  return keys;
}

constexpr std::uint64_t kParts[] = {2, 10, 50, 400};

template <class Key>
class Derived : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Derived, Keys);

template <class Key>
std::string StepsViolation(const std::vector<Key>& keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t parts = kParts[random() % std::size(kParts)];
  const std::size_t window = std::size_t{1} << random() % 8;
  const Fed<Key> fed(keys, parts, window, random() % 3 == 0 ? random() % 20 : 0);
  const QuantileView<Key> view = fed.View();
  const CdfSteps<Key> steps = view.Steps();
  const Oracle<Key> truth(keys);
  if (steps.n != keys.size() || steps.below != fed.unseen) return "n";
  if (!std::is_sorted(steps.low.begin(), steps.low.end()) ||
      !std::is_sorted(steps.high.begin(), steps.high.end())) {
    return "bounds do not ascend";
  }
  std::vector<Key> probes{0, 1, std::numeric_limits<Key>::max()};
  for (const Key key : truth.sorted()) {
    for (const int by : {-1, 0, 1}) probes.push_back(static_cast<Key>(key + static_cast<Key>(by)));
  }
  std::sort(probes.begin(), probes.end());
  const auto all = steps.AtMost(std::span<const Key>(probes));
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Key v = probes[i];
    const CountBounds count = steps.AtMost(v);
    const RankBounds bounds = view.Bounds(v);
    if (count.low != bounds.at_most_low || count.high != bounds.at_most_high ||
        all[i].low != count.low || all[i].high != count.high) {
      return "the bounds at " + std::to_string(v) + " are not those of the view";
    }
    if (count.low > truth.AtMost(v) || count.high < truth.AtMost(v)) {
      return "the count at " + std::to_string(v) + " is out of its bounds";
    }
  }
  for (std::uint64_t t = 1; t <= truth.n(); t += 1 + truth.n() / 50) {
    const KeyBounds<Key> value = steps.ValueAt(t);
    const Key v = truth.sorted()[t - 1];
    if (value.low > v || value.high < v)
      return "rank " + std::to_string(t) + " is out of its bounds";
    if (view.exact() && value.low != value.high) return "not exact";
  }
  const CountBounds distinct = DistinctValues(steps);
  const std::uint64_t different = std::set<Key>(keys.begin(), keys.end()).size();
  if (distinct.low > different || distinct.high < different) return "different values";
  if (view.exact() && distinct.low != distinct.high) return "different values are not exact";
  return "";
}

TYPED_TEST(Derived, StepsAreTheBoundsOfTheView) {
  using Key = TypeParam;
  const int cases = Cases(400, 50'000);
  for (int i = 0; i < cases; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    std::mt19937_64 random(seed);
    const auto keys = Draw<Key>(random);
    const std::string wrong = StepsViolation(keys, seed);
    if (wrong.empty()) continue;
    int tries = 2000;
    const auto fewer = testing::Shrunk(
        keys, tries, [&](const auto& k) { return !k.empty() && !StepsViolation(k, seed).empty(); });
    FAIL() << "seed " << seed << ": " << wrong << "\nshrunk: " << StepsViolation(fewer, seed)
           << Print(fewer);
  }
}

/// The exact distance, times n_a * n_b.
template <class Key>
Int128 ExactDistance(const Oracle<Key>& a, const Oracle<Key>& b) {
  Int128 most = 0;
  for (const auto* side : {&a, &b}) {
    for (const Key v : side->sorted()) {
      const Int128 difference =
          Int128(a.AtMost(v)) * Int128(b.n()) - Int128(b.AtMost(v)) * Int128(a.n());
      most = std::max(most, difference < 0 ? -difference : difference);
    }
  }
  return most;
}

template <class Key>
std::string DistanceViolation(const std::vector<Key>& keys_a, const std::vector<Key>& keys_b,
                              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t parts_a = kParts[random() % std::size(kParts)];
  const std::uint64_t parts_b = kParts[random() % std::size(kParts)];
  const std::size_t unseen = random() % 4 == 0 ? random() % 20 : 0;
  const Fed<Key> a(keys_a, parts_a, std::size_t{1} << random() % 8, unseen);
  const Fed<Key> b(keys_b, parts_b, std::size_t{1} << random() % 8, 0);
  const QuantileView<Key> view_a = a.View(), view_b = b.View();
  const auto distance = DistanceOf(view_a.Steps(), view_b.Steps());
  const Oracle<Key> truth_a(keys_a), truth_b(keys_b);
  const auto scale = static_cast<double>(truth_a.n()) * static_cast<double>(truth_b.n());
  const auto truth = static_cast<double>(ExactDistance(truth_a, truth_b)) / scale;
  constexpr double kRounding = 1e-15;  // of the truth alone
  if (distance.low > truth + kRounding || distance.high < truth - kRounding) {
    return "the distance " + std::to_string(truth) + " is not in [" + std::to_string(distance.low) +
           ", " + std::to_string(distance.high) + ']';
  }
  if (a.unseen == 0) {
    const double most =
        2 / static_cast<double>(parts_a) + 2 / static_cast<double>(parts_b) + kRounding;
    if (distance.high - distance.low > most) return "the distance is too wide";
  }
  if (view_a.exact() && view_b.exact() && distance.high - distance.low > kRounding)
    return "not exact";
  const double share_a =
      static_cast<double>(truth_a.AtMost(distance.at)) / static_cast<double>(truth_a.n());
  const double share_b =
      static_cast<double>(truth_b.AtMost(distance.at)) / static_cast<double>(truth_b.n());
  if (share_a < distance.share_a.low - kRounding || share_a > distance.share_a.high + kRounding ||
      share_b < distance.share_b.low - kRounding || share_b > distance.share_b.high + kRounding) {
    return "a share is out of its bounds";
  }
  if (std::abs(share_a - share_b) < distance.low - kRounding) return "not so far apart there";
  for (const double threshold : {0.0, 0.01, 0.1, 0.5, truth}) {
    const Moved moved = HasMoved(distance, threshold);
    if ((moved == Moved::kYes && truth <= threshold - kRounding) ||
        (moved == Moved::kNo && truth > threshold + kRounding)) {
      return "a wrong verdict";
    }
  }
  return "";
}

TYPED_TEST(Derived, DistancesHoldTheTruth) {
  using Key = TypeParam;
  const int cases = Cases(600, 50'000);
  for (int i = 0; i < cases; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    std::mt19937_64 random(seed);
    const auto a = Draw<Key>(random);
    auto b = random() % 2 == 0 ? Draw<Key>(random) : a;  // now and then nearly the same
    for (Key& key : b) key = static_cast<Key>(key + (random() % 8 == 0 ? random() % 9 : 0));
    const std::string wrong = DistanceViolation(a, b, seed);
    if (wrong.empty()) continue;
    int tries = 2000;
    const auto fewer = testing::Shrunk(a, tries, [&](const auto& keys) {
      return !keys.empty() && !DistanceViolation(keys, b, seed).empty();
    });
    const auto others = testing::Shrunk(b, tries, [&](const auto& keys) {
      return !keys.empty() && !DistanceViolation(fewer, keys, seed).empty();
    });
    FAIL() << "seed " << seed << ": " << wrong
           << "\nshrunk: " << DistanceViolation(fewer, others, seed) << Print(fewer) << " and"
           << Print(others);
  }
}

TYPED_TEST(Derived, DistanceOfKnownDistributions) {
  using Key = TypeParam;
  const std::vector<Key> low{1, 2, 3, 4}, high{11, 12, 13, 14}, half{1, 2, 13, 14};
  const auto steps = [](const std::vector<Key>& keys) {
    return QuantileView<Key>(QuantileSummary<Key>(0.01).Snapshot(), keys).Steps();
  };
  EXPECT_EQ(DistanceOf(steps(low), steps(low)).high, 0);
  const auto apart = DistanceOf(steps(low), steps(high));
  EXPECT_EQ(apart.low, 1);
  EXPECT_EQ(apart.high, 1);
  EXPECT_EQ(apart.at, Key{4});
  const auto moved = DistanceOf(steps(low), steps(half));
  EXPECT_EQ(moved.low, 0.5);
  EXPECT_EQ(moved.at, Key{4});
  EXPECT_EQ(moved.share_a.low, 1);
  EXPECT_EQ(moved.share_b.high, 0.5);
  EXPECT_EQ(HasMoved(moved, 0.4), Moved::kYes);
  EXPECT_EQ(HasMoved(moved, 0.5), Moved::kNo);
  EXPECT_EQ(HasMoved(DistributionDistance<Key>{0.1, 0.3, 0, {}, {}}, 0.2), Moved::kCannotTell);
  EXPECT_THROW(DistanceOf(steps(low), steps({})), std::invalid_argument);
}

TEST(SignificantDistance, BoundsWhatSamplesOfOneDistributionShow) {
  EXPECT_THROW(SignificantDistance(0, 1, 1), std::invalid_argument);
  EXPECT_THROW(SignificantDistance(1, 1, 1), std::invalid_argument);
  EXPECT_THROW(SignificantDistance(0.05, 0, 1), std::invalid_argument);
  EXPECT_EQ(SignificantDistance(0.05, 1, 1), 1);
  // By hand: 2 * sqrt(ln(4 / 0.01) / (2 * 10^4)).
  EXPECT_NEAR(SignificantDistance(0.01, 10'000, 10'000), 2 * std::sqrt(std::log(400) / 20'000),
              1e-12);
  // Of 400 pairs of samples hardly any is further apart.
  int beyond = 0;
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::uint32_t> a(200), b(300);
    for (auto& key : a) key = static_cast<std::uint32_t>(random());
    for (auto& key : b) key = static_cast<std::uint32_t>(random());
    const Int128 distance = ExactDistance(Oracle<std::uint32_t>(a), Oracle<std::uint32_t>(b));
    beyond += static_cast<double>(distance) / (200.0 * 300.0) > SignificantDistance(0.05, 200, 300);
  }
  EXPECT_LE(beyond, 20);
}

template <class Key>
ValueOf<Key> FloatValue() {
  if constexpr (sizeof(Key) == 4) {
    return Float32Value;
  } else {
    return Float64Value;
  }
}
template <class Key>
double Decode(Key key) {
  if constexpr (sizeof(Key) == 4) {
    return DecodeFloat32(key);
  } else {
    return DecodeFloat64(key);
  }
}

template <class Key>
Key OneAndAHalf() {
  if constexpr (sizeof(Key) == 4) {
    return EncodeKey(1.5f);
  } else {
    return EncodeKey(1.5);
  }
}

/// The exact sum of the values of ranks (first, last]. REQUIRES: they are finite.
template <class Key>
WideSum ExactSum(const Oracle<Key>& truth, std::uint64_t first, std::uint64_t last) {
  WideSum sum;
  for (std::uint64_t r = first; r < last; ++r) sum.Add(Decode(truth.sorted()[r]));
  return sum;
}

template <class Key>
std::string SpreadViolation(const std::vector<Key>& keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t parts = kParts[random() % std::size(kParts)];
  const std::size_t window = std::size_t{1} << random() % 8;
  const Fed<Key> fed(keys, parts, window, random() % 4 == 0 ? random() % 20 : 0);
  const QuantileView<Key> view = fed.View();
  const CdfSteps<Key> steps = view.Steps();
  const Oracle<Key> truth(keys);
  const std::uint64_t n = truth.n();

  const double low_phi = static_cast<double>(random() % 100) / 100;
  const double high_phi = low_phi + (1 - low_phi) * static_cast<double>(random() % 5) / 4;
  const auto range = RangeBetweenQuantiles(steps, low_phi, high_phi, FloatValue<Key>());
  WideSum exact_range = WideSum::Of(Decode(truth.sorted()[TargetRank(high_phi, n) - 1]));
  exact_range -= WideSum::Of(Decode(truth.sorted()[TargetRank(low_phi, n) - 1]));
  const auto holds = [](const RealBounds& bounds, const WideSum& sum, std::int64_t count) {
    return (std::isinf(bounds.low) || WideSum::Of(bounds.low).Times(count) <= sum) &&
           (std::isinf(bounds.high) || sum <= WideSum::Of(bounds.high).Times(count)) &&
           bounds.low < std::numeric_limits<double>::infinity() &&
           bounds.high > -std::numeric_limits<double>::infinity();
  };
  if (!holds(range.range, exact_range, 1)) return "the range is out of its bounds";

  const double share = static_cast<double>(random() % 50) / 100;
  const auto mean = TrimmedMeanOf(steps, share, FloatValue<Key>());
  const std::uint64_t first = (n - mean.count) / 2;
  if (n - mean.count != 2 * first ||
      static_cast<double>(first) > share * static_cast<double>(n) + 1e-9 ||
      static_cast<double>(first + 1) < share * static_cast<double>(n)) {
    return "the wrong number of values is left";
  }
  const WideSum sum = ExactSum(truth, first, n - first);
  const auto count = static_cast<std::int64_t>(mean.count);
  if (!holds(mean.mean, sum, count)) return "the trimmed mean is out of its bounds";

  // The same from sums of x over itself, all values seen.
  CorrelatedSums<Key> sums(1.0 / static_cast<double>(parts), SumType::kFloat64);
  std::vector<Key> open;
  std::vector<double> open_values;
  testing::ForEachWindow(
      std::span<const Key>(keys), [&] { return window; },
      [&](std::span<const Key> sorted) {
        std::vector<double> values;
        for (const Key key : sorted) values.push_back(Decode(key));
        if (sorted.size() == window) {
          sums.AddWindow(sorted, std::span<const double>(values));
        } else {
          open.assign(sorted.begin(), sorted.end());
          open_values = values;
        }
      });
  const CorrelatedView<Key> over_itself(sums.Snapshot(),
                                        {open, std::span<const double>(open_values)});
  const auto tighter = TrimmedMeanOf(over_itself, share, FloatValue<Key>());
  if (tighter.count != mean.count) return "different numbers of values are left";
  if (!holds(tighter.mean, sum, count)) return "the trimmed mean from sums is out of its bounds";
  double weight = 0;  // the mean of |x|
  for (const Key key : keys) weight += std::abs(Decode(key)) / static_cast<double>(n);
  const bool fits = std::isfinite(2 * weight * static_cast<double>(n));  // their sum, as a double
  if (fits && share == 0 && tighter.mean.high - tighter.mean.low > 1e-15 * weight + 1e-320) {
    return "the mean is not exact";
  }
  return "";
}

TYPED_TEST(Derived, SpreadsHoldTheTruth) {
  using Key = TypeParam;
  const int cases = Cases(400, 50'000);
  for (int i = 0; i < cases; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    std::mt19937_64 random(seed);
    auto keys = Draw<Key>(random);
    // Finite numbers of both signs, wide apart or near one another.
    for (Key& key : keys) {
      if (!std::isfinite(Decode(key))) key = OneAndAHalf<Key>();
    }
    const std::string wrong = SpreadViolation(keys, seed);
    if (wrong.empty()) continue;
    int tries = 2000;
    const auto fewer = testing::Shrunk(keys, tries, [&](const auto& k) {
      return !k.empty() && !SpreadViolation(k, seed).empty();
    });
    FAIL() << "seed " << seed << ": " << wrong << "\nshrunk: " << SpreadViolation(fewer, seed)
           << Print(fewer);
  }
}

}  // namespace
}  // namespace tidemark
