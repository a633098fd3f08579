// Quantile summaries and views against an exact oracle: every certificate holds, none is wider than
// epsilon. Serialized form: serialize_test.cc; the error budget alone: quantile_rule_test.cc.
#include "summaries/quantile_summary.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "summaries/quantile_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/view_checks.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::Oracle;

using testing::CheckView;
using testing::Epsilon;
using testing::Phis;
using testing::Probes;

constexpr Epsilon kEpsilons[] = {{20}, {100}, {1000}};

/// What a mix of window sizes leaves: a summary of whole windows, and the open rest.
template <class Key>
struct Fed {
  QuantileSummary<Key> summary;
  std::vector<Key> open;
};

/// Sizes are powers of two between 2^low and 2^high: drawn anew for each window, or growing, then
/// shrinking.
enum class Mix { kFixed, kRandom, kGrowShrink };

template <class Key>
Fed<Key> Feed(std::span<const Key> keys, double epsilon, Mix mix, int low, int high,
              std::uint64_t seed) {
  Fed<Key> fed{QuantileSummary<Key>(epsilon), {}};
  std::mt19937_64 random(seed);
  int step = 0;
  std::size_t size = 0;
  testing::ForEachWindow(
      keys,
      [&] {
        const int span = high - low + 1;
        int log2_size = low;
        if (mix == Mix::kFixed) log2_size = high;
        if (mix == Mix::kRandom)
          log2_size = low + static_cast<int>(random() % static_cast<unsigned>(span));
        if (mix == Mix::kGrowShrink) {
          const int at = step++ % (2 * span);
          log2_size = low + std::min(at, 2 * span - 1 - at);
        }
        return size = std::size_t{1} << log2_size;
      },
      [&](std::span<const Key> window) {
        if (window.size() == size) {
          fed.summary.AddWindow(window);
        } else {
          fed.open.assign(window.begin(), window.end());
        }
      });
  return fed;
}

template <class Key>
class Quantiles : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Quantiles, Keys);

TYPED_TEST(Quantiles, RefuseWrongUse) {
  using Key = TypeParam;
  EXPECT_THROW(QuantileSummary<Key>(0), std::invalid_argument);
  EXPECT_THROW(QuantileSummary<Key>(0.6), std::invalid_argument);
  QuantileSummary<Key> summary(0.01);
  const std::vector<Key> three{1, 2, 3};
  EXPECT_THROW(summary.AddWindow(three), std::invalid_argument);
  EXPECT_THROW(summary.AddWindow({}), std::invalid_argument);
  EXPECT_THROW(summary.Merge(QuantileSummary<Key>(0.02)), std::invalid_argument);
  EXPECT_EQ(summary.count(), 0u);
  const QuantileView<Key> view(summary.Snapshot(), three);
  EXPECT_THROW(view.Quantile(-0.1), std::invalid_argument);
  EXPECT_THROW(view.Quantile(1.1), std::invalid_argument);
  EXPECT_THROW(view.Quantile(std::nan("")), std::invalid_argument);
  EXPECT_THROW(view.EquiDepthBounds(0), std::invalid_argument);
  const std::vector<Key> descending{2, 1};
  EXPECT_THROW(view.CountsBetween(descending), std::invalid_argument);
}

TYPED_TEST(Quantiles, Empty) {
  using Key = TypeParam;
  const QuantileSummary<Key> summary(0.01);
  const QuantileView<Key> view(summary.Snapshot());
  EXPECT_EQ(view.n(), 0u);
  EXPECT_TRUE(view.exact() && view.WithinEpsilon() && summary.exact());
  EXPECT_THROW(view.Quantile(0.5), std::logic_error);
  const RankBounds bounds = view.Bounds(5);
  EXPECT_EQ(bounds.less_high + bounds.at_most_high, 0u);
  EXPECT_TRUE(view.EquiDepthBounds(4).empty());
  const std::vector<Key> probe{5};
  EXPECT_EQ(view.CountsBetween(probe).back().high, 0u);
  EXPECT_THROW(QuantileView<Key>(summary.Snapshot(), {}, 3).Quantile(0.5), std::logic_error);
}

TYPED_TEST(Quantiles, LadderOfStatesIsExactWhileSmall) {
  using Key = TypeParam;
  const Epsilon epsilon{100};  // m0 = 512
  for (const std::size_t n : {1u, 2u, 3u, 29u, 30u, 100u, 511u, 512u, 700u, 1023u}) {
    for (const auto distribution : testing::kDistributions) {
      SCOPED_TRACE(::testing::Message() << Name(distribution) << " n " << n);
      const auto keys = testing::Generate<Key>(distribution, n, n);
      const auto fed = Feed<Key>(keys, epsilon.value(), Mix::kRandom, 0, 6, n);
      const QuantileView<Key> view(fed.summary.Snapshot(), fed.open);
      if (n < 1024) {
        ASSERT_TRUE(view.exact());
      }
      ASSERT_NO_FATAL_FAILURE(CheckView(view, Oracle<Key>(keys), epsilon, n));
      for (const Key v : Probes(Oracle<Key>(keys), n)) {
        const RankBounds bounds = view.Bounds(v);
        ASSERT_EQ(bounds.less_low, bounds.less_high);
        ASSERT_EQ(bounds.at_most_low, bounds.at_most_high);
      }
    }
  }
}

TYPED_TEST(Quantiles, EveryDistributionEpsilonAndMix) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    for (const Epsilon epsilon : kEpsilons) {
      for (const std::size_t n : {1000u, 30'000u}) {
        for (const Mix mix : {Mix::kFixed, Mix::kRandom, Mix::kGrowShrink}) {
          const std::uint64_t seed = n + epsilon.parts;
          SCOPED_TRACE(::testing::Message()
                       << Name(distribution) << " epsilon " << epsilon.value() << " n " << n
                       << " mix " << static_cast<int>(mix) << " seed " << seed);
          const auto keys = testing::Generate<Key>(distribution, n, seed);
          const auto fed = Feed<Key>(keys, epsilon.value(), mix, 4, 13, seed);
          const QuantileView<Key> view(fed.summary.Snapshot(), fed.open);
          ASSERT_NO_FATAL_FAILURE(CheckView(view, Oracle<Key>(keys), epsilon, seed));
        }
      }
    }
  }
}

TYPED_TEST(Quantiles, OneMillionInWindowsOf256To262144) {
  using Key = TypeParam;
  for (const auto distribution : {Distribution::kUniform, Distribution::kZipf,
                                  Distribution::kSorted, Distribution::kZoomIn}) {
    const auto keys = testing::Generate<Key>(distribution, 1'000'000, 5);
    const Oracle<Key> truth(keys);
    for (const Epsilon epsilon : kEpsilons) {
      SCOPED_TRACE(::testing::Message() << Name(distribution) << " epsilon " << epsilon.value());
      const auto fed = Feed<Key>(keys, epsilon.value(), Mix::kGrowShrink, 8, 18, 5);
      const QuantileView<Key> view(fed.summary.Snapshot(), fed.open);
      ASSERT_NO_FATAL_FAILURE(CheckView(view, truth, epsilon, 5));
      ASSERT_LT(fed.summary.bytes(), 100 * epsilon.parts * sizeof(Key) + 4096);
    }
  }
}

TYPED_TEST(Quantiles, UnseenValuesWidenTheBoundsAndNothingElse) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(40, 20'000); ++seed) {
    std::mt19937_64 random(seed);
    const auto distribution =
        testing::kDistributions[random() % std::size(testing::kDistributions)];
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ' ' << Name(distribution));
    const std::size_t n = 2000 + random() % 20'000, unseen = random() % (n / 10);
    const auto keys = testing::Generate<Key>(distribution, n, seed);
    const Oracle<Key> truth(keys);
    // Those at hand are the first ones.
    const auto at_hand = std::span<const Key>(keys).first(n - unseen);
    const Epsilon epsilon{20};
    const auto fed = Feed<Key>(at_hand, epsilon.value(), Mix::kRandom, 4, 12, seed);
    const QuantileView<Key> view(fed.summary.Snapshot(), fed.open, unseen);
    ASSERT_EQ(view.n(), n);
    if (unseen * epsilon.parts > n) {
      ASSERT_FALSE(view.WithinEpsilon());
    }
    for (const double phi : Phis()) {
      const auto answer = view.Quantile(phi);
      const std::uint64_t t = TargetRank(phi, n);
      ASSERT_GT(truth.Count(answer.value), 0u);
      const std::uint64_t position =
          std::clamp(t, truth.Less(answer.value) + 1, truth.AtMost(answer.value));
      ASSERT_LE(answer.rank_low, position);
      ASSERT_GE(answer.rank_high, position);
      const std::uint64_t off = std::max(t > answer.rank_low ? t - answer.rank_low : 0,
                                         answer.rank_high > t ? answer.rank_high - t : 0);
      ASSERT_LE(off, view.worst_gap());
      if (view.WithinEpsilon()) {
        ASSERT_LE(off * epsilon.parts, n);
      }
    }
    for (const Key v : Probes(truth, seed)) {
      const RankBounds bounds = view.Bounds(v);
      ASSERT_LE(bounds.less_low, truth.Less(v));
      ASSERT_GE(bounds.less_high, truth.Less(v));
      ASSERT_LE(bounds.at_most_low, truth.AtMost(v));
      ASSERT_GE(bounds.at_most_high, truth.AtMost(v));
    }
  }
}

TYPED_TEST(Quantiles, MergesInRandomTreesKeepTheGuarantee) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(24, 5000); ++seed) {
    std::mt19937_64 random(seed);
    const auto distribution = testing::kDistributions[seed % std::size(testing::kDistributions)];
    const Epsilon epsilon = kEpsilons[random() % 3];
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed << ' ' << Name(distribution) << " epsilon " << epsilon.value());
    const auto keys = testing::Generate<Key>(distribution, 40'000, seed);
    std::vector<QuantileSummary<Key>> parts;
    std::vector<Key> taken;
    std::span<const Key> rest(keys);
    while (!rest.empty()) {
      const std::size_t size = std::min<std::size_t>(rest.size(), random() % 9000);
      const auto fed = Feed<Key>(rest.first(size), epsilon.value(), Mix::kRandom, 0, 12, random());
      // The open rest stays outside: windows alone are merged.
      std::multiset<Key> left(fed.open.begin(), fed.open.end());
      for (const Key key : rest.first(size)) {
        const auto at = left.find(key);
        if (at == left.end()) {
          taken.push_back(key);
        } else {
          left.erase(at);
        }
      }
      parts.push_back(fed.summary);
      rest = rest.subspan(size);
    }
    while (parts.size() > 1) {
      std::swap(parts[random() % parts.size()], parts.back());
      const auto other = parts.back();
      parts.pop_back();
      parts[random() % parts.size()].Merge(other);
    }
    const Oracle<Key> truth(taken);
    ASSERT_NO_FATAL_FAILURE(
        CheckView(QuantileView<Key>(parts.front().Snapshot()), truth, epsilon, seed));
    // With itself: every value twice.
    parts.front().Merge(parts.front());
    taken.insert(taken.end(), truth.sorted().begin(), truth.sorted().end());
    ASSERT_NO_FATAL_FAILURE(
        CheckView(QuantileView<Key>(parts.front().Snapshot()), Oracle<Key>(taken), epsilon, seed));
  }
}

TYPED_TEST(Quantiles, SnapshotsDoNotChange) {
  using Key = TypeParam;
  const auto keys = testing::Generate<Key>(Distribution::kUniform, 1 << 14, 3);
  auto fed = Feed<Key>(keys, 0.01, Mix::kFixed, 0, 10, 3);
  const QuantileView<Key> view(fed.summary.Snapshot());
  const auto before = view.Quantiles(Phis());
  const std::vector<Key> low(1 << 13, Key{0});
  fed.summary.AddWindow(low);
  const QuantileView<Key> copy = view;  // a copy stands alone
  const auto after = copy.Quantiles(Phis());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].value, after[i].value);
    EXPECT_EQ(before[i].rank_low, after[i].rank_low);
  }
  EXPECT_EQ(QuantileView<Key>(fed.summary.Snapshot()).Quantile(0).value, Key{0});
}

RC_GTEST_PROP(QuantileProperty, CertificatesHold,
              (const std::vector<std::vector<std::uint8_t>>& draws)) {
  // Windows of the largest power of two in each drawn vector, the rest of the last one open; keys
  // of eight bits, so that ties are everywhere.
  QuantileSummary<std::uint32_t> summary(0.25);  // m0 = 16
  std::vector<std::uint32_t> all, open;
  for (const auto& draw : draws) {
    for (int repeat = 0; repeat < 3 && !draw.empty(); ++repeat) {
      std::vector<std::uint32_t> window(draw.begin(), draw.end());
      window.resize(std::bit_floor(window.size()));
      all.insert(all.end(), window.begin(), window.end());
      std::sort(window.begin(), window.end());
      summary.AddWindow(window);
    }
    open.assign(draw.begin(), draw.end());
  }
  std::sort(open.begin(), open.end());
  all.insert(all.end(), open.begin(), open.end());
  const Oracle<std::uint32_t> truth(all);
  const QuantileView<std::uint32_t> view(summary.Snapshot(), open);
  if (all.empty()) return;
  for (const double phi : Phis()) {
    const auto answer = view.Quantile(phi);
    const std::uint64_t t = TargetRank(phi, truth.n());
    const std::uint64_t position =
        std::clamp(t, truth.Less(answer.value) + 1, truth.AtMost(answer.value));
    RC_ASSERT(truth.Count(answer.value) > 0);
    RC_ASSERT(answer.rank_low <= position);
    RC_ASSERT(position <= answer.rank_high);
    RC_ASSERT(t <= answer.rank_low || 4 * (t - answer.rank_low) <= truth.n());
    RC_ASSERT(answer.rank_high <= t || 4 * (answer.rank_high - t) <= truth.n());
  }
  for (std::uint32_t v = 0; v <= 256; ++v) {
    const RankBounds bounds = view.Bounds(v);
    RC_ASSERT(bounds.less_low <= truth.Less(v));
    RC_ASSERT(truth.Less(v) <= bounds.less_high);
    RC_ASSERT(bounds.at_most_low <= truth.AtMost(v));
    RC_ASSERT(truth.AtMost(v) <= bounds.at_most_high);
  }
}

}  // namespace
}  // namespace tidemark
