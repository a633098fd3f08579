// Hierarchies of keys: which prefixes stand above a key, level by level, and the same for texts.
//
// Level 0 is the coarsest. A prefix of a fixed-width key (an address) is written as a key whose
// bits behind the prefix are 0; the keys below it are an interval, and a prefix of one level lies
// below exactly one prefix of each coarser level. So in ascending keys every prefix of every level
// is one contiguous run: one sort serves all levels.
//
// Texts ("a.b.c", "/usr/lib") are counted under ids, whose order says nothing about prefixes; there
// the caller says which id stands above which (TextItems below).
#ifndef TIDEMARK_SUMMARIES_HIERARCHY_H_
#define TIDEMARK_SUMMARIES_HIERARCHY_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/key_weight.h"

namespace tidemark {

/// An IPv6 address as a number, its first byte the highest.
using Key128 = Uint128;

/// The number of leading bits that two keys share.
template <class Key>
constexpr int CommonBits(Key a, Key b) {
  const Key differing = a ^ b;
  if constexpr (sizeof(Key) <= 8) {
    return std::countl_zero(differing);
  } else {
    const auto high = static_cast<std::uint64_t>(differing >> 64);
    return high != 0 ? std::countl_zero(high)
                     : 64 + std::countl_zero(static_cast<std::uint64_t>(differing));
  }
}

/// The levels of a hierarchy of keys of a fixed width, by the lengths of their prefixes in bits.
/// Thread: immutable.
template <class Key>
class PrefixLevels {
 public:
  static constexpr int kKeyBits = static_cast<int>(8 * sizeof(Key));

  /// `lengths`: ascending, each once, from 0 (everything is one prefix) to kKeyBits (whole keys).
  /// Errors: throws std::invalid_argument, naming what is wrong, for any others and for none.
  explicit PrefixLevels(std::vector<int> lengths);
  /// 0, `bits`, 2 * `bits`, … and kKeyBits. Errors: as above, unless 1 <= bits <= kKeyBits.
  static PrefixLevels Every(int bits);

  int size() const { return static_cast<int>(lengths_.size()); }
  const std::vector<int>& lengths() const { return lengths_; }
  int length(int level) const { return lengths_[static_cast<std::size_t>(level)]; }
  /// Level 0 is one prefix that everything lies below.
  bool has_root() const { return lengths_.front() == 0; }

  Key mask(int level) const { return masks_[static_cast<std::size_t>(level)]; }
  /// What stands above `key` on a level.
  Key Prefix(int level, Key key) const { return key & mask(level); }
  /// The largest key below a prefix.
  Key Last(int level, Key prefix) const { return prefix | static_cast<Key>(~mask(level)); }

  /// The finest level whose prefixes are no longer than `bits`; -1 if there is none.
  int FinestWithin(int bits) const {
    return static_cast<int>(std::upper_bound(lengths_.begin(), lengths_.end(), bits) -
                            lengths_.begin()) -
           1;
  }

  friend bool operator==(const PrefixLevels& a, const PrefixLevels& b) {
    return a.lengths_ == b.lengths_;
  }

 private:
  std::vector<int> lengths_;
  std::vector<Key> masks_;
};

extern template class PrefixLevels<std::uint32_t>;
extern template class PrefixLevels<std::uint64_t>;
extern template class PrefixLevels<Key128>;

/// The prefixes of a window on every level below everything: calls visit(level, prefixes), the
/// finest level first; element i of the ascending `prefixes` stands above sorted[i] of the
/// ascending `sorted`. Lifetime of prefixes: until visit returns.
template <class Key, class Visit>
void ForEachLevel(const PrefixLevels<Key>& levels, std::span<const Key> sorted, Visit visit) {
  std::vector<Key> prefixes(sorted.begin(), sorted.end());
  for (int level = levels.size() - 1; level >= 0 && levels.length(level) > 0; --level) {
    // A prefix of a prefix is one of the key.
    const Key mask = levels.mask(level);
    for (Key& prefix : prefixes) prefix &= mask;
    visit(level, std::span<const Key>(prefixes));
  }
}

/// Where the component that stands for the most is in a text: first in paths and metric names
/// ("/usr/lib", "http.requests.get"), last in domain names ("www.example.com").
enum class TextRoot { kFirst, kLast };

/// The levels of a hierarchy of texts whose components a separator divides. Level 0 is everything,
/// written as the empty text; level l holds the prefixes of l components (with TextRoot::kLast:
/// suffixes), up to a greatest depth. A text of fewer components has no prefix on the levels beyond
/// its own: it counts there for nothing.
///
/// Texts are taken as they are: a separator at the outer end does not divide ("/usr" has one
/// component, under everything alone), any other does, so that "a//b" lies under "a/" under "a".
/// Thread: immutable.
class TextLevels {
 public:
  static constexpr int kMaxDepth = 64;

  /// Errors: throws std::invalid_argument unless 1 <= depth <= kMaxDepth.
  TextLevels(char separator, int depth, TextRoot root = TextRoot::kFirst);

  int size() const { return depth_ + 1; }
  char separator() const { return separator_; }
  TextRoot root() const { return root_; }

  /// What stands above `text`: element l - 1 is its prefix of level l, as far as there is one. The
  /// last one is the text itself unless it has more than `depth` components. Lifetime: parts of
  /// `text`.
  std::vector<std::string_view> Prefixes(std::string_view text) const;

 private:
  char separator_;
  int depth_;
  TextRoot root_;
};

/// Where a text stands in its hierarchy, by ids.
struct TextPlace {
  int level = 0;             ///< components, but at most depth + 1
  std::uint64_t parent = 0;  ///< id of what stands above it, one level up; of no use at level <= 1
};

/// What the items of a window of texts come to on each level: element l - 1 of the result are the
/// ascending items (key_weight.h) of level l, l = 1 … depth, each with the number of values that
/// lie below it.
///
/// `items`: the ascending items of the window, by id. `place_of(id)`: a callable that gives the
/// TextPlace of every id that is an item or a parent; what it says of an id may never change.
/// Cost: a call for each distinct id of each level, and a sort of those.
template <class PlaceOf>
std::vector<std::vector<KeyWeight<std::uint64_t>>> TextItems(
    std::span<const KeyWeight<std::uint64_t>> items, int depth, PlaceOf place_of);

namespace internal {

/// Sorts by key and adds the weights of equal keys.
void AddUp(std::vector<KeyWeight<std::uint64_t>>& items);

}  // namespace internal

template <class PlaceOf>
std::vector<std::vector<KeyWeight<std::uint64_t>>> TextItems(
    std::span<const KeyWeight<std::uint64_t>> items, int depth, PlaceOf place_of) {
  using Items = std::vector<KeyWeight<std::uint64_t>>;
  const auto size = static_cast<std::size_t>(depth);
  std::vector<Items> levels(size), own(size), from_below(size);
  std::vector<std::vector<std::uint64_t>> parents(size);  // of those in own
  for (const auto& item : items) {
    const TextPlace place = place_of(item.key);
    if (place.level <= 0) continue;  // the empty text: below everything alone
    if (place.level > depth) {
      from_below.back().push_back({place.parent, item.weight});
    } else {
      const auto at = static_cast<std::size_t>(place.level - 1);
      own[at].push_back(item);
      parents[at].push_back(place.parent);
    }
  }
  for (std::size_t level = size; level-- > 0;) {
    internal::AddUp(from_below[level]);
    const auto add = [&](const KeyWeight<std::uint64_t>& item, std::uint64_t parent) {
      levels[level].push_back(item);
      if (level > 0) from_below[level - 1].push_back({parent, item.weight});
    };
    const Items& inner = from_below[level];
    std::size_t next = 0;
    const auto add_inner = [&] {
      add(inner[next], level > 0 ? place_of(inner[next].key).parent : 0);
      ++next;
    };
    for (std::size_t i = 0; i < own[level].size(); ++i) {
      KeyWeight<std::uint64_t> item = own[level][i];
      while (next < inner.size() && inner[next].key < item.key) add_inner();
      if (next < inner.size() && inner[next].key == item.key) item.weight += inner[next++].weight;
      add(item, parents[level][i]);
    }
    while (next < inner.size()) add_inner();
  }
  return levels;
}

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_HIERARCHY_H_
