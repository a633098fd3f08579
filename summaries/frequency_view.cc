#include "summaries/frequency_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "summaries/fraction.h"
#include "summaries/merge_runs.h"

namespace tidemark {
namespace {

std::string Digits(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

}  // namespace

template <class Key>
FrequencyView<Key>::FrequencyView(FrequencySnapshot<Key> snapshot, std::span<const Key> open_sorted,
                                  std::uint64_t unseen, std::optional<double> epsilon)
    : snapshot_(std::move(snapshot)),
      open_(open_sorted),
      unseen_(unseen),
      n_(snapshot_.count + open_.size() + unseen),
      absent_(snapshot_.dropped + unseen),
      epsilon_(epsilon.value_or(snapshot_.epsilon)) {}

template <class Key>
bool FrequencyView<Key>::WithinEpsilon() const {
  return absent_ <= FloorFraction(epsilon_, n_);
}

template <class Key>
ItemCount<Key> FrequencyView<Key>::Count(Key key) const {
  const auto [first, last] = std::equal_range(open_.begin(), open_.end(), key);
  const auto open = static_cast<std::uint64_t>(last - first);
  const auto& entries = *snapshot_.entries;
  const auto entry = std::lower_bound(
      entries.begin(), entries.end(), key,
      [](const FrequencyEntry<Key>& candidate, Key wanted) { return candidate.key < wanted; });
  if (entry == entries.end() || entry->key != key) return {key, open, open + absent_};
  return {key, entry->count + open, entry->count + entry->delta + open + unseen_};
}

template <class Key>
double FrequencyView<Key>::MinimumSupport() const {
  if (absent_ == 0) return 0;
  double support = static_cast<double>(absent_ + 1) / static_cast<double>(n_);
  // Rounding may have brought it one step too low.
  while (support <= 1 && CeilFraction(support, n_) <= absent_) {
    support = std::nextafter(support, std::numeric_limits<double>::infinity());
  }
  return support;
}

template <class Key>
bool FrequencyView<Key>::Serves(double support) const {
  return n_ == 0 || CeilFraction(support, n_) > absent_;
}

template <class Key>
std::vector<ItemCount<Key>> FrequencyView<Key>::HeavyHitters(double support) const {
  if (!(support > 0 && support <= 1)) {
    throw std::invalid_argument("support is " + Digits(support) +
                                ", expected a number above 0 and at most 1");
  }
  if (n_ == 0) return {};
  const std::uint64_t wanted = CeilFraction(support, n_);
  if (!Serves(support)) {
    throw std::invalid_argument("support is " + Digits(support) + ", expected at least " +
                                Digits(MinimumSupport()) + ": an item without an entry may have " +
                                "come " + std::to_string(absent_) + " times in " +
                                std::to_string(n_) + " values");
  }
  std::vector<ItemCount<Key>> items;
  const auto add = [&](Key key, std::uint64_t low, std::uint64_t high) {
    if (high >= wanted) items.push_back({key, low, high});
  };
  internal::MergeRuns(
      *snapshot_.entries, open_, wanted - absent_,
      [&](const FrequencyEntry<Key>& entry, std::uint64_t open) {
        add(entry.key, entry.count + open, entry.count + entry.delta + open + unseen_);
      },
      [&](Key key, std::uint64_t open) { add(key, open, open + absent_); });
  std::sort(items.begin(), items.end(), [](const ItemCount<Key>& a, const ItemCount<Key>& b) {
    return std::tie(b.count_high, b.count_low, a.key) < std::tie(a.count_high, a.count_low, b.key);
  });
  return items;
}

template class FrequencyView<std::uint32_t>;
template class FrequencyView<std::uint64_t>;

}  // namespace tidemark
