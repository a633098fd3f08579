// Ids and texts of string items, and that forgetting never mixes two items up.
#include "server/window/dictionary.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>

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
