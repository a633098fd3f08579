// Hierarchical frequency summaries and views against the rule without short cuts and the exact
// counts of every prefix.
#include "summaries/hierarchical_frequency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "summaries/hierarchical_view.h"
#include "summaries/lossy_counts.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/hierarchy_cases.h"
#include "tests/summaries/hierarchy_reference.h"
#include "tests/support/fix_checksum.h"

namespace tidemark {
namespace {

using testing::ExactHierarchy;
using testing::FaultOfAnswer;
using testing::HierarchyCase;
using testing::NaiveHierarchy;

template <class Key>
std::vector<Key> Keys(const std::vector<KeyWeight<Key>>& window) {
  std::vector<Key> keys;
  for (const auto& value : window) keys.push_back(value.key);
  return keys;
}
std::vector<std::uint64_t> Sums(const auto& window) {
  std::vector<std::uint64_t> sums{0};
  for (const auto& value : window) sums.push_back(sums.back() + value.weight);
  return sums;
}

template <class Key>
void Feed(HierarchicalFrequencySummary<Key>& summary, const std::vector<KeyWeight<Key>>& window,
          bool weighted) {
  if (weighted) {
    summary.AddWeighted(window);
  } else {
    summary.AddWindow(Keys(window));
  }
}

/// The counts of all prefixes that came, and of some beside them.
template <class Key>
std::string FaultOfCounts(const HierarchicalView<Key>& view, const ExactHierarchy<Key>& truth,
                          std::uint64_t width) {
  const auto fault = [&](int level, Key prefix, std::uint64_t count) -> std::string {
    const ItemCount<Key> said = view.Count(level, prefix);
    if (said.key == prefix && said.count_low <= count && count <= said.count_high &&
        said.count_high - said.count_low <= width) {
      return "";
    }
    return "count of level " + std::to_string(level) + " prefix " + testing::Hex(prefix) + " is " +
           std::to_string(count) + ", said " + std::to_string(said.count_low) + " to " +
           std::to_string(said.count_high) + " of " + testing::Hex(said.key);
  };
  for (int level = 0; level < truth.levels.size(); ++level) {
    for (const auto& [prefix, count] : truth.counts[static_cast<std::size_t>(level)]) {
      if (auto wrong = fault(level, prefix, count); !wrong.empty()) return wrong;
      const int length = truth.levels.length(level);
      if (length == 0) continue;
      const Key sibling = static_cast<Key>(
          prefix ^ static_cast<Key>(Key{1} << (PrefixLevels<Key>::kKeyBits - length)));
      if (auto wrong = fault(level, sibling, truth.Count(level, sibling)); !wrong.empty()) {
        return wrong;
      }
    }
  }
  return "";
}

/// What the invariants of the header say of the state itself.
template <class Key>
std::string FaultOfState(const HierarchicalFrequencySummary<Key>& summary) {
  const auto snapshot = summary.Snapshot();
  std::uint64_t sum = snapshot.root.count;
  for (const auto& entry : snapshot.Entries()) {
    sum += entry.count;
    if (entry.count + entry.delta <= snapshot.dropped || entry.delta > entry.missed ||
        entry.missed > snapshot.dropped) {
      return "an entry that must not be there";
    }
  }
  if (sum != snapshot.count) return "counts do not add up to n";
  const std::string bytes = summary.Serialize();
  const auto back = HierarchicalFrequencySummary<Key>::Deserialize(bytes);
  if (back.Serialize() != bytes || back.Snapshot().root != snapshot.root ||
      back.Snapshot().Entries() != snapshot.Entries()) {
    return "does not come back from its bytes";
  }
  return "";
}

/// What is wrong with the summary of a case, or nothing.
template <class Key>
std::string Fault(const HierarchyCase<Key>& tried) {
  const PrefixLevels<Key> levels(tried.lengths);
  std::vector<HierarchicalFrequencySummary<Key>> summaries(
      static_cast<std::size_t>(tried.summaries),
      HierarchicalFrequencySummary<Key>(tried.epsilon(), levels));
  NaiveHierarchy<Key> naive(levels);
  ExactHierarchy<Key> truth(levels);
  for (std::size_t w = 0; w + 1 < tried.windows.size(); ++w) {
    const auto& window = tried.windows[w];
    auto& summary = summaries[w % summaries.size()];
    const std::uint64_t before = summary.dropped();
    Feed(summary, window, tried.weighted);
    for (const auto& value : window) truth.Add(value.key, value.weight);
    if (summaries.size() > 1) continue;
    naive.Add(window, before, summary.dropped());
    if (naive.entries() != summary.Snapshot().Entries() || naive.root != summary.Snapshot().root) {
      return "not the rule's entries after window " + std::to_string(w);
    }
  }
  // Merged in pairs, in the order of a tree.
  while (summaries.size() > 1) {
    const std::size_t at = tried.support_of_n % (summaries.size() - 1);
    summaries[at].Merge(summaries[at + 1]);
    summaries.erase(summaries.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  const auto& summary = summaries.front();
  if (auto wrong = FaultOfState(summary); !wrong.empty()) return wrong;
  if (summary.count() != truth.n) return "wrong n";

  const auto& open = tried.windows.back();
  for (const auto& value : open) truth.Add(value.key, value.weight);
  const auto open_keys = Keys(open);
  const auto sums = Sums(open);
  const auto view_of = [&](std::uint64_t unseen) {
    return tried.weighted ? HierarchicalView<Key>(summary.Snapshot(), open_keys,
                                                  std::span<const std::uint64_t>(sums), unseen)
                          : HierarchicalView<Key>(summary.Snapshot(), open_keys, unseen);
  };
  // Unseen values lie below the keys of the open window, or below one key.
  auto with_unseen = truth;
  for (std::uint64_t i = 0; i < tried.unseen; ++i) {
    with_unseen.Add(open_keys.empty() ? Key{5} : open_keys[i % 3 % open_keys.size()], 1);
  }
  for (const bool all : {true, false}) {
    const auto& true_counts = all ? truth : with_unseen;
    const std::uint64_t unseen = all ? 0 : tried.unseen;
    const HierarchicalView<Key> view = view_of(unseen);
    if (view.n() != true_counts.n) return "the view has a wrong n";
    if (unseen == 0 && !view.WithinEpsilon()) return "not within epsilon";
    const std::uint64_t width = DroppedBound(tried.epsilon(), summary.count()) + unseen;
    if (view.exact() != (width == 0)) return "wrong about being exact";
    if (auto wrong = FaultOfCounts(view, true_counts, width); !wrong.empty()) return wrong;
    if (view.n() == 0 || width >= view.n()) continue;
    // Any threshold that is served, and the least one.
    const std::uint64_t least = width + 1;
    for (const std::uint64_t threshold :
         {least, least + tried.support_of_n % (view.n() - least + 1),
          std::max(least, view.n() / 10)}) {
      const double support = static_cast<double>(threshold) / static_cast<double>(view.n());
      if (!view.Serves(support)) return "does not serve what it must";
      auto wrong = FaultOfAnswer(view.HeavyHitters(support), true_counts, threshold, width);
      if (!wrong.empty()) return "at threshold " + std::to_string(threshold) + ": " + wrong;
    }
  }
  return "";
}

template <class Key>
class HierarchicalFrequencies : public ::testing::Test {};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t, Key128>;
TYPED_TEST_SUITE(HierarchicalFrequencies, KeyTypes);

TYPED_TEST(HierarchicalFrequencies, AreTheRuleAndKeepItsPromises) {
  using Key = TypeParam;
  // The 129 levels of the widest keys take their time.
  const int cases = sizeof(Key) <= 8 ? Cases(2000) : Cases(600, 20'000);
  for (int seed = 0; seed < cases; ++seed) {
    const auto tried = testing::RandomHierarchyCase<Key>(static_cast<std::uint64_t>(seed));
    if (const auto fault = Fault(tried); !fault.empty()) {
      const auto small = testing::Shrink(tried, Fault<Key>);
      FAIL() << "seed " << seed << ": " << fault << "\nshrunk: " << Fault(small) << '\n'
             << testing::Describe(small);
    }
  }
}

TYPED_TEST(HierarchicalFrequencies, AValueWithAWeightIsThatManyValues) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(100, 5000); ++seed) {
    SCOPED_TRACE(seed);
    const auto tried = testing::RandomHierarchyCase<Key>(seed);
    HierarchicalFrequencySummary<Key> weighted(tried.epsilon(), PrefixLevels<Key>(tried.lengths));
    auto repeated = weighted;
    for (const auto& window : tried.windows) {
      std::vector<Key> keys;
      for (const auto& value : window) keys.insert(keys.end(), value.weight, value.key);
      weighted.AddWeighted(window);
      repeated.AddWindow(keys);
      ASSERT_EQ(weighted.Serialize(), repeated.Serialize());
    }
  }
}

TYPED_TEST(HierarchicalFrequencies, RefuseWrongUse) {
  using Key = TypeParam;
  const PrefixLevels<Key> levels({0, 8, 16});
  EXPECT_THROW(HierarchicalFrequencySummary<Key>(0, levels), std::invalid_argument);
  EXPECT_THROW(HierarchicalFrequencySummary<Key>(0.7, levels), std::invalid_argument);
  HierarchicalFrequencySummary<Key> summary(0.1, levels);
  EXPECT_THROW(summary.Merge({0.2, levels}), std::invalid_argument);
  EXPECT_THROW(summary.Merge({0.1, PrefixLevels<Key>({0, 8})}), std::invalid_argument);
  const HierarchicalView<Key> view(summary.Snapshot());
  for (const double support : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(view.HeavyHitters(support), std::invalid_argument) << support;
  }
  EXPECT_TRUE(view.HeavyHitters(0.5).empty());
  EXPECT_EQ(view.MinimumSupport(), 0);
  EXPECT_EQ(view.Count(1, 5), (ItemCount<Key>{0, 0, 0}));
}

TYPED_TEST(HierarchicalFrequencies, TheMinimumSupportIsNamedAndServed) {
  using Key = TypeParam;
  HierarchicalFrequencySummary<Key> summary(0.01, PrefixLevels<Key>::Every(8));
  std::vector<Key> keys(5000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<Key>(i / 2);
  summary.AddWindow(keys);
  const HierarchicalView<Key> view(summary.Snapshot());
  EXPECT_DOUBLE_EQ(view.MinimumSupport(), 0.01);  // D = 49, so 50 of 5000
  EXPECT_NO_THROW(view.HeavyHitters(0.01));
  try {
    view.HeavyHitters(0.0098);  // 49 of 5000
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("expected at least 0.01"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("a prefix without an entry"), std::string::npos);
  }
}

TYPED_TEST(HierarchicalFrequencies, StopBeforeTheyOverflow) {
  using Key = TypeParam;
  const std::uint64_t most = (std::uint64_t{1} << 63) - 1;
  HierarchicalFrequencySummary<Key> summary(0.1, PrefixLevels<Key>::Every(8));
  summary.AddWeighted(std::vector<KeyWeight<Key>>{{1, most - 5}, {2, 4}});
  const std::string bytes = summary.Serialize();
  EXPECT_THROW(summary.AddWindow(std::vector<Key>{1, 2}), std::length_error);
  EXPECT_THROW(summary.AddWeighted(std::vector<KeyWeight<Key>>{{1, 2}}), std::length_error);
  EXPECT_THROW(summary.AddWeighted(std::vector<KeyWeight<Key>>{{1, most}, {2, most}}),
               std::length_error);
  EXPECT_THROW(summary.Merge(summary), std::length_error);
  EXPECT_EQ(summary.Serialize(), bytes);
  summary.AddWindow(std::vector<Key>{1});
  EXPECT_EQ(summary.count(), most);
  const HierarchicalView<Key> view(summary.Snapshot());
  ASSERT_EQ(view.HeavyHitters(0.5).size(), 1u);
  EXPECT_EQ(view.HeavyHitters(0.5).front().prefix, Key{1});
}

/// Addresses a.b.c.d.
std::uint32_t Address(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

TEST(HierarchicalHeavyHitters, AreWhatTheDefinitionSays) {
  // 40 of one host, 30 spread over a /24, 20 over a /16, 10 anywhere.
  std::vector<std::uint32_t> keys(40, Address(10, 1, 2, 3));
  for (std::uint32_t i = 0; i < 30; ++i) keys.push_back(Address(10, 1, 7, i));
  for (std::uint32_t i = 0; i < 20; ++i) keys.push_back(Address(10, 9, i, i));
  for (std::uint32_t i = 0; i < 10; ++i) keys.push_back(Address(20 * i, i, i, i));
  std::sort(keys.begin(), keys.end());
  HierarchicalFrequencySummary<std::uint32_t> summary(0.01, PrefixLevels<std::uint32_t>::Every(8));
  summary.AddWindow(keys);
  const HierarchicalView<std::uint32_t> view(summary.Snapshot());
  ASSERT_TRUE(view.exact());
  using Item = HierarchyItem<std::uint32_t>;
  // The /16 of the host and the /8 hold 70 and 90, but nothing of their own.
  EXPECT_EQ(view.HeavyHitters(0.2), (std::vector<Item>{{Address(10, 1, 2, 3), 4, 40, 40, 40, 40},
                                                       {Address(10, 1, 7, 0), 3, 30, 30, 30, 30},
                                                       {Address(10, 9, 0, 0), 2, 20, 20, 20, 20}}));
  // One value more than the /16 has: what is left of it goes to the /8, and is not enough; with all
  // the rest it is.
  EXPECT_EQ(view.HeavyHitters(0.21), (std::vector<Item>{{Address(10, 1, 2, 3), 4, 40, 40, 40, 40},
                                                        {Address(10, 1, 7, 0), 3, 30, 30, 30, 30},
                                                        {0, 0, 100, 100, 30, 30}}));
  EXPECT_EQ(view.HeavyHitters(1.0), (std::vector<Item>{{0, 0, 100, 100, 100, 100}}));
  EXPECT_EQ(view.Count(2, Address(10, 1, 99, 99)),
            (ItemCount<std::uint32_t>{Address(10, 1, 0, 0), 70, 70}));
}

TEST(HierarchicalHeavyHitters, KnowANewBranchOfATreeThatIsKnownWhole) {
  // Nothing was ever dropped: whatever appears late is exact, although D is large.
  HierarchicalFrequencySummary<std::uint32_t> summary(0.1, PrefixLevels<std::uint32_t>::Every(8));
  for (int w = 0; w < 100; ++w) summary.AddWindow(std::vector<std::uint32_t>(50, 0x01020304));
  std::vector<std::uint32_t> late(1000, 0x05060708);
  summary.AddWindow(late);
  EXPECT_GT(summary.dropped(), 500u);
  const HierarchicalView<std::uint32_t> view(summary.Snapshot());
  for (int level = 0; level < 5; ++level) {
    const auto count = view.Count(level, 0x05060708);
    EXPECT_EQ(count.count_low, count.count_high) << level;
  }
}

TEST(HierarchicalHeavyHitters, ThirtyThreeLevelsHoldLittleMoreThanFive) {
  const auto entries = [](int step) {
    std::mt19937_64 random(1);
    HierarchicalFrequencySummary<std::uint32_t> summary(0.001,
                                                        PrefixLevels<std::uint32_t>::Every(step));
    for (int w = 0; w < 32; ++w) {
      std::vector<std::uint32_t> keys(1 << 13);
      // Half of them of a thousand hosts, half from anywhere.
      for (auto& key : keys) {
        key = static_cast<std::uint32_t>(random());
        if (random() % 2 == 0) key = (key % 1000) * 0x9E3779B1u;
      }
      std::sort(keys.begin(), keys.end());
      summary.AddWindow(keys);
    }
    return summary.entries();
  };
  const std::size_t five = entries(8), all = entries(1);
  EXPECT_LE(five, 1500u);
  EXPECT_LE(all, 3000u);
}

template <class Key>
std::string SomeBytes() {
  const auto drawn = testing::RandomHierarchyCase<Key>(4, 2000);
  HierarchicalFrequencySummary<Key> summary(0.02, PrefixLevels<Key>::Every(4));
  for (const auto& window : drawn.windows) summary.AddWindow(Keys(window));
  return summary.Serialize();
}

TYPED_TEST(HierarchicalFrequencies, NoDamageOfTheBytesPasses) {
  using Summary = HierarchicalFrequencySummary<TypeParam>;
  const std::string bytes = SomeBytes<TypeParam>();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_THROW(Summary::Deserialize(bytes.substr(0, size)), std::invalid_argument) << size;
  }
  ASSERT_THROW(Summary::Deserialize(bytes + '\0'), std::invalid_argument);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_THROW(Summary::Deserialize(damaged), std::invalid_argument) << "bit " << bit;
  }
}

TYPED_TEST(HierarchicalFrequencies, LiesUnderARightChecksumAreRefusedOrHarmless) {
  using Summary = HierarchicalFrequencySummary<TypeParam>;
  const std::string bytes = SomeBytes<TypeParam>();
  int accepted = 0;
  const int cases = Cases(10'000);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::string changed = bytes;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at =
          8 + random() % (std::min(changed.size() - 4,
                                   random() % 2 == 0 ? std::size_t{60} : changed.size() - 4) -
                          8);
      if (random() % 8 == 0) {
        changed.insert(at, 1, static_cast<char>(random()));
      } else {
        changed[at] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
      }
    }
    testing::FixChecksum(changed);
    try {
      auto summary = Summary::Deserialize(changed);
      ++accepted;
      ASSERT_EQ(summary.Serialize(), changed);
      const HierarchicalView<TypeParam> view(summary.Snapshot());
      if (view.n() > 0 && view.MinimumSupport() <= 1) {
        view.HeavyHitters(std::max(0.1, view.MinimumSupport()));
      }
      if (summary.count() < (1ull << 62)) {
        for (int i = 0; i < 4; ++i) summary.AddWindow(std::vector<TypeParam>(64, 5));
        summary.Merge(Summary(summary.epsilon(), summary.levels()));
      }
    } catch (const std::invalid_argument& error) {
      ASSERT_NE(std::string(error.what()).find("serialized "), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, cases / 2);
}

TEST(HierarchicalBytes, SayWhatIsWrong) {
  using Summary = HierarchicalFrequencySummary<std::uint32_t>;
  const auto refusal = [](std::string bytes, std::size_t at, char byte) -> std::string {
    bytes[at] = byte;
    testing::FixChecksum(bytes);
    try {
      Summary::Deserialize(bytes);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  Summary summary(0.1, PrefixLevels<std::uint32_t>({0, 8, 32}));
  summary.AddWindow(std::vector<std::uint32_t>{1, 2, 3});
  const std::string good = summary.Serialize();
  const std::string name = "serialized hierarchical frequency summary ";
  EXPECT_EQ(refusal(good, 15, 0x40),
            name + "has epsilon 6553.600000, expected above 0 and at most 0.5");
  EXPECT_EQ(refusal(good, 16, 9), name + "lacks values although nothing was dropped");
  EXPECT_EQ(refusal(good, 32, 1), name + "has a root whose bound its n and epsilon do not allow");
  EXPECT_EQ(refusal(good, 42, 0),
            name + "has wrong levels: a prefix of 0 bits after one of 0, expected a longer one");
  EXPECT_EQ(refusal(good, 44, 0),
            name + "has entries that are out of order or that its n does not allow");
  EXPECT_EQ(refusal(good, 31, 1).substr(0, 51),
            "serialized hierarchical frequency summary is cut sh");
}

}  // namespace
}  // namespace tidemark
