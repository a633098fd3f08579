// One frequency summary for each level against the exact counts of every prefix: for addresses, and
// for texts under ids that say nothing of their order.
#include "summaries/leveled_summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "summaries/frequency_summary.h"
#include "summaries/leveled_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/hierarchy_cases.h"
#include "tests/summaries/hierarchy_reference.h"

namespace tidemark {
namespace {

using testing::ExactHierarchy;
using testing::FaultOfAnswer;

template <class Key>
using Frequencies = LeveledSummary<Key, FrequencySummary<Key>>;

template <class Key>
Frequencies<Key> MakeLevels(std::size_t size, double epsilon) {
  return Frequencies<Key>(std::vector<FrequencySummary<Key>>(size, FrequencySummary<Key>(epsilon)));
}

template <class Key>
class Addresses : public ::testing::Test {};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Addresses, KeyTypes);

TYPED_TEST(Addresses, AreAnsweredWithinTheirBounds) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(400, 30'000); ++seed) {
    SCOPED_TRACE(seed);
    const auto tried = testing::RandomHierarchyCase<Key>(seed);
    auto lengths = tried.lengths;
    if (lengths.front() != 0) lengths.insert(lengths.begin(), 0);
    if (lengths.size() == 1) lengths.push_back(7);
    const PrefixLevels<Key> levels(lengths);
    std::vector<Frequencies<Key>> summaries(static_cast<std::size_t>(tried.summaries),
                                            MakeLevels<Key>(lengths.size() - 1, tried.epsilon()));
    ExactHierarchy<Key> truth(levels);
    for (std::size_t w = 0; w < tried.windows.size(); ++w) {
      std::vector<Key> keys;
      for (const auto& value : tried.windows[w]) {
        keys.push_back(value.key);
        truth.Add(value.key, 1);
      }
      summaries[w % summaries.size()].AddWindow(levels, std::span<const Key>(keys));
    }
    auto& summary = summaries.front();
    for (std::size_t i = 1; i < summaries.size(); ++i) summary.Merge(summaries[i]);
    ASSERT_EQ(summary.count(), truth.n);
    const std::string bytes = summary.Serialize();
    ASSERT_EQ(Frequencies<Key>::Deserialize(bytes).Serialize(), bytes);
    std::vector<FrequencyView<Key>> views;
    for (std::size_t i = 0; i < summary.size(); ++i) views.emplace_back(summary[i].Snapshot());
    const std::uint64_t width = DroppedBound(tried.epsilon(), truth.n);
    if (width >= truth.n) continue;
    for (const std::uint64_t threshold :
         {width + 1, width + 1 + tried.support_of_n % (truth.n - width)}) {
      const double support = static_cast<double>(threshold) / static_cast<double>(truth.n);
      const auto items = LeveledHeavyHitters<Key>(
          std::span<const FrequencyView<Key>>(views), support,
          [&](int level, Key key) { return levels.Prefix(level - 1, key); });
      ASSERT_EQ(FaultOfAnswer(items, truth, threshold, width), "");
    }
  }
}

/// Texts of up to `kDepth` components as numbers, a byte for each, so that the truth about
/// addresses serves for them; and ids for them in no order.
constexpr int kDepth = 4;
struct TextIds {
  std::map<std::pair<int, std::uint32_t>, std::uint64_t> ids;
  std::map<std::uint64_t, std::pair<int, std::uint32_t>> texts;
  std::mt19937_64 random{9};

  std::uint64_t Id(int level, std::uint32_t text) {
    const auto [at, is_new] = ids.try_emplace({level, text}, 0);
    if (is_new) {
      at->second = random();
      texts[at->second] = {level, text};
    }
    return at->second;
  }
  TextPlace Place(std::uint64_t id) {
    const auto [level, text] = texts.at(id);
    if (level == 0) return {0, 0};
    return {level, Id(level - 1, level == 1 ? 0 : text & ~std::uint32_t{0} << (40 - 8 * level))};
  }
};

TEST(TextHierarchy, IsAnsweredWithinItsBoundsAndKeepsWhatStandsAbove) {
  const PrefixLevels<std::uint32_t> levels({0, 8, 16, 24, 32});
  for (std::uint64_t seed = 0; seed < Seeds(300, 20'000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    TextIds ids;
    ExactHierarchy<std::uint32_t> truth(levels);
    const std::uint64_t parts = std::array{3, 10, 30, 100}[random() % 4];
    const double epsilon = 1.0 / static_cast<double>(parts);
    auto summary = MakeLevels<std::uint64_t>(kDepth, epsilon);
    const std::uint64_t spread = 2 + random() % 20;
    for (std::uint64_t windows = 1 + random() % 15; windows > 0; --windows) {
      std::map<std::uint64_t, std::uint64_t> counts;
      const std::uint64_t size = random() % 60;
      for (std::uint64_t n = size; n > 0; --n) {
        const int level = static_cast<int>(random() % (kDepth + 1));
        std::uint32_t text = 0;
        for (int i = 1; i <= level; ++i) {
          const auto part =
              static_cast<std::uint32_t>(1 + random() % spread % (1 + random() % spread));
          text |= part << (32 - 8 * i);
        }
        truth.Add(text, 1, level);
        ++counts[ids.Id(level, text)];
      }
      std::vector<KeyWeight<std::uint64_t>> items;
      for (const auto& [id, count] : counts) items.push_back({id, count});
      const auto of_levels = TextItems(std::span<const KeyWeight<std::uint64_t>>(items), kDepth,
                                       [&](std::uint64_t id) { return ids.Place(id); });
      summary.AddItems(size, std::span<const std::vector<KeyWeight<std::uint64_t>>>(of_levels));
      // What leveled_summary.h says of what stands above an entry.
      for (std::size_t i = 1; i < summary.size(); ++i) {
        std::set<std::uint64_t> above;
        summary[i - 1].Snapshot().ForEachKey([&](std::uint64_t id) { above.insert(id); });
        summary[i].Snapshot().ForEachKey(
            [&](std::uint64_t id) { ASSERT_TRUE(above.contains(ids.Place(id).parent)); });
      }
    }
    ASSERT_EQ(summary.count(), truth.n);
    const std::uint64_t width = DroppedBound(epsilon, truth.n);
    if (width >= truth.n) continue;
    std::vector<FrequencyView<std::uint64_t>> views;
    for (std::size_t i = 0; i < summary.size(); ++i) views.emplace_back(summary[i].Snapshot());
    const std::uint64_t threshold = width + 1 + random() % (truth.n - width);
    auto found = LeveledHeavyHitters<std::uint64_t>(
        std::span<const FrequencyView<std::uint64_t>>(views),
        static_cast<double>(threshold) / static_cast<double>(truth.n),
        [&](int, std::uint64_t id) { return ids.Place(id).parent; });
    std::vector<HierarchyItem<std::uint32_t>> items;
    for (const auto& item : found) {
      const auto [level, text] =
          item.level == 0 ? std::pair{0, std::uint32_t{0}} : ids.texts.at(item.prefix);
      ASSERT_EQ(level, item.level);
      items.push_back({text, level, item.count_low, item.count_high, item.discounted_low,
                       item.discounted_high});
    }
    ASSERT_EQ(FaultOfAnswer(items, truth, threshold, width), "");
  }
}

TEST(LeveledSummaryTest, RefusesWrongUse) {
  using Summary = Frequencies<std::uint64_t>;
  EXPECT_THROW(Summary({}), std::invalid_argument);
  auto two = MakeLevels<std::uint64_t>(2, 0.1);
  EXPECT_THROW(two.Merge(MakeLevels<std::uint64_t>(3, 0.1)), std::invalid_argument);
  EXPECT_THROW(two.Merge(MakeLevels<std::uint64_t>(2, 0.2)), std::invalid_argument);
  std::vector<FrequencySummary<std::uint64_t>> uneven(2, FrequencySummary<std::uint64_t>(0.1));
  uneven[1].AddWindow(std::vector<std::uint64_t>{5});
  EXPECT_THROW(Summary{uneven}, std::invalid_argument);
  const std::string bytes = two.Serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(Summary::Deserialize(bytes.substr(0, size)), std::invalid_argument);
  }
  EXPECT_THROW(Frequencies<std::uint32_t>::Deserialize(bytes), std::invalid_argument);
}

}  // namespace
}  // namespace tidemark
