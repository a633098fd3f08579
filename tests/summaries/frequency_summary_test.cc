// Frequency summaries and views against a naive lossy counting and the exact counts.
// Serialized form: serialize_test.cc.
#include "summaries/frequency_summary.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/frequency_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::EntriesOf;
using testing::NaiveLossyCounting;
using testing::Oracle;

struct Epsilon {
  std::uint64_t parts;
  double value() const { return 1.0 / static_cast<double>(parts); }
};
constexpr Epsilon kEpsilons[] = {{20}, {100}, {1000}, {10'000}};

template <class Key>
void CheckView(const FrequencyView<Key>& view, const Oracle<Key>& truth, Epsilon epsilon,
               std::uint64_t unseen, std::uint64_t seed) {
  const std::uint64_t n = truth.n();
  ASSERT_EQ(view.n(), n);
  std::vector<Key> distinct = truth.sorted();
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

  std::mt19937_64 random(seed);
  std::vector<Key> probes{0, 1, static_cast<Key>(-1)};
  for (int i = 0; i < 50; ++i) {
    probes.push_back(static_cast<Key>(random()));
    if (n > 0) probes.push_back(truth.sorted()[random() % n]);
  }
  for (const Key key : probes) {
    const ItemCount<Key> count = view.Count(key);
    ASSERT_LE(count.count_low, truth.Count(key)) << "key " << key;
    ASSERT_GE(count.count_high, truth.Count(key)) << "key " << key;
    ASSERT_LE((count.count_high - count.count_low - std::min(unseen, count.count_high)) *
                  epsilon.parts * (unseen == 0),
              n);
    ASSERT_LE((count.count_high - count.count_low) * epsilon.parts, n + unseen * epsilon.parts);
  }

  const double least = view.MinimumSupport();
  ASSERT_GE(least, 0);
  for (const double asked : {least, 1e-5, 1e-3, 0.01, 0.06, 0.5, 1.0}) {
    const double support = asked == 0 ? 1e-9 : asked;
    SCOPED_TRACE(::testing::Message() << "support " << support << " least " << least << " n " << n);
    if (CeilFraction(support, n) < CeilFraction(least, n) || support > 1) {
      ASSERT_THROW(view.HeavyHitters(support), std::invalid_argument);
      continue;
    }
    const auto items = view.HeavyHitters(support);
    const std::uint64_t wanted = CeilFraction(support, n);
    std::set<Key> reported;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto& item = items[i];
      const std::uint64_t count = truth.Count(item.key);
      ASSERT_TRUE(reported.insert(item.key).second);
      ASSERT_LE(item.count_low, count);
      ASSERT_GE(item.count_high, count);
      ASSERT_EQ(view.Count(item.key), item);
      // None below (support - epsilon) * n: wanted - count <= epsilon * n.
      if (count < wanted) {
        ASSERT_LE((wanted - count) * epsilon.parts, n + (unseen + 1) * epsilon.parts);
      }
      if (i > 0) {
        const auto& before = items[i - 1];
        ASSERT_TRUE(before.count_high > item.count_high ||
                    (before.count_high == item.count_high &&
                     (before.count_low > item.count_low ||
                      (before.count_low == item.count_low && before.key < item.key))));
      }
    }
    for (const Key key : distinct) {
      if (truth.Count(key) >= std::max<std::uint64_t>(wanted, 1)) {
        ASSERT_TRUE(reported.contains(key)) << "missed " << key;
      }
    }
  }
}

/// Window lengths: any, often small, now and then large.
auto AnyLength(std::mt19937_64& random, std::size_t longest) {
  return [&random, longest] {
    return 1 + random() % (std::size_t{1} << (random() % std::bit_width(longest)));
  };
}

template <class Key>
class Frequencies : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Frequencies, Keys);

TYPED_TEST(Frequencies, RefuseWrongUse) {
  using Key = TypeParam;
  EXPECT_THROW(FrequencySummary<Key>(0), std::invalid_argument);
  EXPECT_THROW(FrequencySummary<Key>(0.7), std::invalid_argument);
  FrequencySummary<Key> summary(0.1);
  EXPECT_THROW(summary.Merge(FrequencySummary<Key>(0.2)), std::invalid_argument);
  const FrequencyView<Key> view(summary.Snapshot());
  for (const double support : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(view.HeavyHitters(support), std::invalid_argument) << support;
  }
  EXPECT_TRUE(view.HeavyHitters(0.5).empty());
  EXPECT_EQ(view.MinimumSupport(), 0);
}

TYPED_TEST(Frequencies, BoundIsStrictlyBelowEpsilonN) {
  EXPECT_EQ(DroppedBound(0.001, 0), 0u);
  EXPECT_EQ(DroppedBound(0.001, 1000), 0u);
  EXPECT_EQ(DroppedBound(0.001, 1001), 1u);
  EXPECT_EQ(DroppedBound(0.001, 2000), 1u);
  EXPECT_EQ(DroppedBound(0.1, 30), 2u);
}

TYPED_TEST(Frequencies, TheMinimumSupportIsNamedAndServed) {
  using Key = TypeParam;
  FrequencySummary<Key> summary(0.01);
  std::vector<Key> keys(5000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<Key>(i / 2);
  summary.AddWindow(keys);
  const FrequencyView<Key> view(summary.Snapshot());
  EXPECT_DOUBLE_EQ(view.MinimumSupport(), 0.01);  // D = 49, so 50 of 5000
  EXPECT_NO_THROW(view.HeavyHitters(0.01));
  try {
    view.HeavyHitters(0.0098);  // 49 of 5000
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("expected at least 0.01"), std::string::npos)
        << error.what();
  }
}

TYPED_TEST(Frequencies, EqualTheNaiveRule) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    for (const Epsilon epsilon : kEpsilons) {
      for (std::uint64_t seed = 0; seed < Seeds(4, 100); ++seed) {
        SCOPED_TRACE(::testing::Message()
                     << Name(distribution) << " epsilon " << epsilon.value() << " seed " << seed);
        std::mt19937_64 random(seed);
        const auto keys = testing::Generate<Key>(distribution, 6000, seed);
        FrequencySummary<Key> summary(epsilon.value());
        NaiveLossyCounting<Key> naive(1, epsilon.parts);
        testing::ForEachWindow(
            std::span<const Key>(keys), AnyLength(random, seed == 0 ? 4096 : 1 << (3 * seed)),
            [&](std::span<const Key> window) {
              summary.AddWindow(window);
              naive.AddWindow(window);
              ASSERT_EQ(summary.dropped(), naive.dropped());
              ASSERT_EQ(EntriesOf(summary), naive.entries()) << "n " << summary.count();
            });
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(Frequencies, EveryDistributionAndEpsilon) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    for (const Epsilon epsilon : kEpsilons) {
      for (const std::size_t n : {0u, 1u, 500u, 20'000u}) {
        const std::uint64_t seed = n + epsilon.parts;
        SCOPED_TRACE(::testing::Message() << Name(distribution) << " epsilon " << epsilon.value()
                                          << " n " << n << " seed " << seed);
        std::mt19937_64 random(seed);
        const auto keys = testing::Generate<Key>(distribution, n, seed);
        const Oracle<Key> truth(keys);
        FrequencySummary<Key> summary(epsilon.value());
        const std::size_t closed = n - n / 7, unseen = seed % 2 == 0 ? 0 : n / 50;
        testing::ForEachWindow(std::span<const Key>(keys).first(closed), AnyLength(random, 4096),
                               [&](std::span<const Key> window) { summary.AddWindow(window); });
        std::vector<Key> open(keys.begin() + static_cast<std::ptrdiff_t>(closed),
                              keys.end() - static_cast<std::ptrdiff_t>(unseen));
        std::sort(open.begin(), open.end());
        const FrequencyView<Key> view(summary.Snapshot(), open, unseen);
        if (unseen == 0) {
          ASSERT_TRUE(view.WithinEpsilon());
        }
        ASSERT_NO_FATAL_FAILURE(CheckView(view, truth, epsilon, unseen, seed));
      }
    }
  }
}

TYPED_TEST(Frequencies, OneMillionZipfInLargeWindows) {
  using Key = TypeParam;
  const auto keys = testing::Generate<Key>(Distribution::kZipf, 1'000'000, 9);
  const Oracle<Key> truth(keys);
  for (const Epsilon epsilon : {Epsilon{100}, Epsilon{10'000}}) {
    SCOPED_TRACE(epsilon.value());
    FrequencySummary<Key> summary(epsilon.value());
    std::vector<Key> open;
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return std::size_t{1} << 17; },
        [&](std::span<const Key> window) {
          if (window.size() == std::size_t{1} << 17) {
            summary.AddWindow(window);
          } else {
            open.assign(window.begin(), window.end());
          }
        });
    ASSERT_NO_FATAL_FAILURE(
        CheckView(FrequencyView<Key>(summary.Snapshot(), open), truth, epsilon, 0, 9));
    ASSERT_LT(summary.entries(), 3 * epsilon.parts);
  }
}

TYPED_TEST(Frequencies, MergesInRandomTreesKeepTheGuarantee) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(22, 5000); ++seed) {
    std::mt19937_64 random(seed);
    const auto distribution = testing::kDistributions[seed % std::size(testing::kDistributions)];
    const Epsilon epsilon = kEpsilons[random() % 4];
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed << ' ' << Name(distribution) << " epsilon " << epsilon.value());
    const auto keys = testing::Generate<Key>(distribution, 20'000, seed);
    std::vector<FrequencySummary<Key>> parts;
    std::span<const Key> rest(keys);
    while (!rest.empty()) {
      const std::size_t size = std::min<std::size_t>(rest.size(), random() % 6000);
      parts.emplace_back(epsilon.value());
      testing::ForEachWindow(rest.first(size), AnyLength(random, 2048),
                             [&](std::span<const Key> window) { parts.back().AddWindow(window); });
      rest = rest.subspan(size);
    }
    while (parts.size() > 1) {
      std::swap(parts[random() % parts.size()], parts.back());
      const auto other = parts.back();
      parts.pop_back();
      parts[random() % parts.size()].Merge(other);
    }
    ASSERT_NO_FATAL_FAILURE(CheckView(FrequencyView<Key>(parts.front().Snapshot()),
                                      Oracle<Key>(keys), epsilon, 0, seed));
  }
}

/// What AddItems asks for, and now and then more.
template <class Key>
std::vector<KeyWeight<Key>> NeededItems(const FrequencySummary<Key>& summary,
                                        std::span<const Key> window, std::mt19937_64& random) {
  std::set<Key> known;
  summary.Snapshot().ForEachKey([&](Key key) { known.insert(key); });
  const std::uint64_t least = summary.LeastCount(window.size());
  std::vector<KeyWeight<Key>> items;
  for (std::size_t at = 0; at < window.size();) {
    std::size_t end = at + 1;
    while (end < window.size() && window[end] == window[at]) ++end;
    if (end - at >= least || known.contains(window[at]) || random() % 4 == 0) {
      items.push_back({window[at], end - at});
    }
    at = end;
  }
  return items;
}

TYPED_TEST(Frequencies, ItemsOfAWindowAreAsGoodAsTheWindow) {
  using Key = TypeParam;
  for (const auto distribution : testing::kDistributions) {
    for (const Epsilon epsilon : kEpsilons) {
      const std::uint64_t seed = epsilon.parts;
      SCOPED_TRACE(::testing::Message() << Name(distribution) << " epsilon " << epsilon.value());
      std::mt19937_64 random(seed);
      const auto keys = testing::Generate<Key>(distribution, 20'000, seed);
      FrequencySummary<Key> by_windows(epsilon.value()), by_items(epsilon.value());
      testing::ForEachWindow(std::span<const Key>(keys), AnyLength(random, 8192),
                             [&](std::span<const Key> window) {
                               const auto items = NeededItems<Key>(by_items, window, random);
                               by_items.AddItems(window.size(), items);
                               by_windows.AddWindow(window);
                               ASSERT_EQ(by_items.Serialize(), by_windows.Serialize());
                             });
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(Frequencies, ItemsThatCannotBeAreRefused) {
  using Key = TypeParam;
  using Items = std::vector<KeyWeight<Key>>;
  FrequencySummary<Key> summary(0.1);
  summary.AddItems(7, Items{{1, 3}, {5, 4}});
  const std::string before = summary.Serialize();
  EXPECT_THROW(summary.AddItems(7, Items{{5, 3}, {1, 4}}), std::invalid_argument);
  EXPECT_THROW(summary.AddItems(7, Items{{5, 3}, {5, 4}}), std::invalid_argument);
  EXPECT_THROW(summary.AddItems(6, Items{{1, 3}, {5, 4}}), std::invalid_argument);
  EXPECT_THROW(summary.AddItems(6, Items{{1, 3}, {5, ~0ull}}), std::invalid_argument);
  EXPECT_THROW(summary.AddItems(~0ull, {}), std::length_error);
  EXPECT_EQ(summary.Serialize(), before);
}

TYPED_TEST(Frequencies, SnapshotsDoNotChangeAndNameTheirKeys) {
  using Key = TypeParam;
  FrequencySummary<Key> summary(0.1);
  const std::vector<Key> window{1, 1, 1, 2, 9};
  summary.AddWindow(window);
  const auto snapshot = summary.Snapshot();
  summary.AddWindow(window);
  summary.AddWindow(std::vector<Key>(90, Key{4}));
  std::vector<Key> keys;
  snapshot.ForEachKey([&](Key key) { keys.push_back(key); });
  EXPECT_EQ(keys, (std::vector<Key>{1, 2, 9}));
  EXPECT_EQ(FrequencyView<Key>(snapshot).Count(1), (ItemCount<Key>{1, 3, 3}));
  EXPECT_EQ(summary.entries(), 1u);  // D(100) = 9, and 1 came 6 times
}

/// The sequence of windows that leaves the most entries behind: 1/epsilon values of each age, all
/// of them keys that come as often as they must to be kept to the end.
TYPED_TEST(Frequencies, TheMostEntriesAreAsManyAsIsProven) {
  using Key = TypeParam;
  for (const std::uint64_t parts : {10u, 64u, 1000u}) {
    for (const std::uint64_t oldest : {1u, 7u, 300u}) {
      FrequencySummary<Key> summary(1.0 / static_cast<double>(parts));
      summary.AddWindow(std::vector<Key>{0});  // the next value raises D
      Key key = 1;
      std::size_t expected = 0;
      double most = 0;
      for (std::uint64_t age = oldest + 1; age-- > 0;) {
        const std::size_t size = age > 0 ? parts : parts - 1;  // the last window does not raise it
        std::vector<Key> window;
        while (window.size() + age + 1 <= size) {
          window.insert(window.end(), age + 1, key++);
          ++expected;
        }
        window.resize(size, key++);  // too few of them: dropped
        summary.AddWindow(window);
        most += static_cast<double>(parts) / static_cast<double>(age + 1);
      }
      EXPECT_EQ(summary.dropped(), oldest);
      EXPECT_EQ(summary.entries(), expected) << parts << ' ' << oldest;
      EXPECT_LT(static_cast<double>(summary.entries()), most);
      EXPECT_GT(static_cast<double>(summary.entries()), most - static_cast<double>(oldest) - 2);
    }
  }
}

RC_GTEST_PROP(FrequencyProperty, EqualsTheNaiveRule,
              (const std::vector<std::vector<std::uint8_t>>& windows)) {
  FrequencySummary<std::uint64_t> summary(0.125);
  NaiveLossyCounting<std::uint64_t> naive(1, 8);
  for (const auto& draw : windows) {
    std::vector<std::uint64_t> window(draw.begin(), draw.end());
    for (auto& key : window) key %= 16;
    std::sort(window.begin(), window.end());
    summary.AddWindow(window);
    naive.AddWindow(window);
    RC_ASSERT(EntriesOf(summary) == naive.entries());
  }
}

}  // namespace
}  // namespace tidemark
