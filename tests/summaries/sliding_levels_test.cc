// Prefixes of texts over sliding windows against an exact oracle, with a dictionary that forgets
// all that sliding_levels.h lets it forget.
#include "summaries/sliding_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "summaries/leveled_view.h"
#include "summaries/sorted_runs.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/property.h"
#include "tests/summaries/sliding_damage.h"
#include "tests/summaries/sliding_feed.h"

namespace tidemark {
namespace {

using testing::SlidingInput;
using Id = std::uint64_t;

/// Every text that a test may send, under ids in no order.
class Universe {
 public:
  Universe(TextLevels levels, std::uint64_t seed) : levels_(levels), random_(seed) {}

  Id Of(const std::string& text) {
    const auto [at, is_new] = ids_.try_emplace(text, 0);
    if (is_new) {
      at->second = random_();
      texts_[at->second] = text;
    }
    return at->second;
  }
  const std::string& Text(Id id) const { return texts_.at(id); }
  const TextLevels& levels() const { return levels_; }

 private:
  TextLevels levels_;
  std::mt19937_64 random_;
  std::map<std::string, Id> ids_;
  std::map<Id, std::string> texts_;
};

using Counts = std::map<std::string, std::uint64_t>;

class LevelsFeed : public testing::SlidingSource<Id> {
 public:
  using Source = testing::SlidingSource<Id>;

  LevelsFeed(const SlidingOptions& options, std::shared_ptr<Universe> universe)
      : Source(options),
        levels(record.shared_rule(), static_cast<std::size_t>(universe->levels().size()) - 1),
        universe_(std::move(universe)) {}

  void Append(std::span<const Id> batch, std::int64_t time_us) {
    for (const Id id : batch) {  // one by one: what a block forgets is of no later value
      Intern(id);
      Source::Append({&id, 1}, time_us, [this](std::span<const Id> sorted) {
        levels.AddBlock(Items(sorted), record.expired());
        Forget();
      });
    }
  }
  void Advance(std::int64_t now_us) {
    Source::Advance(now_us);
    levels.Expire(record.expired());
  }
  void WriteAndRead() {
    record = SlidingRecord<Id>::Deserialize(record.Serialize());
    const std::string bytes = levels.Serialize();
    levels = SlidingLevels::Deserialize(bytes);
    ASSERT_EQ(levels.Serialize(), bytes);
  }

  /// What sorted ids come to on each level. Throws std::out_of_range if one was forgotten.
  std::vector<SlidingLevelsCover::Items> Items(std::span<const Id> sorted) const {
    SlidingLevelsCover::Items items;
    internal::ForEachRun(sorted, 1, [&](Id id, std::uint64_t count) {
      items.push_back({id, count});
    });
    return TextItems(std::span<const KeyWeight<Id>>(items), universe_->levels().size() - 1,
                     [&](Id id) { return places_.at(id); });
  }
  const TextPlace& Place(Id id) const { return places_.at(id); }
  Universe& universe() const { return *universe_; }
  std::size_t known() const { return places_.size(); }

  SlidingLevels levels;

 private:
  void Intern(Id id) {
    if (places_.contains(id)) return;
    TextPlace place;
    const std::string& text = universe_->Text(id);
    for (const auto prefix : universe_->levels().Prefixes(text)) {
      const Id at = universe_->Of(std::string(prefix));
      place.level += 1;
      places_.try_emplace(at, place);
      place.parent = at;
    }
    place.level = text.empty() ? 0 : place.level + 1;
    places_.try_emplace(id, place);
  }
  /// All that the contract lets go.
  void Forget() {
    std::set<Id> kept;
    const auto keep = [&](Id id) {
      while (kept.insert(id).second && places_.at(id).level > 1) id = places_.at(id).parent;
    };
    record.ForEachKey(keep);
    levels.ForEachKey(keep);
    std::erase_if(places_, [&](const auto& item) { return !kept.contains(item.first); });
  }

  std::shared_ptr<Universe> universe_;
  std::map<Id, TextPlace> places_;
};

struct Truth {
  std::vector<Counts> counts;  ///< by level; level 0 has the empty text alone
  Counts discounted;
};

Truth TruthOf(const LevelsFeed& feed, std::span<const Id> window,
              const std::set<std::string>& reported) {
  const TextLevels& levels = feed.universe().levels();
  Truth truth{std::vector<Counts>(static_cast<std::size_t>(levels.size())), {}};
  for (const Id id : window) {
    const auto above = levels.Prefixes(feed.universe().Text(id));
    bool taken = false;
    for (std::size_t i = above.size(); i-- > 0;) {
      const std::string prefix(above[i]);
      ++truth.counts[i + 1][prefix];
      if (!taken) ++truth.discounted[prefix];
      taken |= reported.contains(prefix);
    }
    ++truth.counts[0][""];
    if (!taken) ++truth.discounted[""];
  }
  return truth;
}

void CheckAnswer(const LevelsFeed& feed, std::span<const Id> window,
                 const std::vector<HierarchyItem<Id>>& items, std::uint64_t wanted,
                 std::uint64_t within) {
  std::set<std::string> reported;
  const auto text_of = [&](const HierarchyItem<Id>& item) {
    if (item.level == 0) return std::string();
    // What is reported has a place, and so a text, in the dictionary.
    EXPECT_EQ(feed.Place(item.prefix).level, item.level);
    return feed.universe().Text(item.prefix);
  };
  for (const auto& item : items) ASSERT_TRUE(reported.insert(text_of(item)).second);
  Truth truth = TruthOf(feed, window, reported);
  for (const auto& item : items) {
    const std::string text = text_of(item);
    SCOPED_TRACE("prefix \"" + text + "\"");
    const std::uint64_t count = truth.counts[static_cast<std::size_t>(item.level)][text];
    const std::uint64_t left = truth.discounted[text];
    ASSERT_LE(item.count_low, count);
    ASSERT_GE(item.count_high, count);
    ASSERT_LE(item.count_high - item.count_low, within);
    ASSERT_GE(count + within + 1, wanted);
    ASSERT_LE(item.discounted_low, left);
    ASSERT_GE(item.discounted_high, left);
  }
  for (const auto& [text, left] : truth.discounted) {
    if (left >= wanted) {
      ASSERT_TRUE(reported.contains(text)) << "\"" << text << "\" has " << left << " of " << wanted;
    }
  }
}

void CheckWindow(const LevelsFeed& feed, const SlidingRange& range, std::uint64_t n,
                 std::mt19937_64& random) {
  ASSERT_NO_FATAL_FAILURE(testing::CheckRange(feed, range, n));
  const auto window = feed.Newest(n);
  const std::vector<Id> later = feed.Later(range);
  const SlidingLevelsCover cover = feed.levels.Cover(range, feed.record);
  const auto later_items = feed.Items(later);
  const auto made =
      cover.Views([&](std::span<const Id> sorted) { return std::optional(feed.Items(sorted)); },
                  later_items, later.size());
  ASSERT_TRUE(made.has_value());
  const std::vector<FrequencyView<Id>>& views = *made;
  ASSERT_EQ(views.size() + 1, static_cast<std::size_t>(feed.universe().levels().size()));
  const std::uint64_t within = FloorFraction(feed.record.rule().epsilon(), range.n_low());
  const Truth truth = TruthOf(feed, window, {});
  double least_support = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    ASSERT_EQ(views[i].n(), range.n_high());
    ASSERT_TRUE(views[i].WithinEpsilon());
    least_support = std::max(least_support, views[i].MinimumSupport());
    const auto check = [&](const std::string& text, std::uint64_t count) {
      const auto item = views[i].Count(feed.universe().Of(text));
      ASSERT_LE(item.count_low, count) << "level " << i + 1 << " \"" << text << '"';
      ASSERT_GE(item.count_high, count) << "level " << i + 1 << " \"" << text << '"';
      ASSERT_LE(item.count_high - item.count_low, within) << "level " << i + 1;
    };
    for (const auto& [text, count] : truth.counts[i + 1]) {
      ASSERT_NO_FATAL_FAILURE(check(text, count));
    }
    ASSERT_NO_FATAL_FAILURE(check("never sent", 0));
  }
  const double support = std::max(least_support, std::uniform_real_distribution<>(0, 0.3)(random));
  if (n == 0 || support <= 0 || support > 1) return;
  const auto items = LeveledHeavyHitters<Id>(
      std::span<const FrequencyView<Id>>(views), support,
      [&](int, Id id) { return feed.Place(id).parent; }, range.n_low());
  ASSERT_NO_FATAL_FAILURE(CheckAnswer(feed, window, items, CeilFraction(support, n), within))
      << "support " << support;
}

enum class Texts { kDeepPath, kManyChildren, kEmptyComponents, kRandomTree, kDistinct, kOneEach };
constexpr int kTexts = 6;

std::string DrawText(Texts kind, char separator, std::uint64_t drawn, std::mt19937_64& random) {
  const std::string s(1, separator);
  const auto number = [&](std::uint64_t below) { return std::to_string(random() % below); };
  switch (kind) {
    case Texts::kDeepPath: {  // one path, cut off anywhere, deeper than there are levels
      std::string text = "a";
      for (std::uint64_t left = random() % 12; left > 0; --left) text += s + "a";
      return text;
    }
    case Texts::kManyChildren:
      return random() % 4 == 0 ? "b" + s + number(5) : "a" + s + "b" + s + number(100'000);
    case Texts::kEmptyComponents: {  // separators at the ends, several in a row, nothing else
      std::string text;
      for (std::uint64_t left = random() % 6; left > 0; --left) {
        text += random() % 3 == 0 ? "a" : s;
      }
      return text;
    }
    case Texts::kRandomTree: {
      std::string text = number(1 + random() % 20);
      for (std::uint64_t left = random() % 5; left > 0; --left) {
        text += s + number(1 + random() % 20);
      }
      return text;
    }
    case Texts::kDistinct:  // nothing in common on any level
      return std::to_string(drawn) + s + std::to_string(drawn) + s + std::to_string(drawn);
    case Texts::kOneEach:  // ties
      return std::to_string(drawn % 16) + s + std::to_string(drawn % 8);
  }
  return {};
}

TextLevels LevelsOf(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return TextLevels(random() % 2 == 0 ? '.' : '/', 1 + static_cast<int>(random() % 5),
                    random() % 3 == 0 ? TextRoot::kLast : TextRoot::kFirst);
}

/// Texts of a kind that changes now and then, as ids of `universe`.
std::vector<Id> DrawIds(Universe& universe, std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<Id> ids;
  const std::size_t epoch = 1 + random() % count;
  while (ids.size() < count) {
    const auto kind = static_cast<Texts>(random() % kTexts);
    for (std::size_t i = 0; i < epoch && ids.size() < count; ++i) {
      ids.push_back(universe.Of(DrawText(kind, universe.levels().separator(), ids.size(), random)));
    }
  }
  return ids;
}

TEST(SlidingLevelsTest, HoldWhateverComesWhenever) {
  for (std::uint64_t seed = 0; seed < Seeds(120, 20'000); ++seed) {
    SCOPED_TRACE(seed);
    constexpr std::size_t kMostValues = 4000;
    std::mt19937_64 random(seed);
    auto universe = std::make_shared<Universe>(LevelsOf(seed), seed);
    SlidingInput<Id> input = testing::DrawSliding<Id>(random, kMostValues);
    input.keys = DrawIds(*universe, seed, input.keys.size());
    ASSERT_NO_FATAL_FAILURE(testing::FeedSliding(
        LevelsFeed(input.options, universe), input, [](const auto& feed, std::mt19937_64& drawn) {
          testing::ForWindows(feed, drawn, 2, [&](const SlidingRange& range, std::uint64_t n) {
            CheckWindow(feed, range, n, drawn);
          });
        }));
  }
}

TEST(SlidingLevelsTest, HoldForEveryWidth) {
  std::mt19937_64 random(5);
  const std::uint64_t step = Seeds(23, 1);  // in the usual run one in 23
  for (int kind = 0; kind < kTexts; ++kind) {
    SCOPED_TRACE(kind);
    SlidingOptions options;
    options.epsilon = kind % 2 == 0 ? 0.2 : 0.07;
    options.max_values = 1500;
    options.block_size = 64;
    auto universe = std::make_shared<Universe>(TextLevels('/', 3), 1);
    LevelsFeed feed(options, universe);
    for (std::uint64_t i = 0; i < 4 * 960 + 1; ++i) {
      const Id id = universe->Of(DrawText(static_cast<Texts>(kind), '/', i, random));
      feed.Append({&id, 1}, 0);
      if ((feed.n() + 1) % 1920 > 2) continue;  // before a border, at it, behind it
      for (std::uint64_t width = 1; width <= options.max_values; width += step) {
        SCOPED_TRACE(::testing::Message() << "last " << width << " of " << feed.n());
        ASSERT_NO_FATAL_FAILURE(CheckWindow(feed, feed.record.Last(width, feed.open()),
                                            std::min(width, feed.n()), random));
      }
    }
  }
}

// Of a stream without end no more is known than the header says.
TEST(SlidingLevelsTest, ForgetsWhatIsLightAndOld) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 20'000;
  options.block_size = 64;
  constexpr std::size_t kLevels = 3;
  auto universe = std::make_shared<Universe>(TextLevels('/', kLevels), 1);
  LevelsFeed feed(options, universe);
  std::mt19937_64 random(5);
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    const Id id = universe->Of(DrawText(Texts::kDistinct, '/', i, random));
    feed.Append({&id, 1}, 0);
    const std::size_t as_came = feed.record.rule().recent_values() + 2 * options.block_size;
    ASSERT_LE(feed.known(), kLevels * (feed.levels.entries() + as_came));
    most = std::max(most, feed.known());
  }
  EXPECT_LT(most, 3000u) << "of 180,000 prefixes";
}

LevelsFeed SmallFeed(std::size_t values) {
  SlidingOptions options;
  options.epsilon = 0.1;
  options.max_values = 4000;
  options.block_size = 64;
  auto universe = std::make_shared<Universe>(TextLevels('.', 3), 1);
  LevelsFeed feed(options, universe);
  std::mt19937_64 random(3);
  for (std::size_t i = 0; i < values; ++i) {
    const Id id = universe->Of(DrawText(Texts::kRandomTree, '.', i, random));
    feed.Append({&id, 1}, 0);
  }
  return feed;
}

TEST(SlidingLevelsBytes, AreReadBackAtAnyMoment) {
  for (const std::size_t values : {0, 64, 640, 1024, 5000, 20'000}) {
    SCOPED_TRACE(values);
    auto feed = SmallFeed(values);
    auto again = feed;
    again.WriteAndRead();
    const std::vector<Id> more(3000, feed.universe().Of("1.2"));
    feed.Append(more, 0);
    again.Append(more, 0);
    EXPECT_EQ(again.levels.Serialize(), feed.levels.Serialize());
  }
}

TEST(SlidingLevelsBytes, RefuseDamage) {
  testing::RefusesDamage<SlidingLevels>(SmallFeed(2000).levels.Serialize());
  SlidingOptions options;
  options.max_values = 1000;
  options.block_size = 64;
  std::vector<SlidingFrequencies<Id>> uneven;
  for (const double epsilon : {0.1, 0.2}) {
    options.epsilon = epsilon;
    uneven.emplace_back(std::make_shared<const SlidingRule>(options));
  }
  const LeveledSummary<Id, SlidingFrequencies<Id>> levels(uneven);
  EXPECT_THROW(SlidingLevels::Deserialize(levels.Serialize()), std::invalid_argument);
}

TEST(SlidingLevelsTest, RefuseWrongUse) {
  auto feed = SmallFeed(640);
  const std::string before = feed.levels.Serialize();
  using Items = SlidingLevelsCover::Items;
  const auto refused = [&](const std::vector<Items>& items) {
    EXPECT_THROW(feed.levels.AddBlock(items, 0), std::invalid_argument);
    EXPECT_EQ(feed.levels.Serialize(), before);
  };
  refused({});
  refused({{}, {}});
  refused({{{1, 64}}, {{1, 63}, {2, 1}}, {{1, 65}}});
  refused({{{1, 64}}, {{2, 1}, {1, 1}}, {}});
  refused({{{1, 1}, {1, 1}}, {}, {}});
  EXPECT_THROW(SlidingLevels(feed.record.shared_rule(), 0), std::invalid_argument);
  const auto range = feed.record.Last(100, 0);
  feed.levels.AddBlock(std::vector<Items>(3), 0);
  EXPECT_THROW(feed.levels.Cover(range, feed.record), std::logic_error);
}

}  // namespace
}  // namespace tidemark
