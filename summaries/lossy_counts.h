// Lossy counting over windows of any length or weight: what the frequency summaries of keys and of
// weighted keys share. Thread, errors and ownership: see frequency_summary.h.
//
// W is the total taken in so far: of values, each of which weighs 1, or of their weights. With
// D(W) = max(0, ceil(epsilon * W) - 1), a whole number strictly below epsilon * W (CeilFraction in
// fraction.h says which ceil), two things hold after every window:
//   (1) an entry {key, f, delta} states f <= the key's true total <= f + delta, and delta <= D(W);
//   (2) a key without an entry has a true total of at most D(W).
//
// Source: Manku and Motwani's lossy counting (VLDB 2002), in the form of Govindaraju, Raghuvanshi,
// Manocha (SIGMOD 2005) §5.1: histogram, merge, compress. Where we deviate: a window may have any
// length and any weights, not 1/epsilon values.
//
// Proof, by induction over windows. Let a window raise W by w and D from D0 to D1; D never falls.
// Let c be what a key weighs in the window, 0 if it does not come.
//   A key with an entry gets {f + c, delta}: (1) holds. A key without one had a total of at most D0
//   by (2), hence now between c and D0 + c: if c > 0, the entry {c, D0} states that, and D0 <= D1.
//   Then every entry with f + delta <= D1 is dropped: by (1) its key's total is at most D1, so that
//   (2) holds for it; and for a key that did not come, as D0 <= D1.
// Nothing here asks how long a window is, what a value weighs, or in which order windows come.
//   Only keys with c + D0 > D1 get an entry that is not dropped at once. So a window need not be
//   counted in full: keys without an entry that weigh less than LeastWeight = D1 - D0 + 1 in it may
//   be left out. The result is the same to the bit.
//   Two summaries (their D: A and B) merge by adding f and delta, where a key without an entry
//   counts as {0, A} or {0, B}; A + B <= D(Wa + Wb), as ceil(x) - 1 + ceil(y) - 1 <= ceil(x + y) -
//   1; then entries are dropped as above.
//
// Size: fewer than H(D + 1) / epsilon <= (1 + ln(D + 1)) / epsilon entries, H(m) = 1 + 1/2 + … +
// 1/m, however windows are cut and weighted; sharper than the paper's count, which starts from
// windows of 1/epsilon. Proof: let an entry's age be D(W) - delta. It got its entry in a window
// that began when the total was some V with D(V) = delta, so that f was gathered within the last W
// - V, and ceil(x) - ceil(y) = age implies x - y < age + 1: within the last (age + 1) / epsilon. It
// was not dropped: f >= age + 1. So the sum of (age + 1) over the entries of age <= i is below (i +
// 1) / epsilon for every i. Summed by parts, the number of entries is below the sum over i <= D of
// (1 / epsilon) / (i + 1). Merged summaries: each entry's f + delta exceeds D, and the sum of all f
// is at most W; no more is said, but a merge only adds the numbers of entries.
#ifndef TIDEMARK_SUMMARIES_LOSSY_COUNTS_H_
#define TIDEMARK_SUMMARIES_LOSSY_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "summaries/frequency_entries.h"

namespace tidemark {

/// D of the comment above.
std::uint64_t DroppedBound(double epsilon, std::uint64_t n);

/// What a frequency summary held at one moment. Copying it copies one pointer. Any thread may read
/// it.
template <class Key>
struct FrequencySnapshot {
  double epsilon = 0;
  std::uint64_t count = 0;    ///< n, or the total weight
  std::uint64_t dropped = 0;  ///< D: a key without an entry came at most so often
  std::shared_ptr<const FrequencyEntries<Key>> entries;  ///< not null
  std::uint64_t widest = 0;  ///< the largest delta, where one may exceed `dropped`

  /// For a dictionary that keeps what the summary keeps: calls visit(key) in ascending order.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    entries->ForEach([&](const FrequencyEntry<Key>& entry) { visit(entry.key); });
  }
};

namespace internal {

/// What tells the two summaries apart.
struct LossyKind {
  std::string_view magic;       ///< of the serialized form
  std::uint16_t version;        ///< of the layout that is written
  std::uint16_t version_fixed;  ///< of an old layout with entries of fixed size, 0 if there is none
  std::string_view name;        ///< in messages
  std::string_view unit;        ///< of the total, in messages
};

template <class Key>
class LossyCounts {
 public:
  using Entry = FrequencyEntry<Key>;

  /// `kind` outlives it. Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  LossyCounts(const LossyKind& kind, double epsilon);

  /// Errors: throws std::length_error when the total would reach 2^63.
  void CheckRoom(std::uint64_t more) const;

  std::uint64_t LeastWeight(std::uint64_t more) const {
    return DroppedBound(epsilon_, total_ + more) - dropped() + 1;
  }

  /// Takes a window in whose total is `more`. merge(entries, least, absent, visit) puts what keys
  /// weigh in it to the entries, as MergeRuns (merge_runs.h) does. REQUIRES: CheckRoom(more).
  template <class Merge>
  void Take(std::uint64_t more, Merge merge) {
    if (more == 0) return;
    const std::uint64_t before = dropped();
    const std::uint64_t after = DroppedBound(epsilon_, total_ + more);
    FrequencyEntriesWriter<Key> kept(after, ExpectedBytes());
    merge(*entries_, after - before + 1, before,
          [&](const Entry& entry) { kept.AppendIf(entry.count + entry.delta > after, entry); });
    entries_ = std::make_shared<const FrequencyEntries<Key>>(std::move(kept).Finish());
    total_ += more;
  }

  /// Errors: throws std::invalid_argument if the epsilons differ, std::length_error as above.
  void Merge(const LossyCounts& other);

  double epsilon() const { return epsilon_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t dropped() const { return DroppedBound(epsilon_, total_); }
  const FrequencyEntries<Key>& entries() const { return *entries_; }
  /// Memory held besides the object itself, without what snapshots alone keep alive.
  std::size_t bytes() const { return sizeof(*entries_) + entries_->bytes(); }
  FrequencySnapshot<Key> Snapshot() const { return {epsilon_, total_, dropped(), entries_}; }

  /// As the summaries document it.
  std::string Serialize() const;
  static LossyCounts Deserialize(const LossyKind& kind, std::string_view bytes);

 private:
  std::size_t ExpectedBytes() const { return entries_->bytes() + entries_->bytes() / 8; }

  // Invariants: each entry has count >= 1, delta <= D and count + delta > D; entries_ tells
  // excesses from D = dropped(). The object behind the pointer is never changed once it is here.
  const LossyKind* kind_;
  double epsilon_;
  std::uint64_t total_ = 0;
  std::shared_ptr<const FrequencyEntries<Key>> entries_;
};

extern template class LossyCounts<std::uint32_t>;
extern template class LossyCounts<std::uint64_t>;

}  // namespace internal
}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_LOSSY_COUNTS_H_
