// The bytes of the sliding summaries: the same for the same input, written and read at any moment,
// and never trusted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/sliding_damage.h"
#include "tests/summaries/sliding_feed.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::SlidingFeed;

SlidingOptions SmallOptions() {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 4000;
  options.max_age_us = 3000;
  options.block_size = 64;
  return options;
}

template <class Key>
SlidingFeed<Key> SmallFeed(std::size_t values) {
  SlidingFeed<Key> feed(SmallOptions());
  const auto keys = testing::Generate<Key>(Distribution::kZipf, values, 3);
  for (std::size_t i = 0; i < values; i += 10) {
    const std::size_t count = std::min<std::size_t>(10, values - i);
    feed.Append(std::span<const Key>(keys).subspan(i, count), static_cast<std::int64_t>(i / 4));
  }
  return feed;
}

template <class Key>
struct Bytes {
  std::string record, quantiles, frequencies;
  friend bool operator==(const Bytes&, const Bytes&) = default;
};
template <class Key>
Bytes<Key> BytesOf(const SlidingFeed<Key>& feed) {
  return {feed.record.Serialize(), feed.quantiles.Serialize(), feed.frequencies.Serialize()};
}

template <class Key>
class SlidingBytes : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(SlidingBytes, Keys);

TYPED_TEST(SlidingBytes, AreReadBackAtAnyMoment) {
  for (const std::size_t values : {0, 1, 64, 640, 1023, 1024, 5000, 20'000}) {
    SCOPED_TRACE(values);
    auto feed = SmallFeed<TypeParam>(values);
    const auto bytes = BytesOf(feed);
    auto again = feed;
    again.WriteAndRead();
    EXPECT_EQ(BytesOf(again), bytes);
    // What follows is as if nothing had happened.
    const auto more = testing::Generate<TypeParam>(Distribution::kUniform, 9000, 4);
    feed.Append(more, 7000);
    again.Append(more, 7000);
    EXPECT_EQ(BytesOf(again), BytesOf(feed));
  }
}

// Whatever has expired where within a block.
TYPED_TEST(SlidingBytes, AreReadBackAfterEachBatchOfAnyWindows) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 60; ++round) {
    SlidingOptions options;
    options.epsilon = 0.03 + static_cast<double>(random() % 17) / 100;
    options.max_values = random() % 3 == 0 ? 0 : 1 + random() % 6000;
    options.max_age_us = options.max_values == 0 || random() % 2 == 0
                             ? 1 + static_cast<std::int64_t>(random() % 6000)
                             : 0;
    options.block_size = 64u << random() % 3;
    SCOPED_TRACE(::testing::Message()
                 << "epsilon " << options.epsilon << " values " << options.max_values << " age "
                 << options.max_age_us << " block " << options.block_size);
    SlidingFeed<TypeParam> feed(options);
    std::int64_t now = 0;
    for (int batch = 0; batch < 60; ++batch) {
      const auto keys =
          testing::Generate<TypeParam>(Distribution::kZipf, 1 + random() % 300, random());
      now += static_cast<std::int64_t>(random() % (random() % 8 == 0 ? 4000 : 100));
      feed.Append(keys, now);
      const auto bytes = BytesOf(feed);
      ASSERT_NO_THROW(feed.WriteAndRead()) << "batch " << batch;
      ASSERT_EQ(BytesOf(feed), bytes);
    }
  }
}

// Windows that get wider would cut it.
TEST(SlidingBytesForged, LacksTheBlockOfItsFirstValue) {
  SlidingOptions options = SmallOptions();
  SlidingFeed<std::uint32_t> feed(options);
  feed.Append(testing::Generate<std::uint32_t>(Distribution::kZipf, 64, 3), 1);
  constexpr std::size_t kExpired = 48, kBlocks = 57, kEnd = kBlocks + 4;  // summary_format.md
  std::string bytes = feed.frequencies.Serialize();
  ASSERT_EQ(bytes[kBlocks], 1);
  bytes[kExpired] = 4;
  bytes[kBlocks] = 0;
  bytes.resize(kEnd + kSummaryChecksumBytes);
  testing::FixChecksum(bytes);
  EXPECT_THROW(SlidingFrequencies<std::uint32_t>::Deserialize(bytes), std::invalid_argument);
}

TYPED_TEST(SlidingBytes, SummariesDependOnTheMultisetOfEachBlockAlone) {
  const auto keys = testing::Generate<TypeParam>(Distribution::kUniform, 64 * 100, 4);
  SlidingFeed<TypeParam> one(SmallOptions()), other(SmallOptions());
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < keys.size(); i += 64) {
    std::vector<TypeParam> block(keys.begin() + static_cast<std::ptrdiff_t>(i),
                                 keys.begin() + static_cast<std::ptrdiff_t>(i) + 64);
    one.Append(block, 1);
    std::shuffle(block.begin(), block.end(), random);
    other.Append(block, 1);
  }
  EXPECT_EQ(one.quantiles.Serialize(), other.quantiles.Serialize());
  EXPECT_EQ(one.frequencies.Serialize(), other.frequencies.Serialize());
  EXPECT_NE(one.record.Serialize(), other.record.Serialize());
}

TYPED_TEST(SlidingBytes, RefuseDamage) {
  const auto bytes = BytesOf(SmallFeed<TypeParam>(5000));
  testing::RefusesDamage<SlidingRecord<TypeParam>>(bytes.record);
  testing::RefusesDamage<SlidingQuantiles<TypeParam>>(bytes.quantiles);
  testing::RefusesDamage<SlidingFrequencies<TypeParam>>(bytes.frequencies);
  using Other = std::conditional_t<sizeof(TypeParam) == 4, std::uint64_t, std::uint32_t>;
  EXPECT_THROW(SlidingRecord<Other>::Deserialize(bytes.record), std::invalid_argument);
  EXPECT_THROW(SlidingQuantiles<Other>::Deserialize(bytes.quantiles), std::invalid_argument);
  EXPECT_THROW(SlidingFrequencies<Other>::Deserialize(bytes.frequencies), std::invalid_argument);
}

// What is read is refused, or can be asked and added to without harm.
TYPED_TEST(SlidingBytes, ForgedOnesAreRefusedOrHarmless) {
  using Key = TypeParam;
  const auto feed = SmallFeed<Key>(9000);
  const auto bytes = BytesOf(feed);
  std::mt19937_64 random(3);
  const std::vector<Key> block(64, 7);
  int read = 0;
  for (int i = 0; i < Cases(3000, 200'000); ++i) {
    SlidingFeed<Key> forged = feed;
    try {
      switch (random() % 3) {
        case 0:
          forged.record = SlidingRecord<Key>::Deserialize(testing::Forged(bytes.record, random));
          break;
        case 1:
          forged.quantiles =
              SlidingQuantiles<Key>::Deserialize(testing::Forged(bytes.quantiles, random));
          break;
        default:
          forged.frequencies =
              SlidingFrequencies<Key>::Deserialize(testing::Forged(bytes.frequencies, random));
      }
    } catch (const std::invalid_argument&) {
      continue;
    }
    ++read;
    const std::size_t size = forged.record.rule().block_size();
    try {
      const auto range =
          forged.record.Last(1 + random() % forged.record.rule().options().max_values, 0);
      forged.quantiles.Cover(range, forged.record).View({}).Quantiles(std::vector{0.1, 0.9});
      forged.frequencies.Cover(range, forged.record).View({}).Count(3);
    } catch (const std::logic_error&) {
      // No window of that kind any more, or record and summary no longer fit.
    }
    if (size != block.size() || forged.quantiles.rule().block_size() != size ||
        forged.frequencies.rule().block_size() != size) {
      continue;
    }
    for (int j = 0; j < 40; ++j) {
      forged.quantiles.AddBlock(block, forged.quantiles.end() / 2);
      forged.frequencies.AddBlock(block, forged.frequencies.end() / 2);
    }
  }
  EXPECT_GT(read, 50);  // or nothing was tried
}

}  // namespace
}  // namespace tidemark
