#include "summaries/weighted_frequency.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "summaries/fraction.h"
#include "summaries/merge_runs.h"
#include "summaries/quantile_rule.h"

namespace tidemark {
namespace {

constexpr internal::LossyKind kKind = {.magic = "TMWF",
                                       .version = 1,
                                       .version_fixed = 0,
                                       .name = "weighted frequency summary",
                                       .unit = "in weight"};

/// Errors: throws std::length_error from 2^63 on.
template <class Key>
std::uint64_t TotalWeight(std::span<const KeyWeight<Key>> pairs) {
  Uint128 total = 0;
  for (const KeyWeight<Key>& pair : pairs) total += pair.weight;
  if (total > kMaxSummaryCount) {
    throw std::length_error("the weights of a window reach 2^63: the limit is 2^63 - 1");
  }
  return static_cast<std::uint64_t>(total);
}

/// Puts `first` and the pairs behind it together to items[0 … last], and returns `last`. That item
/// is complete only if no pairs follow. `items`: as many as pairs and one more; may be the place of
/// `first` with the pairs behind it.
///
/// Every pair writes what its key weighs so far, and another key moves on: no branch.
template <class Key>
std::size_t Aggregate(const KeyWeight<Key>& first, std::span<const KeyWeight<Key>> pairs,
                      KeyWeight<Key>* items) {
  KeyWeight<Key> item = first;
  std::size_t last = 0;
  items[0] = item;
  for (const KeyWeight<Key>& pair : pairs) {
    const bool same = pair.key == item.key;
    last += same ? 0 : 1;
    item = {pair.key, pair.weight + (item.weight & internal::Mask(same))};
    items[last] = item;
  }
  return last;
}

}  // namespace

template <class Key>
std::size_t AggregateEqualKeys(std::span<KeyWeight<Key>> sorted) {
  if (sorted.empty()) return 0;
  const std::span<const KeyWeight<Key>> pairs(sorted);
  TotalWeight(pairs);
  return Aggregate(pairs.front(), pairs.subspan(1), sorted.data()) + 1;
}

template <class Key>
WeightedFrequencySummary<Key>::WeightedFrequencySummary(double epsilon) : counts_(kKind, epsilon) {}

template <class Key>
void WeightedFrequencySummary<Key>::AddWindow(std::span<const KeyWeight<Key>> sorted) {
  constexpr std::size_t kBlock = 256;  // pairs put together at once; their items stay in the cache
  const std::uint64_t weight = TotalWeight(sorted);
  counts_.CheckRoom(weight);
  counts_.Take(weight,
               [&](const auto& entries, std::uint64_t least, std::uint64_t absent, auto visit) {
                 internal::ItemMerger<Key, decltype(visit)> merger(entries, least, absent, visit);
                 std::array<KeyWeight<Key>, kBlock + 1> items;
                 KeyWeight<Key> first = sorted.front();
                 for (std::size_t at = 1; at < sorted.size(); at += kBlock) {
                   const auto pairs = sorted.subspan(at, std::min(kBlock, sorted.size() - at));
                   const std::size_t last = Aggregate(first, pairs, items.data());
                   for (std::size_t i = 0; i < last; ++i) merger.Add(items[i]);
                   first = items[last];
                 }
                 merger.Add(first);
                 merger.Finish();
               });
}

template <class Key>
WeightedFrequencySummary<Key> WeightedFrequencySummary<Key>::Deserialize(std::string_view bytes) {
  return WeightedFrequencySummary(internal::LossyCounts<Key>::Deserialize(kKind, bytes));
}

template std::size_t AggregateEqualKeys(std::span<KeyWeight<std::uint32_t>>);
template std::size_t AggregateEqualKeys(std::span<KeyWeight<std::uint64_t>>);
template std::size_t AggregateEqualKeys(std::span<KeyWeight<Uint128>>);
template class WeightedFrequencySummary<std::uint32_t>;
template class WeightedFrequencySummary<std::uint64_t>;

}  // namespace tidemark
