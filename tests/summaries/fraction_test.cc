// Shares of n, against exact arithmetic on the decimal fraction that was meant; and CRC-32C.
#include "summaries/fraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "summaries/crc32c.h"
#include "summaries/quantile_view.h"

namespace tidemark {
namespace {

TEST(Fraction, MeansTheDecimalThatWasWritten) {
  for (const std::uint64_t parts : {10u, 20u, 100u, 1000u, 10'000u, 1'000'000u}) {
    std::mt19937_64 random(parts);
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t part = random() % (parts + 1);
      const std::uint64_t n = random() % 3 == 0 ? random() % 1000 : random() % (1ull << 40);
      const double share = static_cast<double>(part) / static_cast<double>(parts);
      const Uint128 exact = static_cast<Uint128>(part) * n;
      ASSERT_EQ(CeilFraction(share, n), static_cast<std::uint64_t>((exact + parts - 1) / parts))
          << part << '/' << parts << " of " << n;
      ASSERT_EQ(FloorFraction(share, n), static_cast<std::uint64_t>(exact / parts))
          << part << '/' << parts << " of " << n;
    }
  }
}

TEST(Fraction, WholeNumbersOfLargeCounts) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t n = 1 + random() % ((1ull << 52) - 1);
    const std::uint64_t k = random() % (n + 1);
    const double share = static_cast<double>(k) / static_cast<double>(n);
    ASSERT_EQ(CeilFraction(share, n), k) << n;
    ASSERT_EQ(FloorFraction(share, n), k) << n;
  }
}

TEST(Fraction, Edges) {
  constexpr std::uint64_t kMost = (1ull << 63) - 1;
  EXPECT_EQ(CeilFraction(0, 10), 0u);
  EXPECT_EQ(CeilFraction(-1, 10), 0u);
  EXPECT_EQ(CeilFraction(std::nan(""), 10), 0u);
  EXPECT_EQ(CeilFraction(0.5, 0), 0u);
  EXPECT_EQ(CeilFraction(1, kMost), kMost);
  EXPECT_EQ(FloorFraction(2, kMost), kMost);
  EXPECT_EQ(CeilFraction(std::numeric_limits<double>::denorm_min(), kMost), 1u);
  EXPECT_EQ(CeilFraction(1e-300, kMost), 1u);
  EXPECT_EQ(FloorFraction(1e-300, kMost), 0u);
  EXPECT_EQ(CeilFraction(0.5, 3), 2u);
  EXPECT_EQ(FloorFraction(0.5, 3), 1u);
  EXPECT_NEAR(static_cast<double>(CeilFraction(0.25, kMost)), 0.25 * static_cast<double>(kMost),
              static_cast<double>(kMost) * 0x1p-52);
}

TEST(TargetRank, IsWithinOneAndN) {
  EXPECT_EQ(TargetRank(0, 30), 1u);
  EXPECT_EQ(TargetRank(0.1, 30), 3u);
  EXPECT_EQ(TargetRank(0.5, 1), 1u);
  EXPECT_EQ(TargetRank(0.99, 100), 99u);
  EXPECT_EQ(TargetRank(1, 30), 30u);
  EXPECT_EQ(TargetRank(0.5, 0), 0u);
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  // RFC 3720, B.4: 32 bytes of 0, and 32 bytes of 0xFF.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

}  // namespace
}  // namespace tidemark
