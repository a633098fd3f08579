// Memory for windows that the device reads where it is: nobody copies them on their way to it.
#ifndef TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_
#define TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace tidemark::sort {

/// A place in mapped memory.
struct MappedPlace {
  std::size_t chunk = 0;
  std::size_t offset = 0;  ///< bytes from the chunk's start
};

/// Hands out blocks of chunks that somebody maps for it: the buddy system (Knowlton, A fast storage
/// allocator, 1965). What does not fit, is larger than a chunk or smaller than kSmallest comes from
/// the heap, so that nobody must know which of the two it has. Chunks are never given back.
///
/// Cost: O(log(chunk / kSmallest)) under a lock. Blocks are powers of two, as windows are; a block
/// begins at a multiple of its size. Thread: any. Lifetime: outlives its blocks (std::shared_ptr in
/// those who keep some).
class WindowMemory final : public std::pmr::memory_resource {
 public:
  /// Below, a copy costs less than a transfer of its own.
  static constexpr std::size_t kSmallest = std::size_t{1} << 14;

  /// `map(bytes)` maps one more chunk and returns where it is, aligned as the heap aligns; null: it
  /// cannot. It is called by whoever needs the chunk, at most limit_bytes / chunk_bytes times, and
  /// never again once it could not. REQUIRES: chunk_bytes is a power of two >= kSmallest.
  WindowMemory(std::size_t chunk_bytes, std::size_t limit_bytes,
               std::function<std::byte*(std::size_t bytes)> map);

  /// Where these bytes are mapped; nullopt if they are not, or not all of them.
  std::optional<MappedPlace> Find(const void* data, std::size_t bytes) const;

  /// Mapped, in use or not.
  std::size_t mapped_bytes() const;

 private:
  struct Chunk {
    std::byte* data = nullptr;
    /// Offsets of free blocks of kSmallest << order. [order]
    std::vector<std::set<std::size_t>> free;
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  /// All with mutex_ held.
  std::byte* Take(std::size_t order);
  bool AddChunk();
  const Chunk* ChunkOf(const std::byte* data) const;

  const std::size_t chunk_bytes_;
  const std::size_t chunks_max_;
  const std::function<std::byte*(std::size_t)> map_;

  mutable std::mutex mutex_;
  std::vector<Chunk> chunks_;
  bool exhausted_ = false;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_
