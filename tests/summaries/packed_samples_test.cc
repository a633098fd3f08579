// Packed samples come back as they were, and damaged ones are refused.
#include "summaries/packed_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "summaries/byte_io.h"
#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TEST";

/// Random samples with distances of up to `key_bits` and `rank_bits` bits.
template <class Key>
RankedSamples<Key> Draw(std::mt19937_64& random, std::size_t size, int key_bits, int rank_bits) {
  RankedSamples<Key> samples;
  const auto upto = [&](int bits) { return bits == 0 ? 0 : random() >> (64 - bits); };
  Key key = static_cast<Key>(upto(key_bits));
  std::uint64_t low = 1, high = 1;
  for (std::size_t i = 0; i < size; ++i) {
    samples.keys.push_back(key);
    samples.low.push_back(low);
    samples.high.push_back(high);
    const Key step = static_cast<Key>(upto(key_bits));
    key = static_cast<Key>(key + std::min<Key>(step, std::numeric_limits<Key>::max() - key));
    low += 1 + upto(rank_bits);
    high = std::max(high + 1, low + upto(rank_bits));
  }
  if (size > 0) {
    samples.count = samples.high.back();
    samples.low.back() = samples.count;
  }
  return samples;
}

template <class Key>
bool HasBlockOfOneValue(const RankedSamples<Key>& samples) {
  for (std::size_t at = 64; at <= samples.keys.size(); at += 64) {
    if (samples.keys[at - 64] == samples.keys[at - 1]) return true;
  }
  return false;
}

template <class Key>
void ExpectSame(const RankedSamples<Key>& a, const RankedSamples<Key>& b) {
  ASSERT_EQ(a.count, b.count);
  ASSERT_EQ(a.keys, b.keys);
  ASSERT_EQ(a.low, b.low);
  ASSERT_EQ(a.high, b.high);
}

template <class Key>
std::string Bytes(const PackedSamples<Key>& packed) {
  ByteWriter writer(kMagic, sizeof(Key));
  packed.Write(writer);
  return writer.Finish();
}

template <class Key>
PackedSamples<Key> FromBytes(const std::string& bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "samples");
  auto packed = PackedSamples<Key>::Read(reader);
  reader.ExpectEnd();
  return packed;
}

template <class Key>
class Packed : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Packed, Keys);

TYPED_TEST(Packed, ComesBackWhateverTheWidths) {
  using Key = TypeParam;
  constexpr int kKeyBits = 8 * sizeof(Key);
  std::mt19937_64 random(3);
  for (int i = 0; i < Cases(2000); ++i) {
    const std::size_t size = random() % 300;
    // Ranks of all together stay below 2^63.
    const auto samples = Draw<Key>(random, size, static_cast<int>(random() % (kKeyBits + 1)),
                                   static_cast<int>(random() % 53));
    ASSERT_TRUE(samples.Consistent());
    const PackedSamples<Key> packed(samples);
    ASSERT_EQ(packed.count(), samples.count);
    ASSERT_EQ(packed.size(), size);
    ASSERT_EQ(packed.width(), samples.Width());
    ASSERT_NO_FATAL_FAILURE(ExpectSame(packed.Unpack(), samples));
    if (HasBlockOfOneValue(samples)) continue;  // refused, below
    const std::string bytes = Bytes(packed);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(FromBytes<Key>(bytes).Unpack(), samples));
    ASSERT_EQ(Bytes(FromBytes<Key>(bytes)), bytes);
  }
}

TYPED_TEST(Packed, SixtyFourEntriesOfOneValueAreRefused) {
  using Key = TypeParam;
  RankedSamples<Key> samples{.count = 64};
  for (std::uint64_t rank = 1; rank <= 64; ++rank) {
    samples.keys.push_back(0);
    samples.low.push_back(rank);
    samples.high.push_back(rank);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSame(PackedSamples<Key>(samples).Unpack(), samples));
  EXPECT_THROW(FromBytes<Key>(Bytes(PackedSamples<Key>(samples))), std::invalid_argument);
}

TYPED_TEST(Packed, LiesUnderARightChecksumAreRefusedOrHarmless) {
  using Key = TypeParam;
  std::mt19937_64 random(4);
  int accepted = 0;
  const int cases = Cases(20'000, 1'000'000);
  for (int i = 0; i < cases; ++i) {
    const auto samples = Draw<Key>(random, 1 + random() % 100, 12, 10);
    std::string bytes = Bytes(PackedSamples<Key>(samples));
    bytes.resize(bytes.size() - 4);
    for (std::uint64_t change = 1 + random() % 2; change > 0; --change) {
      bytes[8 + random() % (bytes.size() - 8)] ^= static_cast<char>(1 << random() % 8);
    }
    if (random() % 4 == 0) bytes.resize(bytes.size() - random() % 8);
    ByteWriter writer(kMagic, sizeof(Key));
    writer.PutBytes(std::string_view(bytes).substr(8));
    const std::string lie = writer.Finish();
    try {
      const auto packed = FromBytes<Key>(lie);
      ++accepted;
      ASSERT_TRUE(packed.Unpack().Consistent());
      ASSERT_EQ(Bytes(packed), lie);
    } catch (const std::invalid_argument&) {
    }
  }
  EXPECT_GT(accepted, cases / 100);
  EXPECT_LT(accepted, cases * 3 / 4);
}

}  // namespace
}  // namespace tidemark
