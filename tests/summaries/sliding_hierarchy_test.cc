// Counts of prefixes and hierarchical heavy hitters over sliding windows against an exact oracle.
#include "summaries/sliding_hierarchy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/sliding_hierarchical_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/hierarchy_cases.h"
#include "tests/summaries/hierarchy_reference.h"
#include "tests/summaries/property.h"
#include "tests/summaries/sliding_damage.h"
#include "tests/summaries/sliding_feed.h"

namespace tidemark {
namespace {

using testing::ExactHierarchy;
using testing::SlidingInput;

template <class Key>
class HierarchyFeed : public testing::SlidingSource<Key> {
 public:
  using Source = testing::SlidingSource<Key>;
  using Source::record;

  HierarchyFeed(const SlidingOptions& options, PrefixLevels<Key> levels)
      : Source(options), hierarchy(record.shared_rule(), std::move(levels)) {}

  void Append(std::span<const Key> batch, std::int64_t time_us) {
    Source::Append(batch, time_us, [this](std::span<const Key> sorted) {
      hierarchy.AddBlock(sorted, record.expired());
    });
  }
  void Advance(std::int64_t now_us) {
    Source::Advance(now_us);
    hierarchy.Expire(record.expired());
  }
  void WriteAndRead() {
    record = SlidingRecord<Key>::Deserialize(record.Serialize());
    const std::string bytes = hierarchy.Serialize();
    hierarchy = SlidingHierarchy<Key>::Deserialize(bytes);
    ASSERT_EQ(hierarchy.Serialize(), bytes);
  }

  SlidingHierarchy<Key> hierarchy;
};

template <class Key>
void CheckWindow(const HierarchyFeed<Key>& feed, const SlidingRange& range, std::uint64_t n,
                 std::mt19937_64& random) {
  ASSERT_NO_FATAL_FAILURE(testing::CheckRange(feed, range, n));
  const PrefixLevels<Key>& levels = feed.hierarchy.levels();
  ExactHierarchy<Key> truth(levels);
  for (const Key key : feed.Newest(n)) truth.Add(key, 1);
  // Some of the later values may not be at hand.
  const std::vector<Key> later = feed.Later(range);
  const std::size_t missing = random() % 3 == 0 ? random() % (later.size() + 1) : 0;
  const SlidingHierarchicalView<Key> view(
      feed.hierarchy.Cover(range, feed.record),
      std::span<const Key>(later).first(later.size() - missing));
  ASSERT_EQ(view.n(), range.n_high());
  if (missing == 0) {
    ASSERT_TRUE(view.WithinEpsilon());
  }
  const std::uint64_t within = FloorFraction(view.epsilon(), range.n_low()) + missing;
  for (int level = 0; level < levels.size(); ++level) {
    const auto check = [&](Key prefix) {
      const ItemCount<Key> item = view.Count(level, prefix);
      const std::uint64_t count = truth.Count(level, prefix);
      ASSERT_LE(item.count_low, count) << level << ' ' << testing::Hex(prefix);
      ASSERT_GE(item.count_high, count) << level << ' ' << testing::Hex(prefix);
      ASSERT_LE(item.count_high - item.count_low, within) << level << ' ' << testing::Hex(prefix);
      ASSERT_LE(item.count_high, view.n()) << level << ' ' << testing::Hex(prefix);
      if (view.exact()) {
        ASSERT_EQ(item.count_low, item.count_high) << level << ' ' << testing::Hex(prefix);
      }
    };
    for (const auto& [prefix, count] : truth.counts[static_cast<std::size_t>(level)]) {
      ASSERT_NO_FATAL_FAILURE(check(prefix));
    }
    ASSERT_NO_FATAL_FAILURE(check(levels.Prefix(level, static_cast<Key>(random()))));
  }
  const double support =
      std::max(view.MinimumSupport(), std::uniform_real_distribution<>(0, 0.3)(random));
  if (n == 0 || support <= 0 || support > 1) return;
  const auto items = view.HeavyHitters(support);
  for (const auto& item : items) {
    const ItemCount<Key> count = view.Count(item.level, item.prefix);
    ASSERT_LE(count.count_low, item.count_low) << item.level << ' ' << testing::Hex(item.prefix);
    ASSERT_GE(count.count_high, item.count_high) << item.level << ' ' << testing::Hex(item.prefix);
  }
  // Of the n that may be, and of the n that is.
  const std::uint64_t wanted = CeilFraction(support, n);
  ASSERT_EQ(testing::FaultOfAnswer(items, truth, wanted, within), "") << "support " << support;
}

template <class Key>
std::vector<int> LengthsOf(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return testing::RandomLengths<Key>(random);
}

template <class Key>
void CheckInput(const SlidingInput<Key>& input) {
  const HierarchyFeed<Key> feed(input.options, PrefixLevels<Key>(LengthsOf<Key>(input.seed)));
  testing::FeedSliding(feed, input, [](const auto& fed, std::mt19937_64& random) {
    testing::ForWindows(fed, random, 2, [&](const SlidingRange& range, std::uint64_t n) {
      CheckWindow(fed, range, n, random);
    });
  });
}

/// A tree that moves to another place now and then, in windows of all kinds.
template <class Key>
SlidingInput<Key> Draw(std::mt19937_64& random) {
  constexpr std::size_t kMostKeys = 5000;
  auto input = testing::DrawSliding<std::uint32_t>(random, kMostKeys);
  SlidingInput<Key> drawn{{}, input.options, input.seed};
  const std::size_t epoch = 1 + random() % kMostKeys;
  while (drawn.keys.size() < input.keys.size()) {
    testing::KeySource<Key> source(static_cast<testing::Tree>(random() % testing::kTrees), random);
    for (std::size_t i = 0; i < epoch && drawn.keys.size() < input.keys.size(); ++i) {
      drawn.keys.push_back(source.Next(i / 100));
    }
  }
  return drawn;
}

template <class Key>
class SlidingHierarchyTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t, Key128>;
TYPED_TEST_SUITE(SlidingHierarchyTest, Keys);

TYPED_TEST(SlidingHierarchyTest, HoldsWhateverComesWhenever) {
  testing::ForSeeds<SlidingInput<TypeParam>>(
      sizeof(TypeParam) == 4 ? Cases(100) : Cases(30, 10'000), Draw<TypeParam>,
      CheckInput<TypeParam>);
}

TYPED_TEST(SlidingHierarchyTest, HoldsInLongStreams) {
  SlidingOptions options;
  options.epsilon = 0.05;
  options.max_values = 30'000;
  options.max_age_us = 40'000;
  options.block_size = 64;
  for (const auto tree : {testing::Tree::kCascade, testing::Tree::kZipf}) {
    std::mt19937_64 random(11);
    testing::KeySource<TypeParam> source(tree, random);
    HierarchyFeed<TypeParam> feed(options, PrefixLevels<TypeParam>::Every(sizeof(TypeParam)));
    std::int64_t clock = 0;
    for (int batch = 0; batch < 200; ++batch) {
      std::vector<TypeParam> keys(1 + random() % 900);
      for (TypeParam& key : keys) key = source.Next(0);
      feed.Append(keys, clock += static_cast<std::int64_t>(random() % 1000));
      if (batch % 25 != 24) continue;
      ASSERT_NO_FATAL_FAILURE(
          testing::ForWindows(feed, random, 1, [&](const SlidingRange& range, std::uint64_t n) {
            CheckWindow(feed, range, n, random);
          }));
    }
  }
}

HierarchyFeed<std::uint32_t> SmallFeed(std::size_t values) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 4000;
  options.max_age_us = 3000;
  options.block_size = 64;
  HierarchyFeed<std::uint32_t> feed(options, PrefixLevels<std::uint32_t>::Every(8));
  std::mt19937_64 random(3);
  testing::KeySource<std::uint32_t> source(testing::Tree::kCascade, random);
  for (std::size_t i = 0; i < values; ++i) {
    const std::uint32_t key = source.Next(0);
    feed.Append(std::span<const std::uint32_t>(&key, 1), static_cast<std::int64_t>(i / 4));
  }
  return feed;
}

// The cut block dropped up to D of a prefix that it does not list, and one of its values is inside:
// no more than that one can be the prefix's.
TEST(SlidingHierarchy, UpperBoundsStayWithinTheWindow) {
  SlidingOptions options;
  options.epsilon = 0.2;
  options.max_values = 8192;
  options.block_size = 64;
  HierarchyFeed<std::uint32_t> feed(options, PrefixLevels<std::uint32_t>({16}));
  constexpr std::uint64_t kOthers = 4096, kUnseen = 3;
  std::vector<std::uint32_t> keys(2 * kOthers, 0xffff'0000);
  for (std::uint32_t i = 0; i < kOthers; ++i) keys[i] = i << 16;
  feed.Append(keys, 0);
  const SlidingHierarchicalView<std::uint32_t> view(
      feed.hierarchy.Cover(feed.record.Last(kOthers + 1 + kUnseen, kUnseen), feed.record), {});
  const auto items = view.HeavyHitters(0.5);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].prefix, 0xffff'0000);
  EXPECT_GE(items[0].count_high, kOthers);
  EXPECT_LE(items[0].count_high, view.n());
  EXPECT_EQ(items[0].count_high, view.Count(0, 0xffff'0000).count_high);
}

TEST(SlidingHierarchyBytes, AreReadBackAtAnyMoment) {
  for (const std::size_t values : {0, 64, 640, 1024, 5000, 20'000}) {
    SCOPED_TRACE(values);
    auto feed = SmallFeed(values);
    auto again = feed;
    again.WriteAndRead();
    const std::vector<std::uint32_t> more(9000, 7);
    feed.Append(more, 7000);
    again.Append(more, 7000);
    EXPECT_EQ(again.hierarchy.Serialize(), feed.hierarchy.Serialize());
  }
}

TEST(SlidingHierarchyBytes, RefuseDamage) {
  const std::string bytes = SmallFeed(5000).hierarchy.Serialize();
  testing::RefusesDamage<SlidingHierarchy<std::uint32_t>>(bytes);
  EXPECT_THROW(SlidingHierarchy<std::uint64_t>::Deserialize(bytes), std::invalid_argument);
}

// Under a checksum that fits: what is accepted serializes to the same bytes, answers and goes on.
TEST(SlidingHierarchyBytes, LiesAreRefusedOrHarmless) {
  const auto feed = SmallFeed(5000);
  const std::string bytes = feed.hierarchy.Serialize();
  std::mt19937_64 random(5);
  int accepted = 0;
  const int cases = Cases(20'000);
  for (int i = 0; i < cases; ++i) {
    const std::string forged = testing::Forged(bytes, random);
    try {
      auto hierarchy = SlidingHierarchy<std::uint32_t>::Deserialize(forged);
      ASSERT_EQ(hierarchy.Serialize(), forged);
      ++accepted;
      if (hierarchy.rule().options() != feed.record.rule().options()) continue;
      const std::vector<std::uint32_t> block(64, 9);
      std::optional<SlidingHierarchyCover<std::uint32_t>> cover;
      try {
        cover = hierarchy.Cover(feed.record.Last(1000, 0), feed.record);
      } catch (const std::logic_error&) {
        // It took in, or let expire, something else than the record.
      }
      if (cover) {
        const SlidingHierarchicalView<std::uint32_t> view(*cover, {});
        for (int level = 0; level < view.levels().size(); ++level) {
          const auto item = view.Count(level, 9);
          ASSERT_LE(item.count_low, item.count_high);
          ASSERT_LE(item.count_high, 1000u);
        }
        if (view.Serves(0.3)) view.HeavyHitters(0.3);
      }
      for (int more = 0; more < 40; ++more) hierarchy.AddBlock(block, 0);
    } catch (const std::invalid_argument& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("serialized sliding hierarchy"))
          << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(SlidingHierarchy, RefusesWrongUse) {
  auto feed = SmallFeed(640);
  EXPECT_THROW(feed.hierarchy.AddBlock(std::vector<std::uint32_t>(63), 0), std::invalid_argument);
  const auto range = feed.record.Last(100, 0);
  feed.hierarchy.AddBlock(std::vector<std::uint32_t>(64), 0);
  EXPECT_THROW(feed.hierarchy.Cover(range, feed.record), std::logic_error);
}

}  // namespace
}  // namespace tidemark
