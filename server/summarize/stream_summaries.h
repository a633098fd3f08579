// What one stream keeps of its whole history: a quantile summary, a frequency summary, or both.
#ifndef TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_
#define TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/summarize/kept_kinds.h"
#include "server/summarize/reduced_form.h"
#include "server/summarize/summary_options.h"
#include "summaries/frequency_summary.h"
#include "summaries/hierarchical_frequency.h"
#include "summaries/leveled_summary.h"
#include "summaries/window_digest.h"

namespace tidemark::server {

/// The items of each level of a hierarchy of strings.
using LevelItems = std::vector<std::vector<KeyWeight<std::uint64_t>>>;

/// A state of the summaries that no longer changes. Copying it copies a few shared pointers.
template <class Key>
struct SummarySnapshot {
  typename KeptKinds<Key>::QuantileState quantiles;  ///< empty where there are none (strings)
  typename KeptKinds<Key>::ItemState frequencies;    ///< empty where the stream keeps none
  typename KeptKinds<Key>::ItemState weights;        ///< as above
  HierarchicalSnapshot<Key> hierarchy;               ///< null pointers where the stream keeps none
  /// Of strings with a hierarchy: of level l in element l - 1. Empty where the stream keeps none.
  std::vector<FrequencySnapshot<std::uint64_t>> text_levels;
  typename KeptKinds<Key>::SumState sums;  ///< a null pointer where the stream keeps none
  std::uint64_t count = 0;                 ///< values summarized
  std::size_t quantile_bytes = 0;
  std::size_t frequency_bytes = 0;  ///< of weights and hierarchy, too
  std::size_t sum_bytes = 0;
  bool exact = true;
};

/// The snapshot of summaries that have taken nothing in yet. Keys without memory of their own.
template <class Key>
SummarySnapshot<Key> EmptySnapshot(const SummaryOptions& options);

/// The bytes of each summary in a frame of its own (byte_io.h); empty where there is none.
struct SummaryFrames {
  std::uint64_t count = 0;  ///< values summarized
  std::string quantiles, frequencies, weights, hierarchy, sums, text_levels;
};

/// Thread: one at a time; the stream sees to that. A snapshot may be read by any thread while the
/// summaries go on.
template <class Key>
class StreamSummaries {
 public:
  explicit StreamSummaries(const SummaryOptions& options);

  /// The stride of a digest (window_digest.h) that summaries with such options take in place of a
  /// window of `count` keys, with the same result; none where they need the window sorted. Never
  /// any of keys of 128 bits.
  static std::optional<std::uint64_t> DigestStride(const SummaryOptions& options,
                                                   std::uint64_t count);

  /// What summaries with such options take in place of a window of `count` keys, with the same
  /// result; nothing where they need more: payloads, sliding windows, hierarchies, sums, the
  /// compact and tail forms of quantiles, keys of 128 bits.
  static ReducedNeeds NeedsOf(const SummaryOptions& options, std::uint64_t count);

  /// A sorted window of a power of two keys (of strings: of any number). `payloads`: one for each
  /// key where the options say so, else none. `level_items`: of strings with a hierarchy, as
  /// TextItems gives them (summaries/hierarchy.h).
  void AddWindow(std::span<const Key> sorted, std::span<const std::uint64_t> payloads,
                 const LevelItems& level_items = {});
  /// Keys in ascending order, as many as there are, in windows that the summaries take.
  void AddSorted(std::span<const Key> sorted, std::span<const std::uint64_t> payloads,
                 const LevelItems& level_items = {});
  /// REQUIRES: of the stride that DigestStride gave.
  void AddDigest(const WindowDigest<Key>& digest);
  /// REQUIRES: what NeedsOf gave. Errors: throws std::invalid_argument for what cannot be of a
  /// window.
  void AddReduced(const ReducedForm<Key>& reduced);
  SummarySnapshot<Key> Snapshot() const;

  /// Takes in all that `other` holds. The guarantees then hold for the union.
  /// Errors: throws std::invalid_argument if the options differ, std::length_error if it would hold
  /// 2^63 values, or weights, or more. It is then of no further use.
  void Merge(const StreamSummaries& other);

  std::uint64_t count() const { return count_; }
  /// The sum of all weights; 0 without.
  std::uint64_t weight() const { return weights_ ? weights_->Snapshot().count : 0; }

  SummaryFrames Frames() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for frames that are damaged, that
  /// are not what the options say, or that do not agree on how many values they hold.
  static StreamSummaries FromFrames(const SummaryOptions& options, const SummaryFrames& frames);

 private:
  /// Calls visit(name, summary, its member of SummaryFrames) for each kind of summary.
  template <class Self, class Visit>
  static void ForEach(Self& self, Visit visit) {
    visit("quantiles", self.quantiles_, &SummaryFrames::quantiles);
    visit("frequencies", self.frequencies_, &SummaryFrames::frequencies);
    visit("weights", self.weights_, &SummaryFrames::weights);
    visit("hierarchy", self.hierarchy_, &SummaryFrames::hierarchy);
    visit("sums", self.sums_, &SummaryFrames::sums);
    visit("prefixes of strings", self.text_levels_, &SummaryFrames::text_levels);
  }
  void CheckFrames(const StreamSummaries& wanted) const;
  /// To sums_. REQUIRES: there are any.
  void AddSums(std::span<const Key> sorted, std::span<const std::uint64_t> payloads);

  SummaryOptions options_;
  SummarySnapshot<Key> empty_;  // what Snapshot() fills in
  std::optional<typename KeptKinds<Key>::Quantiles> quantiles_;
  std::optional<typename KeptKinds<Key>::Items> frequencies_;
  std::optional<typename KeptKinds<Key>::Weights> weights_;
  std::optional<HierarchicalFrequencySummary<Key>> hierarchy_;
  std::optional<LeveledSummary<std::uint64_t, FrequencySummary<std::uint64_t>>> text_levels_;
  std::optional<typename KeptKinds<Key>::Sums> sums_;
  std::uint64_t count_ = 0;
};

/// The items of a sorted window, each with what it weighs there.
template <class Key>
std::vector<KeyWeight<Key>> WeightedItems(std::span<const Key> sorted,
                                          std::span<const std::uint64_t> weights);
/// The y of pairs, from their bits.
std::vector<double> YOf(std::span<const std::uint64_t> payloads);

extern template class StreamSummaries<std::uint32_t>;
extern template class StreamSummaries<std::uint64_t>;
extern template class StreamSummaries<Key128>;

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_STREAM_SUMMARIES_H_
