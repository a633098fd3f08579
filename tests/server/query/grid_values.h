// Every type of stream as the grid test sees it: its values in every shape, packed or as text, and
// as what queries take and give.
#ifndef TIDEMARK_TESTS_SERVER_QUERY_GRID_VALUES_H_
#define TIDEMARK_TESTS_SERVER_QUERY_GRID_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "server/query/value.h"
#include "summaries/key_codec.h"
#include "tests/support/shapes.h"

template <>
struct std::hash<tidemark::Ipv6Bytes> {
  std::size_t operator()(const tidemark::Ipv6Bytes& address) const {
    const tidemark::Uint128 key = tidemark::EncodeKey(address);
    return static_cast<std::size_t>((key >> 64) * 0x9E37'79B9'7F4A'7C15u ^ key);
  }
};

namespace tidemark::server {

using test::Shape;

/// `Type`: ordered as the stream orders its values, and what a packed batch holds (strings aside).
template <ValueType kOf>
struct Kind {
  static constexpr ValueType kType = kOf;
  using Type = std::conditional_t<
      kOf == ValueType::kFloat64, double,
      std::conditional_t<kOf == ValueType::kFloat32, float,
                         std::conditional_t<kOf == ValueType::kInt64, std::int64_t,
                                            std::conditional_t<kOf == ValueType::kUint64,
                                                               std::uint64_t, std::uint32_t>>>>;
  static constexpr bool kFloating = std::is_floating_point_v<Type>;
  static constexpr bool kRanks = true;

  static Value ToValue(Type value) {
    if constexpr (kOf == ValueType::kIpv4) return Ipv4{value};
    return value;
  }
  static Type FromValue(const Value& value) {
    if constexpr (kOf == ValueType::kIpv4) {
      return std::get<Ipv4>(value).address;
    } else {
      return std::get<Type>(value);
    }
  }
  Type Make(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
    if constexpr (kFloating) {
      return test::FloatOf<Type>(shape, i, n, random);
    } else {
      return test::IntegerOf<Type>(shape, i, n, random);
    }
  }
};

/// Addresses as a packed batch holds them: half of the bits of each half from a number, so that
/// they share prefixes of any length.
template <>
struct Kind<ValueType::kIpv6> {
  static constexpr ValueType kType = ValueType::kIpv6;
  using Type = Ipv6Bytes;
  static constexpr bool kFloating = false;
  static constexpr bool kRanks = false;

  static Value ToValue(Type value) { return Ipv6{EncodeKey(value)}; }
  static Type FromValue(const Value& value) { return DecodeIpv6(std::get<Ipv6>(value).address); }

  Type Make(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
    const auto number = test::IntegerOf<std::uint64_t>(shape, i, n, random);
    return DecodeIpv6(Key128{number >> 32} << 96 | static_cast<std::uint32_t>(number));
  }
};

/// Strings are views of texts that the kind owns.
template <>
struct Kind<ValueType::kString> {
  static constexpr ValueType kType = ValueType::kString;
  using Type = std::string_view;
  static constexpr bool kFloating = false;
  static constexpr bool kRanks = false;

  static Value ToValue(Type value) { return std::string(value); }
  static Type FromValue(const Value& value) { return std::get<std::string>(value); }

  /// The longest item that a stream takes unless configured otherwise.
  static constexpr std::size_t kLongest = 1024;

  /// Texts of numbers; instead of infinities the shortest and the longest items and such as differ
  /// in their last byte alone, instead of denormals items of one character, control characters and
  /// two to four bytes of UTF-8 among them.
  Type Make(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
    if (shape == Shape::kExtremes) return Keep(kExtremeBase + random() % 5);
    if (shape == Shape::kTiny) return Keep(kTinyBase + random() % 16);
    return Keep(test::IntegerOf<std::uint32_t>(shape, i, n, random));
  }

 private:
  static constexpr std::uint64_t kExtremeBase = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kTinyBase = std::uint64_t{1} << 33;

  static std::string Text(std::uint64_t number) {
    if (number >= kTinyBase) {
      static const std::string kTiny[] = {std::string(1, '\0'),
                                          "\x01",
                                          "\n",
                                          " ",
                                          "\x7f",
                                          "a",
                                          "A",
                                          "0",
                                          "\"",
                                          "\\",
                                          "{",
                                          "ß",
                                          "é",
                                          "€",
                                          "𝄞",
                                          "\u00a0"};
      return kTiny[number - kTinyBase];
    }
    switch (number) {
      case kExtremeBase:
        return "";
      case kExtremeBase + 1:
        return std::string(kLongest, 'x');
      case kExtremeBase + 2:
        return std::string(kLongest - 1, 'x') + 'y';
      case kExtremeBase + 3:
        return std::string(kLongest - 1, 'x');
      case kExtremeBase + 4:
        return std::string(kLongest - 2, 'x') + "ü";
      default:
        return "größe-" + std::to_string(number);
    }
  }
  Type Keep(std::uint64_t number) {
    const auto [found, is_new] = kept_.try_emplace(number);
    if (is_new) found->second = texts_.emplace_back(Text(number));
    return found->second;
  }

  std::deque<std::string> texts_;
  std::unordered_map<std::uint64_t, std::string_view> kept_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_QUERY_GRID_VALUES_H_
