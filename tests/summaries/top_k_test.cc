// The k items with the largest counts: what is listed, which of them are certain, and what a
// missing one may be, against exact counts and against the bounds of every item.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/mixed_input.h"
#include "tests/summaries/property.h"
#include "tests/summaries/reference.h"

namespace tidemark {
namespace {

using testing::MixedInput;
using testing::Oracle;

/// The bounds of every item that came, the largest first.
template <class Key>
std::vector<ItemCount<Key>> AllItems(const FrequencyView<Key>& view, const Oracle<Key>& truth) {
  std::vector<ItemCount<Key>> items;
  for (std::size_t i = 0; i < truth.n(); i += truth.Count(truth.sorted()[i])) {
    items.push_back(view.Count(truth.sorted()[i]));
  }
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return std::tie(b.count_high, b.count_low, a.key) < std::tie(a.count_high, a.count_low, b.key);
  });
  return items;
}

template <class Key>
void CheckTop(const FrequencyView<Key>& view, const Oracle<Key>& truth, std::size_t k,
              std::uint64_t absent) {
  const TopItems<Key> top = view.TopK(k);
  ASSERT_LE(top.items.size(), k);
  std::set<Key> listed;
  std::size_t certain = 0;
  for (const auto& item : top.items) {
    listed.insert(item.key);
    ASSERT_EQ(item, view.Count(item.key));
    if (!top.IsCertain(item)) continue;
    ++certain;
    // However ties are broken: fewer than k others come as often.
    std::size_t as_often = 0;
    for (std::size_t i = 0; i < truth.n();) {
      const std::uint64_t count = truth.Count(truth.sorted()[i]);
      as_often += count >= truth.Count(item.key) ? 1 : 0;
      i += count;
    }
    ASSERT_LE(as_often, k) << "key " << item.key;
  }
  ASSERT_EQ(listed.size(), top.items.size());
  ASSERT_EQ(certain, top.certain);

  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < truth.n(); i += counts.back()) {
    counts.push_back(truth.Count(truth.sorted()[i]));
    if (!listed.contains(truth.sorted()[i])) {
      ASSERT_LE(counts.back(), top.missing_high) << "key " << truth.sorted()[i];
    }
  }
  std::sort(counts.rbegin(), counts.rend());
  ASSERT_LE(top.top_low, k == 0 ? 0 : counts.size() < k ? 0 : counts[k - 1]);
  if (k == 0) return;

  // The same, from the bounds of all items.
  const auto all = AllItems(view, truth);
  std::vector<std::uint64_t> lows;
  for (const auto& item : all) lows.push_back(item.count_low);
  std::sort(lows.rbegin(), lows.rend());
  ASSERT_EQ(top.top_low, lows.size() < k ? 0 : lows[k - 1]);
  // Items without an entry that have not come in the open window are not listed, as any key is one.
  ASSERT_EQ(top.missing_high,
            std::max(absent, all.size() <= k ? std::uint64_t{0} : all[k].count_high));
  for (std::size_t i = 0; i < top.items.size(); ++i)
    ASSERT_EQ(top.items[i].count_high, all[i].count_high);
  for (std::size_t i = top.items.size(); i < std::min(k, all.size()); ++i) {
    ASSERT_EQ(all[i].count_high, absent);
  }
}

template <class Key>
void CheckAnyTop(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  FrequencySummary<Key> summary(1.0 / static_cast<double>(input.parts));
  const std::size_t closed = random() % (input.keys.size() + 1);
  const std::size_t unseen = random() % 2 == 0 ? 0 : random() % (input.keys.size() - closed + 1);
  const std::uint64_t largest = 1 + random() % 400;
  testing::ForEachWindow(
      std::span<const Key>(input.keys).first(closed), [&] { return 1 + random() % largest; },
      [&](std::span<const Key> window) { summary.AddWindow(window); });
  std::vector<Key> open(input.keys.begin() + static_cast<std::ptrdiff_t>(closed),
                        input.keys.end() - static_cast<std::ptrdiff_t>(unseen));
  std::sort(open.begin(), open.end());
  const FrequencyView<Key> view(summary.Snapshot(), open, unseen);
  const Oracle<Key> truth(input.keys);
  for (const std::size_t k : {std::size_t{1}, random() % 8, random() % 100}) {
    SCOPED_TRACE(k);
    ASSERT_NO_FATAL_FAILURE(CheckTop(view, truth, k, summary.dropped() + unseen));
  }
}

template <class Key>
class Top : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Top, Keys);

TYPED_TEST(Top, HoldsWhateverComes) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(1000), [](auto& random) { return testing::DrawMixed<TypeParam>(random, 600); },
      CheckAnyTop<TypeParam>);
}

TYPED_TEST(Top, SaysWhatIsCertain) {
  using Key = TypeParam;
  using Items = std::vector<ItemCount<Key>>;
  FrequencySummary<Key> summary(0.1);
  std::vector<Key> window(40, Key{1});
  window.insert(window.end(), 30, Key{2});
  window.insert(window.end(), 20, Key{3});
  window.insert(window.end(), 10, Key{4});
  summary.AddWindow(window);  // D = 9
  const FrequencyView<Key> view(summary.Snapshot());
  const auto two = view.TopK(2);
  EXPECT_EQ(two.items, (Items{{1, 40, 40}, {2, 30, 30}}));
  EXPECT_EQ(two.certain, 2u);
  EXPECT_EQ(two.missing_high, 20u);
  EXPECT_EQ(two.top_low, 30u);
  const auto ten = view.TopK(10);
  EXPECT_EQ(ten.items.size(), 4u);
  EXPECT_EQ(ten.certain, 4u);
  EXPECT_EQ(ten.missing_high, 9u);
  EXPECT_EQ(ten.top_low, 0u);
  EXPECT_EQ(view.TopK(std::numeric_limits<std::size_t>::max()).items.size(), 4u);
  // An item that ties with the next one is not certain.
  summary.AddWindow(std::vector<Key>(10, Key{2}));
  const auto tied = FrequencyView<Key>(summary.Snapshot()).TopK(1);
  EXPECT_EQ(tied.items, (Items{{1, 40, 40}}));
  EXPECT_EQ(tied.certain, 0u);
  EXPECT_EQ(tied.missing_high, 40u);
  EXPECT_TRUE(view.TopK(0).items.empty());
  // Ten values that may be anything.
  const auto unseen = FrequencyView<Key>(summary.Snapshot(), {}, 15).TopK(2);
  EXPECT_EQ(unseen.items, (Items{{1, 40, 55}, {2, 40, 55}}));
  EXPECT_EQ(unseen.certain, 2u);
  EXPECT_EQ(unseen.missing_high, 35u);
  EXPECT_EQ(FrequencyView<Key>(FrequencySummary<Key>(0.1).Snapshot()).TopK(3).items.size(), 0u);
}

}  // namespace
}  // namespace tidemark
