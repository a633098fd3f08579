#include "summaries/frequency_view.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "summaries/fraction.h"
#include "summaries/merge_runs.h"
#include "summaries/support_rule.h"

namespace tidemark {
namespace {

/// The largest first.
template <class Key>
bool ComesBefore(const ItemCount<Key>& a, const ItemCount<Key>& b) {
  return std::tie(b.count_high, b.count_low, a.key) < std::tie(a.count_high, a.count_low, b.key);
}

/// The k-th largest number, 0 if there are fewer. REQUIRES: k >= 1.
std::uint64_t KthLargest(std::vector<std::uint64_t> numbers, std::size_t k) {
  if (k > numbers.size()) return 0;
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(numbers.begin(), at, numbers.end(), std::greater<>());
  return *at;
}

template <class Key>
std::uint64_t TotalOf(std::span<const KeyWeight<Key>> items) {
  std::uint64_t total = 0;
  for (const auto& item : items) total += item.weight;
  return total;
}

}  // namespace

template <class Key>
FrequencyView<Key>::FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_keys,
                                  std::span<const KeyWeight<Key>> open_items,
                                  std::uint64_t open_count, std::uint64_t unseen,
                                  std::optional<double> epsilon)
    : snapshot_(std::move(snapshot)),
      open_keys_(open_keys),
      open_items_(open_items),
      unseen_(unseen),
      n_(snapshot_.count + open_count + unseen),
      absent_(snapshot_.dropped + unseen),
      epsilon_(epsilon.value_or(snapshot_.epsilon)) {}

template <class Key>
FrequencyView<Key>::FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_sorted,
                                  std::uint64_t unseen, std::optional<double> epsilon)
    : FrequencyView(std::move(snapshot), open_sorted, {}, open_sorted.size(), unseen, epsilon) {}

template <class Key>
FrequencyView<Key> FrequencyView<Key>::OfItems(FrequencySnapshot<Key> snapshot,
                                               std::span<const KeyWeight<Key>> open_items,
                                               std::uint64_t unseen, std::optional<double> epsilon,
                                               std::optional<std::uint64_t> open_count) {
  const std::uint64_t count = open_count ? *open_count : TotalOf(open_items);
  return FrequencyView(std::move(snapshot), {}, open_items, count, unseen, epsilon);
}

template <class Key>
std::uint64_t FrequencyView<Key>::OpenCount(Key key) const {
  const auto [first, last] = std::equal_range(open_keys_.begin(), open_keys_.end(), key);
  const auto item = std::lower_bound(
      open_items_.begin(), open_items_.end(), key,
      [](const KeyWeight<Key>& candidate, Key wanted) { return candidate.key < wanted; });
  const bool found = item != open_items_.end() && item->key == key;
  return static_cast<std::uint64_t>(last - first) + (found ? item->weight : 0);
}

template <class Key>
template <class Add>
void FrequencyView<Key>::ForEachItem(std::uint64_t least, Add add) const {
  const auto visit = [&](const FrequencyEntry<Key>& entry) {
    add(entry.key, entry.count, entry.count + entry.delta + unseen_);
  };
  if (open_items_.empty()) {
    internal::MergeRuns(*snapshot_.entries, open_keys_, least, snapshot_.dropped, visit);
  } else {
    internal::MergeItems(*snapshot_.entries, open_items_, least, snapshot_.dropped, visit);
  }
}

template <class Key>
bool FrequencyView<Key>::WithinEpsilon() const {
  return std::max(absent_, snapshot_.widest + unseen_) <= FloorFraction(epsilon_, n_);
}

template <class Key>
ItemCount<Key> FrequencyView<Key>::Count(Key key) const {
  const std::uint64_t open = OpenCount(key);
  const auto entry = snapshot_.entries->Find(key);
  if (!entry) return {key, open, open + absent_};
  return {key, entry->count + open, entry->count + entry->delta + open + unseen_};
}

template <class Key>
double FrequencyView<Key>::MinimumSupport() const {
  return LeastSupport(absent_, n_);
}

template <class Key>
bool FrequencyView<Key>::Serves(double support) const {
  return n_ == 0 || CeilFraction(support, n_) > absent_;
}

template <class Key>
std::vector<ItemCount<Key>> FrequencyView<Key>::HeavyHitters(double support) const {
  const std::uint64_t wanted = CheckSupport(support, absent_, n_, "an item");
  if (n_ == 0) return {};
  std::vector<ItemCount<Key>> items;
  ForEachItem(wanted - absent_, [&](Key key, std::uint64_t low, std::uint64_t high) {
    if (high >= wanted) items.push_back({key, low, high});
  });
  std::sort(items.begin(), items.end(), ComesBefore<Key>);
  return items;
}

// Let h be the (k+1)-th largest count_high of all items, absent ones counted with absent_. Listed
// are k items with the largest count_high, so that missing_high = max(h, absent_). An item with
// count_low > missing_high is certain: only items with count_high >= count_low > h can come before
// it or tie with it, and those are at most k, itself included; it is listed, as its count_high > h.
// With count_low <= missing_high k others may come as often as it does, as far as the bounds say.
//
// Not every item of the open window is looked at: see `least` below.
template <class Key>
TopItems<Key> FrequencyView<Key>::TopK(std::size_t k) const {
  TopItems<Key> top;
  if (k == 0) {
    top.missing_high = n_;
    return top;
  }
  std::vector<std::uint64_t> highs, lows;
  snapshot_.entries->ForEach([&](const FrequencyEntry<Key>& entry) {
    highs.push_back(entry.count + entry.delta + unseen_);
    lows.push_back(entry.count);
  });
  // The open window only adds to counts. So an item without an entry whose count_high, open +
  // absent_, is below `high` is behind k + 1 others, and with open < `low` it is not needed for
  // top_low.
  const std::uint64_t high =
      k == std::numeric_limits<std::size_t>::max() ? 0 : KthLargest(std::move(highs), k + 1);
  const std::uint64_t low = KthLargest(std::move(lows), k);
  const std::uint64_t least =
      std::max<std::uint64_t>(1, std::min(high > absent_ ? high - absent_ : 0, low));
  lows.clear();
  std::vector<ItemCount<Key>> items;
  ForEachItem(least, [&](Key key, std::uint64_t item_low, std::uint64_t item_high) {
    items.push_back({key, item_low, item_high});
    lows.push_back(item_low);
  });
  top.top_low = KthLargest(std::move(lows), k);
  top.missing_high = absent_;
  if (items.size() > k) {
    const auto end = items.begin() + static_cast<std::ptrdiff_t>(k);
    std::nth_element(items.begin(), end, items.end(), ComesBefore<Key>);
    top.missing_high = std::max(absent_, end->count_high);
    items.erase(end, items.end());
  }
  std::sort(items.begin(), items.end(), ComesBefore<Key>);
  top.items = std::move(items);
  top.certain = static_cast<std::size_t>(
      std::count_if(top.items.begin(), top.items.end(),
                    [&](const ItemCount<Key>& item) { return top.IsCertain(item); }));
  return top;
}

template class FrequencyView<std::uint32_t>;
template class FrequencyView<std::uint64_t>;

}  // namespace tidemark
