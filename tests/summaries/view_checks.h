// What must hold of every view of a quantile summary, whatever its parts: each certificate holds
// the truth and is within epsilon.
#ifndef TIDEMARK_TESTS_SUMMARIES_VIEW_CHECKS_H_
#define TIDEMARK_TESTS_SUMMARIES_VIEW_CHECKS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "summaries/quantile_view.h"
#include "summaries/rank_rule.h"
#include "tests/summaries/reference.h"

namespace tidemark::testing {

/// epsilon = 1 / parts, so that |rank - t| * parts <= n is exact.
struct Epsilon {
  std::uint64_t parts;
  double value() const { return 1.0 / static_cast<double>(parts); }
};

inline const std::vector<double>& Phis() {
  static const std::vector<double> phis = [] {
    std::vector<double> all{0, 1, 1e-9, 1e-4, 0.001, 0.999, 0.9999, 1 - 1e-12};
    for (int i = 1; i < 40; ++i) all.push_back(i / 40.0);
    return all;
  }();
  return phis;
}

template <class Key>
void CheckQuantiles(const QuantileView<Key>& view, const Oracle<Key>& truth, Epsilon epsilon) {
  const std::uint64_t n = truth.n();
  ASSERT_EQ(view.n(), n);
  const auto answers = view.Quantiles(Phis());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& answer = answers[i];
    SCOPED_TRACE(::testing::Message() << "phi " << Phis()[i] << " n " << n);
    const std::uint64_t t = TargetRank(Phis()[i], n);
    ASSERT_EQ(answer.target, t);
    ASSERT_GT(truth.Count(answer.value), 0u) << "not an element of the stream";
    const std::uint64_t position =
        std::clamp(t, truth.Less(answer.value) + 1, truth.AtMost(answer.value));
    ASSERT_LE(answer.rank_low, position);
    ASSERT_GE(answer.rank_high, position);
    const std::uint64_t off = std::max(t > answer.rank_low ? t - answer.rank_low : 0,
                                       answer.rank_high > t ? answer.rank_high - t : 0);
    ASSERT_LE(off * epsilon.parts, n) << '[' << answer.rank_low << ", " << answer.rank_high << ']';
    ASSERT_LE(off, view.worst_gap());
    if (view.exact()) {
      ASSERT_EQ(answer.value, truth.sorted()[t - 1]);
    }
    if (t == 1) {
      ASSERT_EQ(answer.value, truth.sorted().front());
    }
    if (t == n) {
      ASSERT_EQ(answer.value, truth.sorted().back());
    }
    // One alone gives what all together gave.
    const auto alone = view.Quantile(Phis()[i]);
    ASSERT_EQ(alone.value, answer.value);
    ASSERT_EQ(alone.rank_low, answer.rank_low);
    ASSERT_EQ(alone.rank_high, answer.rank_high);
  }
}

template <class Key>
std::vector<Key> Probes(const Oracle<Key>& truth, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> probes{0, 1, static_cast<Key>(-1), static_cast<Key>(-2)};
  for (int i = 0; i < 60; ++i) {
    probes.push_back(static_cast<Key>(random()));  // most often absent
    if (truth.n() == 0) continue;
    const Key present = truth.sorted()[random() % truth.n()];
    for (const int by : {-1, 0, 1})
      probes.push_back(static_cast<Key>(present + static_cast<Key>(by)));
  }
  if (truth.n() > 0) {
    probes.push_back(truth.sorted().front());
    probes.push_back(truth.sorted().back());
  }
  return probes;
}

template <class Key>
void CheckBounds(const QuantileView<Key>& view, const Oracle<Key>& truth, Epsilon epsilon,
                 std::uint64_t seed) {
  std::vector<Key> probes = Probes(truth, seed);
  for (const Key v : probes) {
    SCOPED_TRACE(::testing::Message() << "key " << v);
    const RankBounds bounds = view.Bounds(v);
    ASSERT_LE(bounds.less_low, truth.Less(v));
    ASSERT_GE(bounds.less_high, truth.Less(v));
    ASSERT_LE(bounds.at_most_low, truth.AtMost(v));
    ASSERT_GE(bounds.at_most_high, truth.AtMost(v));
    ASSERT_LE((bounds.less_high - bounds.less_low) * epsilon.parts, 2 * truth.n());
    ASSERT_LE((bounds.at_most_high - bounds.at_most_low) * epsilon.parts, 2 * truth.n());
  }
  std::sort(probes.begin(), probes.end());
  probes.push_back(probes.back());  // an empty bucket
  const auto counts = view.CountsBetween(probes);
  ASSERT_EQ(counts.size(), probes.size() + 1);
  for (std::size_t j = 0; j < counts.size(); ++j) {
    const std::uint64_t from = j == 0 ? 0 : truth.AtMost(probes[j - 1]);
    const std::uint64_t to = j == probes.size() ? truth.n() : truth.AtMost(probes[j]);
    ASSERT_LE(counts[j].low, to - from) << "bucket " << j;
    ASSERT_GE(counts[j].high, to - from) << "bucket " << j;
    // Never wider than the difference of the bounds of its two ends.
    if (j > 0 && j < probes.size()) {
      const RankBounds a = view.Bounds(probes[j - 1]), b = view.Bounds(probes[j]);
      ASSERT_LE(counts[j].high, b.at_most_high - a.at_most_low);
      ASSERT_GE(counts[j].low + a.at_most_high, b.at_most_low);
    }
  }
  ASSERT_GE(counts.front().low, view.Bounds(probes.front()).at_most_low);
}

template <class Key>
void CheckEquiDepth(const QuantileView<Key>& view, const Oracle<Key>& truth, Epsilon epsilon) {
  const auto bounds = view.EquiDepthBounds(8);
  if (truth.n() == 0) {
    ASSERT_TRUE(bounds.empty());
    return;
  }
  ASSERT_LE(bounds.size(), 8u);
  ASSERT_TRUE(std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<Key>()) ==
              bounds.end());
  ASSERT_EQ(bounds.back(), truth.sorted().back());
  const auto counts = view.CountsBetween(bounds);
  ASSERT_EQ(counts.back().high, 0u) << "values above the maximum";
  std::uint64_t before = 0;
  for (const Key bound : bounds) {
    // No more than a share, its rounding and the error at either end, but for a heavy value's ties.
    const std::uint64_t below = truth.Less(bound) - std::min(before, truth.Less(bound));
    ASSERT_LE(below * 8 * epsilon.parts,
              truth.n() * epsilon.parts + 8 * epsilon.parts + 16 * truth.n());
    before = truth.AtMost(bound);
  }
}

template <class Key>
void CheckView(const QuantileView<Key>& view, const Oracle<Key>& truth, Epsilon epsilon,
               std::uint64_t seed) {
  ASSERT_TRUE(view.WithinEpsilon());
  if (truth.n() > 0) {
    ASSERT_NO_FATAL_FAILURE(CheckQuantiles(view, truth, epsilon));
  }
  ASSERT_NO_FATAL_FAILURE(CheckBounds(view, truth, epsilon, seed));
  ASSERT_NO_FATAL_FAILURE(CheckEquiDepth(view, truth, epsilon));
}

/// Every certificate of a quantile holds the truth and is within what the rule promises at that
/// rank: at each rank where there are few, at those near the ends and many others where not.
template <class Key>
void CheckPromise(const QuantileView<Key>& view, const Oracle<Key>& truth, const RankRule& rule,
                  std::uint64_t seed) {
  const std::uint64_t n = truth.n();
  ASSERT_EQ(view.n(), n);
  std::mt19937_64 random(seed);
  constexpr std::uint64_t kAll = 400;
  std::vector<std::uint64_t> ranks;
  for (std::uint64_t rank = 1; rank <= n; ++rank) {
    if (n <= kAll || rank <= kAll / 4 || n - rank < kAll / 4) ranks.push_back(rank);
  }
  for (std::uint64_t i = 0; n > kAll && i < kAll / 2; ++i) ranks.push_back(1 + random() % n);
  // In proportion to their distance from an end.
  for (std::uint64_t away = n; n > kAll && away > 0; away -= (away + 9) / 10) {
    ranks.push_back(away);
    ranks.push_back(n + 1 - away);
  }
  std::sort(ranks.begin(), ranks.end());
  for (const auto& answer : view.AtRanks(ranks)) {
    const std::uint64_t t = answer.target;
    ASSERT_GT(truth.Count(answer.value), 0u) << "not an element of the stream";
    const std::uint64_t position =
        std::clamp(t, truth.Less(answer.value) + 1, truth.AtMost(answer.value));
    ASSERT_LE(answer.rank_low, position) << "rank " << t << " of " << n;
    ASSERT_GE(answer.rank_high, position) << "rank " << t << " of " << n;
    const std::uint64_t off = std::max(t - std::min(t, answer.rank_low),
                                       answer.rank_high - std::min(t, answer.rank_high));
    ASSERT_LE(off, rule.Promise(t, n)) << "rank " << t << " of " << n << ": [" << answer.rank_low
                                       << ", " << answer.rank_high << ']';
  }
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_VIEW_CHECKS_H_
