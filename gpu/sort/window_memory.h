// Memory for windows that the device reads where it is: nobody copies them on their way to it.
#ifndef TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_
#define TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <vector>

namespace tidemark::sort {

/// A place in mapped memory.
struct MappedPlace {
  std::size_t chunk = 0;   ///< its number, as Add was told
  std::size_t offset = 0;  ///< bytes from the chunk's start
};

/// Hands out blocks of chunks that somebody maps for it: the buddy system (Knowlton, A fast storage
/// allocator, 1965). What does not fit, is larger than a chunk or smaller than kSmallest comes from
/// the heap, so that nobody must know which of the two it has. Chunks are never given back.
///
/// Nobody waits for a chunk: who needs one asks for it and has the heap meanwhile.
///
/// Not promised: what becomes of the windows here when the GPU is reset. They are in the host's
/// memory where the driver heeds the hint (gl::Buffer); a driver that does not may lose them with
/// its own. After a failure of GL close the memory, so that new windows are elsewhere.
///
/// Cost: a search of at most chunk / kSmallest bits under a lock. Blocks are powers of two, as
/// windows are; a block begins at a multiple of its size. Thread: any. Lifetime: outlives its
/// blocks (std::shared_ptr in those who keep some).
class WindowMemory final : public std::pmr::memory_resource {
 public:
  /// Below, a copy costs less than a transfer of its own.
  static constexpr std::size_t kSmallest = std::size_t{1} << 14;

  /// `ask` tells somebody to map one more chunk of chunk_bytes and to call Add or AddNone, now or
  /// later, on any thread. It is called again after an answer alone, and not beyond limit_bytes.
  /// REQUIRES: chunk_bytes is a power of two >= kSmallest.
  WindowMemory(std::size_t chunk_bytes, std::size_t limit_bytes, std::function<void()> ask);

  /// A chunk, aligned as the heap aligns, under the caller's number for it.
  void Add(std::size_t number, std::byte* data);
  /// There is none, and there will be no more.
  void AddNone();
  /// From now on the heap alone. Blocks that are in use stay valid.
  void Close();

  /// Where these bytes are mapped; nullopt if they are not, or not all of them.
  std::optional<MappedPlace> Find(const void* data, std::size_t bytes) const;

  /// Mapped, in use or not.
  std::size_t mapped_bytes() const;

 private:
  struct Chunk {
    std::size_t number = 0;
    std::byte* data = nullptr;
    /// Whether block i of kSmallest << order is free, and how many are: made once, so that freeing
    /// needs no memory. [order]
    std::vector<std::vector<bool>> is_free;
    std::vector<std::size_t> free_count;
  };

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  static void SetFree(Chunk& chunk, std::size_t order, std::size_t block, bool free);
  /// With mutex_ held.
  std::byte* Take(std::size_t order);
  const Chunk* ChunkOf(const std::byte* data) const;

  const std::size_t chunk_bytes_;
  const std::size_t chunks_max_;
  const std::function<void()> ask_;

  mutable std::mutex mutex_;
  std::vector<Chunk> chunks_;
  bool asked_ = false;   // and not answered
  bool closed_ = false;  // no chunk is asked for
  bool used_ = true;     // blocks come from the chunks
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_WINDOW_MEMORY_H_
