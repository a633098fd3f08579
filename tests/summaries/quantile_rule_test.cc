// The error budget of quantile summaries, without keys: size classes are carried up to 2^62 values.
#include "summaries/quantile_rule.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>

#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

constexpr double kEpsilons[] = {0.5, 0.3, 0.1, 0.05, 0.01, 0.003, 0.001, 1e-4, 1e-6};

/// (3) of quantile_rule.h, in exact terms: the gap against twice epsilon times a power of two.
void ExpectWithin(const BucketShape& shape, double epsilon) {
  ASSERT_TRUE(std::has_single_bit(shape.weight) && std::has_single_bit(shape.samples));
  if (shape.lossless()) return;
  ASSERT_LE(static_cast<long double>(shape.weight + shape.slack),
            2 * static_cast<long double>(epsilon) * static_cast<long double>(shape.count()))
      << "w " << shape.weight << " m " << shape.samples << " E " << shape.slack;
}

TEST(QuantileRule, RefusesOtherEpsilons) {
  for (const double epsilon : {0.0, -0.1, 0.51, 1.0, 1e-300, std::nan("")}) {
    EXPECT_THROW(QuantileRule{epsilon}, std::invalid_argument) << epsilon;
  }
}

TEST(QuantileRule, EqualWindowsKeepTheBudgetTo2To62) {
  for (const double epsilon : kEpsilons) {
    const QuantileRule rule(epsilon);
    for (int log2_window = 0; log2_window <= 20; ++log2_window) {
      SCOPED_TRACE(::testing::Message() << "epsilon " << epsilon << " window 2^" << log2_window);
      BucketShape shape = rule.ForWindow(std::uint64_t{1} << log2_window);
      ExpectWithin(shape, epsilon);
      while (shape.count() < std::uint64_t{1} << 62) {
        shape = rule.Combine(shape, shape).result;
        ASSERT_NO_FATAL_FAILURE(ExpectWithin(shape, epsilon));
        const int level = std::bit_width(shape.count()) - std::bit_width(rule.base_samples());
        // Ten levels at m0, and at least four levels at each doubling after.
        const int doublings = level <= 10 ? 0 : (level - 7) / 4 + 1;
        ASSERT_LE(shape.samples, rule.base_samples() << doublings) << "level " << level;
      }
    }
  }
}

TEST(QuantileRule, AnyMixOfWindowsKeepsTheBudget) {
  // A random tree: a bucket of class b is a window, or made of two buckets of class b - 1. The pool
  // keeps a few different histories of each class.
  for (const double epsilon : kEpsilons) {
    const QuantileRule rule(epsilon);
    for (std::uint64_t seed = 0; seed < Seeds(30, 2000); ++seed) {
      SCOPED_TRACE(::testing::Message() << "epsilon " << epsilon << " seed " << seed);
      std::mt19937_64 random(seed);
      std::vector<BucketShape> below, pool;
      for (int log2_count = 0; log2_count <= 62; ++log2_count) {
        pool.clear();
        for (int i = 0; i < 8; ++i) {
          BucketShape shape;
          if (log2_count == 0 || (log2_count <= 20 && random() % 3 == 0)) {
            shape = rule.ForWindow(std::uint64_t{1} << log2_count);
          } else {
            const auto& a = below[random() % below.size()];
            const auto& b = below[random() % below.size()];
            const CombinePlan plan = rule.Combine(a, b);
            // Both inputs as merged have the same number of samples, and they make the result.
            const std::uint64_t from_a = a.samples / plan.stride_a * plan.repeat_a;
            ASSERT_EQ(from_a, b.samples / plan.stride_b * plan.repeat_b);
            ASSERT_EQ(2 * from_a, plan.result.samples * plan.keep);
            ASSERT_EQ(plan.result.count(), a.count() + b.count());
            shape = plan.result;
          }
          ASSERT_NO_FATAL_FAILURE(ExpectWithin(shape, epsilon));
          pool.push_back(shape);
        }
        below = pool;
      }
    }
  }
}

TEST(QuantileRule, SmallBucketsLoseNothing) {
  const QuantileRule rule(0.01);  // m0 = 512
  EXPECT_EQ(rule.base_samples(), 512u);
  BucketShape shape = rule.ForWindow(1);
  while (shape.count() < 512) {
    shape = rule.Combine(shape, shape).result;
    EXPECT_TRUE(shape.lossless()) << shape.count();
  }
  EXPECT_FALSE(rule.Combine(shape, shape).result.lossless());
}

}  // namespace
}  // namespace tidemark
