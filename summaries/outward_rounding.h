// Arithmetic on doubles whose result is surely not above (…Down) or not below (…Up) the true one,
// so that bounds stay bounds. Exact results are kept. Where the error of an operation cannot be
// told exactly (near underflow) the neighbouring double is taken.
//
// Operands may be infinite, not NaN; where the true result does not exist (infinity - infinity, 0 *
// infinity) Down gives -infinity and Up infinity. No rounding mode is changed.
#ifndef TIDEMARK_SUMMARIES_OUTWARD_ROUNDING_H_
#define TIDEMARK_SUMMARIES_OUTWARD_ROUNDING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tidemark {

/// A true value lies between them.
struct RealBounds {
  double low = 0, high = 0;
};

namespace internal {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// `result` is a rounded to nearest, `error` has the sign of (truth - result) or, if `sure` is
/// false, is of no meaning.
inline double RoundedDown(double result, double error, bool sure) {
  if (std::isnan(result)) return -kInfinity;
  if (std::isinf(result)) return result > 0 ? std::numeric_limits<double>::max() : result;
  return !sure || error < 0 ? std::nextafter(result, -kInfinity) : result;
}

/// Below this a product's or quotient's error may be lost itself.
inline constexpr double kErrorLost = 0x1p-900;

}  // namespace internal

inline double AddDown(double a, double b) {
  const double sum = a + b;
  if (std::isinf(a) || std::isinf(b)) return std::isnan(sum) ? -internal::kInfinity : sum;
  const double part = sum - a;
  return internal::RoundedDown(sum, (a - (sum - part)) + (b - part), true);
}
inline double AddUp(double a, double b) { return -AddDown(-a, -b); }

inline double SubDown(double a, double b) { return AddDown(a, -b); }
inline double SubUp(double a, double b) { return AddUp(a, -b); }

inline double MulDown(double a, double b) {
  const double product = a * b;
  if (std::isinf(a) || std::isinf(b)) return std::isnan(product) ? -internal::kInfinity : product;
  if (a == 0 || b == 0) return 0;
  return internal::RoundedDown(product, std::fma(a, b, -product),
                               std::abs(product) >= internal::kErrorLost);
}
inline double MulUp(double a, double b) { return -MulDown(-a, b); }

/// REQUIRES: b > 0 and finite.
inline double DivDown(double a, double b) {
  const double quotient = a / b;
  if (std::isinf(a)) return a;
  if (a == 0) return 0;
  return internal::RoundedDown(
      quotient, std::fma(-quotient, b, a),
      std::abs(a) >= internal::kErrorLost && std::abs(quotient) >= internal::kErrorLost);
}
inline double DivUp(double a, double b) { return -DivDown(-a, b); }

/// A whole number as a double, not above and not below it.
inline double CountDown(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  // 2^64 is the only double of that size to which a count rounds up without being representable.
  if (value >= 0x1p64 || static_cast<std::uint64_t>(value) > count) {
    return std::nextafter(value, 0.0);
  }
  return value;
}
inline double CountUp(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 0x1p64 || static_cast<std::uint64_t>(value) >= count) return value;
  return std::nextafter(value, internal::kInfinity);
}

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_OUTWARD_ROUNDING_H_
