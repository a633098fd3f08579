// Counts of items and frequent items of a stream at one moment, each with its certificate: the
// answer side of FrequencySummary.
//
// A view covers n values: those of a summary's snapshot, those of the open window (sorted, counted
// exactly), and `unseen` ones that are known to exist but whose values are not at hand (windows
// being sorted), each of which may be any item.
//
// Guarantee: count_low <= true count <= count_high, whatever the input order was. While unseen ==
// 0, count_high - count_low <= epsilon * n, and HeavyHitters(s) returns every item with a true
// count of at least s * n and none below (s - epsilon) * n. With unseen values both widths grow by
// `unseen`.
#ifndef TIDEMARK_SUMMARIES_FREQUENCY_VIEW_H_
#define TIDEMARK_SUMMARIES_FREQUENCY_VIEW_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "summaries/frequency_summary.h"

namespace tidemark {

template <class Key>
struct ItemCount {
  Key key = 0;
  std::uint64_t count_low = 0, count_high = 0;
  friend bool operator==(const ItemCount&, const ItemCount&) = default;
};

/// Thread: const methods from any thread. Lifetime: `open_sorted` outlives the view.
template <class Key>
class FrequencyView {
 public:
  /// `open_sorted`: ascending, any number of keys. `epsilon`: the error bound that WithinEpsilon()
  /// is asked of; the snapshot's unless given.
  explicit FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_sorted = {},
                         std::uint64_t unseen = 0, std::optional<double> epsilon = std::nullopt);

  std::uint64_t n() const { return n_; }
  double epsilon() const { return epsilon_; }
  /// count_low == count_high in all answers.
  bool exact() const { return absent_ == 0; }
  /// The largest count_high - count_low is at most epsilon * n. True whenever unseen == 0.
  bool WithinEpsilon() const;

  /// Of any key, in the stream or not.
  ItemCount<Key> Count(Key key) const;

  /// Whether every item with a true count of at least support * n is sure to be found.
  bool Serves(double support) const;
  /// A support that can be served without a miss, the smallest that stands for a whole number of
  /// values: support * n must exceed D + unseen, which an item without an entry may have come. 0
  /// while the view is exact: any support above 0 is served. Above 1 if none can be.
  double MinimumSupport() const;

  /// Every item with a true count of at least support * n, and no item below (support - epsilon) *
  /// n; by count_high, then count_low, the largest first, then by key. Errors: throws
  /// std::invalid_argument if support is not in (0, 1] or cannot be served; the
  /// message names MinimumSupport().
  std::vector<ItemCount<Key>> HeavyHitters(double support) const;

 private:
  FrequencySnapshot<Key> snapshot_;
  std::span<const Key> open_;
  std::uint64_t unseen_;
  std::uint64_t n_;
  std::uint64_t
      absent_;  ///< a key neither in the snapshot nor in the open window came at most so often
  double epsilon_;
};

extern template class FrequencyView<std::uint32_t>;
extern template class FrequencyView<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FREQUENCY_VIEW_H_
