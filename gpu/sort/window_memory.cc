#include "gpu/sort/window_memory.h"

#include <bit>
#include <cassert>
#include <functional>
#include <utility>

namespace tidemark::sort {
namespace {

std::size_t BlockBytes(std::size_t order) { return WindowMemory::kSmallest << order; }

// The order of the smallest block that holds them. REQUIRES: bytes >= kSmallest.
std::size_t OrderFor(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width(std::bit_ceil(bytes)) -
                                  std::bit_width(WindowMemory::kSmallest));
}

}  // namespace

WindowMemory::WindowMemory(std::size_t chunk_bytes, std::size_t limit_bytes,
                           std::function<std::byte*(std::size_t)> map)
    : chunk_bytes_(chunk_bytes), chunks_max_(limit_bytes / chunk_bytes), map_(std::move(map)) {
  assert(std::has_single_bit(chunk_bytes) && chunk_bytes >= kSmallest);
}

void* WindowMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes >= kSmallest && bytes <= chunk_bytes_ && alignment <= alignof(std::max_align_t)) {
    const std::lock_guard lock(mutex_);
    const std::size_t order = OrderFor(bytes);
    std::byte* data = Take(order);
    if (data == nullptr && AddChunk()) data = Take(order);
    if (data != nullptr) return data;
  }
  return std::pmr::new_delete_resource()->allocate(bytes, alignment);
}

std::byte* WindowMemory::Take(std::size_t order) {
  for (Chunk& chunk : chunks_) {
    std::size_t from = order;
    while (from < chunk.free.size() && chunk.free[from].empty()) ++from;
    if (from >= chunk.free.size()) continue;
    const std::size_t at = *chunk.free[from].begin();
    chunk.free[from].erase(chunk.free[from].begin());
    while (from > order) {  // the upper half of each stays free
      --from;
      chunk.free[from].insert(at + BlockBytes(from));
    }
    return chunk.data + at;
  }
  return nullptr;
}

bool WindowMemory::AddChunk() {
  if (exhausted_ || chunks_.size() == chunks_max_) return false;
  std::byte* data = map_(chunk_bytes_);
  exhausted_ = data == nullptr;
  if (exhausted_) return false;
  Chunk chunk{.data = data, .free = {}};
  chunk.free.resize(OrderFor(chunk_bytes_) + 1);
  chunk.free.back().insert(0);
  chunks_.push_back(std::move(chunk));
  return true;
}

const WindowMemory::Chunk* WindowMemory::ChunkOf(const std::byte* data) const {
  for (const Chunk& chunk : chunks_) {
    const std::less<const std::byte*> before;
    if (!before(data, chunk.data) && before(data, chunk.data + chunk_bytes_)) return &chunk;
  }
  return nullptr;
}

void WindowMemory::do_deallocate(void* data, std::size_t bytes, std::size_t alignment) {
  {
    const std::lock_guard lock(mutex_);
    if (const Chunk* found = ChunkOf(static_cast<const std::byte*>(data))) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(found - chunks_.data())];
      auto at = static_cast<std::size_t>(static_cast<std::byte*>(data) - chunk.data);
      std::size_t order = OrderFor(bytes);
      // As long as the buddy is free too, they are one block again.
      while (order + 1 < chunk.free.size() && chunk.free[order].erase(at ^ BlockBytes(order)) > 0) {
        at &= ~BlockBytes(order);
        ++order;
      }
      chunk.free[order].insert(at);
      return;
    }
  }
  std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
}

std::optional<MappedPlace> WindowMemory::Find(const void* data, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  const Chunk* chunk = ChunkOf(first);
  if (chunk == nullptr) return std::nullopt;
  const auto offset = static_cast<std::size_t>(first - chunk->data);
  if (bytes > chunk_bytes_ - offset) return std::nullopt;
  return MappedPlace{static_cast<std::size_t>(chunk - chunks_.data()), offset};
}

std::size_t WindowMemory::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size() * chunk_bytes_;
}

}  // namespace tidemark::sort
