// A summary of all values of a stream from which the count of every item, and all frequent items,
// can be answered within epsilon * n, for ever and in any input order.
//
// Guarantee: let D(n) = max(0, ceil(epsilon * n) - 1), a whole number strictly below epsilon * n
// (CeilFraction in fraction.h says which ceil). Then
//   - an entry {key, f, delta} states f <= true count <= f + delta, and delta <= D(n);
//   - a key without an entry has a true count of at most D(n).
// So every count is known within epsilon * n, and every item with a true count of epsilon * n or
// more has an entry. Exact (D = 0) up to 1/epsilon values. Deterministic, n not known in advance.
// Not guaranteed: a bound relative to an item's own count.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) §5.1, Manku and Motwani's lossy counting
// (VLDB 2002) fed by sorted windows: histogram, merge, compress. lossy_counts.h has the proof, the
// number of entries in the worst case, and where we deviate. The histogram is not made in full: an
// item without an entry that comes c times in a window which raises D by k survives only if c > k,
// so that only runs longer than k are looked for (sorted_runs.h), and between them the known keys.
//
// Cost (frequency_bench: one core of a Zen 4, windows of 2^18 keys that were just sorted): at
// epsilon = 0.01 % 6 % of the time of the sort for Zipf(1.1) in 32-bit keys and 4 % in 64-bit ones,
// which hold 671 entries in 4.6 and 7.3 kB after 10^8 values; 2 % for random keys, which hold none;
// at epsilon = 0.1 % at most 1 %. Every window reads and writes the entries anew, so that many
// entries and small windows are the dear case: in windows of 2^12 at epsilon = 0.01 % the summary
// takes four to six times as long as the sort.
//
// Windows that are not sorted: item_counter.h, the same bytes.
//
// Deterministic bytes: the serialized form is a function of the sequence of windows added.
#ifndef TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_
#define TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "summaries/key_weight.h"
#include "summaries/lossy_counts.h"

namespace tidemark {

/// Thread: one writer. Snapshot() must not run at the same time as a writing method (take it under
/// the writer's lock: it copies one pointer); what it returns may be read by any thread, without
/// lock.
template <class Key>
class FrequencySummary {
 public:
  using Entry = FrequencyEntry<Key>;

  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  explicit FrequencySummary(double epsilon);

  /// Takes in a window. `sorted`: ascending keys, any number of them, not kept.
  /// Errors: throws std::length_error when the summary would hold 2^63 values or more.
  void AddWindow(std::span<const Key> sorted);

  /// The same for a window of `window_count` keys of which the items alone are known. `items`:
  /// those of ascending items (key_weight.h) that count, each with its exact number of keys: every
  /// item that comes at least LeastCount(window_count) times, and every key with an entry that
  /// comes at all. Others may be among them. The result is the same to the bit. Errors: throws
  /// std::invalid_argument if the items do not ascend or come more often than `window_count` times,
  /// std::length_error as above; the summary is then as it was.
  void AddItems(std::uint64_t window_count, std::span<const KeyWeight<Key>> items);

  /// How often an item without an entry must come in the next window, if that has `window_count`
  /// keys, to get one: D(n + window_count) - D(n) + 1.
  std::uint64_t LeastCount(std::uint64_t window_count) const {
    return counts_.LeastWeight(window_count);
  }

  /// Takes in all that `other` summarises. The guarantee holds for the union.
  /// Errors: throws std::invalid_argument if the epsilons differ, std::length_error as above.
  void Merge(const FrequencySummary& other) { counts_.Merge(other.counts_); }

  double epsilon() const { return counts_.epsilon(); }
  std::uint64_t count() const { return counts_.total(); }
  /// D(n).
  std::uint64_t dropped() const { return counts_.dropped(); }
  std::size_t entries() const { return counts_.entries().size(); }
  /// No entry was ever dropped: answers are exact.
  bool exact() const { return dropped() == 0; }
  /// Memory held, without what snapshots alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + counts_.bytes(); }

  FrequencySnapshot<Key> Snapshot() const { return counts_.Snapshot(); }

  /// Little-endian:
  ///   0  8  frame: magic "TMFS", version 2, key bits, 0 (byte_io.h)
  ///   8  8  epsilon, IEEE 754 double
  ///  16  8  n
  ///  24  8  number of entries
  ///      then the entries, ascending by key, as described in frequency_entries.h
  ///   -4 4  CRC-32C of all bytes before
  /// Version 1 is read, too; there each entry was its key, f and delta, the latter 8 bytes each.
  std::string Serialize() const { return counts_.Serialize(); }
  /// Errors: throws std::invalid_argument, naming what is wrong and where, for any bytes that are
  /// not a whole, undamaged summary of this key width. Takes memory only for entries that are
  /// there.
  static FrequencySummary Deserialize(std::string_view bytes);

 private:
  explicit FrequencySummary(internal::LossyCounts<Key> counts) : counts_(std::move(counts)) {}

  internal::LossyCounts<Key> counts_;
};

extern template class FrequencySummary<std::uint32_t>;
extern template class FrequencySummary<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_
