// Numbers in text: the short decimals that metrics are made of, without std::from_chars'
// generality.
#ifndef TIDEMARK_SERVER_INGEST_DECIMAL_H_
#define TIDEMARK_SERVER_INGEST_DECIMAL_H_

#include <charconv>
#include <cstdint>
#include <system_error>

namespace tidemark::server {

/// Reads a decimal number at the start of [begin, end): an optional sign, then what std::from_chars
/// takes ("1", "1.5", ".5", "1e9", "inf", "nan"). Returns where it ends, nullptr if there is none
/// or it is too large or too small for a double.
///
/// Guarantee: the nearest double (ties to even), as from_chars. The fast path covers at most 19
/// digits whose value without the point is at most 2^53: that integer and 10^fraction, of which
/// there are at most 19 digits, are both exact doubles (10^22 is the last power that is), so their
/// quotient is rounded once.
inline const char* ParseDecimal(const char* begin, const char* end, double& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  constexpr int kDigitsMax = 19;  // 10^19 - 1 < 2^64
  static_assert(sizeof kPowers / sizeof kPowers[0] == kDigitsMax + 1);
  constexpr std::uint64_t kExactMax = std::uint64_t{1} << 53;

  const char* p = begin;
  const bool negative = p != end && *p == '-';
  const bool plus = p != end && *p == '+';
  if (negative || plus) ++p;
  const char* const digits = p;
  std::uint64_t mantissa = 0;
  unsigned digit = 0;
  while (p != end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) < 10) {
    mantissa = mantissa * 10 + digit;
    ++p;
  }
  auto count = p - digits;
  std::ptrdiff_t fraction = 0;
  if (p != end && *p == '.') {
    const char* const after = ++p;
    while (p != end && (digit = static_cast<unsigned char>(*p) - unsigned{'0'}) < 10) {
      mantissa = mantissa * 10 + digit;
      ++p;
    }
    fraction = p - after;
    count += fraction;
  }
  const bool exponent = p != end && (*p == 'e' || *p == 'E');
  if (count > 0 && count <= kDigitsMax && mantissa <= kExactMax && !exponent) {
    double magnitude = static_cast<double>(mantissa);
    if (fraction > 0) magnitude /= kPowers[fraction];
    value = negative ? -magnitude : magnitude;
    return p;
  }
  // from_chars takes '-' but not '+'.
  if (plus && digits != end && *digits == '-') return nullptr;
  const auto [stop, error] = std::from_chars(plus ? digits : begin, end, value);
  return error == std::errc() ? stop : nullptr;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_DECIMAL_H_
