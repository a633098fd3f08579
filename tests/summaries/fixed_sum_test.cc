// Sums in units, their conversion to doubles, and arithmetic rounded outwards, against exact sums.
#include "summaries/fixed_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "summaries/outward_rounding.h"
#include "tests/summaries/wide_sum.h"

namespace tidemark {
namespace {

using testing::WideSum;
using Limits = std::numeric_limits<double>;

/// Of every kind: any bits, few bits, extremes; finite.
double Draw(std::mt19937_64& random) {
  const double values[] = {0.0,           -0.0,
                           1.0,           -1.0,
                           Limits::max(), Limits::lowest(),
                           Limits::min(), Limits::denorm_min(),
                           0.1,           1e300,
                           -1e-300,       3.0};
  switch (random() % 4) {
    case 0:
      return values[random() % std::size(values)];
    case 1:
      return std::ldexp(static_cast<double>(random() % 1000) - 500,
                        static_cast<int>(random() % 40));
    case 2:
      return static_cast<double>(static_cast<std::int64_t>(random()));
    default: {
      const double any = std::bit_cast<double>(random());
      return std::isfinite(any) ? any : 1.5;
    }
  }
}

TEST(ToUnits, CutsOffLessThanAUnit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 50'000; ++i) {
    const double value = std::abs(Draw(random));
    const int least = std::max(kFinestScale, BitsBeforePoint(value) - 126);
    const int scale = least + static_cast<int>(random() % 200);
    const Units units = ToUnits(value, scale);
    const WideSum rest =
        WideSum::Of(value) - WideSum::OfUnits(static_cast<Int128>(units.value), scale);
    ASSERT_EQ(rest.Sign(), units.cut ? 1 : 0) << value << " at " << scale;
    ASSERT_EQ((rest - WideSum::OfUnits(1, scale)).Sign(), -1) << value << " at " << scale;
  }
}

TEST(BitsBeforePoint, AreEnough) {
  EXPECT_EQ(BitsBeforePoint(0), kFinestScale);
  EXPECT_EQ(BitsBeforePoint(1), 1);
  EXPECT_EQ(BitsBeforePoint(0.5), 0);
  EXPECT_EQ(BitsBeforePoint(Limits::max()), 1024);
  EXPECT_EQ(BitsBeforePoint(Limits::denorm_min()), kFinestScale + 1);
}

TEST(UnitsToDoubles, AreTheNearestOnEitherSide) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50'000; ++i) {
    const int bits = static_cast<int>(random() % 127);
    auto units = static_cast<Int128>((Uint128{random()} << 64 | random()) >> (127 - bits) >> 1);
    if (random() % 2 == 0) units = -units;
    const int scale = kFinestScale + static_cast<int>(random() % 2100);
    const WideSum truth = WideSum::OfUnits(units, scale);
    const double low = LowerDouble(units, scale), high = UpperDouble(units, scale);
    ASSERT_TRUE(low <= high);
    if (std::isfinite(low)) {
      ASSERT_TRUE(WideSum::Of(low) <= truth);
    }
    if (std::isfinite(high)) {
      ASSERT_TRUE(truth <= WideSum::Of(high));
    }
    ASSERT_TRUE(low == high || std::nextafter(low, Limits::infinity()) == high)
        << low << ' ' << high;
  }
  EXPECT_EQ(LowerDouble(1, 1024), Limits::max());
  EXPECT_EQ(UpperDouble(1, 1024), Limits::infinity());
  EXPECT_EQ(LowerDouble(-1, 1024), -Limits::infinity());
}

/// sign * (truth - value) >= 0, for values that may be infinite.
bool Beyond(double value, const WideSum& truth, int sign) {
  if (std::isinf(value)) return sign * value > 0;
  return (sign > 0 ? truth - WideSum::Of(value) : WideSum::Of(value) - truth).Sign() <= 0;
}

TEST(OutwardRounding, SumsAreOnTheRightSideAndExactWhereTheyCanBe) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50'000; ++i) {
    const double a = Draw(random), b = Draw(random);
    const WideSum truth = WideSum::Of(a) + WideSum::Of(b);
    const double low = AddDown(a, b), high = AddUp(a, b);
    ASSERT_TRUE(Beyond(high, truth, 1) && Beyond(low, truth, -1)) << a << " + " << b;
    ASSERT_TRUE(low == high || std::nextafter(low, Limits::infinity()) == high) << a << " + " << b;
    ASSERT_EQ(SubDown(a, b), AddDown(a, -b));
    ASSERT_EQ(SubUp(a, b), AddUp(a, -b));
  }
}

TEST(OutwardRounding, ProductsAndQuotientsAreOnTheRightSide) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 50'000; ++i) {
    const double a = Draw(random);
    const auto count = static_cast<std::int64_t>(1 + random() % (1 << 29));
    const auto b = static_cast<double>(count);
    const WideSum product = WideSum::Of(a).Times(count);
    ASSERT_TRUE(Beyond(MulUp(a, b), product, 1) && Beyond(MulDown(b, a), product, -1)) << a << b;
    // quotient >= a / b is quotient * b >= a.
    const double low = DivDown(a, b), high = DivUp(a, b);
    ASSERT_TRUE(WideSum::Of(low).Times(count) <= WideSum::Of(a)) << a << " / " << b;
    ASSERT_TRUE(WideSum::Of(a) <= WideSum::Of(high).Times(count)) << a << " / " << b;
    if (std::abs(a) > 1e-200 && std::abs(a) < 1e200) {
      ASSERT_TRUE(low == high || std::nextafter(low, Limits::infinity()) == high);
    }
  }
}

TEST(OutwardRounding, InfinitiesAndCounts) {
  const double infinity = Limits::infinity();
  EXPECT_EQ(AddDown(infinity, -infinity), -infinity);
  EXPECT_EQ(AddUp(infinity, -infinity), infinity);
  EXPECT_EQ(AddDown(infinity, 1), infinity);
  EXPECT_EQ(AddDown(Limits::max(), Limits::max()), Limits::max());
  EXPECT_EQ(MulDown(infinity, 0), -infinity);
  EXPECT_EQ(MulUp(-infinity, 2), -infinity);
  EXPECT_EQ(DivDown(-infinity, 2), -infinity);
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t count = random() >> random() % 64;
    ASSERT_TRUE(WideSum::Of(CountDown(count)) <= WideSum::Of(count));
    ASSERT_TRUE(WideSum::Of(count) <= WideSum::Of(CountUp(count)));
    if (count < (1ull << 53)) {
      ASSERT_EQ(CountDown(count), CountUp(count));
    }
  }
  EXPECT_EQ(CountUp(~std::uint64_t{0}), 0x1p64);
  EXPECT_LT(CountDown(~std::uint64_t{0}), 0x1p64);
}

}  // namespace
}  // namespace tidemark
