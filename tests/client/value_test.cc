// The text form of values: exact strings, round trips, refusals.
#include "client/value.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

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
  };
  for (const auto& c : kCases) {
    EXPECT_FALSE(ParseValue(c.type, c.text)) << TypeName(c.type) << " " << c.text;
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
