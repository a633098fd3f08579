#include "gpu/sort/pair_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gpu/sort/sorter_factory.h"

namespace tidemark::sort {
namespace {

template <class Key>
void ExpectSorted(std::vector<Key> keys, const std::string& what) {
  std::vector<std::uint64_t> payloads(keys.size());
  std::iota(payloads.begin(), payloads.end(), 1000);
  std::vector<std::pair<Key, std::uint64_t>> expected;
  for (std::size_t i = 0; i < keys.size(); ++i) expected.emplace_back(keys[i], payloads[i]);
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto sorter = MakeUnmeasuredCpuSorter();
  SortPairs<Key>(keys, payloads, *sorter);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(keys[i] == expected[i].first) << what << ", key " << i;
    ASSERT_EQ(payloads[i], expected[i].second) << what << ", payload " << i;
  }
}

template <class Key>
class PairSortTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t, Key128>;
TYPED_TEST_SUITE(PairSortTest, Keys);

TYPED_TEST(PairSortTest, SortsStablyLikeTheStandardLibrary) {
  using Key = TypeParam;
  constexpr auto kMax = static_cast<Key>(~Key{0});
  std::mt19937_64 random(31);
  for (const std::size_t size : {0, 1, 2, 3, 255, 256, 257, 5000}) {
    std::vector<Key> wide(size), few(size), near(size), high(size);
    for (std::size_t i = 0; i < size; ++i) {
      wide[i] = static_cast<Key>(random());
      few[i] = static_cast<Key>(random() % 3) * (kMax / 3);
      near[i] = static_cast<Key>(kMax - random() % 100);
      // The whole range is spanned, and most keys differ in their lowest bits alone.
      high[i] = i == 0 ? 0 : static_cast<Key>(kMax - random() % 16);
    }
    const std::string n = std::to_string(size) + " keys, ";
    ExpectSorted(wide, n + "wide");
    ExpectSorted(few, n + "few");
    ExpectSorted(near, n + "near");
    ExpectSorted(high, n + "lowest bits");
  }
}

// Keys of 128 bits that take each way: within 64 bits with their indices, within 128, cut.
TEST(PairSortTest128, SortsEveryRangeStably) {
  std::mt19937_64 random(32);
  const auto any = [&] { return Key128{random()} << 64 | random(); };
  for (const std::size_t size : {2, 300, 4096, 5000}) {
    for (int bits = 1; bits <= 128; ++bits) {
      const Key128 base = bits == 128 ? 0 : any() >> 1 >> (bits - 1) << 1 << (bits - 1);
      const std::uint64_t distinct = 1 + random() % (random() % 2 == 0 ? 8 : size);
      std::vector<Key128> some(distinct), keys(size);
      for (Key128& key : some) key = base + (any() >> (128 - bits));
      for (Key128& key : keys) key = some[random() % distinct];
      // Neighbours that agree in all but what may be cut off.
      for (std::size_t i = 0; i < size; i += 3)
        keys[i] = keys[0] ^ static_cast<Key128>(random() % 4);
      ExpectSorted(keys, std::to_string(size) + " keys, " + std::to_string(bits) + " bits");
    }
  }
}

class FailingSorter final : public WindowSorter {
 public:
  std::string_view name() const override { return "failing"; }
  std::string_view Sort(Channels<std::uint32_t>) override { throw SorterError("lost"); }
  std::string_view Sort(Channels<std::uint64_t> channels) override {
    std::reverse(channels[0].begin(), channels[0].end());
    throw SorterError("lost");
  }
};

TEST(PairSortTest, LeavesEverythingInPlaceWhenTheSorterFails) {
  std::vector<std::uint32_t> keys{3, 1, 2};
  std::vector<std::uint64_t> payloads{30, 10, 20};
  FailingSorter sorter;
  EXPECT_THROW(SortPairs<std::uint32_t>(keys, payloads, sorter), SorterError);
  EXPECT_EQ(keys, (std::vector<std::uint32_t>{3, 1, 2}));
  EXPECT_EQ(payloads, (std::vector<std::uint64_t>{30, 10, 20}));
  std::vector<Key128> wide{~Key128{0}, 1, 2};
  EXPECT_THROW(SortPairs<Key128>(wide, payloads, sorter), SorterError);
  EXPECT_TRUE((wide == std::vector<Key128>{~Key128{0}, 1, 2}));
  EXPECT_EQ(payloads, (std::vector<std::uint64_t>{30, 10, 20}));
}

}  // namespace
}  // namespace tidemark::sort
