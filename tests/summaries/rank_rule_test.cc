// The arithmetic of compact quantile summaries, up to 2^62 values, without keys: what the proof in
// rank_rule.h rests on.
#include "summaries/rank_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

constexpr TailEnd kEnds[] = {TailEnd::kNone, TailEnd::kUpper, TailEnd::kLower};
constexpr double kEpsilons[] = {0.5, 0.3, 0.1, 0.01, 0.001, 1e-6, 0x1p-40};

/// 1 to 2^62, each order of magnitude as likely as another.
std::uint64_t AnyCount(std::mt19937_64& random) { return (random() >> (2 + random() % 62)) + 1; }

TEST(RankRule, RefusesWrongEpsilons) {
  for (const double epsilon : {0.0, -0.1, 0.51, std::nan(""), 0x1p-41}) {
    EXPECT_THROW(RankRule(epsilon, TailEnd::kNone), std::invalid_argument) << epsilon;
  }
}

TEST(RankRule, PromisesEpsilonOfNOrOfTheDistanceFromTheEnd) {
  const RankRule uniform(0.01, TailEnd::kNone), upper(0.01, TailEnd::kUpper),
      lower(0.01, TailEnd::kLower);
  EXPECT_EQ(uniform.Promise(1, 1000), 10u);
  EXPECT_EQ(uniform.Promise(1000, 1000), 10u);
  EXPECT_EQ(upper.Promise(1000, 1000), 0u);
  EXPECT_EQ(upper.Promise(902, 1000), 0u);  // 99 from the end
  EXPECT_EQ(upper.Promise(901, 1000), 1u);
  EXPECT_EQ(upper.Promise(501, 1000), 5u);
  EXPECT_EQ(upper.Promise(1, 1000), 5u);
  for (std::uint64_t t = 1; t <= 1000; ++t) {
    ASSERT_EQ(lower.Promise(t, 1000), upper.Promise(1001 - t, 1000));
  }
}

TEST(RankRule, SharesGrowForEverAndStayBelowEpsilon) {
  for (const double epsilon : kEpsilons) {
    const RankRule rule(epsilon, TailEnd::kUpper);
    std::uint64_t before = rule.DigestLimit(1).fraction;
    EXPECT_LE(8 * before, rule.Limit(1, 0).fraction);
    const auto large = static_cast<std::uint64_t>(2000 / epsilon);
    EXPECT_LE(6 * rule.DigestLimit(large).fraction, rule.Limit(large, 0).fraction);
    EXPECT_GT(7 * rule.DigestLimit(large).fraction, rule.Limit(large, 0).fraction);
    for (int depth = 0; depth < 256; ++depth) {
      const std::uint64_t fraction = rule.Limit(1, depth).fraction;
      ASSERT_GE(fraction, before);
      ASSERT_LE(fraction, rule.fraction());
      before = fraction;
    }
    const RankRule uniform(epsilon, TailEnd::kNone);
    EXPECT_EQ(uniform.Limit(1, 0).fraction, rule.fraction() / 2);
    EXPECT_EQ(uniform.Limit(1, 7).fraction, rule.fraction() / 2);
  }
}

TEST(RankRule, UnitingPartsNeverWidensAGap) {
  // Two parts with entries whose upper bounds are high_a and high_b: in the union the bound of the
  // lower one of them is at most high_a + high_b - 1.
  std::mt19937_64 random(1);
  for (int i = 0; i < Cases(200'000, 5'000'000); ++i) {
    const RankRule rule(kEpsilons[random() % std::size(kEpsilons)], kEnds[random() % 3]);
    const std::uint64_t a = AnyCount(random), b = AnyCount(random);
    const int depth = static_cast<int>(random() % 60), other = static_cast<int>(random() % 60);
    const GapLimit of_a = rule.Limit(a, depth);
    const GapLimit of_b = random() % 2 == 0 ? rule.Limit(b, other) : rule.DigestLimit(b);
    const GapLimit united = rule.Limit(a + b, std::max(depth, other));
    const std::uint64_t high_a = 1 + random() % a, high_b = 1 + random() % b;
    ASSERT_LE(of_a.Width(high_a) + of_b.Width(high_b), united.Width(high_a + high_b - 1))
        << a << ' ' << high_a << ' ' << b << ' ' << high_b;
  }
}

TEST(RankRule, AGapWithinTheLimitKeepsThePromise) {
  // The last step of the proof: A >= B - Width implies A >= t - e for the least B >= t + e, and
  // B - Width grows with B.
  std::mt19937_64 random(2);
  for (int i = 0; i < Cases(200'000, 5'000'000); ++i) {
    const RankRule rule(kEpsilons[random() % std::size(kEpsilons)],
                        random() % 2 == 0 ? TailEnd::kNone : TailEnd::kUpper);
    const std::uint64_t n = AnyCount(random);
    const GapLimit limit = rule.Limit(n, static_cast<int>(random() % 60));
    const std::uint64_t target = 1 + random() % n;
    const std::uint64_t promise = rule.Promise(target, n);
    if (target + promise + 1 > n) continue;  // no value comes behind
    // B values come before an entry whose upper bound is B + 1.
    const std::uint64_t before = target + promise;
    ASSERT_LE(limit.Width(before + 1), 2 * promise) << n << ' ' << target;
    if (before + 2 <= n) {
      ASSERT_LE(limit.Width(before + 2), limit.Width(before + 1));
    }
  }
}

TEST(RankRule, TheMirroredEndIsTheSameRule) {
  const RankRule upper(0.01, TailEnd::kUpper), lower(0.01, TailEnd::kLower);
  EXPECT_EQ(upper.Limit(12345, 3).Width(777), lower.Limit(12345, 3).Width(777));
  EXPECT_FALSE(upper == lower);
  EXPECT_TRUE(upper == RankRule(0.01, TailEnd::kUpper));
}

TEST(RankRule, EntryLimitsFollowTheLogarithm) {
  EXPECT_EQ(RankRule(0.001, TailEnd::kNone).EntryLimit(1'000'000, 0),
            std::numeric_limits<std::size_t>::max());
  const RankRule rule(0.005, TailEnd::kUpper);
  const double f = 0.005 * 0.75;
  for (const std::uint64_t n : {std::uint64_t{1} << 18, std::uint64_t{1} << 27,
                                std::uint64_t{1} << 40, std::uint64_t{1} << 62}) {
    const double expected = (2 + std::log(f * static_cast<double>(n))) / f;
    EXPECT_NEAR(static_cast<double>(rule.EntryLimit(n, 0)), expected, 0.1 * expected);
  }
}

TEST(RankRule, CollectsFourOverEpsilon) {
  EXPECT_EQ(RankRule(0.5, TailEnd::kNone).collected(), 8u);
  EXPECT_EQ(RankRule(0.01, TailEnd::kNone).collected(), 512u);
  EXPECT_EQ(RankRule(0.001, TailEnd::kNone).collected(), 4096u);
}

}  // namespace
}  // namespace tidemark
