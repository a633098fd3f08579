// Keys counted and indexed many at once: as key by key.
#include "summaries/grid_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "tests/summaries/cases.h"

namespace tidemark::internal {
namespace {

template <class Key>
class GridVectorsTest : public ::testing::Test {
 protected:
  static constexpr Key kMost = static_cast<Key>(~Key{0});
  static constexpr unsigned kBits = 8 * sizeof(Key);

  void SetUp() override {
    if (!HasGridVectors()) GTEST_SKIP() << "this processor has no AVX-512";
  }

  Key Random() { return static_cast<Key>(random_()); }
  std::size_t Below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  /// Keys of `span` numbers of a level, from `base`.
  std::vector<Key> KeysOf(int level, Key base, Key span) {
    std::vector<Key> keys(Below(3) * kCountedPlaces * kIndexed + kIndexed + Below(5000));
    for (Key& key : keys) {
      const auto number = static_cast<Key>(base + (span == 0 ? Random() : Random() % span));
      key = static_cast<Key>((number << level) | (Random() & ((Key{1} << level) - 1)));
    }
    return keys;
  }

  template <class Cells>
  void Check(const std::vector<Key>& keys, Cells cells, std::size_t most) {
    std::vector<std::uint32_t> indices(kIndexed);
    IndexKeys(keys.data(), cells, indices.data());
    for (std::size_t i = 0; i < kIndexed; ++i) ASSERT_EQ(indices[i], cells(keys[i])) << keys[i];
    std::vector<GridCell<Key>> counts(most, GridCell<Key>{0, 0});
    CountKeys<Key>(keys, cells, false, counts.data());
    std::vector<GridCell<Key>> expected(most, GridCell<Key>{0, 0});
    for (const Key key : keys) {
      auto& cell = expected[cells(key)];
      cell.max = std::max(cell.max, key);
      ++cell.count;
    }
    for (std::size_t i = 0; i < most; ++i) {
      ASSERT_EQ(counts[i].count, expected[i].count) << "cell " << i;
      ASSERT_EQ(counts[i].max, expected[i].max) << "cell " << i;
    }
    for (const std::uint64_t stride : {std::uint64_t{0}, std::uint64_t{3}, keys.size() / most}) {
      const std::span<const GridCell<Key>> some =
          std::span(counts).first(std::min<std::size_t>(most, this->Below(5000)));
      ASSERT_EQ(HeavyInVectors(some, stride), HeavyKeys(some, stride)) << stride;
    }
  }

  std::mt19937_64 random_{5};
};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(GridVectorsTest, KeyTypes);

TYPED_TEST(GridVectorsTest, EvenCells) {
  using Key = TypeParam;
  for (int i = Cases(300); i > 0; --i) {
    const int level = static_cast<int>(this->Below(this->kBits));
    const Key last = static_cast<Key>(this->kMost >> level);
    const Key span = std::min<Key>(last, 1 + static_cast<Key>(this->Below(70'000)));
    const Key base = static_cast<Key>(last - span) / 2 + this->Random() % 2;
    const auto keys = this->KeysOf(level, base, span);
    ASSERT_NO_FATAL_FAILURE(
        this->Check(keys, EvenCells<Key>{level, base, true}, static_cast<std::size_t>(span)));
  }
}

// Any shapes in up to 64 blocks anywhere, the ends of the key space among them.
TYPED_TEST(GridVectorsTest, FewBlocks) {
  using Key = TypeParam;
  for (int i = Cases(300); i > 0; --i) {
    const int level = static_cast<int>(this->Below(this->kBits));
    const Key last = static_cast<Key>(this->kMost >> level);
    const Key blocks = std::min<Key>(last, 1 + static_cast<Key>(this->Below(kFewBlocks)));
    const Key base = this->Below(3) == 0 ? static_cast<Key>(last - blocks + 1)
                                         : static_cast<Key>((last - blocks) / 2);
    std::vector<std::uint32_t> shapes(kFewBlocks);
    std::uint32_t cells = 0;
    for (Key block = 0; block < blocks; ++block) {
      const int bits =
          static_cast<int>(this->Below(static_cast<std::size_t>(std::min(level, 10)) + 1));
      const auto least = static_cast<Key>(static_cast<Key>(base + block) << level);
      shapes[block] = BlockShape::Make(cells, static_cast<std::uint32_t>(least >> (level - bits)),
                                       level - bits);
      cells += 1u << bits;
    }
    const auto keys = this->KeysOf(level, base, blocks);
    ASSERT_NO_FATAL_FAILURE(
        this->Check(keys, BlockCells<Key>{level, base, shapes.data(), true}, cells));
  }
}

// Blocks by order of magnitude, from any base: keys of each order, and those on either side of its
// borders.
TYPED_TEST(GridVectorsTest, BlocksByMagnitude) {
  using Key = TypeParam;
  for (int i = Cases(300); i > 0; --i) {
    const int orders = 2 + static_cast<int>(this->Below(this->kBits - 1));
    const Key most = static_cast<Key>(this->kMost >> (this->kBits - orders));
    const Key base = static_cast<Key>(this->Random() & ~most);
    std::vector<std::uint32_t> shapes(kFewBlocks);
    std::uint32_t cells = 0;
    for (Key distance = 0;;) {  // the least of each block in turn
      const std::size_t block = LogCells<Key>::BlockOf(distance);
      int level = 0;  // of the largest cell that begins here and lies in the block
      const auto end_of = [&](int of) { return static_cast<Key>(distance + ((Key{1} << of) - 1)); };
      while (level + 1 < orders && end_of(level + 1) <= most &&
             LogCells<Key>::BlockOf(end_of(level + 1)) == block) {
        ++level;
      }
      const int bits =
          static_cast<int>(this->Below(static_cast<std::size_t>(std::min(level, 8)) + 1));
      const auto least = static_cast<Key>(base + distance);
      shapes[block] = BlockShape::Make(cells, static_cast<std::uint32_t>(least >> (level - bits)),
                                       level - bits);
      cells += 1u << bits;
      const Key last = end_of(level);
      if (last == most) break;
      distance = static_cast<Key>(last + 1);
      ASSERT_NE(LogCells<Key>::BlockOf(distance), block) << distance;
    }
    std::vector<Key> keys(kCountedPlaces * kIndexed + this->Below(5000));
    for (Key& key : keys) {
      const auto order = static_cast<int>(this->Below(static_cast<std::size_t>(orders)));
      const auto border = static_cast<Key>(Key{1} << order);
      const Key distance = this->Below(2) == 0 ? static_cast<Key>(this->Random() & (border - 1))
                                               : static_cast<Key>(border - 2 + this->Below(4));
      key = static_cast<Key>(base + (distance & most));
    }
    ASSERT_NO_FATAL_FAILURE(this->Check(keys, LogCells<Key>{0, base, shapes.data(), true}, cells));
  }
}

}  // namespace
}  // namespace tidemark::internal
