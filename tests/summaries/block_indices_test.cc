// Indices taken for many keys at once: those that the cells give key by key.
#include "summaries/block_indices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/summaries/cases.h"

namespace tidemark::internal {
namespace {

template <class Key>
class BlockIndicesTest : public ::testing::Test {};
using KeyTypes = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(BlockIndicesTest, KeyTypes);

TYPED_TEST(BlockIndicesTest, AsKeyByKey) {
  using Key = TypeParam;
  if (!HasBlockIndices()) GTEST_SKIP() << "this processor has no AVX-512F";
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  const int cases = Cases(2000);
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const int level = static_cast<int>(random() % static_cast<unsigned>(kBits));
    // Blocks anywhere, up to the end of the key space.
    const Key last = static_cast<Key>(~Key{0}) >> level;
    const Key base = static_cast<Key>(random() % 3 == 0 ? (last < 63 ? 0 : last - 63)
                                                        : static_cast<Key>(random()) >> level);
    const std::size_t blocks =
        1 + static_cast<std::size_t>(std::min<Key>(static_cast<Key>(last - base), kFewBlocks - 1));
    std::vector<std::uint32_t> shapes(kFewBlocks);
    for (auto& shape : shapes) {
      shape = BlockShape::Make(static_cast<std::uint32_t>(random()),
                               static_cast<std::uint32_t>(random()),
                               static_cast<int>(random() % static_cast<unsigned>(level + 1)));
    }
    const BlockCells<Key> cells{level, base, shapes.data(), true};
    std::vector<Key> keys(kIndexedTogether * (1 + random() % 20));
    for (Key& key : keys) {
      const auto block = static_cast<Key>(base + random() % blocks);
      key = static_cast<Key>((block << level) |
                             (static_cast<Key>(random()) & ((Key{1} << level) - 1)));
    }
    std::vector<std::uint32_t> indices(keys.size(), 0xFFFF'FFFF);
    BlockIndices(keys, cells, indices.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(indices[i], cells(keys[i])) << "key " << keys[i] << " at " << i;
    }
  }
}

}  // namespace
}  // namespace tidemark::internal
