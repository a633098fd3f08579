// The serialized form of correlated sums: it comes back to the bit and goes on the same, the bytes
// for a given input never change, and no damage passes.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "summaries/correlated_sums.h"
#include "summaries/correlated_view.h"
#include "summaries/crc32c.h"
#include "tests/support/fix_checksum.h"

namespace tidemark {
namespace {

template <class K, class V>
struct Types {
  using Key = K;
  using Y = V;
};

template <class Key, class Y>
void AddWindow(CorrelatedSums<Key>& sums, std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::vector<Key> x(size);
  std::vector<Y> y(size);
  for (auto& key : x) key = static_cast<Key>(random() % 5000 * 7'654'321);
  std::sort(x.begin(), x.end());
  for (auto& value : y) {
    value = static_cast<Y>(static_cast<std::int64_t>(random() % 20'000) -
                           (std::is_unsigned_v<Y> ? 0 : 4000));
  }
  sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
}

template <class Key, class Y>
CorrelatedSums<Key> Make(std::size_t windows, double epsilon, std::uint64_t seed) {
  CorrelatedSums<Key> sums(epsilon, SumTypeOf<Y>::value);
  for (std::size_t w = 0; w < windows; ++w) AddWindow<Key, Y>(sums, seed + w, 200);
  return sums;
}

template <class T>
class SerializedSums : public ::testing::Test {};
using AllTypes =
    ::testing::Types<Types<std::uint32_t, std::int64_t>, Types<std::uint32_t, double>,
                     Types<std::uint64_t, std::uint64_t>, Types<std::uint64_t, double>>;
TYPED_TEST_SUITE(SerializedSums, AllTypes);

TYPED_TEST(SerializedSums, ComeBackToTheBitAndGoOnTheSame) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  for (const std::size_t windows : {0u, 1u, 5u, 100u}) {
    auto sums = Make<Key, Y>(windows, 0.01, windows);
    const std::string bytes = sums.Serialize();
    auto back = CorrelatedSums<Key>::Deserialize(bytes);
    EXPECT_EQ(back.Serialize(), bytes);
    EXPECT_EQ(back.count(), sums.count());
    EXPECT_EQ(back.type(), sums.type());
    EXPECT_EQ(back.exact(), sums.exact());
    AddWindow<Key, Y>(sums, 99, 50);
    AddWindow<Key, Y>(back, 99, 50);
    EXPECT_EQ(back.Serialize(), sums.Serialize());
    sums.Merge(Make<Key, Y>(3, 0.01, 17));
    back.Merge(Make<Key, Y>(3, 0.01, 17));
    EXPECT_EQ(back.Serialize(), sums.Serialize());
  }
}

TYPED_TEST(SerializedSums, EveryCutAndEveryFlippedBitIsRefused) {
  using Key = typename TypeParam::Key;
  const std::string bytes = Make<Key, typename TypeParam::Y>(10, 0.05, 1).Serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_THROW(CorrelatedSums<Key>::Deserialize(bytes.substr(0, size)), std::invalid_argument);
  }
  ASSERT_THROW(CorrelatedSums<Key>::Deserialize(bytes + '\0'), std::invalid_argument);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_THROW(CorrelatedSums<Key>::Deserialize(damaged), std::invalid_argument) << bit;
  }
}

TYPED_TEST(SerializedSums, LiesUnderARightChecksumAreRefusedOrHarmless) {
  using Key = typename TypeParam::Key;
  using Y = typename TypeParam::Y;
  const std::string bytes = Make<Key, Y>(10, 0.05, 2).Serialize();
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string changed = bytes;
    const std::uint64_t changes = 1 + random() % 3;
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t at =
          random() %
          std::min(changed.size() - 4, random() % 2 == 0 ? std::size_t{70} : changed.size());
      switch (random() % 8) {
        case 0:
          changed.insert(at, 1, static_cast<char>(random()));
          break;
        case 1:
          changed.erase(at, 1 + random() % 8);
          if (changed.size() < 4) changed.resize(4);
          break;
        default:
          changed[at] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
      }
    }
    testing::FixChecksum(changed);
    try {
      auto sums = CorrelatedSums<Key>::Deserialize(changed);
      ++accepted;
      ASSERT_EQ(sums.Serialize(), changed);
      if (sums.type() == SumTypeOf<Y>::value && sums.count() < (1ull << 62)) {
        // Answers come, whatever they are worth, and it goes on.
        const CorrelatedView<Key> view(sums.Snapshot());
        for (const double phi : {0.0, 0.3, 1.0}) {
          if (sums.count() > 0) view.ThroughQuantile(phi);
        }
        AddWindow<Key, Y>(sums, seed, 40);
        sums.Merge(sums);
      }
    } catch (const std::invalid_argument& error) {
      ASSERT_NE(std::string(error.what()).find("serialized "), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 15'000);
}

TYPED_TEST(SerializedSums, RandomBytesAreRefused) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_THROW(CorrelatedSums<typename TypeParam::Key>::Deserialize(bytes),
                 std::invalid_argument);
  }
}

template <class Key>
std::string Refusal(const std::string& bytes) {
  try {
    CorrelatedSums<Key>::Deserialize(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SerializedSumsMessages, NameWhatIsWrong) {
  using Key = std::uint32_t;
  const std::string good = Make<Key, std::int64_t>(4, 0.05, 1).Serialize();
  const std::string what = "serialized summary of correlated sums ";
  EXPECT_EQ(Refusal<Key>("TMCS"), what + "is cut short: 4 bytes, the frame alone takes 12");
  EXPECT_EQ(Refusal<std::uint64_t>(good), what + "has keys of 32 bits, expected 64");
  const auto changed = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    testing::FixChecksum(bytes);
    return Refusal<Key>(bytes);
  };
  EXPECT_EQ(changed(16, 9), what + "has y of the unknown type 9");
  EXPECT_EQ(changed(18, 1), what + "has the impossible scale 1");
  EXPECT_EQ(changed(20, 1), what + "has an impossible rounding");
  EXPECT_NE(changed(50, 100).find("cut short"), std::string::npos) << changed(50, 100);
}

// Twenty pairs at a key that is said to be none: no answer could name an element near their ranks.
TEST(SerializedSumsMessages, PairsAtAKeyThatIsNoElementAreRefused) {
  CorrelatedSums<std::uint32_t> sums(0.1, SumType::kUint64);
  std::vector<std::uint32_t> x(22, 2);
  x.front() = 1;
  x.back() = 9;
  const std::vector<std::uint64_t> y(x.size(), 1);
  sums.AddWindow(std::span<const std::uint32_t>(x), std::span<const std::uint64_t>(y));
  std::string bytes = sums.Serialize();
  constexpr std::size_t kSecondCut = 57;
  ASSERT_EQ(bytes[kSecondCut], 3);  // the next key; an element, and the only one
  bytes[kSecondCut] = 1;
  testing::FixChecksum(bytes);
  EXPECT_EQ(Refusal<std::uint32_t>(bytes),
            "serialized summary of correlated sums has at cut 1 a gap that is wider than its "
            "epsilon allows");
}

// Above a cut that is no element stands one: a gap that has nothing inside has no room for it.
TEST(SerializedSumsMessages, AGapWithoutItsFirstElementIsRefused) {
  CorrelatedSums<std::uint32_t> sums(0.1, SumType::kUint64);
  std::vector<std::uint32_t> x(40, 1);
  x.insert(x.end(), {2, 3, 9});
  const std::vector<std::uint64_t> y(x.size(), 1);
  sums.AddWindow(std::span<const std::uint32_t>(x), std::span<const std::uint64_t>(y));
  const std::string good = sums.Serialize();
  constexpr std::size_t kThirdCut = 62, kFourthCut = 67;
  ASSERT_EQ(good[kThirdCut], 3);           // the next key; an element, and the only one
  ASSERT_EQ(good[kFourthCut], 5 * 4 + 3);  // five keys on
  std::string bytes = good;
  bytes[kThirdCut] = 1;  // the next key, which is none
  testing::FixChecksum(bytes);
  const std::string what = "serialized summary of correlated sums has at cut 3 ";
  EXPECT_EQ(Refusal<std::uint32_t>(bytes),
            what + "a closed gap without the element that it begins with");
  bytes[kFourthCut] = 5 * 4 + 2;  // an element, perhaps not the only one
  testing::FixChecksum(bytes);
  EXPECT_EQ(Refusal<std::uint32_t>(bytes), what + "an element that is not counted");
}

// The upper bound inside its gap would be below the one before it.
TEST(SerializedSumsMessages, AnElementThatTheUpperBoundsLackIsRefused) {
  CorrelatedSums<std::uint32_t> sums(0.1, SumType::kUint64);
  std::vector<std::uint32_t> x{1, 2, 9};
  x.insert(x.end(), 40, 10);
  const std::vector<std::uint64_t> y(x.size(), 1);
  sums.AddWindow(std::span<const std::uint32_t>(x), std::span<const std::uint64_t>(y));
  std::string bytes = sums.Serialize();
  constexpr std::size_t kWidthOfSecond = 59, kThirdCut = 62;
  ASSERT_EQ(bytes[kWidthOfSecond], 0);
  ASSERT_EQ(bytes[kThirdCut], 6 * 4 + 3);  // six keys on; an element, and the only one
  bytes[kWidthOfSecond] = 1;               // two or three pairs up to 2, three up to 9
  testing::FixChecksum(bytes);
  EXPECT_EQ(Refusal<std::uint32_t>(bytes),
            "serialized summary of correlated sums has at cut 2 an element that is not counted");
  bytes[kThirdCut] = 6 * 4 + 2;  // perhaps not the only one
  testing::FixChecksum(bytes);
  EXPECT_EQ(Refusal<std::uint32_t>(bytes),
            "serialized summary of correlated sums has at cut 2 an element that is not counted");
}

TEST(SerializedSumsMessages, ALieAboutTheGreatestYLeavesIntervals) {
  std::string bytes = Make<std::uint32_t, std::int64_t>(4, 0.05, 1).Serialize();
  bytes.replace(36, 8, bytes.substr(28, 8));  // the greatest y: the least one
  testing::FixChecksum(bytes);
  const CorrelatedView<std::uint32_t> view(
      CorrelatedSums<std::uint32_t>::Deserialize(bytes).Snapshot());
  for (const PairSums& sums : {view.All(), view.Through(2'000'000'000)}) {
    ASSERT_TRUE(sums.average.has_value());
    EXPECT_LE(sums.average->low, sums.average->high);
  }
}

TEST(SerializedSumsGolden, BytesOfAGivenInputNeverChange) {
  // Small enough to read: epsilon 0.5, pairs (1, 10), (2, -20), (2, 5), (9, 30).
  CorrelatedSums<std::uint32_t> sums(0.5, SumType::kInt64);
  const std::vector<std::uint32_t> x{1, 2, 2, 9};
  const std::vector<std::int64_t> y{10, -20, 5, 30};
  sums.AddWindow(std::span<const std::uint32_t>(x), std::span<const std::int64_t>(y));
  std::string hex;
  for (const char byte : sums.Serialize()) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[byte & 15];
  }
  EXPECT_EQ(hex,
            "544d435301002000"                  // frame
            "000000000000e03f"                  // epsilon
            "01010000"                          // int64, negative sums follow, scale 0
            "0000000000000000"                  // rounding
            "ecffffffffffff7f1e00000000000080"  // least and greatest y: -20, 30
            "0200000000000000"  // two cuts: the pairs at 2 lie inside a gap of epsilon
            "0701000a000000"    // 1: element, atomic; count 1; sums 10 and 0
            "1e030023001400"    // 9: element; count 3 more; sums 35 and 20 more
            "955453ec");
  const auto checksum = [](const std::string& bytes) {
    return Crc32c(std::string_view(bytes).substr(0, bytes.size() - 4));
  };
  EXPECT_EQ(checksum(Make<std::uint32_t, std::int64_t>(300, 0.01, 5).Serialize()), 856074578u);
  EXPECT_EQ(checksum(Make<std::uint64_t, double>(300, 0.01, 5).Serialize()), 1364468909u);
}

}  // namespace
}  // namespace tidemark
