// What one stream keeps of its whole history: a quantile summary, a frequency summary, or both.
#ifndef TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_
#define TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "summaries/frequency_summary.h"
#include "summaries/quantile_summary.h"

namespace tidemark::server {

/// A state of the summaries that no longer changes. Copying it copies a few shared pointers.
template <class Key>
struct SummarySnapshot {
  QuantileSnapshot<Key> quantiles;  ///< empty where the stream keeps none (strings)
  FrequencySnapshot<Key> frequencies;
  std::uint64_t count = 0;  ///< values summarized
  std::size_t quantile_bytes = 0;
  std::size_t frequency_bytes = 0;
  bool exact = true;
};

/// The snapshot of summaries that have taken nothing in yet. Keys without memory of their own.
template <class Key>
SummarySnapshot<Key> EmptySnapshot(double quantile_epsilon, double frequency_epsilon);

/// Thread: one at a time; the stream sees to that. A snapshot may be read by any thread while the
/// summaries go on.
template <class Key>
class StreamSummaries {
 public:
  /// `quantile_epsilon` unset: no quantile summary.
  StreamSummaries(std::optional<double> quantile_epsilon, double frequency_epsilon);

  /// A sorted window of a power of two keys.
  void AddWindow(std::span<const Key> sorted);
  SummarySnapshot<Key> Snapshot() const;
  std::string Serialize() const;

 private:
  std::optional<QuantileSummary<Key>> quantiles_;
  FrequencySummary<Key> frequencies_;
};

extern template class StreamSummaries<std::uint32_t>;
extern template class StreamSummaries<std::uint64_t>;

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_
