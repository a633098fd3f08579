// The truth about prefixes, the rule of hierarchical_frequency.h without any short cut, and what
// every answer must keep to.
#ifndef TIDEMARK_TESTS_SUMMARIES_HIERARCHY_REFERENCE_H_
#define TIDEMARK_TESTS_SUMMARIES_HIERARCHY_REFERENCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "summaries/discounted_counts.h"
#include "summaries/hierarchy.h"
#include "summaries/key_weight.h"
#include "summaries/prefix_entries.h"

namespace tidemark::testing {

/// In hexadecimal.
template <class Key>
std::string Hex(Key key) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[static_cast<unsigned>(key & 15)]);
    key = static_cast<Key>(key >> 4);
  } while (key != 0);
  return digits;
}

/// The count of every prefix that has one, level by level.
template <class Key>
struct ExactHierarchy {
  explicit ExactHierarchy(const PrefixLevels<Key>& its_levels)
      : levels(its_levels), counts(static_cast<std::size_t>(its_levels.size())) {}

  /// `finest`: the value has a prefix on this level and all coarser ones.
  void Add(Key key, std::uint64_t weight, int finest = 1000) {
    if (weight == 0) return;
    n += weight;
    for (int level = 0; level < levels.size() && level <= finest; ++level) {
      counts[static_cast<std::size_t>(level)][levels.Prefix(level, key)] += weight;
    }
  }
  std::uint64_t Count(int level, Key prefix) const {
    const auto& of_level = counts[static_cast<std::size_t>(level)];
    const auto at = of_level.find(prefix);
    return at == of_level.end() ? 0 : at->second;
  }
  /// The discounted count of every prefix with respect to `reported`.
  std::vector<std::map<Key, std::uint64_t>> Discounted(
      const std::set<std::pair<int, Key>>& reported) const {
    return Discount([&](int level, Key prefix, std::uint64_t) {
      return reported.contains({level, prefix});
    });
  }
  /// The hierarchical heavy hitters.
  std::set<std::pair<int, Key>> HeavyHitters(std::uint64_t threshold) const {
    std::set<std::pair<int, Key>> all;
    Discount([&](int level, Key prefix, std::uint64_t left) {
      if (left >= threshold) all.insert({level, prefix});
      return left >= threshold;
    });
    return all;
  }

  PrefixLevels<Key> levels;
  std::uint64_t n = 0;
  std::vector<std::map<Key, std::uint64_t>> counts;

 private:
  /// From the finest level on: takes(level, prefix, discounted count) says whether a prefix takes
  /// its values from what stands above it.
  template <class Takes>
  std::vector<std::map<Key, std::uint64_t>> Discount(Takes takes) const {
    auto left = counts;
    for (int level = levels.size() - 1; level >= 0; --level) {
      const auto at = static_cast<std::size_t>(level);
      for (const auto& [prefix, count] : left[at]) {
        const bool taken = takes(level, prefix, count);
        if (level == 0) continue;
        // Of what stands above, all that is below this prefix is replaced by what is not taken.
        std::uint64_t& above = left[at - 1][levels.Prefix(level - 1, prefix)];
        above = above - counts[at].at(prefix) + (taken ? 0 : count);
      }
    }
    return left;
  }
};

/// What is wrong with an answer, or nothing. `width`: the largest one that a count may have.
template <class Key>
std::string FaultOfAnswer(const std::vector<HierarchyItem<Key>>& items,
                          const ExactHierarchy<Key>& truth, std::uint64_t threshold,
                          std::uint64_t width) {
  std::ostringstream fault;
  std::set<std::pair<int, Key>> reported;
  for (const auto& item : items) {
    if (!reported.insert({item.level, item.prefix}).second) fault << "reported twice; ";
  }
  const auto discounted = truth.Discounted(reported);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const HierarchyItem<Key>& item = items[i];
    std::ostringstream name;
    name << "level " << item.level << " prefix " << Hex(item.prefix) << ' ';
    const std::uint64_t count = truth.Count(item.level, item.prefix);
    const auto& of_level = discounted[static_cast<std::size_t>(item.level)];
    const auto at = of_level.find(item.prefix);
    const std::uint64_t left = at == of_level.end() ? 0 : at->second;
    sum += left;
    if (count < item.count_low || count > item.count_high) {
      fault << name.str() << "has " << count << ", said " << item.count_low << " to "
            << item.count_high << "; ";
    }
    if (item.count_high - item.count_low > width) fault << name.str() << "is too wide; ";
    if (left < item.discounted_low || left > item.discounted_high) {
      fault << name.str() << "has discounted " << left << ", said " << item.discounted_low << " to "
            << item.discounted_high << "; ";
    }
    if (item.discounted_high < threshold) fault << name.str() << "is below the threshold; ";
    if (count + width < threshold) fault << name.str() << "is too light; ";
    if (i > 0 && items[i - 1].discounted_high < item.discounted_high) fault << "out of order; ";
  }
  for (int level = 0; level < truth.levels.size(); ++level) {
    for (const auto& [prefix, left] : discounted[static_cast<std::size_t>(level)]) {
      if (left >= threshold && !reported.contains({level, prefix})) {
        fault << "level " << level << " prefix " << Hex(prefix) << " is not covered: " << left
              << " of " << threshold << "; ";
      }
    }
  }
  if (threshold > 2 * width && items.size() * (threshold - 2 * width) > truth.n) {
    fault << items.size() << " reported, more than proven; ";
  }
  if (sum > truth.n) fault << "more discounted than there is; ";
  const auto exact = truth.HeavyHitters(threshold);
  if (width == 0 && exact != reported) fault << "not the hierarchical heavy hitters; ";
  for (const auto& heavy : exact) {
    if (reported.contains(heavy)) continue;
    const bool taken = std::any_of(reported.begin(), reported.end(), [&](const auto& other) {
      return other.first > heavy.first &&
             truth.levels.Prefix(heavy.first, other.second) == heavy.second &&
             !exact.contains(other);
    });
    if (!taken) {
      fault << "level " << heavy.first << " prefix " << Hex(heavy.second) << " is missing; ";
    }
  }
  return fault.str();
}

/// One step of the rule, prefix by prefix. Where hierarchical_frequency.h leaves a choice
/// (`missed`), this takes what prefix_sweep.h takes.
template <class Key>
class NaiveHierarchy {
 public:
  explicit NaiveHierarchy(const PrefixLevels<Key>& levels) : levels_(levels) {}

  void Add(const std::vector<KeyWeight<Key>>& window, std::uint64_t before, std::uint64_t after) {
    raise_ = after - before;
    after_ = after;
    const auto size = static_cast<std::size_t>(levels_.size());
    nodes_.assign(size, {});
    std::uint64_t total = 0;
    for (const auto& value : window) {
      total += value.weight;
      for (int level = 0; level < levels_.size() && value.weight > 0; ++level) {
        Node& node = nodes_[static_cast<std::size_t>(level)][levels_.Prefix(level, value.key)];
        node.window += value.weight;
      }
    }
    for (const auto& [place, entry] : old_) {
      for (int level = 0; level <= entry.level; ++level) {
        Node& node = nodes_[static_cast<std::size_t>(level)][levels_.Prefix(level, entry.key)];
        (level == entry.level ? node.is_entry : node.has_entries) = true;
      }
    }
    const int top = levels_.has_root() ? 1 : 0;
    next_.clear();
    for (int level = levels_.size() - 1; level >= top; --level) {
      for (auto& [key, node] : nodes_[static_cast<std::size_t>(level)]) Turn(level, key, node);
    }
    Node whole;
    whole.window = total;
    Gather(top - 1, Key{0}, root.missed, whole);
    root.count += whole.in;
    root.missed = std::max(root.missed, MostOf(top - 1, whole, root.missed, true));
    old_ = next_;
  }

  std::vector<PrefixEntry<Key>> entries() const {
    std::vector<PrefixEntry<Key>> all;
    for (const auto& [place, entry] : old_) all.push_back(entry);
    return all;
  }

  PrefixRoot root;

 private:
  struct Node {
    std::uint64_t window = 0;
    bool is_entry = false, has_entries = false;
    std::uint64_t up = 0, v = 0;
    std::uint64_t in = 0;            // handed up from below
    std::uint64_t own = 0;           // of the window, and of dropped entries right under it
    std::uint64_t dropped_most = 0;  // count + delta of those
    std::uint64_t exact_most = 0;    // v of the prefixes right below
  };
  using Place = std::pair<Key, int>;  // in preorder

  /// Sums up what is right below a prefix. What is lighter than the raise of D is not looked at one
  /// by one where a level is several bits longer than the one above.
  void Gather(int level, Key key, std::uint64_t missed, Node& node) {
    if (level + 1 == levels_.size()) {
      node.in = node.own = node.window;
      return;
    }
    const bool bit = levels_.length(level + 1) - (level < 0 ? 0 : levels_.length(level)) == 1;
    std::uint64_t light = 0;
    for (const auto& [child_key, child] : nodes_[static_cast<std::size_t>(level) + 1]) {
      if (level >= 0 && levels_.Prefix(level, child_key) != key) continue;
      node.in += child.up;
      node.own += child.is_entry ? child.up : child.own;
      node.dropped_most =
          std::max(node.dropped_most, child.is_entry ? child.v : child.dropped_most);
      if (child.is_entry || child.has_entries) light = 0;  // what lies between those is one gap
      if (!bit && !child.is_entry && !child.has_entries && child.window <= raise_) {
        light += child.window;
        node.exact_most = std::max(node.exact_most, missed + std::min(light, raise_));
      } else if (child.up > 0) {
        node.exact_most = std::max(node.exact_most, child.v);
      }
    }
  }
  std::uint64_t MostOf(int level, const Node& node, std::uint64_t missed, bool is_entry) const {
    if (level + 1 == levels_.size() || node.own == 0) return 0;
    if (is_entry && node.own + missed <= after_) {
      return std::max(node.dropped_most, node.own + missed);
    }
    return node.exact_most;
  }
  std::uint64_t MissedAbove(int level, Key key) const {
    for (int above = level - 1; above >= 0; --above) {
      const auto at = old_.find({levels_.Prefix(above, key), above});
      if (at != old_.end()) return at->second.missed;
    }
    return root.missed;
  }
  void Turn(int level, Key key, Node& node) {
    if (node.is_entry) {
      PrefixEntry<Key> entry = old_.at({key, level});
      Gather(level, key, entry.missed, node);
      entry.count += node.in;
      if (entry.count + entry.delta <= after_) {
        node.up = entry.count;
        node.v = entry.count + entry.delta;
      } else {
        entry.missed = std::max(entry.missed, MostOf(level, node, entry.missed, true));
        next_[{key, level}] = entry;
      }
      return;
    }
    const std::uint64_t missed = MissedAbove(level, key);
    Gather(level, key, missed, node);
    if (node.in + missed > after_) {
      next_[{key, level}] = {key, level, node.in, missed,
                             std::max(missed, MostOf(level, node, missed, false))};
    } else {
      node.up = node.in;
      node.v = node.in + missed;
    }
  }

  PrefixLevels<Key> levels_;
  std::uint64_t raise_ = 0, after_ = 0;
  std::map<Place, PrefixEntry<Key>> old_, next_;
  std::vector<std::map<Key, Node>> nodes_;
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_HIERARCHY_REFERENCE_H_
