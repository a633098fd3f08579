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
// (VLDB 2002) fed by sorted windows: histogram, merge, compress. Where we deviate: windows may be
// of any length, not 1/epsilon; a new entry gets delta = D of before its window, and entries with f
// + delta <= D(n) are dropped after it, which is lossy counting's rule for a window that ends at n.
// The histogram is not made in full: an item without an entry that comes c times in a window which
// raises D by k survives only if c > k, so that only runs longer than k are looked for
// (sorted_runs.h), and known keys are searched. The result is the same to the bit.
//
// Proof. Dropped entries had f + delta <= D, so an absent item's true count is at most D at its
// last drop, and D never falls; hence delta = D(before) is right for an item that comes (again).
// Merging two summaries adds f and delta, where an absent key counts as {0, D}; and D_a + D_b <=
// D(n_a + n_b), because ceil(x) - 1 + ceil(y) - 1 <= ceil(x + y) - 1. Size: at most (1/epsilon) *
// log(epsilon * n) entries (Manku and Motwani), and the distinct keys of one window; 24 bytes each.
// Cost at epsilon = 0.01 %, windows of 2^18 u32 keys (summary_bench): 2 % of the time of sort and
// both summaries for random keys, 9 % for Zipf(1.1), which holds 716 entries. Each window copies
// the entries: many entries and small windows are the dear case.
//
// Deterministic bytes: the serialized form is a function of the sequence of windows added.
#ifndef TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_
#define TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/key_weight.h"

namespace tidemark {

template <class Key>
struct FrequencyEntry {
  Key key = 0;
  std::uint64_t count = 0;  ///< f: seen at least so often
  std::uint64_t delta = 0;  ///< and at most so often more
  friend bool operator==(const FrequencyEntry&, const FrequencyEntry&) = default;
};

/// What a summary held at one moment. Copying it copies one pointer. Any thread may read it.
template <class Key>
struct FrequencySnapshot {
  double epsilon = 0;
  std::uint64_t count = 0;    ///< n
  std::uint64_t dropped = 0;  ///< D(n): a key without an entry came at most so often
  std::shared_ptr<const std::vector<FrequencyEntry<Key>>> entries;  ///< ascending keys; not null

  /// For a dictionary that keeps what the summary keeps: calls visit(key) in ascending order.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    for (const auto& entry : *entries) visit(entry.key);
  }
};

/// D(n) of the comment above.
std::uint64_t DroppedBound(double epsilon, std::uint64_t n);

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
    return DroppedBound(epsilon_, count_ + window_count) - dropped() + 1;
  }

  /// Takes in all that `other` summarises. The guarantee holds for the union.
  /// Errors: throws std::invalid_argument if the epsilons differ, std::length_error as above.
  void Merge(const FrequencySummary& other);

  double epsilon() const { return epsilon_; }
  std::uint64_t count() const { return count_; }
  /// D(n).
  std::uint64_t dropped() const { return DroppedBound(epsilon_, count_); }
  std::size_t entries() const { return entries_->size(); }
  /// No entry was ever dropped: answers are exact.
  bool exact() const { return dropped() == 0; }
  /// Memory held, without what snapshots alone keep alive.
  std::size_t bytes() const;

  FrequencySnapshot<Key> Snapshot() const { return {epsilon_, count_, dropped(), entries_}; }

  /// Little-endian:
  ///   0  8  frame: magic "TMFS", version 1, key bits, 0 (byte_io.h)
  ///   8  8  epsilon, IEEE 754 double
  ///  16  8  n
  ///  24  8  number of entries
  ///      then for each entry, ascending by key:
  ///      key bytes  key
  ///      8  f
  ///      8  delta
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong and where, for any bytes that are
  /// not a whole, undamaged summary of this key width. Takes memory only for entries that are
  /// there.
  static FrequencySummary Deserialize(std::string_view bytes);

 private:
  void CheckRoom(std::uint64_t more) const;

  // Invariants: entries_ is ascending by key, no key twice; each has count >= 1, delta <= D(count_)
  // and count + delta > D(count_). The vector is never changed once it is here.
  double epsilon_;
  std::uint64_t count_ = 0;
  std::shared_ptr<const std::vector<Entry>> entries_;
};

extern template class FrequencySummary<std::uint32_t>;
extern template class FrequencySummary<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FREQUENCY_SUMMARY_H_
