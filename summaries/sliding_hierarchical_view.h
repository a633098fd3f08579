// Hierarchical heavy hitters of a sliding window, and the counts of prefixes in it, each with its
// certificate: the answer side of SlidingHierarchy.
//
// A view covers the n_high() values of a range (sliding_record.h): those in blocks, those of the
// open window that are at hand (counted exactly), and `unseen` ones, each of which may be below any
// prefix: values that may be outside the window, and later ones that are not at hand.
//
// Guarantee: count_low <= true count <= count_high <= n() for every prefix. While all later values
// are at hand, count_high - count_low <= epsilon * n_low(). HeavyHitters(phi) has the guarantees of
// discounted_counts.h with t = ceil(phi * n()): a prefix that it does not report has a discounted
// count below phi * n(), and below phi * n for the true n, too, as an upper bound exceeds the true
// count by no less than n() exceeds the true n.
//
// The bounds of the levels tighten one another, as in leveled_view.h; so those of HeavyHitters may
// be closer than those of Count.
#ifndef TIDEMARK_SUMMARIES_SLIDING_HIERARCHICAL_VIEW_H_
#define TIDEMARK_SUMMARIES_SLIDING_HIERARCHICAL_VIEW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "summaries/hierarchical_view.h"
#include "summaries/sliding_hierarchy.h"

namespace tidemark {

/// Thread: const methods from any thread.
template <class Key>
class SlidingHierarchicalView {
 public:
  /// `later_sorted`: those of range.later that are at hand, ascending; copied. Cost: sorts and
  /// merges all that the cover holds.
  SlidingHierarchicalView(const SlidingHierarchyCover<Key>& cover,
                          std::span<const Key> later_sorted);
  SlidingHierarchicalView(SlidingHierarchicalView&&) noexcept = default;
  SlidingHierarchicalView(const SlidingHierarchicalView&) = delete;
  SlidingHierarchicalView& operator=(SlidingHierarchicalView&&) = delete;
  SlidingHierarchicalView& operator=(const SlidingHierarchicalView&) = delete;

  /// n_high() of the range; n_low() below is that of the range, too.
  std::uint64_t n() const { return n_; }
  double epsilon() const { return all_.epsilon(); }
  const PrefixLevels<Key>& levels() const { return all_.levels(); }
  /// count_low == count_high in all answers.
  bool exact() const { return all_.absent() == 0 && outside_ == 0; }
  /// The largest count_high - count_low is at most epsilon * n_low(). True whenever all later
  /// values are at hand.
  bool WithinEpsilon() const;

  /// As HierarchicalView's.
  ItemCount<Key> Count(int level, Key key) const;
  bool Serves(double support) const;
  double MinimumSupport() const;
  std::vector<HierarchyItem<Key>> HeavyHitters(double support) const;

 private:
  struct Bounds {
    std::uint64_t low, high;
  };
  /// Those of the window, from those with the cut block whole. `most`: as many can be inside.
  Bounds Inside(int level, Key prefix, const Bounds& all, std::uint64_t most) const;

  std::uint64_t n_, n_low_, unseen_;
  std::uint64_t cut_values_, outside_;
  std::vector<Key> open_;  // ascending; all_ looks at it
  HierarchicalView<Key> all_;
  std::optional<HierarchicalView<Key>> cut_;
};

extern template class SlidingHierarchicalView<std::uint32_t>;
extern template class SlidingHierarchicalView<std::uint64_t>;
extern template class SlidingHierarchicalView<Key128>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_HIERARCHICAL_VIEW_H_
