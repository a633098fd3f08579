// Where values of one kind stand among the keys of a stream of another.
#include "server/query/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "summaries/key_codec.h"

namespace tidemark::server {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

KeyPosition At(ValueType type, Value value) {
  const auto position = PositionOf(type, value);
  EXPECT_TRUE(position.ok()) << position.status();
  return position.ok() ? *position : KeyPosition{};
}

TEST(PositionOf, OwnTypeIsExact) {
  EXPECT_EQ(At(ValueType::kFloat64, -1.5).key, EncodeKey(-1.5));
  EXPECT_EQ(At(ValueType::kFloat32, 2.5f).key, EncodeKey(2.5f));
  EXPECT_EQ(At(ValueType::kInt64, std::int64_t{-7}).key, EncodeKey(std::int64_t{-7}));
  EXPECT_EQ(At(ValueType::kUint64, ~std::uint64_t{0}).key, ~std::uint64_t{0});
  EXPECT_EQ(At(ValueType::kUint32, 7u).key, 7u);
  EXPECT_EQ(At(ValueType::kIpv4, Ipv4{0x7F000001}).key, 0x7F000001u);
}

TEST(PositionOf, RoundsDownToTheStreamsType) {
  const KeyPosition tenth = At(ValueType::kFloat32, 0.1);
  EXPECT_FALSE(tenth.exact);
  EXPECT_LT(static_cast<double>(DecodeFloat32(static_cast<std::uint32_t>(tenth.key))), 0.1);
  EXPECT_EQ(At(ValueType::kInt64, -0.5).key, EncodeKey(std::int64_t{-1}));
  EXPECT_FALSE(At(ValueType::kInt64, -0.5).exact);
  EXPECT_TRUE(At(ValueType::kInt64, 3.0).exact);
  EXPECT_EQ(At(ValueType::kUint32, 7.9).key, 7u);
  EXPECT_EQ(At(ValueType::kFloat32, 1e300).key, EncodeKey(std::numeric_limits<float>::max()));
  EXPECT_EQ(At(ValueType::kFloat32, kInf).key, EncodeKey(std::numeric_limits<float>::infinity()));
}

TEST(PositionOf, EndsOfTheIntegerTypes) {
  EXPECT_TRUE(At(ValueType::kUint64, -1.0).below_all);
  EXPECT_TRUE(At(ValueType::kUint64, std::int64_t{-1}).below_all);
  EXPECT_TRUE(At(ValueType::kInt64, -kInf).below_all);
  EXPECT_TRUE(At(ValueType::kInt64, -0x1.8p63).below_all);
  EXPECT_FALSE(At(ValueType::kInt64, -0x1p63).below_all);
  EXPECT_EQ(At(ValueType::kInt64, 0x1p63).key, EncodeKey(std::numeric_limits<std::int64_t>::max()));
  EXPECT_FALSE(At(ValueType::kInt64, 0x1p63).exact);
  EXPECT_EQ(At(ValueType::kUint32, std::uint64_t{1} << 32).key, 0xFFFFFFFFu);
  EXPECT_EQ(At(ValueType::kUint32, kInf).key, 0xFFFFFFFFu);
  EXPECT_EQ(At(ValueType::kInt64, ~std::uint64_t{0}).key,
            EncodeKey(std::numeric_limits<std::int64_t>::max()));
}

TEST(PositionOf, WholeNumbersThatADoubleCannotHold) {
  const std::uint64_t big = (std::uint64_t{1} << 53) + 1;
  const KeyPosition position = At(ValueType::kFloat64, big);
  EXPECT_FALSE(position.exact);
  EXPECT_EQ(DecodeFloat64(position.key), 0x1p53);
  const KeyPosition largest = At(ValueType::kFloat64, ~std::uint64_t{0});
  EXPECT_EQ(DecodeFloat64(largest.key), std::nextafter(0x1p64, 0.0));
  const KeyPosition negative = At(ValueType::kFloat64, -static_cast<std::int64_t>(big));
  EXPECT_FALSE(negative.exact);
  EXPECT_EQ(DecodeFloat64(negative.key), -0x1p53 - 2);
}

TEST(PositionOf, RefusesWhatCannotBeCompared) {
  const double nan = std::nan("");
  EXPECT_EQ(PositionOf(ValueType::kFloat64, nan).status().message(), "NaN has no rank");
  EXPECT_FALSE(PositionOf(ValueType::kFloat64, std::string("x")).ok());
  EXPECT_FALSE(PositionOf(ValueType::kString, 1.0).ok());
  EXPECT_FALSE(PositionOf(ValueType::kIpv4, 1.0).ok());
  EXPECT_FALSE(PositionOf(ValueType::kFloat64, Ipv4{1}).ok());
  EXPECT_FALSE(PositionOf(ValueType::kIpv4, Ipv6{1}).ok());
  EXPECT_FALSE(PositionOf(ValueType::kIpv6, 1.0).ok());
}

TEST(DecodeValue, IsTheInverseOfTheKey) {
  EXPECT_EQ(DecodeValue(ValueType::kFloat64, EncodeKey(-kInf)), Value(-kInf));
  EXPECT_EQ(DecodeValue(ValueType::kFloat32, EncodeKey(-2.5f)), Value(-2.5f));
  EXPECT_EQ(DecodeValue(ValueType::kInt64, EncodeKey(std::int64_t{-3})), Value(std::int64_t{-3}));
  EXPECT_EQ(DecodeValue(ValueType::kUint64, std::uint64_t{3}), Value(std::uint64_t{3}));
  EXPECT_EQ(DecodeValue(ValueType::kUint32, 3u), Value(3u));
  EXPECT_EQ(DecodeValue(ValueType::kIpv4, 3u), Value(Ipv4{3}));
  EXPECT_EQ(DecodeValue(ValueType::kIpv6, Key128{3}), Value(Ipv6{3}));
}

}  // namespace
}  // namespace tidemark::server
