// A summary of all pairs (key, weight) of a stream, e.g. flows and their bytes, from which the
// total weight of every key, and all heavy keys, can be answered within epsilon * W, for ever and
// in any input order. W is the total weight so far.
//
// Guarantee, with D(W) = max(0, ceil(epsilon * W) - 1), strictly below epsilon * W:
//   - an entry {key, f, delta} states f <= the key's weight <= f + delta, and delta <= D(W);
//   - a key without an entry weighs at most D(W).
// So every weight is known within epsilon * W, and every key that weighs epsilon * W or more has an
// entry. Exact while W <= 1/epsilon: with weights in bytes, not for long. Deterministic, W not
// known in advance. With all weights 1 the entries are those of FrequencySummary, fed the same
// windows. Weights are whole numbers from 0. A weight of 0 adds to nothing: no key gets an entry by
// it, and a window of such pairs alone changes no byte. Not guaranteed: a bound relative to a key's
// own weight, or anything about how many pairs a key came in: feed the keys to a FrequencySummary
// beside this one.
//
// Source, proof for windows of any weights, and number of entries: lossy_counts.h.
// Cost (frequency_bench, one core of a Zen 4): 2 ns for a pair of a window of 2^18 pairs in
// Zipf(1.1), much less than it takes to sort them. Bytes as FrequencySummary, and where weights are
// large some more: 5.7 kB for 32-bit keys and 8.5 kB for 64-bit ones at epsilon = 0.01 %.
//
// Answers: FrequencyView takes the snapshot; its counts, n and shares of n are then weights.
// Thread, ownership: as FrequencySummary.
// Deterministic bytes: the serialized form is a function of the sequence of windows added, and of a
// window only what each key weighs in it counts.
#ifndef TIDEMARK_SUMMARIES_WEIGHTED_FREQUENCY_H_
#define TIDEMARK_SUMMARIES_WEIGHTED_FREQUENCY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "summaries/fraction.h"
#include "summaries/key_weight.h"
#include "summaries/lossy_counts.h"

namespace tidemark {

/// Makes ascending items of a window sorted by key: equal keys become one, which weighs what they
/// weighed together; at the front of `sorted`. Returns how many. About 1 ns a pair.
/// Errors: throws std::length_error, and leaves `sorted` as it was, if all weights together reach
/// 2^63.
template <class Key>
std::size_t AggregateEqualKeys(std::span<KeyWeight<Key>> sorted);

template <class Key>
class WeightedFrequencySummary {
 public:
  using Entry = FrequencyEntry<Key>;

  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  explicit WeightedFrequencySummary(double epsilon);

  /// Takes in a window. `sorted`: pairs in ascending order of keys, equal ones in any order,
  /// aggregated or not; any number of them, not kept.
  /// Errors: throws std::length_error when the summary would weigh 2^63 or more; it is then as it
  /// was.
  void AddWindow(std::span<const KeyWeight<Key>> sorted);

  /// Takes in all that `other` summarises. The guarantee holds for the union.
  /// Errors: throws std::invalid_argument if the epsilons differ, std::length_error as above.
  void Merge(const WeightedFrequencySummary& other) { counts_.Merge(other.counts_); }

  double epsilon() const { return counts_.epsilon(); }
  /// W.
  std::uint64_t weight() const { return counts_.total(); }
  /// D(W).
  std::uint64_t dropped() const { return counts_.dropped(); }
  std::size_t entries() const { return counts_.entries().size(); }
  bool exact() const { return dropped() == 0; }
  /// Memory held, without what snapshots alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + counts_.bytes(); }

  FrequencySnapshot<Key> Snapshot() const { return counts_.Snapshot(); }

  /// As FrequencySummary's, with the magic "TMWF", version 1, and W in place of n.
  std::string Serialize() const { return counts_.Serialize(); }
  /// Errors: as FrequencySummary::Deserialize.
  static WeightedFrequencySummary Deserialize(std::string_view bytes);

 private:
  explicit WeightedFrequencySummary(internal::LossyCounts<Key> counts)
      : counts_(std::move(counts)) {}

  internal::LossyCounts<Key> counts_;
};

extern template std::size_t AggregateEqualKeys(std::span<KeyWeight<std::uint32_t>>);
extern template std::size_t AggregateEqualKeys(std::span<KeyWeight<std::uint64_t>>);
extern template std::size_t AggregateEqualKeys(std::span<KeyWeight<Uint128>>);
extern template class WeightedFrequencySummary<std::uint32_t>;
extern template class WeightedFrequencySummary<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_WEIGHTED_FREQUENCY_H_
