#include "server/window/key_buffer.h"

#include <gtest/gtest.h>

#include <memory>
#include <memory_resource>
#include <utility>

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

// Counts what is allocated of it and not freed.
class CountedMemory : public std::pmr::memory_resource {
 public:
  std::size_t bytes = 0;

 private:
  void* do_allocate(std::size_t count, std::size_t alignment) override {
    bytes += count;
    return std::pmr::new_delete_resource()->allocate(count, alignment);
  }
  void do_deallocate(void* data, std::size_t count, std::size_t alignment) override {
    bytes -= count;
    std::pmr::new_delete_resource()->deallocate(data, count, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(BufferPool, TakesLargeBuffersFromTheMemoryThatItIsGiven) {
  const auto memory = std::make_shared<CountedMemory>();
  BufferPools pools;
  pools.UseMemory(memory);
  {
    KeyBuffer<std::uint32_t> small = pools.keys32.Get(kPooledKeys / 2);
    KeyBuffer<Key128> wide = pools.keys128.Get(kPooledKeys);
    EXPECT_EQ(memory->bytes, 0U);
    KeyBuffer<std::uint32_t> large = pools.keys32.Get(kPooledKeys);
    large.tail()[0] = 17;
    large.Extend(1);
    KeyBuffer<std::uint32_t> moved = std::move(large);
    EXPECT_EQ(memory->bytes, 4 * kPooledKeys);
    moved.Reallocate(2 * kPooledKeys);
    EXPECT_EQ(moved.keys()[0], 17U);
    EXPECT_EQ(memory->bytes, 0U) << "a copy on the heap keeps nothing of it";
    pools.keys64.Put(pools.keys64.Get(2 * kPooledKeys));
    EXPECT_EQ(memory->bytes, 16 * kPooledKeys) << "kept for the next";
  }
  pools.Trim();
  EXPECT_EQ(memory->bytes, 0U);
}

}  // namespace
}  // namespace tidemark::server
