#include "server/window/dictionary.h"

#include <xxhash.h>

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace tidemark::server {
namespace {

// Odd, so that the probe sequence visits every id; otherwise arbitrary (2^64 over the golden
// ratio).
constexpr std::uint64_t kProbe = 0x9E37'79B9'7F4A'7C15ull;

}  // namespace

std::size_t Dictionary::HeapBytes(const std::string& text) {
  // libstdc++ and libc++ keep short texts inside the object.
  return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + 1;
}

std::uint64_t Dictionary::Intern(std::string_view text, std::uint64_t window) {
  std::uint64_t id = XXH3_64bits(text.data(), text.size());
  while (true) {
    const auto [at, inserted] = entries_.try_emplace(id);
    Entry& entry = at->second;
    if (inserted) {
      entry.text.assign(text);
      text_bytes_ += HeapBytes(entry.text);
    }
    if (entry.text == text) {
      entry.last_window = window;
      return id;
    }
    entry.probed_past = true;
    id += kProbe;
  }
}

std::uint64_t Dictionary::InternBelow(const TextLevels& levels, std::string_view text,
                                      std::uint64_t window) {
  const std::uint64_t id = Intern(text, window);
  if (places_.contains(id)) return id;
  TextPlace place;  // of everything
  for (const std::string_view prefix : levels.Prefixes(text)) {
    const std::uint64_t at = prefix.size() == text.size() ? id : Intern(prefix, window);
    place.level += 1;
    places_.try_emplace(at, place);
    place.parent = at;
  }
  place.level += 1;  // of a text with more components than there are levels
  if (text.empty()) place.level = 0;
  places_.try_emplace(id, place);
  return id;
}

void Dictionary::AddAncestors(std::uint64_t first_live_window,
                              std::vector<std::uint64_t>& ids) const {
  absl::flat_hash_set<std::uint64_t> above;
  const auto climb = [&](std::uint64_t id) {
    for (const TextPlace* place = Place(id); place != nullptr && place->level > 1;) {
      const std::uint64_t parent = place->parent;
      if (!above.insert(parent).second) return;
      place = Place(parent);
    }
  };
  for (const std::uint64_t id : ids) climb(id);
  for (const auto& [id, entry] : entries_) {
    if (entry.last_window >= first_live_window) climb(id);
  }
  ids.insert(ids.end(), above.begin(), above.end());
}

std::vector<Dictionary::Item> Dictionary::Items() const {
  std::vector<Item> items;
  items.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) {
    const TextPlace* place = Place(id);
    items.push_back(
        {id, entry.probed_past, place ? std::optional(*place) : std::nullopt, entry.text});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.id < b.id; });
  return items;
}

bool Dictionary::Restore(const Item& item, std::uint64_t window) {
  const auto [at, inserted] = entries_.try_emplace(item.id);
  if (!inserted) return false;
  Entry& entry = at->second;
  entry.text.assign(item.text);
  entry.last_window = window;
  entry.probed_past = item.probed_past;
  text_bytes_ += HeapBytes(entry.text);
  if (item.place) places_.emplace(item.id, *item.place);
  return true;
}

bool Dictionary::Consistent() const {
  for (const auto& [id, entry] : entries_) {
    if (Find(entry.text) != id) return false;
  }
  for (const auto& [id, place] : places_) {
    if (place.level < 2) continue;
    const TextPlace* parent = Place(place.parent);
    if (parent == nullptr || parent->level != place.level - 1) return false;
  }
  return true;
}

std::optional<std::uint64_t> Dictionary::Find(std::string_view text) const {
  std::uint64_t id = XXH3_64bits(text.data(), text.size());
  while (true) {
    const auto at = entries_.find(id);
    if (at == entries_.end()) return std::nullopt;
    if (at->second.text == text) return id;
    id += kProbe;
  }
}

const std::string* Dictionary::Text(std::uint64_t id) const {
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : &at->second.text;
}

std::size_t Dictionary::bytes() const {
  return entries_.capacity() * kPlaceBytes + text_bytes_ + places_.capacity() * kLevelBytes;
}

std::size_t Dictionary::EntryBytes(std::string_view text) {
  // libstdc++ gives a text that outgrows the object at least twice the object's room.
  constexpr std::size_t kInside = sizeof(std::string) / 2;
  const std::size_t heap = text.size() < kInside ? 0 : std::max(text.size(), 2 * kInside) + 1;
  return kPlaceBytes + heap;
}

}  // namespace tidemark::server
