// Which prefixes stand above keys and texts.
#include "summaries/hierarchy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

TEST(PrefixLevelsTest, NameTheirPrefixes) {
  const PrefixLevels<std::uint32_t> levels({0, 8, 24, 32});
  EXPECT_EQ(levels.size(), 4);
  EXPECT_TRUE(levels.has_root());
  EXPECT_EQ(levels.Prefix(0, 0x12345678), 0u);
  EXPECT_EQ(levels.Prefix(1, 0x12345678), 0x12000000u);
  EXPECT_EQ(levels.Prefix(3, 0x12345678), 0x12345678u);
  EXPECT_EQ(levels.Last(0, 0), 0xFFFFFFFFu);
  EXPECT_EQ(levels.Last(2, 0x12345600), 0x123456FFu);
  EXPECT_EQ(levels.FinestWithin(31), 2);
  EXPECT_EQ(levels.FinestWithin(32), 3);
  EXPECT_EQ(PrefixLevels<std::uint32_t>({8}).FinestWithin(7), -1);
  EXPECT_FALSE(PrefixLevels<std::uint32_t>({8}).has_root());
  const PrefixLevels<Key128> wide({0, 64, 100});
  const Key128 key = Key128{0x20010DB8'00000001u} << 64 | 0xFFFF'FFFF'FFFF'FFFFu;
  EXPECT_TRUE(wide.Prefix(1, key) == Key128{0x20010DB8'00000001u} << 64);
  EXPECT_TRUE(wide.Last(1, wide.Prefix(1, key)) == key);
  EXPECT_TRUE(wide.Prefix(2, key) == (key >> 28) << 28);
}

TEST(PrefixLevelsTest, EverySoManyBits) {
  EXPECT_EQ(PrefixLevels<std::uint32_t>::Every(8).lengths(), (std::vector<int>{0, 8, 16, 24, 32}));
  EXPECT_EQ(PrefixLevels<std::uint32_t>::Every(12).lengths(), (std::vector<int>{0, 12, 24, 32}));
  EXPECT_EQ(PrefixLevels<std::uint32_t>::Every(32).lengths(), (std::vector<int>{0, 32}));
  EXPECT_EQ(PrefixLevels<std::uint32_t>::Every(1).size(), 33);
  EXPECT_EQ(PrefixLevels<Key128>::Every(8).size(), 17);
  EXPECT_EQ(PrefixLevels<Key128>::Every(1).size(), 129);
}

TEST(PrefixLevelsTest, RefuseWhatIsNoHierarchy) {
  using Levels = PrefixLevels<std::uint32_t>;
  EXPECT_THROW(Levels({}), std::invalid_argument);
  EXPECT_THROW(Levels({0, 33}), std::invalid_argument);
  EXPECT_THROW(Levels({-1, 3}), std::invalid_argument);
  EXPECT_THROW(Levels({8, 8}), std::invalid_argument);
  EXPECT_THROW(Levels({16, 8}), std::invalid_argument);
  EXPECT_THROW(Levels::Every(0), std::invalid_argument);
  EXPECT_THROW(Levels::Every(33), std::invalid_argument);
}

TEST(CommonBitsTest, OfEveryWidth) {
  EXPECT_EQ(CommonBits(std::uint32_t{0}, std::uint32_t{0}), 32);
  EXPECT_EQ(CommonBits(std::uint32_t{0}, std::uint32_t{1} << 31), 0);
  EXPECT_EQ(CommonBits(std::uint64_t{5}, std::uint64_t{4}), 63);
  for (int bit = 0; bit < 128; ++bit) {
    EXPECT_EQ(CommonBits(Key128{0}, Key128{1} << bit), 127 - bit);
  }
  EXPECT_EQ(CommonBits(Key128{7}, Key128{7}), 128);
}

using Texts = std::vector<std::string_view>;

TEST(TextLevelsTest, PrefixesOfPathsAndNames) {
  const TextLevels dotted('.', 4);
  EXPECT_EQ(dotted.size(), 5);
  EXPECT_EQ(dotted.Prefixes("a.b.c"), (Texts{"a", "a.b", "a.b.c"}));
  EXPECT_EQ(dotted.Prefixes("a"), (Texts{"a"}));
  EXPECT_EQ(dotted.Prefixes(""), Texts{});
  EXPECT_EQ(dotted.Prefixes("a.b.c.d"), (Texts{"a", "a.b", "a.b.c", "a.b.c.d"}));
  // Deeper than the levels: not the text itself.
  EXPECT_EQ(dotted.Prefixes("a.b.c.d.e.f"), (Texts{"a", "a.b", "a.b.c", "a.b.c.d"}));
  EXPECT_EQ(dotted.Prefixes("a..b"), (Texts{"a", "a.", "a..b"}));
  EXPECT_EQ(dotted.Prefixes("a."), (Texts{"a", "a."}));
  EXPECT_EQ(dotted.Prefixes("."), (Texts{"."}));
  const TextLevels slashed('/', 3);
  EXPECT_EQ(slashed.Prefixes("/usr/lib/x/y"), (Texts{"/usr", "/usr/lib", "/usr/lib/x"}));
  EXPECT_EQ(slashed.Prefixes("/usr"), (Texts{"/usr"}));
  EXPECT_EQ(slashed.Prefixes("/"), (Texts{"/"}));
}

TEST(TextLevelsTest, DomainsBeginAtTheirEnd) {
  const TextLevels domains('.', 3, TextRoot::kLast);
  EXPECT_EQ(domains.Prefixes("www.example.com"), (Texts{"com", "example.com", "www.example.com"}));
  EXPECT_EQ(domains.Prefixes("a.www.example.com"),
            (Texts{"com", "example.com", "www.example.com"}));
  EXPECT_EQ(domains.Prefixes("example.com."), (Texts{"com.", "example.com."}));
  EXPECT_EQ(domains.Prefixes(".com"), (Texts{"com", ".com"}));
  EXPECT_EQ(domains.Prefixes("com"), (Texts{"com"}));
  EXPECT_EQ(domains.Prefixes("."), (Texts{"."}));
  EXPECT_EQ(domains.Prefixes(""), Texts{});
}

TEST(TextLevelsTest, RefuseADepthThatIsNone) {
  EXPECT_THROW(TextLevels('.', 0), std::invalid_argument);
  EXPECT_THROW(TextLevels('.', TextLevels::kMaxDepth + 1), std::invalid_argument);
  EXPECT_NO_THROW(TextLevels('.', TextLevels::kMaxDepth));
}

TEST(TextItemsTest, CountEveryPrefix) {
  for (std::uint64_t seed = 0; seed < Seeds(300, 20'000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int depth = 1 + static_cast<int>(random() % 5);
    const TextLevels levels('.', depth);
    std::map<std::string, std::uint64_t> ids;  // in no order of texts
    std::map<std::uint64_t, TextPlace> places;
    const auto id_of = [&](std::string_view text) {
      const auto [at, is_new] = ids.try_emplace(std::string(text), random());
      return at->second;
    };
    std::vector<std::map<std::uint64_t, std::uint64_t>> expected(static_cast<std::size_t>(depth));
    std::map<std::uint64_t, std::uint64_t> counts;
    for (std::uint64_t n = random() % 100; n > 0; --n) {
      std::string text;
      for (std::uint64_t parts = random() % 7; parts > 0; --parts) {
        if (!text.empty()) text += '.';
        text += static_cast<char>('a' + random() % 3);
      }
      const auto prefixes = levels.Prefixes(text);
      std::uint64_t above = 0;
      for (std::size_t i = 0; i < prefixes.size(); ++i) {
        const std::uint64_t id = id_of(prefixes[i]);
        places[id] = {static_cast<int>(i) + 1, above};
        above = id;
        ++expected[i][id];
      }
      const std::uint64_t id = id_of(text);
      if (text.empty()) {
        places[id] = {0, 0};
      } else if (prefixes.back() != text) {
        places[id] = {depth + 1, above};
      }
      ++counts[id];
    }
    std::vector<KeyWeight<std::uint64_t>> items;
    for (const auto& [id, count] : counts) items.push_back({id, count});
    const auto found = TextItems(std::span<const KeyWeight<std::uint64_t>>(items), depth,
                                 [&](std::uint64_t id) { return places.at(id); });
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      std::vector<KeyWeight<std::uint64_t>> level;
      for (const auto& [id, count] : expected[i]) level.push_back({id, count});
      ASSERT_EQ(found[i], level) << "level " << i + 1;
    }
  }
}

}  // namespace
}  // namespace tidemark
