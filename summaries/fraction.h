// Products of a count and a share given as a double, rounded as the person who wrote the share
// meant.
//
// 0.1 as a double is slightly more than one tenth, so that an exact ceil(0.1 * 30) is 4. A double
// stands for every real number that rounds to it; of those we take the one that favours the whole
// number: CeilFraction uses the smallest (half a unit in the last place below), FloorFraction the
// largest (half a unit above). Hence CeilFraction(k / n, n) == FloorFraction(k / n, n) == k for all
// k <= n < 2^52, and 0.1 of 30 is 3. Arithmetic is exact, on 128-bit integers. From n = 2^52 on the
// result may differ from the exact product by more than its rounding: by at most n * 2^-53.
#ifndef TIDEMARK_SUMMARIES_FRACTION_H_
#define TIDEMARK_SUMMARIES_FRACTION_H_

#include <bit>
#include <cstdint>

namespace tidemark {

__extension__ typedef unsigned __int128 Uint128;

namespace internal {

/// fraction = mantissa / 2^shift with 2^52 <= mantissa < 2^53.
/// REQUIRES: 0 < fraction < 1.
struct DyadicFraction {
  std::uint64_t mantissa;
  int shift;
};
constexpr DyadicFraction Split(double fraction) {
  const auto bits = std::bit_cast<std::uint64_t>(fraction);
  const int exponent = static_cast<int>(bits >> 52);  // the sign bit is 0
  // A denormal is below 2^-1022: as if its exponent were 0 and its mantissa the smallest.
  const std::uint64_t mantissa = (bits & ((1ull << 52) - 1)) | (1ull << 52);
  return {mantissa, 1075 - exponent};
}

}  // namespace internal

/// The smallest whole number that is not below (a real that rounds to `fraction`) * n.
/// A fraction that is not above 0 gives 0, one of 1 or more gives n.
constexpr std::uint64_t CeilFraction(double fraction, std::uint64_t n) {
  if (!(fraction > 0) || n == 0) return 0;
  if (fraction >= 1) return n;
  const auto [mantissa, shift] = internal::Split(fraction);
  const int down = shift + 1;  // in halves of the mantissa's last place
  if (down >= 120) return 1;   // 0 < product < 2^54 * 2^64 / 2^120
  const Uint128 product = static_cast<Uint128>(2 * mantissa - 1) * n;
  const Uint128 one = 1;
  return static_cast<std::uint64_t>((product + ((one << down) - 1)) >> down);
}

/// The largest whole number that is not above (a real that rounds to `fraction`) * n.
constexpr std::uint64_t FloorFraction(double fraction, std::uint64_t n) {
  if (!(fraction > 0) || n == 0) return 0;
  if (fraction >= 1) return n;
  const auto [mantissa, shift] = internal::Split(fraction);
  const int down = shift + 1;
  if (down >= 120) return 0;
  const Uint128 product = static_cast<Uint128>(2 * mantissa + 1) * n;
  return static_cast<std::uint64_t>(product >> down);
}

static_assert(CeilFraction(0.1, 30) == 3 && FloorFraction(0.1, 30) == 3);
static_assert(CeilFraction(0.001, 1000) == 1 && CeilFraction(0.001, 1001) == 2);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FRACTION_H_
