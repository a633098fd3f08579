// Which kind of summary stands for what, by the width of a stream's keys.
//
// Keys of 32 and 64 bits: quantiles, items, weights and sums, each with a summary of its own. Keys
// of 128 bits (ipv6) have counts and no ranks: nobody asks for the median of addresses of 128 bits,
// and the summaries that rank keys are made for at most 64. Their items are counted by a hierarchy
// (address_items.h).
#ifndef TIDEMARK_SERVER_SUMMARIZE_KEPT_KINDS_H_
#define TIDEMARK_SERVER_SUMMARIZE_KEPT_KINDS_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server/summarize/address_items.h"
#include "summaries/correlated_sums.h"
#include "summaries/frequency_summary.h"
#include "summaries/quantile_form.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_hierarchy.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/weighted_frequency.h"

namespace tidemark::server {

/// Keys have ranks, and strings may be known by such keys.
template <class Key>
inline constexpr bool kRankedKeys = sizeof(Key) <= sizeof(std::uint64_t);

/// Takes the place of a summary that keys of a width do not have. There is never one.
struct NoSummary {
  void Merge(const NoSummary& /*other*/) {}
  std::string Serialize() const { return {}; }
  static NoSummary Deserialize(std::string_view /*bytes*/) {
    throw std::invalid_argument("there are none of keys of this width");
  }
};

template <class Key>
struct KeptKinds {
  using Quantiles = QuantileForm<Key>;
  using Items = FrequencySummary<Key>;
  using Weights = WeightedFrequencySummary<Key>;
  using Sums = CorrelatedSums<Key>;
  using QuantileState = QuantileSnapshot<Key>;
  using ItemState = FrequencySnapshot<Key>;
  using SumState = CorrelatedSnapshot<Key>;
  using RecentQuantiles = SlidingQuantiles<Key>;
  using RecentItems = SlidingFrequencies<Key>;
  using RecentQuantileCover = SlidingQuantileCover<Key>;
  using RecentItemCover = SlidingFrequencyCover<Key>;
};

template <>
struct KeptKinds<Key128> {
  using Quantiles = NoSummary;
  using Items = AddressItems;
  using Weights = AddressItems;
  using Sums = NoSummary;
  using QuantileState = NoSummary;
  using ItemState = HierarchicalSnapshot<Key128>;
  using SumState = NoSummary;
  using RecentQuantiles = NoSummary;
  using RecentItems = SlidingHierarchy<Key128>;
  using RecentQuantileCover = NoSummary;
  using RecentItemCover = SlidingHierarchyCover<Key128>;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_KEPT_KINDS_H_
