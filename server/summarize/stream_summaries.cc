#include "server/summarize/stream_summaries.h"

#include <memory>

namespace tidemark::server {

template <class Key>
SummarySnapshot<Key> EmptySnapshot(double quantile_epsilon, double frequency_epsilon) {
  static const auto kNoEntries = std::make_shared<const FrequencyEntries<Key>>();
  SummarySnapshot<Key> snapshot;
  snapshot.quantiles.epsilon = quantile_epsilon;
  snapshot.frequencies.epsilon = frequency_epsilon;
  snapshot.frequencies.entries = kNoEntries;
  return snapshot;
}

template SummarySnapshot<std::uint32_t> EmptySnapshot(double, double);
template SummarySnapshot<std::uint64_t> EmptySnapshot(double, double);

template <class Key>
StreamSummaries<Key>::StreamSummaries(std::optional<double> quantile_epsilon,
                                      double frequency_epsilon)
    : frequencies_(frequency_epsilon) {
  if (quantile_epsilon) quantiles_.emplace(*quantile_epsilon);
}

template <class Key>
void StreamSummaries<Key>::AddWindow(std::span<const Key> sorted) {
  if (quantiles_) quantiles_->AddWindow(sorted);
  frequencies_.AddWindow(sorted);
}

template <class Key>
SummarySnapshot<Key> StreamSummaries<Key>::Snapshot() const {
  SummarySnapshot<Key> snapshot;
  snapshot.frequencies = frequencies_.Snapshot();
  snapshot.count = frequencies_.count();
  snapshot.frequency_bytes = frequencies_.bytes();
  snapshot.exact = frequencies_.exact();
  if (quantiles_) {
    snapshot.quantiles = quantiles_->Snapshot();
    snapshot.quantile_bytes = quantiles_->bytes();
    snapshot.exact = snapshot.exact && quantiles_->exact();
  }
  return snapshot;
}

template <class Key>
std::string StreamSummaries<Key>::Serialize() const {
  std::string bytes = quantiles_ ? quantiles_->Serialize() : std::string();
  bytes += frequencies_.Serialize();
  return bytes;
}

template class StreamSummaries<std::uint32_t>;
template class StreamSummaries<std::uint64_t>;

}  // namespace tidemark::server
