// The step of a hierarchical frequency summary: takes a sorted window into the entries, drops those
// that are too light, and makes those that have become heavy. hierarchical_frequency.h defines
// entries and proves the rule; here is how it is found without looking at most of the window.
//
// The entries are walked in preorder with the part of the window that lies below each one: two
// searches an entry. What lies below an entry and below none of those right under it (its "holes")
// is its region; a dropped hole hands its count to the region. A new entry y in a region needs more
// than D - missed of mass that no entry below y takes, so that a region or a part of one which is
// lighter than that is done with one comparison, whatever the number of levels. Only a heavier one
// is looked into: level by level where the next level is one bit longer, by the runs that are heavy
// enough where it is more.
#ifndef TIDEMARK_SUMMARIES_PREFIX_SWEEP_H_
#define TIDEMARK_SUMMARIES_PREFIX_SWEEP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "summaries/hierarchy.h"
#include "summaries/prefix_entries.h"
#include "summaries/prefix_runs.h"
#include "summaries/window_mass.h"

namespace tidemark::internal {

template <class Key>
class PrefixSweep {
 public:
  using Entry = PrefixEntry<Key>;

  /// `before`, `after`: D before and after the window. Lifetime: as long as what is given.
  PrefixSweep(const PrefixLevels<Key>& levels, std::span<const Key> window, WindowMass mass,
              std::uint64_t before, std::uint64_t after)
      : levels_(levels), window_(window), mass_(mass), raise_(after - before), after_(after) {}

  /// `entries` in preorder. Returns those of after the window, in preorder.
  std::vector<Entry> Run(std::vector<Entry> entries, PrefixRoot& root) {
    entries_ = std::move(entries);
    // Borders are taken in ascending order, so that each is searched from the one before.
    std::size_t place = 0;
    const auto end_turn = [&] {
      place = FirstAbove(window_, place, window_.size(), turns_.back().last);
      EndTurn(place);
    };
    turns_.push_back({0, 0, 0, 0, 0});
    for (std::size_t at = 0; at < entries_.size(); ++at) {
      const Key key = entries_[at].key;
      while (turns_.size() > 1 && turns_.back().last < key) end_turn();
      place = FirstNotBelow(window_, place, window_.size(), key);
      turns_.push_back({at, levels_.Last(entries_[at].level, key), place, holes_.size(), 0});
    }
    while (turns_.size() > 1) end_turn();
    const Flow flow = Settle(levels_.has_root() ? 0 : -1, {0, window_.size(), 0, holes_.size()},
                             root.missed, turns_.front().dropped_most);
    root.count += flow.up;
    root.missed = std::max(root.missed, flow.most);
    return Join();
  }

 private:
  /// What a prefix hands to what stands above it.
  struct Flow {
    /// Mass that nothing below it has taken.
    std::uint64_t up = 0;
    /// A bound of what is missed of each prefix right below it that is no entry.
    std::uint64_t most = 0;
  };
  /// An entry right under another one, after its own turn.
  struct Hole {
    Key key;
    int level;
    std::size_t begin, end;  ///< its part of the window
    std::uint64_t up;        ///< its count, if it was dropped
    std::uint64_t most;      ///< count + delta, if it was dropped
    /// Of all holes so far, the sum of (up - the mass of its part of the window), mod 2^64.
    std::uint64_t net;
  };
  /// An entry whose part of the window has begun. The first one is the root's.
  struct Turn {
    std::size_t entry;
    Key last;
    std::size_t begin;
    std::size_t first_hole;
    std::uint64_t dropped_most;  // of its holes
  };
  /// A part of the window and of the holes.
  struct Part {
    std::size_t begin, end;
    std::size_t first_hole, last_hole;
  };

  std::uint64_t NetBefore(std::size_t hole) const { return hole == 0 ? 0 : holes_[hole - 1].net; }
  /// The mass of a part that none of its holes has taken.
  std::uint64_t Own(const Part& part) const {
    return mass_.Of(part.begin, part.end) + NetBefore(part.last_hole) - NetBefore(part.first_hole);
  }

  /// Ends the turn of the entry that began last, whose part of the window ends at `end`: it becomes
  /// a hole of what stands above it.
  void EndTurn(std::size_t end) {
    const Turn turn = turns_.back();
    turns_.pop_back();
    Entry& entry = entries_[turn.entry];
    const Flow flow = Settle(entry.level, {turn.begin, end, turn.first_hole, holes_.size()},
                             entry.missed, turn.dropped_most);
    holes_.resize(turn.first_hole);
    entry.count += flow.up;
    entry.missed = std::max(entry.missed, flow.most);
    Flow up;
    if (entry.count + entry.delta <= after_) {
      up = {entry.count, entry.count + entry.delta};
      entry.count = 0;  // dropped
    }
    const std::uint64_t net = NetBefore(holes_.size()) - mass_.Of(turn.begin, end) + up.up;
    holes_.push_back({entry.key, entry.level, turn.begin, end, up.up, up.most, net});
    turns_.back().dropped_most = std::max(turns_.back().dropped_most, up.most);
  }

  /// Makes the new entries in the region of an entry of `level` (or of the root). `dropped_most`:
  /// the largest `most` of its holes.
  Flow Settle(int level, const Part& part, std::uint64_t missed, std::uint64_t dropped_most) {
    const std::uint64_t own = Own(part);
    if (own == 0) return {};
    if (level + 1 == levels_.size()) return {own, 0};
    if (own + missed > after_) return Explore(level, part, missed);
    return {own, std::max(dropped_most, own + missed)};
  }

  /// Looks for new entries below a prefix of `level`, which need not be an entry itself.
  /// REQUIRES: it is not of the last level.
  Flow Explore(int level, const Part& part, std::uint64_t missed) {
    const int next = level + 1;
    const int length = levels_.length(next);
    const int step = length - (level < 0 ? 0 : levels_.length(level));
    Flow flow;
    if (step > 1) {
      ExploreRuns(next, part, missed, flow);
      return flow;
    }
    const Key bit = static_cast<Key>(Key{1} << (PrefixLevels<Key>::kKeyBits - length));
    const Key middle = (level < 0 ? Key{0} : levels_.Prefix(level, Least(part))) | bit;
    const std::size_t split = FirstNotBelow(window_, part.begin, part.end, middle);
    const std::size_t hole = FirstHoleFrom(middle, part);
    Child(next, {part.begin, split, part.first_hole, hole}, missed, flow);
    Child(next, {split, part.end, hole, part.last_hole}, missed, flow);
    return flow;
  }

  /// The same where the next level is several bits longer.
  void ExploreRuns(int next, const Part& part, std::uint64_t missed, Flow& flow) {
    std::size_t from = part.begin;
    for (std::size_t hole = part.first_hole; hole < part.last_hole;) {
      if (holes_[hole].level == next) {
        ExploreGap(next, from, holes_[hole].begin, missed, flow);
        from = holes_[hole].end;
        TakeHole(hole++, flow);
        continue;
      }
      const Key prefix = levels_.Prefix(next, holes_[hole].key), last = levels_.Last(next, prefix);
      std::size_t last_hole = hole + 1;
      while (last_hole < part.last_hole && holes_[last_hole].key <= last) ++last_hole;
      const std::size_t begin = FirstNotBelow(window_, from, part.end, prefix);
      ExploreGap(next, from, begin, missed, flow);
      from = FirstAbove(window_, begin, part.end, last);
      Child(next, {begin, from, hole, last_hole}, missed, flow);
      hole = last_hole;
    }
    ExploreGap(next, from, part.end, missed, flow);
  }

  /// The same where the window alone has anything.
  void ExploreGap(int next, std::size_t begin, std::size_t end, std::uint64_t missed, Flow& flow) {
    std::uint64_t light = mass_.Of(begin, end);
    if (light == 0) return;
    if (light > raise_) {
      ForEachHeavyRun(window_, begin, end, levels_.mask(next), raise_ + 1, mass_,
                      [&](std::size_t run_begin, std::size_t run_end) {
                        light -= mass_.Of(run_begin, run_end);
                        Child(next, {run_begin, run_end, 0, 0}, missed, flow);
                      });
    }
    flow.up += light;
    if (light > 0) flow.most = std::max(flow.most, missed + std::min(light, raise_));
  }

  void TakeHole(std::size_t hole, Flow& flow) const {
    flow.up += holes_[hole].up;
    flow.most = std::max(flow.most, holes_[hole].most);
  }

  /// The turn of a prefix of `level` that is no entry, or of a hole.
  void Child(int level, const Part& part, std::uint64_t missed, Flow& flow) {
    if (part.last_hole - part.first_hole == 1 && holes_[part.first_hole].level == level) {
      TakeHole(part.first_hole, flow);
      return;
    }
    const std::uint64_t own = Own(part);
    if (own == 0) return;
    std::uint64_t left = own;
    if (own + missed > after_) {
      // Down to where it branches all prefixes have the same mass.
      const int fork = Fork(part);
      const Flow below = fork + 1 == levels_.size() ? Flow{own, 0} : Explore(fork, part, missed);
      left = below.up;
      if (left + missed > after_) {
        created_.push_back(
            {levels_.Prefix(fork, Least(part)), fork, left, missed, std::max(missed, below.most)});
        return;
      }
    }
    flow.up += left;
    if (left > 0) flow.most = std::max(flow.most, left + missed);
  }

  /// The smallest key that a part has anything to do with. REQUIRES: it has.
  Key Least(const Part& part) const {
    if (part.first_hole == part.last_hole) return window_[part.begin];
    const Key hole = holes_[part.first_hole].key;
    return part.begin == part.end ? hole : std::min(hole, window_[part.begin]);
  }
  /// The finest level on which one prefix has all of a part, and which is above its holes.
  int Fork(const Part& part) const {
    Key greatest = 0;
    int limit = levels_.size() - 1;
    if (part.begin < part.end) greatest = window_[part.end - 1];
    if (part.first_hole < part.last_hole) {
      const Hole& hole = holes_[part.last_hole - 1];
      greatest = std::max(greatest, levels_.Last(hole.level, hole.key));
      limit = hole.level - 1;
    }
    return std::min(limit, levels_.FinestWithin(CommonBits(Least(part), greatest)));
  }
  /// The first hole of a part whose key is not below `key`.
  std::size_t FirstHoleFrom(Key key, const Part& part) const {
    const auto first = holes_.begin() + static_cast<std::ptrdiff_t>(part.first_hole);
    const auto last = holes_.begin() + static_cast<std::ptrdiff_t>(part.last_hole);
    const auto at =
        std::partition_point(first, last, [key](const Hole& hole) { return hole.key < key; });
    return static_cast<std::size_t>(at - holes_.begin());
  }

  /// The entries that are left and the new ones, in preorder.
  std::vector<Entry> Join() {
    const auto before = [](const Entry& a, const Entry& b) {
      return std::tie(a.key, a.level) < std::tie(b.key, b.level);
    };
    std::erase_if(entries_, [](const Entry& entry) { return entry.count == 0; });
    std::sort(created_.begin(), created_.end(), before);
    const auto middle = static_cast<std::ptrdiff_t>(entries_.size());
    entries_.insert(entries_.end(), created_.begin(), created_.end());
    std::inplace_merge(entries_.begin(), entries_.begin() + middle, entries_.end(), before);
    return std::move(entries_);
  }

  const PrefixLevels<Key>& levels_;
  std::span<const Key> window_;
  WindowMass mass_;
  std::uint64_t raise_, after_;
  std::vector<Entry> entries_;
  std::vector<Turn> turns_;
  std::vector<Entry> created_;
  std::vector<Hole> holes_;
};

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_PREFIX_SWEEP_H_
