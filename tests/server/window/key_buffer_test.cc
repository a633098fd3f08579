#include "server/window/key_buffer.h"

#include <gtest/gtest.h>

namespace tidemark::server {
namespace {

TEST(KeyBuffer, GrowsAndKeepsItsKeys) {
  KeyBuffer<std::uint32_t> buffer(4);
  for (std::uint32_t i = 0; i < 4; ++i) buffer.tail()[i] = i;
  buffer.Extend(4);
  buffer.Reallocate(16);
  EXPECT_EQ(buffer.capacity(), 16u);
  ASSERT_EQ(buffer.size(), 4u);
  EXPECT_EQ(buffer.keys()[3], 3u);
  const KeyBuffer<std::uint32_t> moved = std::move(buffer);
  EXPECT_EQ(moved.size(), 4u);
}

TEST(BufferPool, HandsLargeBuffersOutAgainAndBoundsWhatItKeeps) {
  BufferPool<std::uint64_t> pool(2);
  KeyBuffer<std::uint64_t> first = pool.Get(kPooledKeys);
  const std::uint64_t* memory = first.tail();
  pool.Put(std::move(first));
  KeyBuffer<std::uint64_t> again = pool.Get(kPooledKeys);
  EXPECT_EQ(again.tail(), memory);
  EXPECT_TRUE(again.empty());

  pool.Put(KeyBuffer<std::uint64_t>(16 * kPooledKeys));
  EXPECT_LT(pool.Get(kPooledKeys).capacity(), 16 * kPooledKeys) << "far too large a buffer";
  pool.Put(KeyBuffer<std::uint64_t>(8));
  EXPECT_EQ(pool.Get(8).capacity(), 8u);
}

}  // namespace
}  // namespace tidemark::server
