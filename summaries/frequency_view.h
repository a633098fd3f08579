// Counts of items and frequent items of a stream at one moment, each with its certificate: the
// answer side of FrequencySummary.
//
// The same for weights: with the snapshot of a WeightedFrequencySummary and OfItems, read weight
// for count, and total weight for n.
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

#include "summaries/key_weight.h"
#include "summaries/lossy_counts.h"

namespace tidemark {

template <class Key>
struct ItemCount {
  Key key = 0;
  std::uint64_t count_low = 0, count_high = 0;
  friend bool operator==(const ItemCount&, const ItemCount&) = default;
};

/// The items of a stream with the largest counts, as far as they are known.
template <class Key>
struct TopItems {
  /// At most k items, those with the largest count_high; by count_high, then count_low, the largest
  /// first, then by key.
  std::vector<ItemCount<Key>> items;
  /// How many of them, at any place, are certainly among the true top k, however ties are broken:
  /// those with count_low > missing_high. The bounds alone prove it of no other item.
  std::size_t certain = 0;
  /// An item that is not listed came at most so often.
  std::uint64_t missing_high = 0;
  /// The k-th largest true count is at least so large: a true top item that is not listed came
  /// between top_low and missing_high times, and if top_low > missing_high there is none.
  std::uint64_t top_low = 0;

  bool IsCertain(const ItemCount<Key>& item) const { return item.count_low > missing_high; }
};

/// Thread: const methods from any thread. Lifetime: `open_sorted` outlives the view.
template <class Key>
class FrequencyView {
 public:
  /// `open_sorted`: ascending, any number of keys. `epsilon`: the error bound that WithinEpsilon()
  /// is asked of; the snapshot's unless given.
  explicit FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_sorted = {},
                         std::uint64_t unseen = 0, std::optional<double> epsilon = std::nullopt);

  /// With the open window as ascending items (key_weight.h) instead of keys. `open_count`: the
  /// values of the open window, where some are no item.
  /// REQUIRES: all weights together stay below 2^63, and at or below `open_count`.
  static FrequencyView OfItems(FrequencySnapshot<Key> snapshot,
                               std::span<const KeyWeight<Key>> open_items, std::uint64_t unseen = 0,
                               std::optional<double> epsilon = std::nullopt,
                               std::optional<std::uint64_t> open_count = std::nullopt);

  std::uint64_t n() const { return n_; }
  double epsilon() const { return epsilon_; }
  /// count_low == count_high in all answers.
  bool exact() const { return absent_ == 0 && snapshot_.widest == 0; }
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

  /// The k items with the largest counts, fewer if fewer are known. Of k = 0: none.
  TopItems<Key> TopK(std::size_t k) const;

 private:
  FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_keys,
                std::span<const KeyWeight<Key>> open_items, std::uint64_t open_count,
                std::uint64_t unseen, std::optional<double> epsilon);

  /// Calls add(key, count_low, count_high), in ascending order of keys, for every item that has an
  /// entry or came `least` times in the open window, and possibly for others that came there.
  template <class Add>
  void ForEachItem(std::uint64_t least, Add add) const;
  std::uint64_t OpenCount(Key key) const;

  FrequencySnapshot<Key> snapshot_;
  std::span<const Key> open_keys_;              // the open window, in one of two forms;
  std::span<const KeyWeight<Key>> open_items_;  // the other one is empty
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
