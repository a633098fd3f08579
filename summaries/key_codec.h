// Order-preserving maps between values and the unsigned keys that sorters and summaries work on.
//
// Floating point (IEEE 754 binary32/binary64): the sign bit of a non-negative number is set, every
// bit of a negative one is flipped; unsigned order of the keys is then the order of the numbers,
// denormals and infinities included. -0 becomes +0, so that equal numbers have equal keys. NaN has
// no rank: it is not encodable and the caller refuses it (see IsNan).
// Signed integers: the sign bit is flipped. Unsigned integers, addresses and ids are their own
// keys; the sixteen bytes of an IPv6 address, the first one the highest, are a key of 128 bits.
#ifndef TIDEMARK_SUMMARIES_KEY_CODEC_H_
#define TIDEMARK_SUMMARIES_KEY_CODEC_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "summaries/fraction.h"

namespace tidemark {

constexpr std::uint32_t EncodeKey(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);  // -0 + 0 is +0
  return bits ^ ((0u - (bits >> 31)) | 0x8000'0000u);
}
constexpr std::uint64_t EncodeKey(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return bits ^ ((0ull - (bits >> 63)) | 0x8000'0000'0000'0000ull);
}
constexpr std::uint64_t EncodeKey(std::int64_t value) {
  return static_cast<std::uint64_t>(value) ^ 0x8000'0000'0000'0000ull;
}
constexpr std::uint64_t EncodeKey(std::uint64_t value) { return value; }
constexpr std::uint32_t EncodeKey(std::uint32_t value) { return value; }

/// An IPv6 address as it travels, in network order.
struct Ipv6Bytes {
  std::array<std::uint8_t, 16> bytes{};
  friend bool operator==(const Ipv6Bytes&, const Ipv6Bytes&) = default;
};
constexpr Uint128 EncodeKey(const Ipv6Bytes& address) {
  Uint128 key = 0;
  for (const std::uint8_t byte : address.bytes) key = key << 8 | byte;
  return key;
}
constexpr Ipv6Bytes DecodeIpv6(Uint128 key) {
  Ipv6Bytes address;
  for (std::size_t i = address.bytes.size(); i-- > 0; key >>= 8) {
    address.bytes[i] = static_cast<std::uint8_t>(key);
  }
  return address;
}

constexpr float DecodeFloat32(std::uint32_t key) {
  return std::bit_cast<float>(key ^ (((key >> 31) - 1u) | 0x8000'0000u));
}
constexpr double DecodeFloat64(std::uint64_t key) {
  return std::bit_cast<double>(key ^ (((key >> 63) - 1ull) | 0x8000'0000'0000'0000ull));
}
constexpr std::int64_t DecodeInt64(std::uint64_t key) {
  return static_cast<std::int64_t>(key ^ 0x8000'0000'0000'0000ull);
}

constexpr bool IsNan(float value) { return value != value; }
constexpr bool IsNan(double value) { return value != value; }

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_KEY_CODEC_H_
