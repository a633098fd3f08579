// Correlated sums against an exact oracle: every interval holds the truth, none is wider than
// promised, whatever x and y are, in whatever windows they come, and after merges in random trees.
// A case that fails is shrunk and printed with its seed. Serialized form: correlated_bytes_test.cc.
#include "summaries/correlated_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "summaries/correlated_view.h"
#include "summaries/key_codec.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/pair_cases.h"
#include "tests/summaries/pair_trial.h"

namespace tidemark {
namespace {

using testing::PairOracle;
using testing::Pairs;
using testing::Trial;
using testing::WideSum;
using testing::Window;

template <class K, class V>
struct Types {
  using Key = K;
  using Y = V;
};

/// What is wrong with the answers about a trial; empty if nothing is.
template <class Key, class Y>
class Checker {
 public:
  Checker(const Trial<Key, Y>& trial, const CorrelatedSums<Key>& sums)
      : trial_(trial),
        truth_(trial.All()),
        open_(trial.open),
        view_(sums.Snapshot(), {open_.x, std::span<const Y>(open_.y)}),
        steps_(view_.Steps()),
        error_(truth_.n() / trial.parts) {
    // What doubles may lose beyond the promise: correlated_sums.h.
    rounding_ = WideSum::OfUnits(std::is_floating_point_v<Y> ? Int128(truth_.n()) + 32 : 0,
                                 std::is_floating_point_v<Y> ? view_.scale() : 0);
  }

  std::string Run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    if (view_.n() != truth_.n()) return "n is " + std::to_string(view_.n());
    Hold(view_.All(), truth_.all(), "all");
    if (view_.All().count.low != view_.All().count.high) Fail("the count of all is not exact");
    std::vector<Key> probes = Probes(random);
    for (const Key v : probes) CheckThrough(v);
    std::shuffle(probes.begin(), probes.end(), random);
    for (std::size_t i = 0; i + 1 < probes.size(); i += 2) {
      CheckBetween(std::min(probes[i], probes[i + 1]), std::max(probes[i], probes[i + 1]));
    }
    if (truth_.n() == 0) return wrong_;
    std::vector<double> phis{0, 1e-9, 0.25, 0.5, 0.999, 1};
    for (int i = 0; i < 6; ++i) phis.push_back(static_cast<double>(random() % 1001) / 1000);
    for (const double phi : phis) CheckQuantile(phi);
    for (std::size_t i = 0; i + 1 < phis.size(); ++i) {
      CheckRange(std::min(phis[i], phis[i + 1]), std::max(phis[i], phis[i + 1]));
    }
    return wrong_;
  }

 private:
  using Sums = typename PairOracle<Key, Y>::Sums;

  void Fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  std::vector<Key> Probes(std::mt19937_64& random) {
    std::vector<Key> probes{0, 1, static_cast<Key>(-1)};
    const auto& distinct = truth_.distinct();
    for (std::size_t i = 0; i < 60 && !distinct.empty(); ++i) {
      const Key key = distinct.size() <= 20 ? distinct[i % distinct.size()]
                                            : distinct[random() % distinct.size()];
      probes.push_back(key);
      if (key > 0) probes.push_back(static_cast<Key>(key - 1));
      if (key < static_cast<Key>(-1)) probes.push_back(static_cast<Key>(key + 1));
    }
    for (std::size_t i = 0; i < steps_.keys.size(); ++i) {
      if (probes.size() < 300) probes.push_back(steps_.keys[i]);
    }
    return probes;
  }

  void Hold(const PairSums& sums, const Sums& truth, const std::string& what) {
    const WideSum sum = truth.sum();
    if (sums.count.low > truth.count || truth.count > sums.count.high) {
      Fail(what + ": the count " + std::to_string(truth.count) + " is not in [" +
           std::to_string(sums.count.low) + ", " + std::to_string(sums.count.high) + ']');
    }
    if (!(WideSum::OfUnits(sums.sum.low, sums.sum.scale) <= sum) ||
        !(sum <= WideSum::OfUnits(sums.sum.high, sums.sum.scale))) {
      Fail(what + ": the sum is out of its bounds");
    }
    const double low = sums.sum.low_value(), high = sums.sum.high_value();
    if ((std::isfinite(low) && !(WideSum::Of(low) <= sum)) ||
        (std::isfinite(high) && !(sum <= WideSum::Of(high)))) {
      Fail(what + ": the sum is out of its bounds as doubles");
    }
    if (!sums.average) {
      if (sums.count.low > 0) Fail(what + ": there is no average");
      return;
    }
    // average.low <= sum / count, without a division.
    const auto count = static_cast<std::int64_t>(truth.count);
    if (!(WideSum::Of(sums.average->low).Times(count) <= sum) ||
        !(sum <= WideSum::Of(sums.average->high).Times(count))) {
      Fail(what + ": the average is out of its bounds");
    }
  }

  /// Whether a sum's bounds are at most times * 2 * epsilon * Y apart.
  bool WithinPromise(const SumBounds& sum, std::int64_t times) {
    const WideSum width = WideSum::OfUnits(sum.high - sum.low, sum.scale);
    return width.Times(static_cast<std::int64_t>(trial_.parts)) <=
           truth_.all().weight().Times(2 * times) +
               rounding_.Times(2 * times * static_cast<std::int64_t>(trial_.parts));
  }

  void CheckThrough(Key v) {
    const std::string what = "through " + std::to_string(v);
    const PairSums sums = view_.Through(v);
    const Sums& truth = truth_.AtMost(v);
    Hold(sums, truth, what);
    if (sums.count.high - sums.count.low > 2 * error_) Fail(what + ": the count is too wide");
    if (!WithinPromise(sums.sum, 1)) Fail(what + ": the sum is too wide");
    if (error_ == 0 && sums.count.low != sums.count.high) Fail(what + ": not exact");
    const MassBounds mass = view_.AtMost(v);
    if (!(WideSum::OfUnits(static_cast<Int128>(mass.low.positive), view_.scale()) <=
          truth.positive) ||
        !(truth.negative <=
          WideSum::OfUnits(static_cast<Int128>(mass.high.negative), view_.scale()))) {
      Fail(what + ": a part of the sum is out of its bounds");
    }
    const CountBounds step = steps_.AtMost(v);
    if (step.low != sums.count.low || step.high != sums.count.high)
      Fail(what + ": the step differs");
    const RankBounds bounds = view_.Bounds(v);
    if (bounds.less_low > truth_.Less(v).count || bounds.less_high < truth_.Less(v).count ||
        bounds.at_most_low > truth.count || bounds.at_most_high < truth.count) {
      Fail(what + ": the rank is out of its bounds");
    }
  }

  Sums Difference(const Sums& through, const Sums& below) {
    Sums sums = through;
    sums.count -= below.count;
    sums.positive -= below.positive;
    sums.negative -= below.negative;
    return sums;
  }

  void CheckBetween(Key first, Key last) {
    const PairSums sums = view_.Between(first, last);
    const std::string what = "between " + std::to_string(first) + " and " + std::to_string(last);
    const Sums truth = Difference(truth_.AtMost(last), truth_.Less(first));
    if (truth.count > 0 || sums.count.low > 0) {
      Hold(sums, truth, what);
    } else if (sums.sum.low > 0 || sums.sum.high < 0) {
      Fail(what + ": the sum of nothing is out of its bounds");
    }
    if (sums.count.high - sums.count.low > 4 * error_) Fail(what + ": the count is too wide");
    if (!WithinPromise(sums.sum, 2)) Fail(what + ": the sum is too wide");
  }

  void CheckQuantile(double phi) {
    const std::string what = "quantile " + std::to_string(phi);
    const auto sums = view_.ThroughQuantile(phi);
    const std::uint64_t t = TargetRank(phi, truth_.n());
    const auto& at = sums.at;
    if (!truth_.Contains(at.value)) return Fail(what + ": not an element");
    const std::uint64_t position =
        std::clamp(t, truth_.Less(at.value).count + 1, truth_.AtMost(at.value).count);
    if (at.target != t || at.rank_low > position || at.rank_high < position) {
      Fail(what + ": the rank is out of its bounds");
    }
    if (t > at.rank_low + error_ || at.rank_high > t + error_)
      Fail(what + ": the rank is too wide");
    Hold(sums.through_element, truth_.AtMost(at.value), what + " element");
    if (!WithinPromise(sums.through_element.sum, 1)) Fail(what + ": the sum is too wide");
    const Key quantile = truth_.AtRank(t);
    if (quantile < sums.value_low || quantile > sums.value_high) {
      Fail(what + ": the true quantile is out of its bounds");
    }
    Hold(sums.through_quantile, truth_.AtMost(quantile), what + " true");
    // The promise of correlated_sums.h: the |y| of the pairs that can take a rank near t.
    const std::uint64_t first = t > 2 * error_ ? t - 2 * error_ : 1;
    const std::uint64_t last = std::min(truth_.n(), t + 2 * error_);
    const WideSum near =
        truth_.AtMost(truth_.AtRank(last)).weight() - truth_.Less(truth_.AtRank(first)).weight();
    const auto& sum = sums.through_quantile.sum;
    const auto parts = static_cast<std::int64_t>(trial_.parts);
    if (!(WideSum::OfUnits(sum.high - sum.low, sum.scale).Times(parts) <=
          near.Times(parts) + truth_.all().weight().Times(4) + rounding_.Times(4 * parts))) {
      Fail(what + ": the sum through the true quantile is too wide");
    }
  }

  void CheckRange(double low, double high) {
    const std::string what = "quantiles " + std::to_string(low) + " to " + std::to_string(high);
    const auto range = view_.BetweenQuantiles(low, high);
    const auto from = [&](Key low_value) { return low == 0 ? Sums() : truth_.AtMost(low_value); };
    const Key low_element = view_.ThroughQuantile(low).at.value;
    const Key high_element = view_.ThroughQuantile(high).at.value;
    Hold(range.elements, Difference(truth_.AtMost(high_element), from(low_element)), what);
    const Key a = truth_.AtRank(TargetRank(low, truth_.n()));
    const Key b = truth_.AtRank(TargetRank(high, truth_.n()));
    const Sums truth = Difference(truth_.AtMost(b), from(a));
    if (truth.count > 0) Hold(range.quantiles, truth, what + " true");
  }

  const Trial<Key, Y>& trial_;
  PairOracle<Key, Y> truth_;
  Window<Key, Y> open_;
  CorrelatedView<Key> view_;
  CdfSteps<Key> steps_;
  std::uint64_t error_;
  WideSum rounding_;
  std::string wrong_;
};

template <class Key, class Y>
std::string Violation(const Trial<Key, Y>& trial) {
  const CorrelatedSums<Key> sums = Summarize(trial);
  std::string wrong = Checker<Key, Y>(trial, sums).Run(trial.merge_seed);
  if (!wrong.empty()) return wrong;
  std::set<Key> different;
  for (const auto& windows : trial.streams) {
    for (const auto& window : windows) {
      for (const auto& [x, y] : window) different.insert(x);
    }
  }
  if (!std::is_floating_point_v<Y> && different.size() <= trial.parts && !sums.exact()) {
    return "not exact";
  }
  // Bytes do not depend on the order of pairs with equal x, and come back.
  Trial<Key, Y> other = trial;
  for (auto& windows : other.streams) {
    for (auto& window : windows) std::reverse(window.begin(), window.end());
  }
  const std::string bytes = sums.Serialize();
  if (Summarize(other).Serialize() != bytes) return "the bytes depend on the order within windows";
  if (CorrelatedSums<Key>::Deserialize(bytes).Serialize() != bytes)
    return "the bytes do not return";
  return "";
}

/// The trial with parts taken away as long as something is wrong with it.
template <class Key, class Y>
Trial<Key, Y> Shrunk(Trial<Key, Y> trial) {
  int tries = 3000;
  const auto take = [&](Trial<Key, Y> smaller) {
    if (--tries < 0 || Violation(smaller).empty()) return false;
    trial = std::move(smaller);
    return true;
  };
  const auto without = [](Pairs<Key, Y> pairs, std::size_t begin, std::size_t size) {
    const auto first = pairs.begin() + static_cast<std::ptrdiff_t>(begin);
    pairs.erase(first, first + static_cast<std::ptrdiff_t>(size));
    return pairs;
  };
  for (bool changed = true; changed && tries > 0;) {
    changed = false;
    for (std::size_t s = 0; s < trial.streams.size(); ++s) {
      Trial<Key, Y> smaller = trial;
      smaller.streams.erase(smaller.streams.begin() + static_cast<std::ptrdiff_t>(s));
      changed |= take(smaller);
    }
    for (std::size_t s = 0; s < trial.streams.size(); ++s) {
      for (std::size_t w = 0; w < trial.streams[s].size(); ++w) {
        Trial<Key, Y> smaller = trial;
        auto& windows = smaller.streams[s];
        windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(w));
        changed |= take(smaller);
      }
    }
    const auto thin = [&](auto window_of) {
      for (std::size_t size = std::max<std::size_t>(1, window_of(trial).size() / 2); size > 0;
           size /= 2) {
        for (std::size_t at = 0; at + size <= window_of(trial).size(); at += size) {
          Trial<Key, Y> smaller = trial;
          window_of(smaller) = without(window_of(smaller), at, size);
          changed |= take(smaller);
        }
      }
    };
    thin([](auto& t) -> auto& { return t.open; });
    for (std::size_t s = 0; s < trial.streams.size(); ++s) {
      for (std::size_t w = 0; w < trial.streams[s].size(); ++w) {
        thin([ s, w ](auto& t) -> auto& { return t.streams[s][w]; });
      }
    }
  }
  return trial;
}

template <class Key, class Y>
Trial<Key, Y> RandomTrial(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::uint64_t kParts[] = {2, 5, 10, 20, 50, 100, 1000};
  Trial<Key, Y> trial;
  trial.parts = kParts[random() % std::size(kParts)];
  trial.merge_seed = random();
  const std::uint64_t streams = random() % 3 == 0 ? 1 + random() % 6 : 1;
  const std::size_t most = random() % 8 == 0 ? 3000 : 300;
  for (std::uint64_t s = 0; s < streams; ++s) {
    const auto xs = testing::kDistributions[random() % std::size(testing::kDistributions)];
    const auto ys = testing::kAllYs[random() % std::size(testing::kAllYs)];
    auto pairs = testing::GeneratePairs<Key, Y>(xs, ys, random() % most, random());
    const std::uint64_t change = random() % 6;
    const auto heavy = static_cast<Key>(std::numeric_limits<Key>::max() / 7);
    for (auto& [x, y] : pairs) {
      // Neighbouring keys, as fences are.
      if (change == 0) x = static_cast<Key>(x % 40);
      // A few heavy keys, or pairs of neighbours, among many light ones.
      if (change == 1 && random() % 2 == 0) x = static_cast<Key>(x / heavy * heavy);
      if (change == 2 && random() % 4 != 0) x = static_cast<Key>(x / heavy * heavy + random() % 3);
    }
    trial.streams.emplace_back();
    constexpr std::size_t kWindows[] = {10, 200, 3000};
    const std::size_t window = 1 + random() % kWindows[random() % std::size(kWindows)];
    for (std::size_t at = 0; at < pairs.size(); at += window) {
      const auto begin = pairs.begin() + static_cast<std::ptrdiff_t>(at);
      const auto size = std::min(window, pairs.size() - at);
      trial.streams.back().emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    if (random() % 4 == 0 && trial.streams.back().size() > 1) {
      trial.open = trial.streams.back().back();
      trial.streams.back().pop_back();
    }
  }
  return trial;
}

template <class T>
class Correlated : public ::testing::Test {};
using AllTypes =
    ::testing::Types<Types<std::uint32_t, std::int64_t>, Types<std::uint32_t, std::uint64_t>,
                     Types<std::uint32_t, double>, Types<std::uint64_t, std::int64_t>,
                     Types<std::uint64_t, std::uint64_t>, Types<std::uint64_t, double>>;
TYPED_TEST_SUITE(Correlated, AllTypes);

TYPED_TEST(Correlated, RandomStreamsAndMerges) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  const int cases = Cases(250, 100'000 / 6);
  for (int i = 0; i < cases; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const auto trial = RandomTrial<Key, Y>(seed);
    const std::string wrong = Violation(trial);
    if (wrong.empty()) continue;
    const auto shrunk = Shrunk(trial);
    FAIL() << "seed " << seed << ": " << wrong << "\nshrunk: " << Violation(shrunk) << '\n'
           << shrunk.Print();
  }
}

TYPED_TEST(Correlated, RefuseWrongUse) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  constexpr SumType kType = SumTypeOf<Y>::value;
  EXPECT_THROW(CorrelatedSums<Key>(0, kType), std::invalid_argument);
  EXPECT_THROW(CorrelatedSums<Key>(0.6, kType), std::invalid_argument);
  CorrelatedSums<Key> sums(0.01, kType);
  const std::vector<Key> x{1, 2, 3};
  const std::vector<Y> y{1, 2, 3}, two{1, 2};
  EXPECT_THROW(sums.AddWindow(std::span<const Key>(x), std::span<const Y>(two)),
               std::invalid_argument);
  const auto other = kType == SumType::kInt64 ? SumType::kUint64 : SumType::kInt64;
  EXPECT_THROW(
      CorrelatedSums<Key>(0.01, other).AddWindow(std::span<const Key>(x), std::span<const Y>(y)),
      std::invalid_argument);
  if constexpr (std::is_floating_point_v<Y>) {
    for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      const std::vector<Y> bad_y{1, bad, 3};
      EXPECT_THROW(sums.AddWindow(std::span<const Key>(x), std::span<const Y>(bad_y)),
                   std::invalid_argument);
      EXPECT_THROW(CorrelatedView<Key>(sums.Snapshot(), {x, std::span<const Y>(bad_y)}),
                   std::invalid_argument);
    }
  }
  EXPECT_THROW(sums.Merge(CorrelatedSums<Key>(0.02, kType)), std::invalid_argument);
  EXPECT_THROW(sums.Merge(CorrelatedSums<Key>(0.01, other)), std::invalid_argument);
  EXPECT_EQ(sums.count(), 0u);
  EXPECT_THROW(CorrelatedView<Key>(sums.Snapshot(), {x, std::span<const Y>(two)}),
               std::invalid_argument);
  const CorrelatedView<Key> view(sums.Snapshot(), {x, std::span<const Y>(y)});
  EXPECT_THROW(view.ThroughQuantile(-0.1), std::invalid_argument);
  EXPECT_THROW(view.ThroughQuantile(std::nan("")), std::invalid_argument);
  EXPECT_THROW(view.BetweenQuantiles(0.5, 0.4), std::invalid_argument);
}

TYPED_TEST(Correlated, Empty) {
  using Key = typename TypeParam::Key;
  CorrelatedSums<Key> sums(0.01, SumTypeOf<typename TypeParam::Y>::value);
  sums.AddWindow(std::span<const Key>(), std::span<const typename TypeParam::Y>());
  sums.Merge(sums);
  const CorrelatedView<Key> view(sums.Snapshot());
  EXPECT_EQ(view.n(), 0u);
  EXPECT_TRUE(view.exact() && sums.exact());
  EXPECT_EQ(view.Through(5).count.high, 0u);
  EXPECT_TRUE(view.Through(5).sum.high == 0);
  EXPECT_FALSE(view.All().average.has_value());
  EXPECT_THROW(view.ThroughQuantile(0.5), std::logic_error);
  EXPECT_TRUE(view.Steps().keys.empty());
}

TYPED_TEST(Correlated, AFewPairsByHand) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  CorrelatedSums<Key> sums(0.1, SumTypeOf<Y>::value);
  const std::vector<Key> x{10, 20, 20, 30};
  const std::vector<Y> y{1, 2, 3, 4};
  sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
  const std::vector<Key> open_x{5, 20};
  const std::vector<Y> open_y{100, 7};
  const CorrelatedView<Key> view(sums.Snapshot(), {open_x, std::span<const Y>(open_y)});
  const auto expect = [](const PairSums& got, std::uint64_t count, double sum) {
    EXPECT_EQ(got.count.low, count);
    EXPECT_EQ(got.count.high, count);
    EXPECT_EQ(got.sum.low_value(), sum);
    EXPECT_EQ(got.sum.high_value(), sum);
    ASSERT_TRUE(got.average.has_value());
    EXPECT_NEAR(got.average->low, sum / static_cast<double>(count), 1e-13);
    EXPECT_NEAR(got.average->high, sum / static_cast<double>(count), 1e-13);
  };
  expect(view.All(), 6, 117);
  expect(view.Through(5), 1, 100);
  expect(view.Through(19), 2, 101);
  expect(view.Through(20), 5, 113);
  expect(view.Between(6, 20), 4, 13);
  expect(view.Between(20, 20), 3, 12);
  expect(view.Between(30, 99), 1, 4);
  EXPECT_EQ(view.Between(40, 50).count.high, 0u);
  EXPECT_EQ(view.Between(50, 40).count.high, 0u);
  const auto median = view.ThroughQuantile(0.5);
  EXPECT_EQ(median.at.value, Key{20});
  EXPECT_EQ(median.value_low, Key{20});
  EXPECT_EQ(median.value_high, Key{20});
  expect(median.through_element, 5, 113);
  expect(median.through_quantile, 5, 113);
  const auto range = view.BetweenQuantiles(0.3, 1);  // ranks 2 and 6: above 10, through 30
  expect(range.elements, 4, 16);
  expect(range.quantiles, 4, 16);
  expect(view.BetweenQuantiles(0, 0.1).elements, 1, 100);
}

TYPED_TEST(Correlated, FewDifferentXStayExact) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  CorrelatedSums<Key> sums(0.1, SumTypeOf<Y>::value);
  std::vector<Key> x;
  for (std::size_t i = 0; i < 90; ++i) x.push_back(static_cast<Key>(i / 10 * 1000));
  const std::vector<Y> y(90, Y{3});
  for (int i = 0; i < 200; ++i) sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
  EXPECT_TRUE(sums.exact());
  const CorrelatedView<Key> view(sums.Snapshot());
  EXPECT_EQ(view.Through(3500).count.high, 200u * 40);
  EXPECT_TRUE(view.Through(3500).sum.low == view.Through(3500).sum.high);
}

TYPED_TEST(Correlated, SnapshotsDoNotChange) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  CorrelatedSums<Key> sums(0.01, SumTypeOf<Y>::value);
  const std::vector<Key> x{1, 2, 3};
  const std::vector<Y> y{1, 2, 3};
  sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
  const CorrelatedView<Key> view(sums.Snapshot());
  sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
  EXPECT_EQ(view.n(), 3u);
  EXPECT_EQ(view.All().sum.high_value(), 6);
  EXPECT_EQ(CorrelatedView<Key>(sums.Snapshot()).All().sum.high_value(), 12);
}

/// Sums that fill the budget to the last unit, when the unit doubles and cuts off bits.
TEST(CorrelatedRounding, IsCoveredByTheBudget) {
  CorrelatedSums<std::uint32_t> sums(0.25, SumType::kFloat64);
  const auto add = [&](const std::vector<double>& at_1, const std::vector<double>& above) {
    std::vector<std::uint32_t> x(at_1.size(), 1);
    for (std::size_t i = 0; i < above.size(); ++i) x.push_back(static_cast<std::uint32_t>(2 + i));
    std::vector<double> y = at_1;
    y.insert(y.end(), above.begin(), above.end());
    sums.AddWindow(std::span<const std::uint32_t>(x), std::span<const double>(y));
  };
  // The budget is Y * (2^53 - 1) / 2^54. With S = 11.25 the sums are S (1 + 2^-53) at 1 and
  // S (1 - 2^-53) above, and 3 and 2 units of 2^-121 more: the gap above 1 just fits.
  const double v = 0.9375, unit = 0x1p-121, less = 11.25 * 0x1p-53;
  add(std::vector<double>(20, 0.0), {});
  add({v, v, v, v, v, v, 3 * unit}, {v, v, v, v, v, v, 2 * unit});
  add({v, v, v, v, v, v, less}, {v, v, v, v, v, 0.75, 0.125, 0.0625 - less});
  ASSERT_EQ(sums.Snapshot().scale, -121);
  ASSERT_EQ(sums.cuts(), 2u);
  for (int i = 0; i < 20; ++i) {
    add(std::vector<double>(4, 0.0), std::vector<double>(4, i < 10 ? 0.0 : 4.0));
    // Deserialize refuses what is wider than the budget.
    ASSERT_NO_THROW(CorrelatedSums<std::uint32_t>::Deserialize(sums.Serialize())) << i;
    ASSERT_LE(sums.cuts(), 8u);
    if (i == 0) {
      ASSERT_EQ(sums.Snapshot().scale, -120);
    }
  }
}

/// The size is not proven: it is held to what was seen (1/(2 epsilon) is the least for ranks alone,
/// as many again may be needed for sums).
TEST(CorrelatedSize, StaysWhereItWasSeen) {
  struct Case {
    testing::Distribution xs;
    testing::Ys ys;
    std::size_t most;
  };
  using testing::Distribution;
  using testing::Ys;
  const Case cases[] = {
      {Distribution::kUniform, Ys::kOnes, 100},     {Distribution::kUniform, Ys::kHeavyTailed, 160},
      {Distribution::kUniform, Ys::kFewHuge, 200},  {Distribution::kSorted, Ys::kHeavyTailed, 160},
      {Distribution::kReversed, Ys::kGrowing, 160}, {Distribution::kZoomIn, Ys::kAlternating, 600},
      {Distribution::kZipf, Ys::kHugeAtBorder, 160}};
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << Name(c.xs) << ", " << Name(c.ys));
    const auto pairs = testing::GeneratePairs<std::uint32_t, double>(c.xs, c.ys, 400'000, 3);
    CorrelatedSums<std::uint32_t> sums(0.01, SumType::kFloat64);
    std::size_t most = 0;
    for (std::size_t at = 0; at < pairs.size(); at += 4096) {
      const auto begin = pairs.begin() + static_cast<std::ptrdiff_t>(at);
      const auto size = static_cast<std::ptrdiff_t>(std::min<std::size_t>(4096, pairs.size() - at));
      const Window<std::uint32_t, double> window({begin, begin + size});
      sums.AddWindow(std::span<const std::uint32_t>(window.x), std::span<const double>(window.y));
      most = std::max(most, sums.cuts());
    }
    EXPECT_LE(most, c.most);
    EXPECT_LE(sums.Serialize().size(), 100 + 90 * sums.cuts());
  }
}

}  // namespace
}  // namespace tidemark
