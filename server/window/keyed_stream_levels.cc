// Hierarchies of strings: what a window comes to on each level.
#include <algorithm>
#include <utility>

#include "server/window/keyed_stream.h"
#include "summaries/sorted_runs.h"

namespace tidemark::server {
namespace {

// Looked up under one hold of the stream's lock: some tens of microseconds.
constexpr std::size_t kItemsAtOnce = 256;

/// The ascending items of a sorted window, each with what it weighs.
template <class Key>
std::vector<KeyWeight<std::uint64_t>> ItemsOf(std::span<const Key> sorted,
                                              std::span<const std::uint64_t> payloads) {
  std::vector<KeyWeight<std::uint64_t>> items;
  if (payloads.empty()) {
    internal::ForEachRun(sorted, 1, [&](Key key, std::uint64_t count) {
      items.push_back({key, count});
    });
  } else {
    for (const auto& item : WeightedItems(sorted, payloads)) {
      items.push_back({item.key, item.weight});
    }
  }
  return items;
}

}  // namespace

// The item itself, and what stands above it.
template <class Key>
bool KeyedStream<Key>::AddPlaces(std::uint64_t id, TextPlaces& places) const {
  while (true) {
    const TextPlace* place = dictionary_->Place(id);
    if (place == nullptr) return false;
    if (!places.try_emplace(id, *place).second || place->level <= 1) return true;
    id = place->parent;
  }
}

template <class Key>
LevelItems KeyedStream<Key>::ItemsOfLevels(std::span<const Key> sorted,
                                           std::span<const std::uint64_t> payloads,
                                           const TextPlaces& places) const {
  if constexpr (kRankedKeys<Key>) {
    const auto items = ItemsOf(sorted, payloads);
    return TextItems(std::span<const KeyWeight<std::uint64_t>>(items), text_levels_->size() - 1,
                     [&](std::uint64_t id) { return places.find(id)->second; });
  } else {
    return {};
  }
}

template <class Key>
std::optional<LevelItems> KeyedStream<Key>::ItemsOfLevels(
    std::span<const Key> sorted, std::span<const std::uint64_t> payloads) const {
  if (!text_levels_) return LevelItems();
  TextPlaces places;
  for (std::size_t begin = 0; begin < sorted.size(); begin += kItemsAtOnce) {
    const std::lock_guard lock(mutex_);
    const std::size_t end = std::min(begin + kItemsAtOnce, sorted.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin && sorted[i] == sorted[i - 1]) continue;
      if (!AddPlaces(static_cast<std::uint64_t>(sorted[i]), places)) return std::nullopt;
    }
  }
  return ItemsOfLevels(sorted, payloads, places);
}

template <class Key>
std::optional<TextPlace> KeyedStream<Key>::ItemPlace(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const TextPlace* place = dictionary_ ? dictionary_->Place(id) : nullptr;
  return place == nullptr ? std::nullopt : std::optional(*place);
}

#define TIDEMARK_INSTANTIATE(Key)                                                     \
  template bool KeyedStream<Key>::AddPlaces(std::uint64_t, TextPlaces&) const;        \
  template LevelItems KeyedStream<Key>::ItemsOfLevels(                                \
      std::span<const Key>, std::span<const std::uint64_t>, const TextPlaces&) const; \
  template std::optional<LevelItems> KeyedStream<Key>::ItemsOfLevels(                 \
      std::span<const Key>, std::span<const std::uint64_t>) const;                    \
  template std::optional<TextPlace> KeyedStream<Key>::ItemPlace(std::uint64_t) const
TIDEMARK_INSTANTIATE(std::uint32_t);
TIDEMARK_INSTANTIATE(std::uint64_t);
TIDEMARK_INSTANTIATE(Key128);
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::server
