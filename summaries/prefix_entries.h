// The entries of a hierarchical frequency summary (hierarchical_frequency.h says what they mean) in
// few bytes: 7 to 10 each for 32-bit keys (measured), where the plain form takes 32.
//
// Entries come in preorder: ascending keys, of equal keys the shorter prefix first. Then each one
// is
//
//   1     level
//   1     control: bits 0-3  bytes of the distance, 15 says 16
//                  bits 4-7  bytes of the excess
//   1     control: bits 0-3  bytes of delta
//                  bits 4-7  bytes of the surplus
//   0-16  distance: key less the prefix that stands above the key before on this level (of the
//         first entry: the key), in units of the level's last bit
//   0-8   excess: count + delta - D - 1, never negative, as such an entry is not kept
//   0-8   delta
//   0-8   surplus: missed - delta, never negative
//
// little-endian, each with the fewest bytes that will do, so that equal entries are equal bytes.
#ifndef TIDEMARK_SUMMARIES_PREFIX_ENTRIES_H_
#define TIDEMARK_SUMMARIES_PREFIX_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/hierarchy.h"

namespace tidemark {

template <class Key>
struct PrefixEntry {
  Key key = 0;               ///< a prefix of its level
  int level = 0;             ///< of PrefixLevels
  std::uint64_t count = 0;   ///< values counted here: below it, and below no entry below it
  std::uint64_t delta = 0;   ///< of the values below it, at most so many are counted above it
  std::uint64_t missed = 0;  ///< the same of each prefix that has this entry nearest above it
  friend bool operator==(const PrefixEntry&, const PrefixEntry&) = default;
};

/// What stands above all entries, and is never dropped.
struct PrefixRoot {
  std::uint64_t count = 0;   ///< values below no entry
  std::uint64_t missed = 0;  ///< as that of an entry
  friend bool operator==(const PrefixRoot&, const PrefixRoot&) = default;
};

/// Entries as they are held. Thread: immutable.
template <class Key>
class PackedEntries {
 public:
  using Entries = std::vector<PrefixEntry<Key>>;

  /// None.
  PackedEntries() = default;
  /// `entries`: in preorder; of each delta <= missed <= dropped < count + delta. `dropped`: D.
  PackedEntries(const Entries& entries, const PrefixLevels<Key>& levels, std::uint64_t dropped);

  std::size_t size() const { return size_; }
  /// Memory held besides the object itself.
  std::size_t bytes() const { return bytes_.capacity(); }
  /// As described above.
  std::string_view stream() const;
  /// `levels`, `dropped`: as they were given.
  Entries Unpack(const PrefixLevels<Key>& levels, std::uint64_t dropped) const;

  /// Of any bytes: `count` entries that the constructor may be given and makes `stream` of,
  /// together with at most `room` values; nullopt if they are anything else.
  static std::optional<PackedEntries> Check(std::string_view stream, std::size_t count,
                                            const PrefixLevels<Key>& levels, std::uint64_t dropped,
                                            std::uint64_t room);

  /// Least bytes of an entry.
  static constexpr std::size_t kEntryMin = 3;

 private:
  std::string bytes_;  // the stream, and padding behind it; empty if there is none
  std::size_t size_ = 0;
};

extern template class PackedEntries<std::uint32_t>;
extern template class PackedEntries<std::uint64_t>;
extern template class PackedEntries<Key128>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_PREFIX_ENTRIES_H_
