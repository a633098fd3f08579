// The maps between values and keys: order and round trip. Sorters are tested in tests/gpu.
#include "summaries/key_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tidemark {
namespace {

template <class Float>
std::vector<Float> HardFloats() {
  using Limits = std::numeric_limits<Float>;
  return {-Limits::infinity(), Limits::lowest(),      -1, -Limits::min(),
          -Limits::min() / 2,  -Limits::denorm_min(), 0,  Limits::denorm_min(),
          Limits::min() / 2,   Limits::min(),         1,  Limits::max(),
          Limits::infinity()};
}
float Decode(std::uint32_t key) { return DecodeFloat32(key); }
double Decode(std::uint64_t key) { return DecodeFloat64(key); }

template <class Float>
class FloatKeys : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FloatKeys, Floats);

TYPED_TEST(FloatKeys, HardNumbersAscendAndComeBack) {
  const auto values = HardFloats<TypeParam>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(Decode(EncodeKey(values[i])), values[i]) << i;
    if (i > 0) {
      EXPECT_LT(EncodeKey(values[i - 1]), EncodeKey(values[i])) << i;
    }
  }
}

TYPED_TEST(FloatKeys, MinusZeroIsZero) {
  EXPECT_EQ(EncodeKey(-TypeParam{0}), EncodeKey(TypeParam{0}));
  EXPECT_FALSE(std::signbit(Decode(EncodeKey(-TypeParam{0}))));
}

TYPED_TEST(FloatKeys, EveryPatternKeepsOrderAndBits) {
  using Key = decltype(EncodeKey(TypeParam{}));
  std::mt19937_64 random(20);
  for (int i = 0; i < 200'000; ++i) {
    const auto a = std::bit_cast<TypeParam>(static_cast<Key>(random()));
    const auto b = std::bit_cast<TypeParam>(static_cast<Key>(random()));
    if (IsNan(a) || IsNan(b)) continue;
    ASSERT_EQ(a < b, EncodeKey(a) < EncodeKey(b)) << a << ' ' << b;
    ASSERT_EQ(std::bit_cast<Key>(Decode(EncodeKey(a))), std::bit_cast<Key>(a + TypeParam{0}));
  }
}

TEST(IntegerKeys, KeepOrderAndComeBack) {
  const std::int64_t values[] = {std::numeric_limits<std::int64_t>::min(), -2, -1, 0, 1, 2,
                                 std::numeric_limits<std::int64_t>::max()};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    EXPECT_EQ(DecodeInt64(EncodeKey(values[i])), values[i]);
    if (i > 0) {
      EXPECT_LT(EncodeKey(values[i - 1]), EncodeKey(values[i]));
    }
  }
  EXPECT_EQ(EncodeKey(std::uint64_t{5}), 5u);
  EXPECT_EQ(EncodeKey(std::uint32_t{5}), 5u);
}

TEST(FloatNan, IsRecognised) {
  EXPECT_TRUE(IsNan(std::numeric_limits<float>::quiet_NaN()));
  EXPECT_TRUE(IsNan(std::numeric_limits<double>::signaling_NaN()));
  EXPECT_FALSE(IsNan(std::numeric_limits<double>::infinity()));
}

}  // namespace
}  // namespace tidemark
