// Ids and texts of string items, and that forgetting never mixes two items up.
#include "server/window/dictionary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace tidemark::server {
namespace {

TEST(Dictionary, SameTextSameId) {
  Dictionary dictionary;
  const std::uint64_t a = dictionary.Intern("a", 0);
  const std::uint64_t empty = dictionary.Intern("", 0);
  EXPECT_NE(a, empty);
  EXPECT_EQ(dictionary.Intern("a", 5), a);
  EXPECT_EQ(dictionary.Find("a"), a);
  EXPECT_EQ(dictionary.Find("b"), std::nullopt);
  ASSERT_NE(dictionary.Text(empty), nullptr);
  EXPECT_EQ(*dictionary.Text(empty), "");
  EXPECT_EQ(dictionary.Text(a + 1), nullptr);
}

TEST(Dictionary, ForgetsWhatNeitherSummaryNorWindowHolds) {
  Dictionary dictionary;
  const std::uint64_t old_item = dictionary.Intern("old", 0);
  const std::uint64_t kept_item = dictionary.Intern("kept", 0);
  const std::uint64_t live_item = dictionary.Intern("live", 1);
  EXPECT_EQ(dictionary.Forget(1, [&](std::uint64_t id) { return id == kept_item; }), 1u);
  EXPECT_EQ(dictionary.Text(old_item), nullptr);
  EXPECT_NE(dictionary.Text(kept_item), nullptr);
  EXPECT_NE(dictionary.Text(live_item), nullptr);
  EXPECT_EQ(dictionary.Intern("old", 2), old_item) << "an id depends on the text alone";
}

TEST(Dictionary, KnowsWhatStandsAboveAnItem) {
  Dictionary dictionary;
  const TextLevels levels('/', 2);
  const std::uint64_t deep = dictionary.InternBelow(levels, "/a/b/c", 0);
  const std::uint64_t folder = dictionary.Find("/a/b").value();
  const std::uint64_t top = dictionary.Find("/a").value();
  ASSERT_NE(dictionary.Place(deep), nullptr);
  EXPECT_EQ(dictionary.Place(deep)->level, 3) << "below the last level";
  EXPECT_EQ(dictionary.Place(deep)->parent, folder);
  EXPECT_EQ(dictionary.Place(folder)->level, 2);
  EXPECT_EQ(dictionary.Place(folder)->parent, top);
  EXPECT_EQ(dictionary.Place(top)->level, 1);
  EXPECT_EQ(dictionary.InternBelow(levels, "/a/b", 1), folder) << "an item, too";
  const std::uint64_t nothing = dictionary.InternBelow(levels, "", 0);
  EXPECT_EQ(dictionary.Place(nothing)->level, 0);
  EXPECT_EQ(dictionary.Place(nothing + 1), nullptr);
}

TEST(Dictionary, KeepsWhatStandsAboveWhatIsKept) {
  Dictionary dictionary;
  const TextLevels levels('.', 4);
  const std::uint64_t kept = dictionary.InternBelow(levels, "a.b.c", 0);
  const std::uint64_t live = dictionary.InternBelow(levels, "x.y", 1);
  dictionary.InternBelow(levels, "p.q", 0);
  const std::size_t full = dictionary.content_bytes();
  dictionary.InternBelow(levels, "x.y", 1);
  EXPECT_EQ(dictionary.content_bytes(), full);
  std::vector<std::uint64_t> ids{kept};
  dictionary.AddAncestors(1, ids);
  dictionary.Forget(
      1, [&](std::uint64_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); });
  for (const char* text : {"a", "a.b", "a.b.c", "x", "x.y"}) {
    EXPECT_TRUE(dictionary.Find(text)) << text;
  }
  for (const char* text : {"p", "p.q"}) EXPECT_FALSE(dictionary.Find(text)) << text;
  EXPECT_NE(dictionary.Place(live), nullptr);
  EXPECT_LT(dictionary.content_bytes(), full);
}

TEST(Dictionary, BytesFollowItsContents) {
  Dictionary dictionary;
  const std::size_t before = dictionary.bytes();
  for (int i = 0; i < 1000; ++i) dictionary.Intern(std::string(100, 'x') + std::to_string(i), 0);
  EXPECT_GE(dictionary.bytes(), before + 1000 * 100);
  const std::size_t full = dictionary.bytes();
  EXPECT_EQ(dictionary.Forget(1, [](std::uint64_t) { return false; }), 1000u);
  EXPECT_LT(dictionary.bytes(), full - 1000 * 100);
}

TEST(Dictionary, ManyItemsAgainstAReference) {
  Dictionary dictionary;
  std::unordered_map<std::string, std::uint64_t> reference;
  for (int i = 0; i < 50'000; ++i) {
    const std::string text = "item-" + std::to_string(i * 2654435761u % 20'000);
    const std::uint64_t id = dictionary.Intern(text, 0);
    const auto [at, inserted] = reference.try_emplace(text, id);
    ASSERT_EQ(at->second, id);
    ASSERT_EQ(*dictionary.Text(id), text);
  }
  EXPECT_EQ(dictionary.size(), reference.size());
}

}  // namespace
}  // namespace tidemark::server
