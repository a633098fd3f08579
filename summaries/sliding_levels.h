// The counts of every prefix of texts (a.b.c, paths) over the last w values or the last T of time,
// for every width up to the widest configured one: sliding frequencies for each level of the
// hierarchy, all over the same blocks. leveled_view.h makes hierarchical heavy hitters of them.
//
// Why one for each level: texts are counted under ids whose order says nothing about prefixes, so
// that the tree of sliding_hierarchy.h, which is one sweep of sorted keys, is not to be had.
//
// Guarantee: for every width, at every moment and for every order of input: of the n values in the
// window, the number below a prefix of any level, seen or not, is known within epsilon * n. So
// LeveledHeavyHitters(support) misses no prefix with a discounted count of support * n or more, and
// each that it reports has a true count of at least (support - epsilon) * n. By time as in
// sliding_frequencies.h. Exact while epsilon * w < 1.
// Not guaranteed: a bound relative to a prefix's own count.
//
// Proof. On a level, the values of a block are dealt out to the prefixes of that level, each to one
// or, if it has fewer components, to none. That is what SlidingFrequencies::AddItems takes in, and
// its guarantee is that of each prefix, whatever the other levels do: levels may differ in the
// blocks that cover a window, as small neighbours are put together by the number of their entries
// and then grow coarser together, and so in what was dropped and in how many of the values as they
// came stand in for blocks. They do not differ in the range, nor in n. From bounds on every level
// to the answer: leveled_view.h. A prefix whose parent no view lists is lighter than the support,
// as the parent is.
//
// Texts. The caller keeps the text and the TextPlace of every id that ForEachKey visits here, of
// every value that the record keeps as it came, and of all above both: then every id that a cover
// holds can be named, and the recent values can be put under their prefixes. All others may be
// forgotten: what a level no longer lists is counted in what it `dropped`, which every upper bound
// includes; if the text comes again it is counted anew.
// What stands above an entry most often has one, too; as levels may be coarser than the one below
// them, not always.
//
// Memory: for H levels H times that of sliding_frequencies.h: 24 bytes an entry, at most 8 /
// epsilon entries in a new block of each of the H levels and B / (D - D_l) in an older one of B
// values that drops D. And the dictionary of the caller: with E entries and R + B_0 values kept as
// they came (sliding_rule.h; R is at least 1 / epsilon blocks) at most H * (E + R + B_0) texts,
// each once.
//
// Cost: AddItems for each level, and TextItems once for a block (hierarchy.h).
//
// Deterministic bytes: a function of the items of the blocks, in order, and of what had expired
// with each.
#ifndef TIDEMARK_SUMMARIES_SLIDING_LEVELS_H_
#define TIDEMARK_SUMMARIES_SLIDING_LEVELS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "summaries/frequency_view.h"
#include "summaries/key_weight.h"
#include "summaries/leveled_summary.h"
#include "summaries/sliding_frequencies.h"

namespace tidemark {

/// What a sliding answer is made from; any thread may read it, as long as it likes.
struct SlidingLevelsCover {
  using Items = std::vector<KeyWeight<std::uint64_t>>;

  /// Of level l in element l - 1; all of the same range. Their recent values are ids of whole
  /// texts, of any level.
  std::vector<SlidingFrequencyCover<std::uint64_t>> levels;

  const SlidingRange& range() const { return levels.front().range; }

  /// One view for each level, all of the same n; nullopt if `items_of` gave none.
  /// `items_of(sorted)`: what ascending ids of whole texts come to on each level, as TextItems
  /// gives it, in an optional; called for the recent values, once or, where levels differ, more
  /// often. `later_items`: the same of `later_values` of the values that came after the blocks;
  /// outlive the views. REQUIRES: all of these have an element for each level.
  /// Cost: sorts what the cover holds: do it without the writer's lock.
  template <class ItemsOf>
  std::optional<std::vector<FrequencyView<std::uint64_t>>> Views(ItemsOf items_of,
                                                                 std::span<const Items> later_items,
                                                                 std::uint64_t later_values) const {
    // All begin where the window does: as many are the same.
    std::map<std::uint64_t, std::vector<Items>> recent_items;
    std::vector<FrequencyView<std::uint64_t>> views;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const RecentValues<std::uint64_t>& recent = levels[i].recent;
      const auto [at, is_new] = recent_items.try_emplace(recent.count());
      if (is_new) {
        std::optional<std::vector<Items>> items = items_of(recent.Sorted());
        if (!items) return std::nullopt;
        at->second = *std::move(items);
      }
      views.push_back(levels[i].View(std::span<const KeyWeight<std::uint64_t>>(at->second[i]),
                                     later_items[i], later_values));
    }
    return views;
  }
};

/// Thread: one writer. Cover() must not run at the same time as a writing method (it is short: take
/// it under the writer's lock).
class SlidingLevels {
 public:
  /// `levels`: below everything. Errors: throws std::invalid_argument for none.
  SlidingLevels(const std::shared_ptr<const SlidingRule>& rule, std::size_t levels);

  /// Takes in the next block, of rule().block_size() values. `items`: what it comes to on each
  /// level, as TextItems gives it. `expired`: of the record, after it took in the same block.
  /// Errors: throws std::invalid_argument unless there are items of every level, ascending and no
  /// more than the block's values. Nothing has then changed.
  void AddBlock(std::span<const SlidingLevelsCover::Items> items, std::uint64_t expired);
  /// Frees what expired without a new block.
  void Expire(std::uint64_t expired);

  /// Levels below everything.
  std::size_t size() const { return levels_.size(); }
  const SlidingRule& rule() const { return levels_[0].rule(); }
  /// Values added.
  std::uint64_t end() const { return levels_.count(); }

  /// What answers for `range`, which `record` gave. `record`: of the ids of whole texts.
  /// Errors: throws std::logic_error unless record and summary took in the same blocks.
  SlidingLevelsCover Cover(const SlidingRange& range,
                           const SlidingRecord<std::uint64_t>& record) const;

  /// Calls visit(id) for each id with an entry on some level, for some several times.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    for (std::size_t i = 0; i < levels_.size(); ++i) levels_[i].ForEachKey(visit);
  }
  std::size_t entries() const;
  /// Memory held, without the record, the texts and what answers alone keep alive.
  std::size_t bytes() const { return levels_.bytes(); }

  /// As that of leveled_summary.h, with the form of sliding_frequencies.h for each level.
  std::string Serialize() const { return levels_.Serialize(); }
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged summary.
  static SlidingLevels Deserialize(std::string_view bytes);

 private:
  using Levels = LeveledSummary<std::uint64_t, SlidingFrequencies<std::uint64_t>>;
  explicit SlidingLevels(Levels levels) : levels_(std::move(levels)) {}

  Levels levels_;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_LEVELS_H_
