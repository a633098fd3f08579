// The capacity of windows as a function of batches and their recorded times. That streams obey it
// is tested with the pipeline.
#include "server/window/capacity_rule.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace tidemark::server {
namespace {

constexpr CapacityLimits kLimits{.min = 256, .max = 1u << 18};

// Feeds a steady stream of `rate` values/s in batches of `batch` for `seconds`, as a stream would,
// and returns the capacity at the end.
std::uint32_t SteadyCapacity(double rate, std::uint32_t batch, double seconds) {
  CapacityRule rule(kLimits);
  std::uint32_t held = 0;
  for (double t = 0; t < seconds; t += batch / rate) {
    const auto now = static_cast<RecordedTime>(t * 1e6);
    rule.OnBatch(now, held, kLimits);
    if (held != 0 && held >= rule.capacity()) {
      rule.OnFull(now, kLimits);
      held = 0;
    }
    for (std::uint32_t left = batch; left > 0;) {
      if (held == 0) rule.OnOpened(now);
      const std::uint32_t taken = std::min(left, rule.capacity() - held);
      held += taken;
      left -= taken;
      if (held == rule.capacity()) {
        rule.OnFull(now, kLimits);
        held = 0;
      }
    }
  }
  return rule.capacity();
}

TEST(CapacityRule, StartsSmall) { EXPECT_EQ(CapacityRule(kLimits).capacity(), 256u); }

TEST(CapacityRule, QuietStreamStaysSmall) {
  EXPECT_EQ(SteadyCapacity(10, 1, 100), 256u);
  EXPECT_EQ(SteadyCapacity(1000, 10, 10), 256u);
}

TEST(CapacityRule, BusyStreamReachesTheMaximum) {
  EXPECT_EQ(SteadyCapacity(100e6, 4096, 0.2), kLimits.max);
  EXPECT_EQ(SteadyCapacity(20e6, 4096, 1), kLimits.max);
}

TEST(CapacityRule, SteadyStreamHoldsAFractionOfASecond) {
  // 100,000 values/s: 0.2 to 0.4 s are 20,000 to 40,000 keys.
  const std::uint32_t capacity = SteadyCapacity(100'000, 100, 20);
  EXPECT_GE(capacity, 1u << 12);
  EXPECT_LE(capacity, 1u << 16);
}

TEST(CapacityRule, ShrinksToWhatItHoldsWhenTheStreamSlowsDown) {
  CapacityRule rule(kLimits);
  for (int i = 0; i < 10; ++i) {
    rule.OnOpened(0);
    rule.OnFull(0, kLimits);
  }
  ASSERT_EQ(rule.capacity(), kLimits.max);
  rule.OnOpened(0);
  rule.OnBatch(CapacityRule::kSlowFill - 1, 1000, kLimits);
  EXPECT_EQ(rule.capacity(), kLimits.max);
  rule.OnBatch(CapacityRule::kSlowFill, 1000, kLimits);
  EXPECT_EQ(rule.capacity(), 1024u);
  rule.OnBatch(CapacityRule::kSlowFill, 1, kLimits);
  EXPECT_EQ(rule.capacity(), kLimits.min);
}

TEST(CapacityRule, ClockThatStepsBackCountsAsNoTime) {
  CapacityRule rule(kLimits);
  rule.OnOpened(1'000'000'000);
  rule.OnBatch(0, 100, kLimits);
  EXPECT_EQ(rule.capacity(), 256u);
  rule.OnFull(0, kLimits);
  EXPECT_EQ(rule.capacity(), 1024u);
}

// As in a stored stream that nobody wrote.
TEST(CapacityRule, TakesAnyTwoTimes) {
  CapacityRule rule(kLimits);
  rule.Restore(std::numeric_limits<RecordedTime>::min(), 1024);
  rule.OnBatch(std::numeric_limits<RecordedTime>::max(), 300, kLimits);
  EXPECT_EQ(rule.capacity(), 512u) << "it was open for long";
}

TEST(CapacityRule, AlwaysAPowerOfTwoWithinTheLimits) {
  std::uint64_t state = 7;
  CapacityRule rule(kLimits);
  RecordedTime now = 0;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    now += static_cast<RecordedTime>(state >> 46) - 20'000;
    const auto held = static_cast<std::uint32_t>((state >> 20) % (rule.capacity() + 1));
    switch ((state >> 10) % 3) {
      case 0:
        rule.OnBatch(now, held, kLimits);
        ASSERT_GE(rule.capacity(), held);
        break;
      case 1:
        rule.OnOpened(now);
        break;
      default:
        rule.OnFull(now, kLimits);
        break;
    }
    ASSERT_TRUE(std::has_single_bit(rule.capacity()));
    ASSERT_GE(rule.capacity(), kLimits.min);
    ASSERT_LE(rule.capacity(), kLimits.max);
  }
}

}  // namespace
}  // namespace tidemark::server
