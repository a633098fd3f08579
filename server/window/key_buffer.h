// Memory of windows: a plain array of keys, and a pool that hands large ones out again.
#ifndef TIDEMARK_SERVER_WINDOW_KEY_BUFFER_H_
#define TIDEMARK_SERVER_WINDOW_KEY_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "summaries/hierarchy.h"

namespace tidemark::server {

/// A growable array of keys whose new places are not written before they are used (std::vector
/// would zero them, which costs as much as the key map itself). Move-only. Thread: none of its own.
template <class Key>
class KeyBuffer {
 public:
  KeyBuffer() = default;
  /// In `memory`, which outlives it, or on the heap where there is none.
  explicit KeyBuffer(std::size_t capacity, std::pmr::memory_resource* memory = nullptr)
      : memory_(memory), capacity_(static_cast<std::uint32_t>(capacity)) {
    if (capacity == 0) return;
    keys_ = static_cast<Key*>(Memory().allocate(capacity * sizeof(Key), alignof(Key)));
  }
  KeyBuffer(KeyBuffer&& other) noexcept { *this = std::move(other); }
  KeyBuffer& operator=(KeyBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(keys_, other.keys_);
    std::swap(capacity_, other.capacity_);
    size_ = std::exchange(other.size_, 0);
    other.Free();
    return *this;
  }
  ~KeyBuffer() { Free(); }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  std::span<Key> keys() { return {keys_, size_}; }
  std::span<const Key> keys() const { return {keys_, size_}; }

  /// The places behind size(): capacity() - size() of them, to be written before Extend.
  Key* tail() { return keys_ + size_; }
  /// Makes the first `count` places of the tail part of the buffer.
  void Extend(std::size_t count) { size_ += static_cast<std::uint32_t>(count); }
  void Clear() { size_ = 0; }

  /// Moves the keys into an array of `capacity` >= size() places on the heap.
  void Reallocate(std::size_t capacity) {
    KeyBuffer bigger(capacity);
    if (size_ != 0) std::memcpy(bigger.keys_, keys_, size_ * sizeof(Key));
    bigger.size_ = size_;
    *this = std::move(bigger);
  }

 private:
  std::pmr::memory_resource& Memory() const {
    return memory_ != nullptr ? *memory_ : *std::pmr::new_delete_resource();
  }
  void Free() {
    if (keys_ == nullptr) return;
    Memory().deallocate(std::exchange(keys_, nullptr), capacity_ * sizeof(Key), alignof(Key));
    capacity_ = 0;
  }

  // A pointer alone: there is one such object for each stream, and streams may be a million.
  std::pmr::memory_resource* memory_ = nullptr;  // null: the heap
  Key* keys_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

/// Windows below this many keys are allocated and freed: the allocator serves them without page
/// faults. A fresh window of 2^18 keys costs about as many page faults as its sort costs cache
/// misses.
inline constexpr std::size_t kPooledKeys = std::size_t{1} << 14;

/// Free buffers of one key width, at most `limit` of them. Thread: any.
template <class Key>
class BufferPool {
 public:
  BufferPool() = default;
  explicit BufferPool(std::size_t limit) : limit_(limit) {}

  /// New buffers of kPooledKeys and more are in this memory, and none outlives the pool. REQUIRES:
  /// before the first Get.
  void UseMemory(std::shared_ptr<std::pmr::memory_resource> memory) { memory_ = std::move(memory); }

  /// An empty buffer of at least `capacity` places.
  KeyBuffer<Key> Get(std::size_t capacity) {
    if (capacity >= kPooledKeys) {
      const std::lock_guard lock(mutex_);
      const auto fits = std::find_if(free_.rbegin(), free_.rend(), [&](const KeyBuffer<Key>& b) {
        return b.capacity() >= capacity && b.capacity() <= 4 * capacity;
      });
      if (fits != free_.rend()) {
        KeyBuffer<Key> buffer = std::move(*fits);
        *fits = std::move(free_.back());
        free_.pop_back();
        return buffer;
      }
    }
    return KeyBuffer<Key>(capacity, capacity >= kPooledKeys ? memory_.get() : nullptr);
  }

  void Put(KeyBuffer<Key> buffer) {
    if (buffer.capacity() < kPooledKeys) return;
    buffer.Clear();
    const std::lock_guard lock(mutex_);
    if (free_.size() < limit_) free_.push_back(std::move(buffer));
  }

  /// Held by the buffers that are free.
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t places = 0;
    for (const KeyBuffer<Key>& buffer : free_) places += buffer.capacity();
    return places * sizeof(Key);
  }

  /// Frees what is kept: for a daemon that has gone quiet.
  void Trim() {
    const std::lock_guard lock(mutex_);
    free_.clear();
    free_.shrink_to_fit();
  }

 private:
  const std::size_t limit_ = 24;
  std::shared_ptr<std::pmr::memory_resource> memory_;  // null: the heap
  mutable std::mutex mutex_;
  std::vector<KeyBuffer<Key>> free_;
};

/// One pool for each key width.
struct BufferPools {
  BufferPool<std::uint32_t> keys32;
  BufferPool<std::uint64_t> keys64;
  BufferPool<Key128> keys128;

  template <class Key>
  BufferPool<Key>& For() {
    if constexpr (sizeof(Key) == 4) {
      return keys32;
    } else if constexpr (sizeof(Key) == 8) {
      return keys64;
    } else {
      return keys128;
    }
  }
  /// Of the widths that a GL sorter takes.
  void UseMemory(const std::shared_ptr<std::pmr::memory_resource>& memory) {
    keys32.UseMemory(memory);
    keys64.UseMemory(memory);
  }
  /// Held by all of them.
  std::size_t bytes() const { return keys32.bytes() + keys64.bytes() + keys128.bytes(); }
  void Trim() {
    keys32.Trim();
    keys64.Trim();
    keys128.Trim();
  }
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_KEY_BUFFER_H_
