// Ids for the items of a string stream, and the text behind each id that still matters.
//
// An item's id is the 64-bit XXH3 hash of its text. Two texts with the same hash get different ids
// by probing (id + kProbe), so that counts of different items are never mixed; an id that was
// probed past stays for ever, which keeps the probe sequence of the second text intact.
//
// Bounded: after each window that reached the summary, ids which neither the summary nor a window
// on its way holds are forgotten. Lossy counting allows that: an item outside the summary starts
// anew, its missed occurrences covered by the summary's bound. So the dictionary holds at most the
// summary's entries and the distinct items of the windows under way, and as much again until the
// next look for what may be forgotten. Of a hierarchy it holds what stands above those, too. All
// dictionaries together: text_budget.h.
#ifndef TIDEMARK_SERVER_WINDOW_DICTIONARY_H_
#define TIDEMARK_SERVER_WINDOW_DICTIONARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "summaries/hierarchy.h"

namespace tidemark::server {

/// Thread: none of its own; the stream's lock guards it.
class Dictionary {
 public:
  /// The id of `text`, which the window number `window` is about to hold.
  std::uint64_t Intern(std::string_view text, std::uint64_t window);
  /// The same for strings with a hierarchy: knows what stands above `text`, too.
  std::uint64_t InternBelow(const TextLevels& levels, std::string_view text, std::uint64_t window);
  /// Where a text stands that came by InternBelow, or above one that did; nullptr for any other id.
  const TextPlace* Place(std::uint64_t id) const {
    const auto at = places_.find(id);
    return at == places_.end() ? nullptr : &at->second;
  }
  /// Adds to `ids` what stands above them, and above what a window from `first_live_window` on
  /// holds.
  void AddAncestors(std::uint64_t first_live_window, std::vector<std::uint64_t>& ids) const;

  /// The id of `text` if it is known.
  std::optional<std::uint64_t> Find(std::string_view text) const;
  /// The text of a known id; nullptr otherwise.
  const std::string* Text(std::uint64_t id) const;

  /// Forgets every id that was last held by a window before `first_live_window` and for which
  /// `keep(id)` is false. Returns how many.
  template <class Keep>
  std::size_t Forget(std::uint64_t first_live_window, Keep keep) {
    const std::size_t before = entries_.size();
    absl::erase_if(entries_, [&](const auto& item) {
      const Entry& entry = item.second;
      const bool gone =
          entry.last_window < first_live_window && !entry.probed_past && !keep(item.first);
      if (gone) {
        text_bytes_ -= HeapBytes(entry.text);
        places_.erase(item.first);
      }
      return gone;
    });
    // A table keeps its places when its entries go. Far below its size it is made anew: a stream
    // that was busy once must not hold them for ever.
    if (entries_.capacity() > kSpareFactor * entries_.size()) Shrink();
    return before - entries_.size();
  }
  /// Gives the free places of its tables back where that is half of them or more.
  void Shrink() {
    // A table is at most 7/8 full, and has a power of two of places.
    if (entries_.capacity() < 2 * (entries_.size() + entries_.size() / 7 + 1)) return;
    entries_.rehash(0);
    places_.rehash(0);
  }

  /// An entry, for a stream's image (stream_image.h).
  struct Item {
    std::uint64_t id = 0;
    bool probed_past = false;
    std::optional<TextPlace> place;  ///< of a hierarchy
    std::string text;
  };
  /// All of them, by ascending id.
  std::vector<Item> Items() const;
  /// An entry of another dictionary, which the window number `window` holds here. False if there is
  /// one of that id.
  bool Restore(const Item& item, std::uint64_t window);
  /// After Restore: that each text is found, and each place stands below another one.
  bool Consistent() const;

  std::size_t size() const { return entries_.size(); }
  /// Bytes held, the hash table included.
  std::size_t bytes() const;
  /// Of them, those of the entries: without the table's free places.
  std::size_t content_bytes() const {
    return entries_.size() * kPlaceBytes + text_bytes_ + places_.size() * kLevelBytes;
  }
  /// What a new entry for `text` adds to content_bytes(), at most.
  static std::size_t EntryBytes(std::string_view text);
  /// And of a hierarchy.
  static constexpr std::size_t kLevelBytes = sizeof(std::pair<std::uint64_t, TextPlace>) + 1;

 private:
  struct Entry {
    std::string text;
    std::uint64_t last_window = 0;
    bool probed_past = false;
  };
  // A control byte beside each place of the table.
  static constexpr std::size_t kPlaceBytes = sizeof(std::pair<std::uint64_t, Entry>) + 1;
  // Above the 4.6 that a table has just after it grew (7/16 full) and lost half its entries, so
  // that a busy stream does not shrink and grow by turns.
  static constexpr std::size_t kSpareFactor = 8;

  static std::size_t HeapBytes(const std::string& text);

  absl::flat_hash_map<std::uint64_t, Entry> entries_;
  absl::flat_hash_map<std::uint64_t, TextPlace> places_;  // of a hierarchy: of every entry
  std::size_t text_bytes_ = 0;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_DICTIONARY_H_
