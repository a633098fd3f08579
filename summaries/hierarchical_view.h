// Hierarchical heavy hitters of a stream at one moment, and the counts of prefixes, each with its
// certificate: the answer side of HierarchicalFrequencySummary.
//
// A view covers n values: those of a summary's snapshot, those of the open window (sorted, counted
// exactly), and `unseen` ones that are known to exist but whose values are not at hand, each of
// which may be below any prefix.
//
// Guarantee: count_low <= true count <= count_high for every prefix, whatever the input order was.
// While unseen == 0, count_high - count_low <= epsilon * n. HeavyHitters(phi) has the guarantees of
// discounted_counts.h with t = ceil(phi * n): every prefix that it does not report has a discounted
// count below phi * n; what it reports has a true count of at least (phi - epsilon) * n; and while
// the view is exact it reports the hierarchical heavy hitters, no more and no less. With unseen
// values the widths of counts grow by `unseen`.
//
// What is missed of a prefix is counted above it: so a count's bound is also at most the sum of
// `count` over what stands above, which is 0 for a new branch of a tree that is known whole.
#ifndef TIDEMARK_SUMMARIES_HIERARCHICAL_VIEW_H_
#define TIDEMARK_SUMMARIES_HIERARCHICAL_VIEW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "summaries/discounted_counts.h"
#include "summaries/frequency_view.h"
#include "summaries/hierarchical_frequency.h"
#include "summaries/window_mass.h"

namespace tidemark {

/// Thread: const methods from any thread. Lifetime: `open_sorted` outlives the view.
template <class Key>
class HierarchicalView {
 public:
  /// `open_sorted`: ascending, any number of keys. `epsilon`: the error bound that WithinEpsilon()
  /// is asked of; the snapshot's unless given. Cost: unpacks the snapshot's entries.
  explicit HierarchicalView(const HierarchicalSnapshot<Key>& snapshot,
                            std::span<const Key> open_sorted = {}, std::uint64_t unseen = 0,
                            std::optional<double> epsilon = std::nullopt);
  /// The same for values with weights: `open_sums[i]` is the sum of the weights of the first i open
  /// keys, one more of them than of keys; `unseen` is a sum of weights. Lifetime: as of the keys.
  HierarchicalView(const HierarchicalSnapshot<Key>& snapshot, std::span<const Key> open_sorted,
                   std::span<const std::uint64_t> open_sums, std::uint64_t unseen = 0,
                   std::optional<double> epsilon = std::nullopt);

  std::uint64_t n() const { return n_; }
  double epsilon() const { return epsilon_; }
  const PrefixLevels<Key>& levels() const { return *levels_; }
  /// A prefix of which nothing is known came at most so often, unseen values included.
  std::uint64_t absent() const { return absent_; }
  /// count_low == count_high in all answers.
  bool exact() const { return absent_ == 0; }
  /// The largest count_high - count_low is at most epsilon * n. True whenever unseen == 0.
  bool WithinEpsilon() const;

  /// Of any prefix of a level, in the stream or not. `key`: any key below it.
  /// REQUIRES: 0 <= level < levels().size().
  ItemCount<Key> Count(int level, Key key) const;

  /// Whether HeavyHitters can be asked for this support.
  bool Serves(double support) const;
  /// The least support that can be served, as for FrequencyView: support * n must exceed what a
  /// prefix that was never seen may have come, D + unseen.
  double MinimumSupport() const;

  /// The prefixes that may have come `threshold` times or more, unseen values aside, level by level
  /// as discounted_counts.h takes them. REQUIRES: threshold is above what a prefix that was never
  /// seen may have come, unseen values aside.
  std::vector<std::vector<internal::HierarchyCandidate<Key>>> Candidates(
      std::uint64_t threshold) const;

  /// By discounted_high, then discounted_low, the largest first, then the finer level, then by
  /// prefix. Errors: throws std::invalid_argument if support is not in (0, 1] or cannot be served;
  /// the message names MinimumSupport().
  std::vector<HierarchyItem<Key>> HeavyHitters(double support) const;

 private:
  HierarchicalView(const HierarchicalSnapshot<Key>& snapshot, std::span<const Key> open_sorted,
                   internal::WindowMass open_mass, std::uint64_t unseen,
                   std::optional<double> epsilon);

  /// A part of the entries and of the open window: all below some prefix.
  struct Part {
    std::size_t first_entry, last_entry;
    std::size_t begin, end;
  };
  /// What stands above a part.
  struct Above {
    std::uint64_t missed;   ///< of the nearest entry
    std::uint64_t counted;  ///< at all entries above, and the root
    std::size_t candidate;  ///< the nearest candidate
  };
  struct Search;

  std::uint64_t Low(const Part& part) const;
  Key Least(const Part& part) const;
  Key Greatest(const Part& part) const;
  void FindBelow(Search& search, int level, const Part& part, const Above& above) const;
  void Visit(Search& search, int level, const Part& part, const Above& above) const;

  PrefixRoot root_;
  std::shared_ptr<const PrefixLevels<Key>> levels_;
  std::vector<PrefixEntry<Key>> entries_;  // in preorder
  std::vector<std::uint64_t> sums_;        // of the counts of the first i entries
  std::span<const Key> open_;
  internal::WindowMass open_mass_;
  std::uint64_t unseen_;
  std::uint64_t n_;
  std::uint64_t absent_;  ///< a prefix of which nothing is known came at most so often
  double epsilon_;
};

extern template class HierarchicalView<std::uint32_t>;
extern template class HierarchicalView<std::uint64_t>;
extern template class HierarchicalView<Key128>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_HIERARCHICAL_VIEW_H_
