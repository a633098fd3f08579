// One summary of counts for each level of a hierarchy, all of the same values. For hierarchies that
// hierarchical_frequency.h does not serve: texts, whose ids are in no order of prefixes, and
// sliding windows, where what counts the values of a level is another structure.
//
// `Level` counts the prefixes of one level as if they were items. It is FrequencySummary, or has
// the same
//   AddWindow(std::span<const Key> sorted, more…)               for prefixes of addresses
//   AddItems(std::uint64_t window_count, std::span<const KeyWeight<Key>> items, more…)   for texts
//   Merge(const Level&), count(), bytes(), Serialize(), static Deserialize(std::string_view)
// of which only those are needed that are used; `more` is handed on as it is (a recorded time). Its
// guarantee is that of each level; leveled_view.h makes one answer of them.
//
// Level 0, everything, needs no Level: its count is n. So element l - 1 belongs to level l.
//
// Texts. An item's id is the caller's; TextLevels::Prefixes says what stands above a text, and each
// such prefix has an id of its own as if it were an item. The caller keeps, for each id that is an
// item of a window on its way, or that ForEachKey of some level's snapshot visits, and for each id
// above it: its text, and its TextPlace. Those above need not be looked for where Level is
// FrequencySummary: a prefix whose entry is dropped was heavier than the entries below it, which
// are dropped with it (its count and its count + delta are no less, its delta is no more than
// theirs, in each step of lossy counting). Items that no level keeps may be forgotten and come
// again under another id only if the id is a function of the text.
#ifndef TIDEMARK_SUMMARIES_LEVELED_SUMMARY_H_
#define TIDEMARK_SUMMARIES_LEVELED_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/hierarchy.h"
#include "summaries/key_weight.h"

namespace tidemark {

/// Thread: as that of Level.
template <class Key, class Level>
class LeveledSummary {
 public:
  /// Errors: throws std::invalid_argument if there are none, or they have taken in different
  /// numbers of values.
  explicit LeveledSummary(std::vector<Level> levels) : levels_(std::move(levels)) {
    if (levels_.empty()) throw std::invalid_argument("a hierarchy has no level below everything");
    for (const Level& level : levels_) {
      if (level.count() != levels_.front().count()) {
        throw std::invalid_argument("the levels of a hierarchy are of different values");
      }
    }
  }

  /// Levels below everything.
  std::size_t size() const { return levels_.size(); }
  /// Of level index + 1.
  const Level& operator[](std::size_t index) const { return levels_[index]; }
  std::uint64_t count() const { return levels_.front().count(); }
  std::size_t bytes() const {
    std::size_t sum = sizeof(*this);
    for (const Level& level : levels_) sum += level.bytes();
    return sum;
  }

  /// Takes in a window of keys whose prefixes are the hierarchy. `sorted`: ascending. REQUIRES:
  /// `prefixes` has a root, and size() levels below it.
  template <class... More>
  void AddWindow(const PrefixLevels<Key>& prefixes, std::span<const Key> sorted,
                 const More&... more) {
    ForEachLevel(prefixes, sorted, [&](int level, std::span<const Key> of_level) {
      levels_[static_cast<std::size_t>(level - 1)].AddWindow(of_level, more...);
    });
  }

  /// Takes in a window of which the items of each level are known, as TextItems gives them: of
  /// level l in element l - 1. `window_count`: the values of the window, with those that have no
  /// prefix on some level. REQUIRES: items.size() == size().
  template <class... More>
  void AddItems(std::uint64_t window_count, std::span<const std::vector<KeyWeight<Key>>> items,
                const More&... more) {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      levels_[i].AddItems(window_count, items[i], more...);
    }
  }

  /// Calls visit(Level&) for each level below everything, the coarsest first. REQUIRES: afterwards
  /// all have taken in the same values.
  template <class Visit>
  void ForEach(Visit visit) {
    for (Level& level : levels_) visit(level);
  }

  /// Errors: as Level's, and std::invalid_argument unless `other` has as many levels.
  void Merge(const LeveledSummary& other) {
    if (other.size() != size()) {
      throw std::invalid_argument("hierarchies of " + std::to_string(size()) + " and " +
                                  std::to_string(other.size()) + " levels cannot be merged");
    }
    auto merged = levels_;
    for (std::size_t i = 0; i < size(); ++i) merged[i].Merge(other.levels_[i]);
    levels_ = std::move(merged);
  }

  /// Little-endian:
  ///   0  8  frame: magic "TMLV", version 1, key bits, 0 (byte_io.h)
  ///   8  8  number of levels below everything
  ///         then for each, the coarsest first:
  ///         8  bytes of its serialized form
  ///            that form
  ///  -4  4  CRC-32C of all bytes before
  std::string Serialize() const {
    ByteWriter writer("TMLV", sizeof(Key));
    writer.Put(std::uint64_t{size()});
    for (const Level& level : levels_) {
      const std::string bytes = level.Serialize();
      writer.Put(std::uint64_t{bytes.size()});
      writer.PutBytes(bytes);
    }
    return writer.Finish();
  }
  /// Errors: throws std::invalid_argument, naming what is wrong and where, for any bytes that are
  /// not a whole, undamaged summary.
  static LeveledSummary Deserialize(std::string_view bytes) {
    ByteReader reader(bytes, "TMLV", sizeof(Key), "summary of levels");
    const auto size = reader.Get<std::uint64_t>();
    reader.NeedItems(size, sizeof(std::uint64_t));
    std::vector<Level> levels;
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto length = reader.Get<std::uint64_t>();
      reader.NeedItems(length, 1);
      levels.push_back(Level::Deserialize(reader.GetBytes(static_cast<std::size_t>(length))));
    }
    reader.ExpectEnd();
    return LeveledSummary(std::move(levels));
  }

 private:
  std::vector<Level> levels_;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_LEVELED_SUMMARY_H_
