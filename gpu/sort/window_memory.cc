#include "gpu/sort/window_memory.h"

#include <algorithm>
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
                           std::function<void()> ask)
    : chunk_bytes_(chunk_bytes), chunks_max_(limit_bytes / chunk_bytes), ask_(std::move(ask)) {
  assert(std::has_single_bit(chunk_bytes) && chunk_bytes >= kSmallest);
  chunks_.reserve(chunks_max_);
}

void WindowMemory::Add(std::size_t number, std::byte* data) {
  const std::size_t orders = OrderFor(chunk_bytes_) + 1;
  Chunk chunk{.number = number, .data = data, .is_free = {}, .free_count = {}};
  chunk.free_count.resize(orders);
  for (std::size_t order = 0; order < orders; ++order) {
    chunk.is_free.emplace_back(chunk_bytes_ / BlockBytes(order));
  }
  SetFree(chunk, orders - 1, 0, true);
  const std::lock_guard lock(mutex_);
  chunks_.push_back(std::move(chunk));
  asked_ = false;
}

void WindowMemory::AddNone() {
  const std::lock_guard lock(mutex_);
  asked_ = false;
  closed_ = true;
}

void WindowMemory::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  used_ = false;
}

void* WindowMemory::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes >= kSmallest && bytes <= chunk_bytes_ && alignment <= alignof(std::max_align_t)) {
    bool asks = false;
    {
      const std::lock_guard lock(mutex_);
      std::byte* data = used_ ? Take(OrderFor(bytes)) : nullptr;
      if (data != nullptr) return data;
      asks = !asked_ && !closed_ && chunks_.size() < chunks_max_;
      asked_ |= asks;
    }
    if (asks) ask_();
  }
  return std::pmr::new_delete_resource()->allocate(bytes, alignment);
}

void WindowMemory::SetFree(Chunk& chunk, std::size_t order, std::size_t block, bool free) {
  chunk.is_free[order][block] = free;
  chunk.free_count[order] += free ? 1 : std::size_t(-1);
}

std::byte* WindowMemory::Take(std::size_t order) {
  for (Chunk& chunk : chunks_) {
    std::size_t from = order;
    while (from < chunk.free_count.size() && chunk.free_count[from] == 0) ++from;
    if (from >= chunk.free_count.size()) continue;
    const auto& bits = chunk.is_free[from];
    auto block = static_cast<std::size_t>(std::find(bits.begin(), bits.end(), true) - bits.begin());
    SetFree(chunk, from, block, false);
    while (from > order) {  // the upper half of each stays free
      --from;
      block *= 2;
      SetFree(chunk, from, block + 1, true);
    }
    return chunk.data + block * BlockBytes(order);
  }
  return nullptr;
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
      std::size_t order = OrderFor(bytes);
      auto block =
          static_cast<std::size_t>(static_cast<std::byte*>(data) - chunk.data) / BlockBytes(order);
      // As long as the buddy is free too, they are one block again.
      while (order + 1 < chunk.is_free.size() && chunk.is_free[order][block ^ 1]) {
        SetFree(chunk, order, block ^ 1, false);
        block /= 2;
        ++order;
      }
      SetFree(chunk, order, block, true);
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
  return MappedPlace{chunk->number, offset};
}

std::size_t WindowMemory::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size() * chunk_bytes_;
}

}  // namespace tidemark::sort
