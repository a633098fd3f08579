#include "gpu/sort/window_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tidemark::sort {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 19;

// Chunks on the heap, which begin where a chunk of this size would be mapped.
class Chunks {
 public:
  void Map(WindowMemory& memory, std::size_t bytes) {
    if (refuse) {
      memory.AddNone();
      return;
    }
    chunks_.push_back(std::make_unique<std::byte[]>(bytes));
    memory.Add(chunks_.size() - 1, chunks_.back().get());
  }
  std::size_t size() const { return chunks_.size(); }
  const std::byte* operator[](std::size_t i) const { return chunks_[i].get(); }

  bool refuse = false;

 private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
};

class WindowMemoryTest : public ::testing::Test {
 protected:
  // With one chunk from the start; more are added as soon as they are asked for.
  WindowMemory& MakeMemory(std::size_t chunks_max) {
    chunks_ = Chunks();
    memory_ = std::make_unique<WindowMemory>(kChunk, chunks_max * kChunk,
                                             [this] { chunks_.Map(*memory_, kChunk); });
    return *memory_;
  }
  // A block of a chunk: the first try asks for the chunk, and has the heap.
  static void* AllocateMapped(WindowMemory& memory, std::size_t bytes) {
    void* block = memory.allocate(bytes);
    if (memory.Find(block, bytes)) return block;
    memory.deallocate(block, bytes);
    return memory.allocate(bytes);
  }
  Chunks chunks_;
  std::unique_ptr<WindowMemory> memory_;
};

TEST_F(WindowMemoryTest, GivesWhatIsSmallOrTooLargeFromTheHeap) {
  WindowMemory& memory = MakeMemory(2);
  for (const std::size_t bytes : {std::size_t{1}, WindowMemory::kSmallest - 1, kChunk + 1}) {
    void* block = memory.allocate(bytes);
    EXPECT_FALSE(memory.Find(block, bytes));
    memory.deallocate(block, bytes);
  }
  EXPECT_EQ(chunks_.size(), 0U);
}

TEST_F(WindowMemoryTest, FindsWhatLiesInAChunk) {
  WindowMemory& memory = MakeMemory(2);
  void* whole = AllocateMapped(memory, kChunk);
  auto* other = static_cast<std::byte*>(AllocateMapped(memory, WindowMemory::kSmallest));
  ASSERT_EQ(chunks_.size(), 2U);
  EXPECT_EQ(memory.mapped_bytes(), 2 * kChunk);
  const auto place = memory.Find(other + 100, 50);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->chunk, 1U);
  EXPECT_EQ(chunks_[1] + place->offset, other + 100);
  EXPECT_TRUE(memory.Find(whole, kChunk));
  EXPECT_FALSE(memory.Find(static_cast<std::byte*>(whole) + 1, kChunk));
  EXPECT_FALSE(memory.Find(&place, 1));
  memory.deallocate(whole, kChunk);
  memory.deallocate(other, WindowMemory::kSmallest);
}

TEST_F(WindowMemoryTest, GoesOnWithTheHeapBeyondItsLimit) {
  WindowMemory& memory = MakeMemory(1);
  void* whole = AllocateMapped(memory, kChunk);
  void* heap = memory.allocate(kChunk);
  EXPECT_TRUE(memory.Find(whole, kChunk));
  EXPECT_FALSE(memory.Find(heap, kChunk));
  memory.deallocate(whole, kChunk);
  memory.deallocate(heap, kChunk);
  whole = memory.allocate(kChunk);
  EXPECT_TRUE(memory.Find(whole, kChunk)) << "what was freed is not used again";
  memory.deallocate(whole, kChunk);
}

TEST_F(WindowMemoryTest, AsksNoMoreOnceNothingCouldBeMapped) {
  WindowMemory& memory = MakeMemory(4);
  chunks_.refuse = true;
  void* heap = memory.allocate(kChunk);
  EXPECT_FALSE(memory.Find(heap, kChunk));
  memory.deallocate(heap, kChunk);
  chunks_.refuse = false;
  heap = memory.allocate(kChunk);
  EXPECT_FALSE(memory.Find(heap, kChunk));
  EXPECT_EQ(chunks_.size(), 0U);
  memory.deallocate(heap, kChunk);
}

TEST_F(WindowMemoryTest, AsksOnceAndHasTheHeapUntilItIsAnswered) {
  int asked = 0;
  WindowMemory memory(kChunk, 4 * kChunk, [&] { ++asked; });
  void* first = memory.allocate(kChunk);
  void* second = memory.allocate(kChunk);
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(memory.Find(first, kChunk));
  const auto chunk = std::make_unique<std::byte[]>(kChunk);
  memory.Add(7, chunk.get());
  void* mapped = memory.allocate(kChunk);
  ASSERT_TRUE(memory.Find(mapped, kChunk));
  EXPECT_EQ(memory.Find(mapped, kChunk)->chunk, 7U) << "the number that it was given";
  EXPECT_EQ(asked, 1);
  void* third = memory.allocate(kChunk);
  EXPECT_EQ(asked, 2);
  for (void* block : {first, second, mapped, third}) memory.deallocate(block, kChunk);
}

TEST_F(WindowMemoryTest, HasTheHeapAloneOnceItIsClosed) {
  WindowMemory& memory = MakeMemory(4);
  auto* mapped = static_cast<unsigned char*>(AllocateMapped(memory, kChunk / 2));
  memory.Close();
  void* heap = memory.allocate(kChunk / 2);
  EXPECT_FALSE(memory.Find(heap, kChunk / 2));
  EXPECT_TRUE(memory.Find(mapped, kChunk / 2)) << "what is there stays";
  std::memset(mapped, 1, kChunk / 2);
  memory.deallocate(heap, kChunk / 2);
  memory.deallocate(mapped, kChunk / 2);
  EXPECT_EQ(chunks_.size(), 1U);
}

// Blocks never overlap, lie at multiples of their size, and are one chunk again when all are free.
TEST_F(WindowMemoryTest, AnyOrderOfAllocatingAndFreeing) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    WindowMemory& memory = MakeMemory(3);
    struct Block {
      std::size_t bytes;
      unsigned char mark;
    };
    std::map<unsigned char*, Block> blocks;
    for (int step = 0; step < 400; ++step) {
      if (blocks.empty() || random() % 5 < 3) {
        const std::size_t bytes = WindowMemory::kSmallest + random() % (kChunk / 2);
        auto* data = static_cast<unsigned char*>(memory.allocate(bytes));
        const auto mark = static_cast<unsigned char>(random());
        std::memset(data, mark, bytes);
        if (const auto place = memory.Find(data, bytes)) {
          EXPECT_EQ(place->offset % std::bit_ceil(bytes), 0U);
        }
        const auto next = blocks.lower_bound(data);
        EXPECT_TRUE(next == blocks.end() || data + bytes <= next->first);
        if (next != blocks.begin()) {
          const auto& [before, block] = *std::prev(next);
          EXPECT_LE(before + block.bytes, data);
        }
        blocks[data] = {bytes, mark};
        continue;
      }
      const auto freed = std::next(blocks.begin(), static_cast<int>(random() % blocks.size()));
      const auto& [data, block] = *freed;
      EXPECT_TRUE(std::all_of(data, data + block.bytes, [mark = block.mark](unsigned char byte) {
        return byte == mark;
      })) << "somebody else wrote there";
      memory.deallocate(data, block.bytes);
      blocks.erase(freed);
    }
    for (const auto& [data, block] : blocks) memory.deallocate(data, block.bytes);
    std::vector<void*> whole;
    for (std::size_t i = 0; i < chunks_.size(); ++i) whole.push_back(memory.allocate(kChunk));
    for (void* chunk : whole) {
      EXPECT_TRUE(memory.Find(chunk, kChunk)) << "a chunk fell to pieces";
      memory.deallocate(chunk, kChunk);
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
