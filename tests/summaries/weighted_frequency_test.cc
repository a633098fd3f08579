// Sums of weights by key against exact sums, against lossy counting as its paper words it, and,
// with weights of 1, against the summary of keys. Serialized form: serialize_test.cc,
// golden_test.cc.
#include "summaries/weighted_frequency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_rule.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/mixed_input.h"
#include "tests/summaries/property.h"
#include "tests/summaries/reference.h"

namespace tidemark {
namespace {

using testing::EntriesOf;
using testing::MixedInput;

template <class Key>
using Pairs = std::vector<KeyWeight<Key>>;

/// Weights as streams have them, at times many of them 0, or so large that few fit.
std::uint64_t AnyWeight(std::mt19937_64& random, std::uint64_t kind) {
  switch (kind % 5) {
    case 0:
      return 1;
    case 1:
      return random() % 3;
    case 2:
      return 40 + random() % 1461;
    case 3:
      return random() >> (12 + random() % 52);
    default:
      return random() % 50 == 0 ? 1'000'000 : random() % 2;
  }
}

/// Keys beside weights, cut into windows that are sorted by key, some of them aggregated.
template <class Key>
std::vector<Pairs<Key>> AnyWindows(const MixedInput<Key>& input, std::mt19937_64& random) {
  std::vector<Pairs<Key>> windows;
  const std::uint64_t kind = random(), largest = 1 + random() % 700;
  for (std::size_t at = 0; at < input.keys.size();) {
    Pairs<Key> window;
    const std::size_t end = std::min<std::size_t>(input.keys.size(), at + 1 + random() % largest);
    for (; at < end; ++at) window.push_back({input.keys[at], AnyWeight(random, kind)});
    std::stable_sort(window.begin(), window.end(),
                     [](const auto& a, const auto& b) { return a.key < b.key; });
    if (random() % 3 == 0) window.resize(AggregateEqualKeys(std::span(window)));
    windows.push_back(std::move(window));
  }
  return windows;
}

template <class Key>
void CheckView(const FrequencyView<Key>& view, const std::map<Key, std::uint64_t>& truth,
               std::uint64_t parts) {
  std::uint64_t total = 0;
  for (const auto& [key, weight] : truth) total += weight;
  ASSERT_EQ(view.n(), total);
  const auto check = [&](Key key, std::uint64_t weight) {
    const ItemCount<Key> item = view.Count(key);
    ASSERT_LE(item.count_low, weight) << "key " << key;
    ASSERT_GE(item.count_high, weight) << "key " << key;
    ASSERT_LE(static_cast<Uint128>(item.count_high - item.count_low) * parts, total) << key;
  };
  for (const auto& [key, weight] : truth) ASSERT_NO_FATAL_FAILURE(check(key, weight));
  Key absent = 3;
  while (truth.contains(absent)) absent = static_cast<Key>(absent * 5 + 1);
  ASSERT_NO_FATAL_FAILURE(check(absent, 0));

  const double support = std::max(view.MinimumSupport(), 1e-9);
  if (support > 1 || total == 0) return;
  const std::uint64_t wanted = CeilFraction(support, total);
  std::map<Key, bool> heavy;
  for (const auto& item : view.HeavyHitters(support)) heavy[item.key] = true;
  for (const auto& [key, weight] : truth) {
    if (weight >= wanted) {
      ASSERT_TRUE(heavy[key]) << "missed " << key;
    }
  }
}

template <class Key>
void CheckWeights(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  const auto windows = AnyWindows(input, random);
  const double epsilon = 1.0 / static_cast<double>(input.parts);
  WeightedFrequencySummary<Key> summary(epsilon);
  testing::NaiveLossyCounting<Key> naive(1, input.parts);
  std::map<Key, std::uint64_t> truth;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Pairs<Key>& window = windows[i];
    Pairs<Key> items = window;
    items.resize(AggregateEqualKeys(std::span(items)));
    for (const auto& item : items) truth[item.key] += item.weight;
    if (i + 1 == windows.size() && random() % 2 == 0) {
      // It stays open.
      const auto view = FrequencyView<Key>::OfItems(summary.Snapshot(), items);
      ASSERT_NO_FATAL_FAILURE(CheckView(view, truth, input.parts));
      return;
    }
    summary.AddWindow(window);
    naive.AddWindow(std::span<const KeyWeight<Key>>(items));
    // From there on D may lie below the exact one (fraction.h).
    if (summary.weight() < std::uint64_t{1} << 52) {
      ASSERT_EQ(EntriesOf(summary), naive.entries());
    }
    // The number of entries that lossy_counts.h proves.
    const auto dropped = static_cast<double>(summary.dropped());
    ASSERT_LE(static_cast<double>(summary.entries()),
              (1 + std::log(dropped + 1)) * static_cast<double>(input.parts));
  }
  ASSERT_NO_FATAL_FAILURE(CheckView(FrequencyView<Key>(summary.Snapshot()), truth, input.parts));
}

template <class Key>
void CheckMerges(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  const double epsilon = 1.0 / static_cast<double>(input.parts);
  std::vector<WeightedFrequencySummary<Key>> parts(1 + random() % 5,
                                                   WeightedFrequencySummary<Key>(epsilon));
  std::map<Key, std::uint64_t> truth;
  for (const auto& window : AnyWindows(input, random)) {
    parts[random() % parts.size()].AddWindow(window);
    for (const auto& pair : window) truth[pair.key] += pair.weight;
  }
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    const auto other = WeightedFrequencySummary<Key>::Deserialize(parts.back().Serialize());
    parts.pop_back();
    parts[random() % parts.size()].Merge(other);
  }
  CheckView(FrequencyView<Key>(parts.front().Snapshot()), truth, input.parts);
}

template <class Key>
class Weighted : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Weighted, Keys);

TYPED_TEST(Weighted, SumsHoldWhateverComes) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(1500), [](auto& random) { return testing::DrawMixed<TypeParam>(random, 2000); },
      CheckWeights<TypeParam>);
}

TYPED_TEST(Weighted, MergesKeepTheGuarantee) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(500), [](auto& random) { return testing::DrawMixed<TypeParam>(random, 2000); },
      CheckMerges<TypeParam>);
}

TYPED_TEST(Weighted, ByOneAreCounts) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    SCOPED_TRACE(Name(distribution));
    std::mt19937_64 random(5);
    WeightedFrequencySummary<Key> weighted(0.002);
    FrequencySummary<Key> counted(0.002);
    const auto keys = testing::Generate<Key>(distribution, 20'000, 5);
    testing::ForEachWindow(
        std::span<const Key>(keys), [&] { return 1 + random() % 3000; },
        [&](std::span<const Key> window) {
          Pairs<Key> pairs;
          for (const Key key : window) pairs.push_back({key, 1});
          weighted.AddWindow(pairs);
          counted.AddWindow(window);
          ASSERT_EQ(EntriesOf(weighted), EntriesOf(counted));
        });
  }
}

TYPED_TEST(Weighted, EqualKeysBecomeOne) {
  using Key = TypeParam;
  Pairs<Key> pairs{{1, 2}, {1, 0}, {1, 3}, {4, 0}, {7, 1}, {9, 8}, {9, 1}};
  pairs.resize(AggregateEqualKeys(std::span(pairs)));
  EXPECT_EQ(pairs, (Pairs<Key>{{1, 5}, {4, 0}, {7, 1}, {9, 9}}));
  EXPECT_EQ(AggregateEqualKeys(std::span<KeyWeight<Key>>()), 0u);
  Pairs<Key> one{{3, 4}};
  EXPECT_EQ(AggregateEqualKeys(std::span(one)), 1u);
  Pairs<Key> heavy{{1, kMaxSummaryCount}, {1, 1}};
  const Pairs<Key> before = heavy;
  EXPECT_THROW(AggregateEqualKeys(std::span(heavy)), std::length_error);
  EXPECT_EQ(heavy, before);
}

TYPED_TEST(Weighted, NothingWeighsNothing) {
  using Key = TypeParam;
  WeightedFrequencySummary<Key> summary(0.1);
  summary.AddWindow(Pairs<Key>{{1, 0}, {2, 0}});
  EXPECT_EQ(summary.entries(), 0u);
  summary.AddWindow(Pairs<Key>{{1, 7}, {2, 0}});
  EXPECT_EQ(summary.entries(), 1u);
  const std::string bytes = summary.Serialize();
  summary.AddWindow(Pairs<Key>{{1, 0}, {2, 0}});
  summary.AddWindow({});
  EXPECT_EQ(summary.Serialize(), bytes);
  EXPECT_EQ(FrequencyView<Key>(summary.Snapshot()).Count(2), (ItemCount<Key>{2, 0, 0}));
}

TYPED_TEST(Weighted, TheLimitIsToldAndLeavesTheSummaryAsItWas) {
  using Key = TypeParam;
  WeightedFrequencySummary<Key> summary(0.25);
  summary.AddWindow(Pairs<Key>{{1, kMaxSummaryCount - 10}, {2, 10}});
  EXPECT_EQ(summary.weight(), kMaxSummaryCount);
  const std::string bytes = summary.Serialize();
  EXPECT_EQ(WeightedFrequencySummary<Key>::Deserialize(bytes).Serialize(), bytes);
  summary.AddWindow(Pairs<Key>{{1, 0}});
  try {
    summary.AddWindow(Pairs<Key>{{1, 1}});
    FAIL();
  } catch (const std::length_error& error) {
    EXPECT_STREQ(error.what(),
                 "a weighted frequency summary of 9223372036854775807 in weight cannot take in 1 "
                 "more: the limit is 2^63 - 1");
  }
  WeightedFrequencySummary<Key> other(0.25);
  EXPECT_THROW(other.AddWindow(Pairs<Key>{{1, ~0ull}, {2, 3}}), std::length_error);
  EXPECT_EQ(other.Serialize(), WeightedFrequencySummary<Key>(0.25).Serialize());
  other.AddWindow(Pairs<Key>{{1, 1}});
  EXPECT_THROW(summary.Merge(other), std::length_error);
  EXPECT_THROW(summary.Merge(WeightedFrequencySummary<Key>(0.5)), std::invalid_argument);
  EXPECT_THROW(WeightedFrequencySummary<Key>(0), std::invalid_argument);
  EXPECT_EQ(summary.Serialize(), bytes);
}

TYPED_TEST(Weighted, TheHeaviestOfAllAreListed) {
  using Key = TypeParam;
  WeightedFrequencySummary<Key> summary(0.01);
  summary.AddWindow(Pairs<Key>{{1, 1500}, {2, 1500}, {2, 9000}, {3, 40}, {4, 64}});
  const Pairs<Key> open{{3, 5000}, {5, 100}};
  const auto top = FrequencyView<Key>::OfItems(summary.Snapshot(), open).TopK(2);
  EXPECT_EQ(top.items.size(), 2u);
  EXPECT_EQ(top.items[0].key, Key{2});
  EXPECT_EQ(top.items[1].key, Key{3});
  EXPECT_EQ(top.certain, 2u);
}

}  // namespace
}  // namespace tidemark
