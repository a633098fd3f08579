#include "server/summarize/stream_summaries.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

namespace tidemark::server {

namespace {

template <class Key>
QuantileForm<Key> MakeQuantiles(const SummaryOptions& options) {
  switch (options.quantile_form) {
    case QuantileKind::kCompact:
      return QuantileForm<Key>(QuantileFormKind::kCompact, *options.quantile_epsilon);
    case QuantileKind::kTail:
      return QuantileForm<Key>(QuantileFormKind::kCompact, options.tail_epsilon, TailEnd::kUpper);
    case QuantileKind::kHistogram:
      break;
  }
  return QuantileForm<Key>(QuantileFormKind::kHistogram, *options.quantile_epsilon);
}

}  // namespace

template <class Key>
SummarySnapshot<Key> EmptySnapshot(const SummaryOptions& options) {
  static const auto kNoEntries = std::make_shared<const FrequencyEntries<Key>>();
  SummarySnapshot<Key> snapshot;
  if (options.quantile_epsilon) snapshot.quantiles = MakeQuantiles<Key>(options).Snapshot();
  snapshot.frequencies.epsilon = options.frequency_epsilon.value_or(0);
  snapshot.frequencies.entries = kNoEntries;
  snapshot.weights = snapshot.frequencies;
  if (options.frequency_epsilon && !options.hierarchy.prefix_lengths.empty()) {
    snapshot.hierarchy =
        HierarchicalFrequencySummary<Key>(*options.frequency_epsilon,
                                          PrefixLevels<Key>(options.hierarchy.prefix_lengths))
            .Snapshot();
  }
  if (options.sums) {
    snapshot.sums = CorrelatedSums<Key>(*options.quantile_epsilon, SumType::kFloat64).Snapshot();
  }
  return snapshot;
}

template SummarySnapshot<std::uint32_t> EmptySnapshot(const SummaryOptions&);
template SummarySnapshot<std::uint64_t> EmptySnapshot(const SummaryOptions&);

template <class Key>
std::vector<KeyWeight<Key>> WeightedItems(std::span<const Key> sorted,
                                          std::span<const std::uint64_t> weights) {
  std::vector<KeyWeight<Key>> items(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) items[i] = {sorted[i], weights[i]};
  items.resize(AggregateEqualKeys<Key>(items));
  return items;
}

std::vector<double> YOf(std::span<const std::uint64_t> payloads) {
  std::vector<double> y(payloads.size());
  std::transform(payloads.begin(), payloads.end(), y.begin(),
                 [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
  return y;
}

template std::vector<KeyWeight<std::uint32_t>> WeightedItems(std::span<const std::uint32_t>,
                                                             std::span<const std::uint64_t>);
template std::vector<KeyWeight<std::uint64_t>> WeightedItems(std::span<const std::uint64_t>,
                                                             std::span<const std::uint64_t>);

template <class Key>
StreamSummaries<Key>::StreamSummaries(const SummaryOptions& options) : options_(options) {
  if (options.quantile_epsilon) quantiles_.emplace(MakeQuantiles<Key>(options));
  if (options.frequency_epsilon) {
    const double epsilon = *options.frequency_epsilon;
    frequencies_.emplace(epsilon);
    if (options.weights) weights_.emplace(epsilon);
    if (!options.hierarchy.prefix_lengths.empty()) {
      hierarchy_.emplace(epsilon, PrefixLevels<Key>(options.hierarchy.prefix_lengths));
    }
  }
  if (options.sums) sums_.emplace(*options.quantile_epsilon, SumType::kFloat64);
}

template <class Key>
void StreamSummaries<Key>::AddWindow(std::span<const Key> sorted,
                                     std::span<const std::uint64_t> payloads) {
  if (quantiles_) quantiles_->AddWindow(sorted);
  if (frequencies_) frequencies_->AddWindow(sorted);
  std::vector<KeyWeight<Key>> items;
  if (weights_) {
    items = WeightedItems(sorted, payloads);
    weights_->AddWindow(items);
  }
  if (hierarchy_) {
    if (options_.weights) {
      hierarchy_->AddWeighted(items);
    } else {
      hierarchy_->AddWindow(sorted);
    }
  }
  if (sums_) sums_->template AddWindow<double>(sorted, YOf(payloads));
  count_ += sorted.size();
}

template <class Key>
SummarySnapshot<Key> StreamSummaries<Key>::Snapshot() const {
  SummarySnapshot<Key> snapshot = EmptySnapshot<Key>(options_);
  snapshot.count = count_;
  if (frequencies_) {
    snapshot.frequencies = frequencies_->Snapshot();
    snapshot.frequency_bytes = frequencies_->bytes();
    snapshot.exact = frequencies_->exact();
  }
  if (weights_) {
    snapshot.weights = weights_->Snapshot();
    snapshot.frequency_bytes += weights_->bytes();
    snapshot.exact = snapshot.exact && weights_->exact();
  }
  if (hierarchy_) {
    snapshot.hierarchy = hierarchy_->Snapshot();
    snapshot.frequency_bytes += hierarchy_->bytes();
    snapshot.exact = snapshot.exact && hierarchy_->exact();
  }
  if (quantiles_) {
    snapshot.quantiles = quantiles_->Snapshot();
    snapshot.quantile_bytes = quantiles_->bytes();
    snapshot.exact = snapshot.exact && quantiles_->exact();
  }
  if (sums_) {
    snapshot.sums = sums_->Snapshot();
    snapshot.sum_bytes = sums_->bytes();
    snapshot.exact = snapshot.exact && sums_->exact();
  }
  return snapshot;
}

template <class Key>
std::string StreamSummaries<Key>::Serialize() const {
  std::string bytes;
  if (quantiles_) bytes += quantiles_->Serialize();
  if (frequencies_) bytes += frequencies_->Serialize();
  if (weights_) bytes += weights_->Serialize();
  if (hierarchy_) bytes += hierarchy_->Serialize();
  if (sums_) bytes += sums_->Serialize();
  return bytes;
}

template class StreamSummaries<std::uint32_t>;
template class StreamSummaries<std::uint64_t>;

}  // namespace tidemark::server
