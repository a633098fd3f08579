// Compact quantile summaries, uniform and tail, against an exact oracle. Their bytes:
// serialize_test.cc; random inputs and merges: history_property_test.cc; the arithmetic:
// rank_rule_test.cc.
#include "summaries/compact_quantiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/quantile_form.h"
#include "summaries/quantile_view.h"
#include "tests/summaries/adversaries.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/view_checks.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::Epsilon;
using testing::Oracle;

constexpr TailEnd kEnds[] = {TailEnd::kNone, TailEnd::kUpper, TailEnd::kLower};
const char* Name(TailEnd end) {
  static constexpr const char* kNames[] = {"uniform", "upper", "lower"};
  return kNames[static_cast<int>(end)];
}

template <class Key>
void Check(const CompactQuantiles<Key>& summary, std::span<const Key> open,
           const Oracle<Key>& truth, Epsilon epsilon, std::uint64_t seed) {
  const QuantileView<Key> view(summary.Snapshot(), open);
  ASSERT_EQ(summary.count() + open.size(), truth.n());
  ASSERT_NO_FATAL_FAILURE(testing::CheckPromise(view, truth, summary.rule(), seed));
  ASSERT_NO_FATAL_FAILURE(testing::CheckView(view, truth, epsilon, seed));
  if (summary.end() == TailEnd::kNone) {
    ASSERT_LE(view.worst_gap(), FloorFraction(epsilon.value() / 2, truth.n()));
  }
  ASSERT_EQ(summary.exact(), QuantileView<Key>(summary.Snapshot()).exact());
}

template <class Key>
class Compact : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Compact, Keys);

TYPED_TEST(Compact, RefuseWrongUse) {
  using Key = TypeParam;
  EXPECT_THROW(CompactQuantiles<Key>(0), std::invalid_argument);
  EXPECT_THROW(CompactQuantiles<Key>(0.6), std::invalid_argument);
  CompactQuantiles<Key> summary(0.01);
  EXPECT_THROW(summary.Merge(CompactQuantiles<Key>(0.02)), std::invalid_argument);
  EXPECT_THROW(summary.Merge(CompactQuantiles<Key>(0.01, TailEnd::kUpper)), std::invalid_argument);
  const auto keys = testing::Spread<Key>(0, 1'000'000, 100'000);
  EXPECT_THROW(summary.AddDigest(DigestSorted<Key>(keys, 300)), std::invalid_argument);
  EXPECT_THROW(summary.AddDigest(DigestSorted<Key>(std::span(keys).first(500), 2)),
               std::invalid_argument);
  CompactQuantiles<Key> tail(0.01, TailEnd::kUpper);
  EXPECT_THROW(tail.AddDigest(DigestSorted<Key>(keys, 100)), std::invalid_argument);
  EXPECT_EQ(summary.count() + tail.count(), 0u);
  EXPECT_EQ(summary.Serialize(), CompactQuantiles<Key>(0.01).Serialize());
  summary.AddWindow({});
  EXPECT_EQ(summary.count(), 0u);
}

TYPED_TEST(Compact, Empty) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    const CompactQuantiles<Key> summary(0.01, end);
    const QuantileView<Key> view(summary.Snapshot());
    EXPECT_EQ(view.n(), 0u);
    EXPECT_TRUE(view.exact() && view.WithinEpsilon() && summary.exact());
    EXPECT_THROW(view.Quantile(0.5), std::logic_error);
  }
}

TYPED_TEST(Compact, ExactBelowFourOverEpsilonInWindowsOfAnySize) {
  using Key = TypeParam;
  const Epsilon epsilon{100};  // 512 are collected
  for (const TailEnd end : kEnds) {
    for (const std::size_t n : {1u, 2u, 3u, 29u, 100u, 511u}) {
      for (const auto distribution : testing::kDistributions) {
        SCOPED_TRACE(::testing::Message() << Name(end) << ' ' << Name(distribution) << ' ' << n);
        const auto keys = testing::Generate<Key>(distribution, n, n);
        CompactQuantiles<Key> summary(epsilon.value(), end);
        std::mt19937_64 random(n);
        testing::ForEachWindow(
            std::span<const Key>(keys), [&] { return 1 + random() % 100; },
            [&](std::span<const Key> window) { summary.AddWindow(window); });
        ASSERT_TRUE(summary.exact());
        ASSERT_NO_FATAL_FAILURE(Check<Key>(summary, {}, Oracle<Key>(keys), epsilon, n));
      }
    }
  }
}

TYPED_TEST(Compact, EveryDistributionEndEpsilonAndWindow) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    for (const auto distribution : testing::kDistributions) {
      for (const std::uint64_t parts : {4u, 20u, 100u, 1000u}) {
        for (const std::size_t largest : {7u, 300u, 5000u}) {
          const std::uint64_t seed = parts + largest;
          SCOPED_TRACE(::testing::Message() << Name(end) << ' ' << Name(distribution) << " 1/"
                                            << parts << " windows up to " << largest);
          const auto keys = testing::Generate<Key>(distribution, 20'000, seed);
          CompactQuantiles<Key> summary(Epsilon{parts}.value(), end);
          std::mt19937_64 random(seed);
          std::vector<Key> open;
          testing::ForEachWindow(
              std::span<const Key>(keys), [&] { return 1 + random() % largest; },
              [&](std::span<const Key> window) {
                if (open.empty() && random() % 8 == 0) {
                  open.assign(window.begin(), window.end());
                } else {
                  summary.AddWindow(window);
                }
              });
          ASSERT_NO_FATAL_FAILURE(
              Check<Key>(summary, open, Oracle<Key>(keys), Epsilon{parts}, seed));
        }
      }
    }
  }
}

TYPED_TEST(Compact, OneMillionInWindowsOf256To262144) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    for (const auto distribution : {Distribution::kUniform, Distribution::kZipf,
                                    Distribution::kSorted, Distribution::kZoomIn}) {
      SCOPED_TRACE(::testing::Message() << Name(end) << ' ' << Name(distribution));
      const auto keys = testing::Generate<Key>(distribution, 1'000'000, 5);
      CompactQuantiles<Key> summary(0.001, end);
      int step = 0;
      testing::ForEachWindow(
          std::span<const Key>(keys), [&] { return std::size_t{256} << (step++ % 11); },
          [&](std::span<const Key> window) { summary.AddWindow(window); });
      ASSERT_NO_FATAL_FAILURE(Check<Key>(summary, {}, Oracle<Key>(keys), Epsilon{1000}, 5));
    }
  }
}

TYPED_TEST(Compact, DigestsAndWholeWindowsLeadToTheSameBytes) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    SCOPED_TRACE(Name(distribution));
    CompactQuantiles<Key> whole(0.01), digests(0.01);
    const auto keys = testing::Generate<Key>(distribution, 60'000, 8);
    std::mt19937_64 random(8);
    testing::ForEachWindow(
        std::span<const Key>(keys), [&] { return std::size_t{1} << (random() % 15); },
        [&](std::span<const Key> window) {
          whole.AddWindow(window);
          digests.AddDigest(
              DigestSorted<Key>(window, digests.DigestStride(window.size()).value_or(1)));
        });
    ASSERT_EQ(whole.Serialize(), digests.Serialize());
  }
}

TYPED_TEST(Compact, AttacksDoNotBreakThePromise) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    for (const auto attack : testing::kAttacks) {
      for (int seed = 0; seed < Cases(2, 400); ++seed) {
        SCOPED_TRACE(::testing::Message() << Name(end) << ' ' << Name(attack) << ' ' << seed);
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        testing::Adversary<Key> adversary(attack, random());
        const Epsilon epsilon{seed % 2 == 0 ? 20u : 50u};
        CompactQuantiles<Key> summary(epsilon.value(), end);
        std::vector<Key> all;
        for (int window = 0; window < 60; ++window) {
          const auto keys =
              adversary.Next(QuantileView<Key>(summary.Snapshot()), 300 + random() % 100);
          summary.AddWindow(keys);
          all.insert(all.end(), keys.begin(), keys.end());
          if (window % 15 != 14) continue;
          ASSERT_NO_FATAL_FAILURE(Check<Key>(summary, {}, Oracle<Key>(all), epsilon, random()));
        }
      }
    }
  }
}

TYPED_TEST(Compact, DoubledTo2To62) {
  // The same values again and again: ranks are known at every length.
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    SCOPED_TRACE(Name(end));
    const auto keys = testing::Generate<Key>(Distribution::kLognormal, 10'000, 6);
    const Oracle<Key> truth(keys);
    CompactQuantiles<Key> summary(0.01, end);
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return 700; },
        [&](std::span<const Key> window) { summary.AddWindow(window); });
    std::uint64_t times = 1;
    for (; summary.count() < (std::uint64_t{1} << 62); times *= 2) {
      summary.Merge(summary);
      const QuantileView<Key> view(summary.Snapshot());
      for (const double phi : testing::Phis()) {
        const auto answer = view.Quantile(phi);
        const std::uint64_t t = answer.target;
        const std::uint64_t position = std::clamp(t, 2 * times * truth.Less(answer.value) + 1,
                                                  2 * times * truth.AtMost(answer.value));
        ASSERT_LE(answer.rank_low, position);
        ASSERT_GE(answer.rank_high, position);
        ASSERT_LE(t - std::min(t, answer.rank_low), summary.rule().Promise(t, view.n()));
        ASSERT_LE(answer.rank_high - std::min(t, answer.rank_high),
                  summary.rule().Promise(t, view.n()));
      }
    }
    ASSERT_EQ(summary.count(), times * keys.size());
    ASSERT_LT(summary.entries(), 3000u);
    const std::string before = summary.Serialize();
    EXPECT_THROW(summary.Merge(summary), std::length_error);
    EXPECT_EQ(summary.Serialize(), before);
  }
}

TYPED_TEST(Compact, TailFormsComeBackToTheBitAndGoOnTheSame) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    testing::Adversary<Key> adversary(testing::Attack::kZoomAny, 4);  // several parts
    CompactQuantiles<Key> summary(0.05, end);
    for (int window = 0; window < 80; ++window) {
      const auto keys =
          adversary.Next(QuantileView<Key>(summary.Snapshot()), window % 2 == 0 ? 900 : 10);
      summary.AddWindow(keys);
      auto back = CompactQuantiles<Key>::Deserialize(summary.Serialize());
      ASSERT_EQ(back.Serialize(), summary.Serialize());
      ASSERT_EQ(back.end(), end);
      back.AddWindow(keys);
      auto other = summary;
      other.AddWindow(keys);
      ASSERT_EQ(back.Serialize(), other.Serialize());
    }
  }
}

TYPED_TEST(Compact, SnapshotsStayAsTheyWere) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    CompactQuantiles<Key> summary(0.05, end);
    const auto keys = testing::Generate<Key>(Distribution::kUniform, 10'000, 9);
    QuantileSnapshot<Key> early;
    std::size_t taken = 0;
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return 333; },
        [&](std::span<const Key> window) {
          summary.AddWindow(window);
          taken += window.size();
          if (taken == 333 * 7) early = summary.Snapshot();
        });
    const std::vector<Key> first(keys.begin(), keys.begin() + 333 * 7);
    ASSERT_NO_FATAL_FAILURE(
        testing::CheckView(QuantileView<Key>(early), Oracle<Key>(first), Epsilon{20}, 9));
  }
}

TYPED_TEST(Compact, UnseenValuesAreFewEnoughInTheUniformFormOnly) {
  using Key = TypeParam;
  CompactQuantiles<Key> uniform(0.01), tail(0.01, TailEnd::kUpper);
  const auto keys = testing::Generate<Key>(Distribution::kUniform, 40'000, 9);
  testing::ForEachWindow(
      std::span<const Key>(keys), [] { return 4000; },
      [&](std::span<const Key> window) {
        uniform.AddWindow(window);
        tail.AddWindow(window);
      });
  EXPECT_TRUE(QuantileView<Key>(uniform.Snapshot(), {}, 200).WithinEpsilon());
  EXPECT_FALSE(QuantileView<Key>(uniform.Snapshot(), {}, 800).WithinEpsilon());
  EXPECT_TRUE(QuantileView<Key>(tail.Snapshot()).WithinEpsilon());
  EXPECT_FALSE(QuantileView<Key>(tail.Snapshot(), {}, 1).WithinEpsilon());
}

TYPED_TEST(Compact, EitherFormBehindOneName) {
  using Key = TypeParam;
  const auto keys = testing::Generate<Key>(Distribution::kZipf, 32'768, 9);
  for (const auto kind : {QuantileFormKind::kHistogram, QuantileFormKind::kCompact}) {
    QuantileForm<Key> form(kind, 0.01), other(kind, 0.01);
    EXPECT_EQ(form.kind(), kind);
    bool even = false;
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return 1024; },
        [&](std::span<const Key> window) {
          QuantileForm<Key>& into = (even = !even) ? form : other;
          if (const auto stride = into.DigestStride(window.size())) {
            into.AddDigest(DigestSorted<Key>(window, *stride));
          } else {
            into.AddWindow(window);
          }
        });
    form.Merge(QuantileForm<Key>::Deserialize(other.Serialize()));
    EXPECT_EQ(form.count(), keys.size());
    EXPECT_FALSE(form.exact());
    EXPECT_EQ(form.epsilon(), 0.01);
    EXPECT_GT(form.bytes(), 500u);
    ASSERT_NO_FATAL_FAILURE(
        testing::CheckView(QuantileView<Key>(form.Snapshot()), Oracle<Key>(keys), Epsilon{100}, 9));
  }
  QuantileForm<Key> histogram(QuantileFormKind::kHistogram, 0.01);
  EXPECT_THROW(histogram.Merge(QuantileForm<Key>(QuantileFormKind::kCompact, 0.01)),
               std::invalid_argument);
  EXPECT_THROW(histogram.AddDigest({}), std::logic_error);
  EXPECT_THROW(QuantileForm<Key>(QuantileFormKind::kHistogram, 0.01, TailEnd::kUpper),
               std::invalid_argument);
  EXPECT_EQ(QuantileForm<Key>(QuantileFormKind::kCompact, 0.01, TailEnd::kUpper).kind(),
            QuantileFormKind::kCompact);
}

}  // namespace
}  // namespace tidemark
