#include "server/query/value.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "server/window/concat.h"
#include "summaries/key_codec.h"

namespace tidemark::server {
namespace {

// A number of any kind, widened without loss: either a whole number or a double.
struct Number {
  bool whole = false;
  bool negative = false;        // whole numbers
  std::uint64_t magnitude = 0;  // whole numbers: two's complement bits of the value
  double real = 0;
};

KeyPosition BelowAll() { return {.key = 0, .exact = false, .below_all = true}; }

// The largest Integer at or below `value`.
template <class Integer>
KeyPosition FloorToInteger(double value) {
  using Limits = std::numeric_limits<Integer>;
  // One above the largest Integer: a power of two, and so exact.
  constexpr double kEnd = std::is_signed_v<Integer> ? 0x1p63
                          : sizeof(Integer) == 8    ? 0x1p64
                                                    : 0x1p32;
  if (value < static_cast<double>(Limits::min())) return BelowAll();
  if (value >= kEnd) return {.key = EncodeKey(Limits::max()), .exact = false};
  const double floor = std::floor(value);
  return {.key = EncodeKey(static_cast<Integer>(floor)), .exact = floor == value};
}

template <class Integer>
KeyPosition WholeToInteger(const Number& number) {
  using Limits = std::numeric_limits<Integer>;
  if (number.negative) {
    const auto value = static_cast<std::int64_t>(number.magnitude);
    if constexpr (std::is_signed_v<Integer>) {
      return {.key = EncodeKey(value)};
    } else {
      return BelowAll();
    }
  }
  if (number.magnitude > static_cast<std::uint64_t>(Limits::max())) {
    return {.key = EncodeKey(Limits::max()), .exact = false};
  }
  return {.key = EncodeKey(static_cast<Integer>(number.magnitude))};
}

// The largest double at or below a whole number.
double FloorToDouble(const Number& number, bool& exact) {
  if (number.negative) {
    const auto value = static_cast<std::int64_t>(number.magnitude);
    double rounded = static_cast<double>(value);
    // -2^63 is exact, so that `rounded` always converts back.
    if (static_cast<std::int64_t>(rounded) > value) {
      rounded = std::nextafter(rounded, -std::numeric_limits<double>::infinity());
    }
    exact = static_cast<std::int64_t>(rounded) == value;
    return rounded;
  }
  double rounded = static_cast<double>(number.magnitude);
  if (rounded >= 0x1p64 || static_cast<std::uint64_t>(rounded) > number.magnitude) {
    rounded = std::nextafter(rounded, 0.0);
  }
  exact = static_cast<std::uint64_t>(rounded) == number.magnitude;
  return rounded;
}

KeyPosition FloorToFloat32(double value, bool exact) {
  float rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) > value) {
    rounded = std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  }
  return {.key = EncodeKey(rounded), .exact = exact && static_cast<double>(rounded) == value};
}

}  // namespace

template <class Key>
Value DecodeValue(ValueType type, Key key) {
  switch (type) {
    case ValueType::kFloat64:
      return DecodeFloat64(key);
    case ValueType::kFloat32:
      return DecodeFloat32(static_cast<std::uint32_t>(key));
    case ValueType::kInt64:
      return DecodeInt64(key);
    case ValueType::kUint32:
      return static_cast<std::uint32_t>(key);
    case ValueType::kIpv4:
      return Ipv4{static_cast<std::uint32_t>(key)};
    default:
      return std::uint64_t{key};
  }
}
template Value DecodeValue(ValueType type, std::uint32_t key);
template Value DecodeValue(ValueType type, std::uint64_t key);

absl::StatusOr<KeyPosition> PositionOf(ValueType type, const Value& value) {
  const auto mismatch = [&](std::string_view kind) {
    return absl::InvalidArgumentError(Concat("the stream holds ", ValueTypeName(type),
                                             "; a value of kind ", kind,
                                             " cannot be compared with it"));
  };
  if (type == ValueType::kString || std::holds_alternative<std::string>(value)) {
    return mismatch(std::holds_alternative<std::string>(value) ? "string" : "number");
  }
  if (const auto* address = std::get_if<Ipv4>(&value)) {
    if (type != ValueType::kIpv4) return mismatch("ipv4");
    return KeyPosition{.key = address->address};
  }
  if (std::holds_alternative<Ipv6>(value)) return mismatch("ipv6");
  if (type == ValueType::kIpv4 || type == ValueType::kIpv6) return mismatch("number");

  const Number number = std::visit(
      [](const auto& held) -> Number {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_floating_point_v<Held>) {
          return {.real = static_cast<double>(held)};
        } else if constexpr (std::is_integral_v<Held>) {
          return {.whole = true,
                  .negative = std::is_signed_v<Held> && held < Held{},
                  .magnitude = static_cast<std::uint64_t>(held)};
        } else {
          return {};
        }
      },
      value);
  if (!number.whole && IsNan(number.real)) {
    return absl::InvalidArgumentError("NaN has no rank");
  }
  switch (type) {
    case ValueType::kInt64:
      return number.whole ? WholeToInteger<std::int64_t>(number)
                          : FloorToInteger<std::int64_t>(number.real);
    case ValueType::kUint64:
      return number.whole ? WholeToInteger<std::uint64_t>(number)
                          : FloorToInteger<std::uint64_t>(number.real);
    case ValueType::kUint32:
      return number.whole ? WholeToInteger<std::uint32_t>(number)
                          : FloorToInteger<std::uint32_t>(number.real);
    default:
      break;
  }
  bool exact = true;
  const double real = number.whole ? FloorToDouble(number, exact) : number.real;
  if (type == ValueType::kFloat32) return FloorToFloat32(real, exact);
  return KeyPosition{.key = EncodeKey(real), .exact = exact};
}

}  // namespace tidemark::server
