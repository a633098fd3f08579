// Integers as floats that MIN and MAX blending carries exactly.
//
// Blending compares floats. What goes in comes out, bit for bit, for normal numbers; denormals may
// be flushed, -0 and +0 are equal, NaN has no order (measured on llvmpipe; OpenGL allows it). There
// are 2^32 - 2^25 normal finite floats: 254 exponents, 2^23 fractions, two signs. Their order is
// that of integers, so that ranks 0 … 2^32 - 2^25 - 1 go through as
//
//   rank <  h   the negative float of magnitude bits 0x7f7fffff - rank   (rank 0: -FLT_MAX)
//   rank >= h   the positive float of bits 0x00800000 + rank - h         (largest: FLT_MAX)
//
// with h = 254 · 2^23 = 2^31 - 2^24. Both halves rise with the rank, and every negative float is
// below every positive one: the map keeps the order. The plain conversion of integers would carry
// those below 2^24 only.
//
// A window whose keys are less than kBlendRanks apart is carried as its distances from the smallest
// key. Any window of 32-bit keys is, or becomes so when it is cut at 2^31 into two.
#ifndef TIDEMARK_GPU_SORT_BLEND_KEYS_H_
#define TIDEMARK_GPU_SORT_BLEND_KEYS_H_

#include <cstdint>

namespace tidemark::sort {

inline constexpr std::uint32_t kBlendHalf = (std::uint32_t{1} << 31) - (std::uint32_t{1} << 24);
/// Ranks that there are: 4,261,412,864.
inline constexpr std::uint32_t kBlendRanks = 2 * kBlendHalf;

/// The bits of the float. REQUIRES: rank < kBlendRanks.
constexpr std::uint32_t BlendBits(std::uint32_t rank) {
  constexpr std::uint32_t kSign = 0x80000000U;
  constexpr std::uint32_t kLargest = 0x7f7fffffU;
  constexpr std::uint32_t kSmallest = 0x00800000U;
  return rank < kBlendHalf ? kSign | (kLargest - rank) : kSmallest + (rank - kBlendHalf);
}

/// The inverse; of other bits some number.
constexpr std::uint32_t BlendRank(std::uint32_t bits) {
  if ((bits & 0x80000000U) != 0) return 0x7f7fffffU - (bits & 0x7fffffffU);
  return bits - 0x00800000U + kBlendHalf;
}

static_assert(BlendBits(0) == 0xff7fffffU, "-FLT_MAX");
static_assert(BlendBits(kBlendHalf - 1) == 0x80800000U, "-FLT_MIN");
static_assert(BlendBits(kBlendHalf) == 0x00800000U, "FLT_MIN");
static_assert(BlendBits(kBlendRanks - 1) == 0x7f7fffffU, "FLT_MAX");

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_BLEND_KEYS_H_
