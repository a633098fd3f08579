#include "summaries/prefix_entries.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace tidemark {
namespace {

constexpr unsigned kWideDistance = 15;  // says 16 bytes
// Whole words are read and written behind the last byte.
constexpr std::size_t kPadding = 16;

template <class Number>
unsigned ByteCount(Number number) {
  const int bits = static_cast<int>(8 * sizeof(Number)) - CommonBits(number, Number{0});
  return (static_cast<unsigned>(bits) + 7) / 8;
}

/// The number in the first `bytes` <= 8 of the 8 bytes at `at`.
std::uint64_t Load(const char* at, unsigned bytes) {
  constexpr std::array<std::uint64_t, 9> kMasks = {
      0, 0xFF, 0xFFFF, 0xFF'FFFF, 0xFFFF'FFFF, 0xFF'FFFF'FFFF, ~0ull >> 16, ~0ull >> 8, ~0ull};
  std::uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, at, 8);
  } else {
    for (unsigned i = 0; i < 8; ++i) {
      word |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
  }
  return word & kMasks[bytes];
}
void Store(char* at, std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &word, 8);
  } else {
    for (unsigned i = 0; i < 8; ++i) at[i] = static_cast<char>(word >> (8 * i) & 0xFF);
  }
}
template <class Key>
Key LoadKey(const char* at, unsigned bytes) {
  if constexpr (sizeof(Key) <= 8) {
    return static_cast<Key>(Load(at, bytes));
  } else {
    if (bytes <= 8) return Load(at, bytes);
    return static_cast<Key>(Load(at + 8, bytes - 8)) << 64 | Load(at, 8);
  }
}
template <class Key>
void StoreKey(char* at, Key key) {
  Store(at, static_cast<std::uint64_t>(key));
  if constexpr (sizeof(Key) > 8) Store(at + 8, static_cast<std::uint64_t>(key >> 64));
}

/// The head of an entry: its level, and how many bytes each of its numbers takes.
struct Head {
  int level;
  unsigned distance, excess, delta, surplus;
};
Head ReadHead(const char* at) {
  const unsigned first = static_cast<unsigned char>(at[1]);
  const unsigned second = static_cast<unsigned char>(at[2]);
  const unsigned distance = first & 15;
  return {static_cast<unsigned char>(at[0]), distance == kWideDistance ? 16 : distance, first >> 4,
          second & 15, second >> 4};
}

/// Reads the entry at `at` behind one with the key `before`, and moves `at` behind it.
template <class Key>
PrefixEntry<Key> ReadEntry(const char*& at, Key before, const PrefixLevels<Key>& levels,
                           std::uint64_t dropped) {
  const Head head = ReadHead(at);
  at += PackedEntries<Key>::kEntryMin;
  const int shift = PrefixLevels<Key>::kKeyBits - levels.length(head.level);
  const Key distance = LoadKey<Key>(at, head.distance);
  at += head.distance;
  const std::uint64_t excess = Load(at, head.excess);
  at += head.excess;
  const std::uint64_t delta = Load(at, head.delta);
  at += head.delta;
  const std::uint64_t surplus = Load(at, head.surplus);
  at += head.surplus;
  const Key key =
      static_cast<Key>(levels.Prefix(head.level, before) + static_cast<Key>(distance << shift));
  return {key, head.level, dropped + 1 + excess - delta, delta, delta + surplus};
}

}  // namespace

template <class Key>
PackedEntries<Key>::PackedEntries(const Entries& entries, const PrefixLevels<Key>& levels,
                                  std::uint64_t dropped)
    : size_(entries.size()) {
  if (entries.empty()) return;
  constexpr std::size_t kEntryMax = kEntryMin + sizeof(Key) + 3 * 8 + kPadding;
  constexpr std::size_t kEntryGuess = 12;
  std::string bytes(entries.size() * kEntryGuess + kEntryMax, '\0');
  std::size_t used = 0;
  Key before = 0;
  for (const PrefixEntry<Key>& entry : entries) {
    assert(entry.count + entry.delta > dropped);
    assert(entry.delta <= entry.missed && entry.missed <= dropped);
    if (bytes.size() - used < kEntryMax) bytes.resize(bytes.size() + bytes.size() / 2);
    const int shift = PrefixLevels<Key>::kKeyBits - levels.length(entry.level);
    const Key distance = static_cast<Key>(entry.key - levels.Prefix(entry.level, before)) >> shift;
    const std::uint64_t excess = entry.count + entry.delta - dropped - 1;
    const std::uint64_t surplus = entry.missed - entry.delta;
    const unsigned distance_bytes = ByteCount(distance), excess_bytes = ByteCount(excess),
                   delta_bytes = ByteCount(entry.delta), surplus_bytes = ByteCount(surplus);
    const bool wide = distance_bytes >= kWideDistance;
    char* at = bytes.data() + used;
    *at++ = static_cast<char>(entry.level);
    *at++ = static_cast<char>((wide ? kWideDistance : distance_bytes) | excess_bytes << 4);
    *at++ = static_cast<char>(delta_bytes | surplus_bytes << 4);
    StoreKey(at, distance);
    at += wide ? 16 : distance_bytes;
    Store(at, excess);
    at += excess_bytes;
    Store(at, entry.delta);
    at += delta_bytes;
    Store(at, surplus);
    at += surplus_bytes;
    used = static_cast<std::size_t>(at - bytes.data());
    before = entry.key;
  }
  bytes_.assign(bytes.data(), used + kPadding);  // as much memory as it needs
}

template <class Key>
std::string_view PackedEntries<Key>::stream() const {
  return std::string_view(bytes_).substr(0, size_ == 0 ? 0 : bytes_.size() - kPadding);
}

template <class Key>
std::vector<PrefixEntry<Key>> PackedEntries<Key>::Unpack(const PrefixLevels<Key>& levels,
                                                         std::uint64_t dropped) const {
  Entries entries;
  entries.reserve(size_);
  const char* at = bytes_.data();
  Key before = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    entries.push_back(ReadEntry(at, before, levels, dropped));
    before = entries.back().key;
  }
  return entries;
}

template <class Key>
std::optional<PackedEntries<Key>> PackedEntries<Key>::Check(std::string_view stream,
                                                            std::size_t count,
                                                            const PrefixLevels<Key>& levels,
                                                            std::uint64_t dropped,
                                                            std::uint64_t room) {
  std::string padded(stream);
  padded.append(kPadding + kEntryMin, '\0');
  const char *at = padded.data(), *const end = at + stream.size();
  Entries entries;
  for (std::size_t i = 0; i < count; ++i) {
    const Head head = ReadHead(at);
    const std::size_t length = kEntryMin + head.distance + head.excess + head.delta + head.surplus;
    if (head.level >= levels.size() || levels.length(head.level) == 0) return std::nullopt;
    if (head.distance > sizeof(Key) || head.excess > 8 || head.delta > 8 || head.surplus > 8 ||
        length > static_cast<std::size_t>(end - at)) {
      return std::nullopt;
    }
    const Key before = i == 0 ? Key{0} : entries.back().key;
    const PrefixEntry<Key> entry = ReadEntry(at, before, levels, dropped);
    const bool follows =
        i == 0 || entry.key > before || (entry.key == before && entry.level > entries.back().level);
    // No sum here can pass 2^64 unnoticed: what it is made of is bounded first.
    if (!follows || entry.delta > dropped || entry.missed < entry.delta || entry.missed > dropped ||
        entry.count == 0 || entry.count > room || entry.count + entry.delta <= dropped) {
      return std::nullopt;
    }
    room -= entry.count;
    entries.push_back(entry);
  }
  PackedEntries packed(entries, levels, dropped);
  if (packed.stream() != stream) return std::nullopt;
  return packed;
}

template class PackedEntries<std::uint32_t>;
template class PackedEntries<std::uint64_t>;
template class PackedEntries<Key128>;

}  // namespace tidemark
