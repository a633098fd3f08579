// Two trees of prefixes with their entries put together: what hierarchical_frequency.h says of
// merging, for whole histories and for blocks of sliding windows.
#ifndef TIDEMARK_SUMMARIES_PREFIX_MERGE_H_
#define TIDEMARK_SUMMARIES_PREFIX_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "summaries/hierarchy.h"
#include "summaries/prefix_entries.h"

namespace tidemark::internal {

/// Entries in preorder, and what stands above them.
template <class Key>
struct PrefixTree {
  std::vector<PrefixEntry<Key>> entries;
  PrefixRoot root;
};

/// What one side of a merge says of prefixes that are asked in preorder.
template <class Key>
class MergeSide {
 public:
  /// Lifetime: as long as what is given.
  MergeSide(const PrefixTree<Key>& tree, const PrefixLevels<Key>& levels)
      : entries_(tree.entries), root_(tree.root), levels_(levels) {}

  bool done() const { return next_ == entries_.size(); }
  const PrefixEntry<Key>& next() const { return entries_[next_]; }
  bool Comes(const PrefixEntry<Key>& first) const {
    return !done() && next().key == first.key && next().level == first.level;
  }

  /// Adds what this side says of the prefix of `sum`. REQUIRES: no entry before it is left.
  void AddTo(PrefixEntry<Key>& sum) {
    while (!above_.empty() && levels_.Last(above_.back()->level, above_.back()->key) < sum.key) {
      above_.pop_back();
    }
    if (Comes(sum)) {
      above_.push_back(&next());
      sum.count += next().count;
      sum.delta += next().delta;
      sum.missed += next().missed;
      ++next_;
    } else {
      const std::uint64_t missed = above_.empty() ? root_.missed : above_.back()->missed;
      sum.delta += missed;
      sum.missed += missed;
    }
  }

 private:
  const std::vector<PrefixEntry<Key>>& entries_;
  const PrefixRoot& root_;
  const PrefixLevels<Key>& levels_;
  std::size_t next_ = 0;
  std::vector<const PrefixEntry<Key>*> above_;  // those that stand above where we are
};

/// All entries of both: counts are sums, and so is what each side may have missed. Of an entry
/// count + delta may be as little as what both sides together may have missed of any prefix: a step
/// without a window (prefix_sweep.h) drops those.
template <class Key>
PrefixTree<Key> MergeTrees(const PrefixLevels<Key>& levels, const PrefixTree<Key>& tree,
                           const PrefixTree<Key>& other) {
  PrefixTree<Key> merged;
  merged.root = {tree.root.count + other.root.count, tree.root.missed + other.root.missed};
  merged.entries.reserve(tree.entries.size() + other.entries.size());
  MergeSide<Key> a(tree, levels), b(other, levels);
  while (!a.done() || !b.done()) {
    const bool from_a =
        b.done() ||
        (!a.done() && (a.next().key < b.next().key ||
                       (a.next().key == b.next().key && a.next().level < b.next().level)));
    const PrefixEntry<Key>& first = from_a ? a.next() : b.next();
    PrefixEntry<Key> sum{first.key, first.level, 0, 0, 0};
    a.AddTo(sum);
    b.AddTo(sum);
    merged.entries.push_back(sum);
  }
  return merged;
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_PREFIX_MERGE_H_
