// Windows that were counted: the same bytes as from sorted ones, whatever was done for them.
#include "summaries/item_counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/property.h"
#include "tests/summaries/reference.h"

namespace tidemark {
namespace {

using testing::Distribution;
using testing::EntriesOf;
using testing::NaiveLossyCounting;

template <class Key>
void SortAll(std::span<Key> keys) {
  std::sort(keys.begin(), keys.end());
}

/// The hash of ItemCounter, so that a test can make keys share slots.
std::uint32_t HashOf(std::uint32_t key) { return key * 0xC2B2'AE35u; }
std::uint32_t HashOf(std::uint64_t key) {
  return static_cast<std::uint32_t>((key * 0xE703'7ED1'A0B4'28DBu) >> 32);
}

/// The first keys from 1 on whose slot is `slot` of 2^bits.
template <class Key>
std::vector<Key> KeysOfSlot(std::uint32_t slot, unsigned bits, std::size_t count) {
  std::vector<Key> keys;
  for (Key key = 1; keys.size() < count; ++key) {
    if (HashOf(key) >> (32 - bits) == slot) keys.push_back(key);
  }
  return keys;
}

template <class Key>
struct ItemInput {
  std::vector<Key> keys;
  std::size_t window = 256;
  std::uint64_t parts = 100;  ///< 1 / epsilon
  ItemTuning tuning = {.least_counted = 1, .always = true};
};

template <class Key>
class ItemCounterTest : public ::testing::Test {
 protected:
  /// Whether the summary is that of sorted windows, and its entries those of a naive one. Returns
  /// how many windows were counted.
  static int Check(const ItemInput<Key>& input) {
    const double epsilon = 1.0 / static_cast<double>(input.parts);
    FrequencySummary<Key> counted(epsilon), sorted(epsilon);
    NaiveLossyCounting<Key> naive(1, input.parts);
    ItemCounter<Key> counter(SortAll<Key>, input.tuning);
    GridMemory memory;
    int windows = 0;
    for (std::size_t at = 0; at < input.keys.size(); at += input.window) {
      const std::size_t size = std::min(input.window, input.keys.size() - at);
      std::vector<Key> window(input.keys.begin() + static_cast<std::ptrdiff_t>(at),
                              input.keys.begin() + static_cast<std::ptrdiff_t>(at + size));
      auto copy = window;
      counter.AddWindow(copy, counted, memory);
      windows += counter.counted() ? 1 : 0;
      SortAll<Key>(window);
      sorted.AddWindow(window);
      naive.AddWindow(window);
      EXPECT_EQ(counted.Serialize(), sorted.Serialize()) << "window at " << at;
      EXPECT_EQ(EntriesOf(counted), naive.entries()) << "window at " << at;
    }
    return windows;
  }
};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(ItemCounterTest, KeyTypes);

TYPED_TEST(ItemCounterTest, SameBytesAsSortedWhateverComes) {
  using Key = TypeParam;
  int windows = 0;
  testing::ForSeeds<ItemInput<Key>>(
      Cases(500, 20'000),
      [](std::mt19937_64& random) {
        ItemInput<Key> input;
        constexpr std::uint64_t kParts[] = {2, 20, 100, 300, 1000, 100'000};
        input.parts = kParts[random() % 6];
        input.window = 256 + random() % 500;
        // A few kinds of keys, in turn or mixed: heavy ones, some that share slots, 0, and noise.
        const auto slot = static_cast<std::uint32_t>(random() % 3 * 511);
        const auto shared = KeysOfSlot<Key>(slot, 10, 1 + random() % 6);
        const std::uint64_t heavy = 1 + random() % 40, noise = 1 + random() % 100;
        const Key base = static_cast<Key>(random());
        std::vector<std::vector<Key>> kinds;
        for (const auto distribution : testing::kDistributions) {
          if (random() % 6 == 0) {
            kinds.push_back(testing::Generate<Key>(distribution, 4000, random()));
          }
        }
        for (std::size_t i = 0; i < 4000; ++i) {
          const std::uint64_t which = random() % 100;
          if (which < noise / 2) {
            input.keys.push_back(static_cast<Key>(random()));
          } else if (which < noise) {
            input.keys.push_back(random() % 4 == 0 ? 0 : shared[random() % shared.size()]);
          } else if (kinds.empty() || which % 2 == 0) {
            input.keys.push_back(static_cast<Key>(base + random() % (1 + random() % heavy)));
          } else {
            input.keys.push_back(kinds[i * kinds.size() / 4000][i]);
          }
        }
        return input;
      },
      [&](const ItemInput<Key>& input) { windows += TestFixture::Check(input); });
  EXPECT_GT(windows, Cases(500, 20'000) * 4);
}

// The real tuning and windows that are large enough for it.
TYPED_TEST(ItemCounterTest, LargeWindowsOfEveryDistribution) {
  using Key = TypeParam;
  constexpr std::size_t kWindow = std::size_t{1} << 15;
  for (const auto distribution : testing::kDistributions) {
    SCOPED_TRACE(testing::Name(distribution));
    const auto keys = testing::Generate<Key>(distribution, 6 * kWindow, 3);
    const int counted = TestFixture::Check({keys, kWindow, 1000, {}});
    if (distribution == Distribution::kZipf || distribution == Distribution::kUniform) {
      EXPECT_GT(counted, 0);
    } else if (distribution == Distribution::kAllEqual) {
      EXPECT_EQ(counted, 0);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Many keys with entries in one slot, of which only the heaviest is counted there, and 0 and others
// in the first slot, whose hash is that of an empty one.
TYPED_TEST(ItemCounterTest, KeysWithEntriesThatShareASlot) {
  using Key = TypeParam;
  std::mt19937_64 random(5);
  for (const std::uint32_t slot : {0u, 1u, 1023u}) {
    SCOPED_TRACE(slot);
    auto shared = KeysOfSlot<Key>(slot, 15, 30);  // in whatever number of slots
    shared.push_back(0);
    ItemInput<Key> input{{}, 4096, 200, {}};
    for (std::size_t i = 0; i < 8 * input.window; ++i) {
      // From the third window on most of them come less than LeastCount times.
      const bool light = i > 2 * input.window && random() % 16 != 0;
      input.keys.push_back(light ? static_cast<Key>(random()) : shared[random() % shared.size()]);
    }
    input.tuning = {.least_counted = 1, .always = true};
    EXPECT_EQ(TestFixture::Check(input), 8);
  }
}

// Light keys that share slots: none can be dropped, so that the windows after the first are sorted,
// ever more of them.
TYPED_TEST(ItemCounterTest, WaitsWhereKeysAreMadeToShareSlots) {
  using Key = TypeParam;
  constexpr std::size_t kWindow = std::size_t{1} << 14;
  const auto shared = KeysOfSlot<Key>(77, 10, kWindow);
  FrequencySummary<Key> summary(0.01), sorted(0.01);
  ItemCounter<Key> counter(SortAll<Key>);
  GridMemory memory;
  std::vector<int> counted;
  for (int i = 0; i < 48; ++i) {
    auto window = shared;
    counter.AddWindow(window, summary, memory);
    sorted.AddWindow(shared);
    if (counter.counted()) counted.push_back(i);
  }
  EXPECT_EQ(counted, (std::vector<int>{0, 2, 6, 14, 30, 46}));
  EXPECT_EQ(summary.Serialize(), sorted.Serialize());
  // It pays again.
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    std::vector<Key> window(kWindow);
    for (Key& key : window) key = static_cast<Key>(random());
    counter.AddWindow(window, summary, memory);
    SortAll<Key>(window);
    sorted.AddWindow(window);
    EXPECT_EQ(counter.counted(), i >= 14) << i;
  }
  EXPECT_EQ(summary.Serialize(), sorted.Serialize());
}

// What is in the order of a sort's cost is not counted: windows that sort at a glance, small ones,
// and those in which a key may be reported that comes a few times.
TYPED_TEST(ItemCounterTest, SortsWhereThatCostsLess) {
  using Key = TypeParam;
  constexpr std::size_t kWindow = std::size_t{1} << 16;
  const auto counted_with = [](double epsilon, std::size_t size, std::uint64_t distinct) {
    std::mt19937_64 random(2);
    FrequencySummary<Key> summary(epsilon);
    ItemCounter<Key> counter(SortAll<Key>);
    GridMemory memory;
    int counted = 0;
    for (int i = 0; i < 3; ++i) {
      std::vector<Key> window(size);
      for (Key& key : window) key = static_cast<Key>(random() % distinct);
      counter.AddWindow(window, summary, memory);
      counted += counter.counted() ? 1 : 0;
    }
    return counted;
  };
  EXPECT_EQ(counted_with(1e-3, kWindow, 1'000'000), 3);
  EXPECT_EQ(counted_with(1e-3, kWindow, 1), 0);
  EXPECT_EQ(counted_with(1e-3, kWindow, 2), 0);
  EXPECT_EQ(counted_with(1e-5, kWindow, 1'000'000), 0);
  EXPECT_EQ(counted_with(1e-2, 2048, 1'000'000), 0);
  EXPECT_EQ(counted_with(1e-3, 0, 1), 0);
}

}  // namespace
}  // namespace tidemark
