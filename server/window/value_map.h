// From the values of a batch to keys, and the checks of values that come as another type.
#ifndef TIDEMARK_SERVER_WINDOW_VALUE_MAP_H_
#define TIDEMARK_SERVER_WINDOW_VALUE_MAP_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "server/window/concat.h"
#include "server/window/ingest_sink.h"
#include "summaries/key_codec.h"

namespace tidemark::server {

// Maps `count` packed values to keys at `out`, which has room for all of them. Returns how many
// were written: NaN are left out, and if values must be finite, infinities. The common case, none
// of them, is one vectorised pass.
template <class Key, class Value, bool finite = false>
std::size_t MapValues(const std::byte* values, std::size_t count, Key* out) {
  const auto load = [&](std::size_t i) {
    Value value;
    std::memcpy(&value, values + i * sizeof(Value), sizeof(Value));
    return value;
  };
  if constexpr (std::is_floating_point_v<Value>) {
    const auto refused = [](Value value) {
      return finite ? !(std::abs(value) <= std::numeric_limits<Value>::max()) : IsNan(value);
    };
    Key refusals = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Value value = load(i);
      refusals += static_cast<Key>(refused(value));
      out[i] = EncodeKey(value);
    }
    if (refusals == 0) return count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Value value = load(i);
      out[kept] = EncodeKey(value);
      kept += refused(value) ? 0 : 1;
    }
    return kept;
  } else if constexpr (std::is_same_v<Value, Key>) {
    std::memcpy(out, values, count * sizeof(Value));
    return count;
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = EncodeKey(load(i));
    return count;
  }
}

// The same for pairs: adds the bits of the payload of each value that was written to
// `kept_payloads`. Left out are pairs with a NaN and, if payloads must be finite floating-point
// numbers, others.
template <class Key, class Value>
std::size_t MapPairs(const std::byte* values, const std::byte* payloads, std::size_t count,
                     bool finite, Key* out, std::vector<std::uint64_t>& kept_payloads) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Value value;
    std::memcpy(&value, values + i * sizeof(Value), sizeof(Value));
    std::uint64_t bits = 0;
    std::memcpy(&bits, payloads + i * sizeof bits, sizeof bits);
    if constexpr (std::is_floating_point_v<Value>) {
      if (IsNan(value)) continue;
    }
    if (finite && !std::isfinite(std::bit_cast<double>(bits))) continue;
    out[kept++] = EncodeKey(value);
    kept_payloads.push_back(bits);
  }
  return kept;
}

// Whole numbers of `Integer` that a double holds: the bounds are powers of two and so exact.
template <class Integer>
bool FitsInteger(double value) {
  constexpr double kLow = std::is_signed_v<Integer> ? -0x1p63 : 0.0;
  constexpr double kHigh = std::is_signed_v<Integer> ? 0x1p63
                           : sizeof(Integer) == 8    ? 0x1p64
                                                     : 0x1p32;
  return value >= kLow && value < kHigh && std::trunc(value) == value;
}

template <class Integer>
absl::Status CheckIntegers(std::span<const double> values, ValueType type) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!FitsInteger<Integer>(values[i])) {
      return absl::InvalidArgumentError(Concat("value ", values[i], " at position ", i,
                                               " of the batch is not a whole ", ValueTypeName(type),
                                               " number"));
    }
  }
  return absl::OkStatus();
}

// A finite number must not become infinite.
inline absl::Status CheckFloat32(std::span<const double> values) {
  // Halfway between the largest float and the next power of two, from where on rounding overflows.
  constexpr double kOverflow = 0x1.ffffffp127;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && std::abs(values[i]) >= kOverflow) {
      return absl::InvalidArgumentError(Concat("value ", values[i], " at position ", i,
                                               " of the batch is beyond the range of float32"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_VALUE_MAP_H_
