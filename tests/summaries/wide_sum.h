// Sums of any doubles and integers without any rounding: the oracle of sums.
#ifndef TIDEMARK_TESTS_SUMMARIES_WIDE_SUM_H_
#define TIDEMARK_TESTS_SUMMARIES_WIDE_SUM_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "summaries/fixed_sum.h"

namespace tidemark::testing {

/// A whole multiple of 2^-1074, of up to 1,400 bits before the point.
class WideSum {
 public:
  void Add(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
    const std::uint64_t fraction = bits & ((1ull << 52) - 1);
    const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | (1ull << 52);
    AddUnits(value < 0 ? -Int128{mantissa} : Int128{mantissa},
             (exponent == 0 ? 1 : exponent) - 1075);
  }
  void Add(std::int64_t value) { AddUnits(value, 0); }
  void Add(std::uint64_t value) { AddUnits(Int128{value}, 0); }
  /// units * 2^scale, scale >= -1074.
  void AddUnits(Int128 units, int scale) {
    const int sign = units < 0 ? -1 : 1;
    Uint128 rest =
        units < 0 ? Uint128{0} - static_cast<Uint128>(units) : static_cast<Uint128>(units);
    const int shift = scale - kFinestScale;
    for (auto limb = static_cast<std::size_t>(shift / 32); rest != 0; ++limb, rest >>= 32) {
      const std::uint64_t piece = static_cast<std::uint64_t>(rest & 0xFFFF'FFFF) << (shift % 32);
      limbs_[limb] += sign * static_cast<std::int64_t>(piece & 0xFFFF'FFFF);
      limbs_[limb + 1] += sign * static_cast<std::int64_t>(piece >> 32);
    }
    Normalize();
  }
  WideSum& operator+=(const WideSum& other) {
    for (std::size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += other.limbs_[i];
    Normalize();
    return *this;
  }
  WideSum& operator-=(const WideSum& other) {
    for (std::size_t i = 0; i < limbs_.size(); ++i) limbs_[i] -= other.limbs_[i];
    Normalize();
    return *this;
  }
  friend WideSum operator+(WideSum a, const WideSum& b) { return a += b; }
  friend WideSum operator-(WideSum a, const WideSum& b) { return a -= b; }
  /// REQUIRES: |factor| < 2^30.
  WideSum Times(std::int64_t factor) const {
    WideSum result = *this;
    for (auto& limb : result.limbs_) limb *= factor;
    result.Normalize();
    return result;
  }
  /// -1, 0 or 1.
  int Sign() const {
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      if (limbs_[i] != 0) return limbs_[i] < 0 ? -1 : 1;
    }
    return 0;
  }
  friend bool operator<=(const WideSum& a, const WideSum& b) { return (a - b).Sign() <= 0; }

  static WideSum OfUnits(Int128 units, int scale) {
    WideSum sum;
    sum.AddUnits(units, scale);
    return sum;
  }
  template <class Y>
  static WideSum Of(Y value) {
    WideSum sum;
    sum.Add(value);
    return sum;
  }

 private:
  /// Limbs but the last in [0, 2^32); the last one has the sign.
  void Normalize() {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i + 1 < limbs_.size(); ++i) {
      const std::int64_t value = limbs_[i] + carry;
      limbs_[i] = value & 0xFFFF'FFFF;
      carry = value >> 32;
    }
    limbs_.back() += carry;
  }

  std::array<std::int64_t, 78> limbs_{};  // 32 bits each
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_WIDE_SUM_H_
