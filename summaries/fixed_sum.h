// Sums of numbers as whole multiples of a unit 2^scale, in 128 bits: exact or with a known
// rounding, and the same in every order of addition.
//
// Integers have scale 0 and are exact: fewer than 2^63 of at most 2^64 each stay below 2^127.
// A double is a whole multiple of 2^-1074, so that a sum of doubles begins at that scale, where it
// is exact, and its scale rises only when 126 bits would not hold it. ToUnits cuts off what lies
// below the unit; whoever adds keeps count of the cuts: each of them lost less than one unit. Cuts
// are made number by number, so that the sum does not depend on the order.
#ifndef TIDEMARK_SUMMARIES_FIXED_SUM_H_
#define TIDEMARK_SUMMARIES_FIXED_SUM_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "summaries/fraction.h"

namespace tidemark {

__extension__ typedef __int128 Int128;

/// The scale at which every double is a whole number of units.
inline constexpr int kFinestScale = -1074;

/// A sum of doubles and the units that may be missing stay below 2^126.
inline constexpr int kSumBits = 126;

constexpr int BitWidth(Uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(value));
}

struct Units {
  Uint128 value = 0;
  bool cut = false;  ///< something below the unit was cut off
};

/// REQUIRES: `magnitude` is finite, not negative and below 2^(127 + scale); scale >= kFinestScale.
constexpr Units ToUnits(double magnitude, int scale) {
  const auto bits = std::bit_cast<std::uint64_t>(magnitude) & ~(1ull << 63);  // -0 is 0
  const int exponent = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & ((1ull << 52) - 1);
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | (1ull << 52);
  const int shift = (exponent == 0 ? 1 : exponent) - 1075 - scale;
  if (shift >= 0) return {static_cast<Uint128>(mantissa) << shift, false};
  if (shift <= -53) return {0, mantissa != 0};
  const std::uint64_t whole = mantissa >> -shift;
  return {whole, whole << -shift != mantissa};
}

/// The number of bits before the binary point that any number up to `magnitude` needs:
/// magnitude < 2^result; kFinestScale for 0.
inline int BitsBeforePoint(double magnitude) {
  return magnitude == 0 ? kFinestScale : std::ilogb(magnitude) + 1;
}

/// The greatest double that is not above units * 2^scale (-infinity counts as one).
inline double LowerDouble(Int128 units, int scale) {
  const bool negative = units < 0;
  const Uint128 magnitude =
      negative ? Uint128{0} - static_cast<Uint128>(units) : static_cast<Uint128>(units);
  const int drop = BitWidth(magnitude) > 53 ? BitWidth(magnitude) - 53 : 0;
  auto top = static_cast<std::uint64_t>(magnitude >> drop);
  if (negative && static_cast<Uint128>(top) << drop != magnitude) ++top;
  // Exact: at most 53 bits (or 2^53), and no bit below 2^scale, so below the least denormal.
  const double value = std::ldexp(static_cast<double>(top), scale + drop);
  if (!negative && std::isinf(value)) return std::numeric_limits<double>::max();
  return negative ? -value : value;
}

/// The least double that is not below units * 2^scale (infinity counts as one).
inline double UpperDouble(Int128 units, int scale) { return -LowerDouble(-units, scale); }

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FIXED_SUM_H_
