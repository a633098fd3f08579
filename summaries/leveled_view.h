// Hierarchical heavy hitters out of one view of counts for each level (leveled_summary.h).
//
// Guarantee: that of discounted_counts.h with t = ceil(support * n), whatever the views cover: the
// whole history, a sliding window, the open window with it. Each view is asked for its items of
// that support alone; that a prefix which a view does not list is lighter is all that is needed.
// (In a sliding window by time, where bounds count the values that may be outside as any item, a
// prefix whose discounted count is at least support * the true n is not missed either: its upper
// bound exceeds its count by as much as n() exceeds the true n.)
//
// Bounds of different levels tighten one another: what stands above has no less than the prefixes
// right below that are listed have together, and each of those no more than is left of it by the
// others.
#ifndef TIDEMARK_SUMMARIES_LEVELED_VIEW_H_
#define TIDEMARK_SUMMARIES_LEVELED_VIEW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summaries/discounted_counts.h"
#include "summaries/fraction.h"
#include "summaries/frequency_view.h"

namespace tidemark {
namespace internal {

/// `levels`: candidates by key, with their parents. See above.
template <class Key>
void TightenCandidates(std::vector<std::vector<HierarchyCandidate<Key>>>& levels) {
  std::vector<std::vector<std::uint64_t>> below(levels.size());
  for (std::size_t level = levels.size(); level-- > 0;) {
    below[level].resize(levels[level].size());
    if (level + 1 < levels.size()) {
      for (const auto& candidate : levels[level + 1])
        below[level][candidate.parent] += candidate.low;
    }
    for (std::size_t i = 0; i < levels[level].size(); ++i) {
      levels[level][i].low = std::max(levels[level][i].low, below[level][i]);
    }
  }
  for (std::size_t level = 1; level < levels.size(); ++level) {
    for (auto& candidate : levels[level]) {
      const std::uint64_t others = below[level - 1][candidate.parent] - candidate.low;
      candidate.high = std::min(candidate.high, levels[level - 1][candidate.parent].high - others);
    }
  }
}

}  // namespace internal

/// `views`: element l - 1 is of level l, level 0 being everything; all of the same n. A view has
/// n() and HeavyHitters(support), which gives ItemCount<Key> of every key with a true count of at
/// least ceil(support * n), as FrequencyView. `parent_of(level, key)`: what stands right above a
/// key of that level, 2 or more, that a view has listed. In the order of
/// HierarchicalView::HeavyHitters. Level 0 is reported as prefix 0. Errors: throws
/// std::invalid_argument as the views' HeavyHitters do.
template <class Key, class View, class ParentOf>
std::vector<HierarchyItem<Key>> LeveledHeavyHitters(std::span<const View> views, double support,
                                                    ParentOf parent_of, std::uint64_t n_low) {
  using Candidate = internal::HierarchyCandidate<Key>;
  const std::uint64_t n = views.front().n();
  std::vector<std::vector<Candidate>> levels{{{0, n_low, n, Candidate::kNoParent}}};
  const auto before = [](const auto& candidate, Key key) { return candidate.prefix < key; };
  for (std::size_t i = 0; i < views.size(); ++i) {
    auto items = views[i].HeavyHitters(support);
    if (n == 0) return {};
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    const auto& above = levels.back();
    std::vector<Candidate> candidates;
    for (const ItemCount<Key>& item : items) {
      std::size_t parent = 0;
      if (i > 0) {
        const Key key = parent_of(static_cast<int>(i) + 1, item.key);
        const auto at = std::lower_bound(above.begin(), above.end(), key, before);
        // What stands above is too light, and so is this.
        if (at == above.end() || at->prefix != key) continue;
        parent = static_cast<std::size_t>(at - above.begin());
      }
      candidates.push_back({item.key, item.count_low, item.count_high, parent});
    }
    levels.push_back(std::move(candidates));
  }
  internal::TightenCandidates(levels);
  return internal::ReportDiscounted(levels, CeilFraction(support, n), 0);
}
/// The same where n is known.
template <class Key, class View, class ParentOf>
std::vector<HierarchyItem<Key>> LeveledHeavyHitters(std::span<const View> views, double support,
                                                    ParentOf parent_of) {
  return LeveledHeavyHitters<Key>(views, support, parent_of, views.front().n());
}

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_LEVELED_VIEW_H_
