// The text form of values: exact strings, round trips, refusals.
#include "client/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include "client/error.h"

namespace tidemark::client {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Value, TextOfEachType) {
  const struct {
    Value value;
    const char* text;
  } kCases[] = {
      {{89.4}, "89.4"},
      {{5.0}, "5"},
      {{0.0}, "0"},
      {{-0.0}, "-0"},
      {{100000.0}, "100000"},
      {{1e16}, "10000000000000000"},
      {{1e17}, "1e+17"},
      {{1e-5}, "0.00001"},
      {{1e-6}, "1e-06"},
      {{kInf}, "inf"},
      {{-kInf}, "-inf"},
      {{5e-324}, "5e-324"},
      {{std::numeric_limits<double>::max()}, "1.7976931348623157e+308"},
      {{0.1f}, "0.1"},
      {{16777216.0f}, "16777216"},
      {{-std::numeric_limits<float>::infinity()}, "-inf"},
      {{std::numeric_limits<std::int64_t>::min()}, "-9223372036854775808"},
      {{std::numeric_limits<std::uint64_t>::max()}, "18446744073709551615"},
      {{std::uint32_t{4294967295u}}, "4294967295"},
      {{Ipv4{0xC0A80001u}}, "192.168.0.1"},
      {{Ipv4{0}}, "0.0.0.0"},
      {{std::string("a b\n")}, "a b\n"},
      {{Ipv6{}}, "::"},
      {{Ipv6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}}, "::1"},
      {{Ipv6{{0x20, 0x01, 0x0d, 0xb8}}}, "2001:db8::"},
      {{Ipv6{{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}}}, "2001:db8:0:1::1"},
      // RFC 5952: no single zero is shortened, of equal runs the first one is, digits in lower
      // case.
      {{Ipv6{{0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7}}}, "1:0:2:3:4:5:6:7"},
      {{Ipv6{{0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0xAB, 0xCD}}}, "1::2:0:0:3:abcd"},
      {{Ipv6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}}}, "::ffff:10.0.0.1"},
      {{Ipv6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}}}, "::102:304"},
      {{Ipv6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0}}}, "::5:0"},
      {{Ipv6{{0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 2, 3, 4}}}, "::ffff:0:102:304"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(FormatValue(c.value), c.text);
    EXPECT_EQ(ParseValue(c.value.type(), c.text), c.value) << c.text;
  }
}

TEST(Value, Refused) {
  const struct {
    ValueType type;
    const char* text;
  } kCases[] = {
      {ValueType::kFloat64, ""},
      {ValueType::kFloat64, "abc"},
      {ValueType::kFloat64, "1.5x"},
      {ValueType::kFloat64, " 1"},
      {ValueType::kFloat64, "1e400"},
      {ValueType::kFloat64, "+-1"},
      {ValueType::kFloat64, "+"},
      {ValueType::kFloat64, "1,5"},
      {ValueType::kFloat32, "1e39"},
      {ValueType::kInt64, "1.5"},
      {ValueType::kInt64, "9223372036854775808"},
      {ValueType::kUint64, "-1"},
      {ValueType::kUint32, "4294967296"},
      {ValueType::kIpv4, "1.2.3"},
      {ValueType::kIpv4, "1.2.3.256"},
      {ValueType::kIpv4, "1.2.3.4.5"},
      {ValueType::kIpv4, "01.2.3.4"},
      {ValueType::kIpv4, "1.2.3.4 "},
      {ValueType::kIpv4, "1..3.4"},
      {ValueType::kIpv4, "1.2.3.1000"},
      {ValueType::kUnspecified, "1"},
      {ValueType::kIpv6, ""},
      {ValueType::kIpv6, ":"},
      {ValueType::kIpv6, ":::"},
      {ValueType::kIpv6, "1"},
      {ValueType::kIpv6, "10.0.0.1"},
      {ValueType::kIpv6, "1::2::3"},
      {ValueType::kIpv6, "1:2:3:4:5:6:7"},
      {ValueType::kIpv6, "1:2:3:4:5:6:7:8:9"},
      {ValueType::kIpv6, "1:2:3:4:5:6:7::8:9"},
      {ValueType::kIpv6, "12345::"},
      {ValueType::kIpv6, "00001::"},
      {ValueType::kIpv6, "g::"},
      {ValueType::kIpv6, " ::1"},
      {ValueType::kIpv6, "::1 "},
      {ValueType::kIpv6, "[::1]"},
      {ValueType::kIpv6, "fe80::1%eth0"},
      {ValueType::kIpv6, "2001:db8::/32"},
      {ValueType::kIpv6, "::ffff:256.0.0.1"},
      {ValueType::kIpv6, "::ffff:01.2.3.4"},
      {ValueType::kIpv6, "::1.2.3"},
      {ValueType::kIpv6, "1.2.3.4::"},
  };
  for (const auto& c : kCases) {
    EXPECT_FALSE(ParseValue(c.type, c.text)) << TypeName(c.type) << " " << c.text;
  }
}

TEST(Value, OtherSpellingsOfIpv6) {
  const auto read = [](const char* text) {
    const auto value = ParseValue(ValueType::kIpv6, text);
    return value ? FormatValue(*value) : "none";
  };
  EXPECT_EQ(read("2001:0DB8:0000:0000:0000:0000:0000:0001"), "2001:db8::1");
  EXPECT_EQ(read("0:0:0:0:0:0:0:0"), "::");
  EXPECT_EQ(read("0:0:0:0:0:FFFF:A00:1"), "::ffff:10.0.0.1");
  EXPECT_EQ(read("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
  EXPECT_EQ(read("::2:3:4:5:6:7:8"), "0:2:3:4:5:6:7:8");
  EXPECT_EQ(read("2001:db8::192.0.2.33"), "2001:db8::c000:221");
  EXPECT_FALSE(ParseValue(ValueType::kIpv6, std::string_view("::1\0", 4)));
  EXPECT_FALSE(ParseValue(ValueType::kIpv6, std::string(100, ':')));
}

// RFC 5952, written down once more.
std::string Canonical(const Ipv6& address) {
  std::array<unsigned, 8> groups;
  for (std::size_t i = 0; i < 8; ++i) {
    groups[i] = address.bytes[2 * i] * 256u + address.bytes[2 * i + 1];
  }
  std::size_t best = 8, best_size = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t size = 0;
    while (i + size < 8 && groups[i + size] == 0) ++size;
    if (size > best_size) best = i, best_size = size;
  }
  std::ostringstream out;
  const bool mapped = best == 0 && best_size == 5 && groups[5] == 0xFFFF;
  for (std::size_t i = 0; i < (mapped ? 6u : 8u); ++i) {
    if (i == best) {
      out << "::";
      i += best_size - 1;
      continue;
    }
    out << (i > 0 && i != best + best_size ? ":" : "") << std::hex << groups[i];
  }
  if (mapped) {
    out << std::dec;
    for (std::size_t i = 12; i < 16; ++i) out << (i == 12 ? ":" : ".") << +address.bytes[i];
  }
  return out.str();
}

// Any address comes back as itself from its text, which is the canonical one, and texts near one
// are an address or refused, never something else.
TEST(Value, RoundTripOfRandomIpv6) {
  const std::uint64_t seed = 20261122;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50'000; ++i) {
    Ipv6 address;
    const std::uint64_t zeros = random();  // of the groups, so that runs of all lengths come up
    for (std::size_t byte = 0; byte < 16; ++byte) {
      if ((zeros >> (byte / 2) & 1) != 0) address.bytes[byte] = static_cast<std::uint8_t>(random());
    }
    if (i % 8 == 0) {
      std::fill_n(address.bytes.begin(), 12, std::uint8_t{0});
      if (i % 16 == 0) address.bytes[10] = address.bytes[11] = 0xFF;
    }
    const std::string text = FormatValue({address});
    ASSERT_EQ(text, Canonical(address));
    ASSERT_EQ(ParseValue(ValueType::kIpv6, text), Value{address}) << text;
    std::string near = text;
    constexpr std::string_view kLetters = ":.0f g%/";
    near[random() % near.size()] = kLetters[random() % kLetters.size()];
    if (const auto other = ParseValue(ValueType::kIpv6, near)) {
      ASSERT_EQ(ParseValue(ValueType::kIpv6, FormatValue(*other)), other) << near;
    }
  }
}

TEST(Value, OtherSpellingsOfNumbers) {
  EXPECT_EQ(ParseValue(ValueType::kFloat64, "+1.5"), Value{1.5});
  EXPECT_EQ(ParseValue(ValueType::kFloat64, "1E3"), Value{1000.0});
  EXPECT_EQ(ParseValue(ValueType::kFloat64, "INF"), Value{kInf});
  EXPECT_EQ(ParseValue(ValueType::kFloat64, "-Infinity"), Value{-kInf});
  EXPECT_EQ(ParseValue(ValueType::kFloat64, ".5"), Value{0.5});
  EXPECT_EQ(ParseValue(ValueType::kInt64, "+7"), Value{std::int64_t{7}});
  double nan = 0;
  ASSERT_TRUE(ParseText("nan", &nan));  // a number as text; the daemon refuses and counts it
  EXPECT_TRUE(std::isnan(nan));
}

TEST(Value, FailedParseLeavesTheValue) {
  double number = 7;
  EXPECT_FALSE(ParseText("1e400", &number));
  EXPECT_EQ(number, 7);
}

// Any bit pattern that is a number comes back as itself from its text.
TEST(Value, RoundTripOfRandomFloats) {
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const auto d = std::bit_cast<double>(random());
    if (!std::isnan(d)) {
      const auto back = ParseValue(ValueType::kFloat64, FormatValue({d}));
      ASSERT_TRUE(back) << FormatValue({d});
      ASSERT_EQ(std::bit_cast<std::uint64_t>(std::get<double>(back->kind)),
                std::bit_cast<std::uint64_t>(d));
    }
    const auto f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isnan(f)) {
      const auto back = ParseValue(ValueType::kFloat32, FormatValue({f}));
      ASSERT_TRUE(back) << FormatValue({f});
      ASSERT_EQ(std::get<float>(back->kind), f);
    }
  }
}

TEST(Value, TypeNames) {
  for (int i = 1; i <= 7; ++i) {
    const auto type = static_cast<ValueType>(i);
    EXPECT_EQ(ParseTypeName(TypeName(type)), type);
    EXPECT_NE(TypeNames().find(TypeName(type)), std::string_view::npos);
  }
  EXPECT_FALSE(ParseTypeName("unspecified"));
  EXPECT_FALSE(ParseTypeName("double"));
  EXPECT_EQ(TypeName(static_cast<ValueType>(99)), "unknown");
  EXPECT_EQ(Value{std::string()}.type(), ValueType::kString);
  EXPECT_EQ(Value{Ipv4{}}.type(), ValueType::kIpv4);
  EXPECT_EQ(Value{Ipv6{}}.type(), ValueType::kIpv6);
}

TEST(Value, Utf8) {
  for (const char* good :
       {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xFF", "a\xE2\x82", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(Error, Names) {
  EXPECT_EQ(CodeName(Code::kNotFound), "NOT_FOUND");
  EXPECT_EQ(CodeName(Code::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(CodeName(static_cast<Code>(99)), "CODE_99");
}

}  // namespace
}  // namespace tidemark::client
