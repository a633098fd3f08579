// A summary of all values of a stream from which the count of every prefix of the configured
// levels, and all hierarchical heavy hitters (hierarchical_view.h), can be answered within
// epsilon * n, for ever and in any input order.
//
// Guarantee: let D(n) = max(0, ceil(epsilon * n) - 1) as in frequency_summary.h, f(p) the number of
// values below a prefix p (a whole key is below itself), and low(p) the sum of `count` over the
// entries at and below p. Then low(p) <= f(p) <= low(p) + delta where p is an entry, and <= low(p)
// + missed(a) where it is none and a is the nearest entry above it; delta, missed <= D(n). So the
// count of every prefix, seen or not, is known within epsilon * n. Exact up to 1/epsilon values.
// Not guaranteed: a bound relative to a prefix's own count.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) §5.4; Cormode, Korn, Muthukrishnan,
// Srivastava (VLDB 2003), partial ancestry. Where we deviate from the latter: it is fed by sorted
// windows of any length, a prefix gets an entry or none at the end of a window, and `missed` is
// bounded from the mass of what is not looked into (prefix_sweep.h), not found exactly.
//
// The rule. Each value is counted at one place: at an entry above it or at the root, which stands
// above all. A window raises D to D'. Going from the finest level to the coarsest, each prefix p
// receives in(p), the values of the window that are p plus what the prefixes right below hand up;
// a(p) is the nearest entry above p before the window.
//   p is an entry:  count += in(p). If count + delta <= D', it is dropped and hands up its count;
//                   then v(p) = count + delta.
//   p is none:      if in(p) + missed(a(p)) > D', it becomes an entry {count = in(p), delta =
//                   missed = missed(a(p))}; else it hands up in(p), and v(p) = in(p) +
//                   missed(a(p)).
// Then for each entry, and the root, `missed` becomes the largest of itself and the v(p) of the
// prefixes right below it that are no entries, or any larger number up to D'. (The root has all
// values that are handed up to it, and missed = 0 at first.)
//
// Proof. Let m(p) = f(p) - low(p): the values below p that are counted above it. To show: (1) m(x)
// <= delta(x) for an entry x; (2) m(p) <= missed(a) for every other p and a the nearest entry above
// it. Both hold at n = 0. In a step, m(p) changes only by what p hands up: values below p that were
// counted above it stay there, and all others of the window and of dropped entries below p come
// through p. So m does not change for entries that stay, which is (1) for them; for a new one m(p)
// is what it was before, at most missed(a(p)) by (2). A dropped one has m(p) <= delta + count =
// v(p) after, and a p that is none before and after has m(p) <= missed(a(p)) + in(p) = v(p). Now
// (2), for a p that is none after the step, x the nearest entry above it after the step, and q the
// prefix right below x that p lies below (or is): between x and p there is no entry, so that m(p)
// <= m(q) (what is below p and counted above it is counted at x or above), and m(q) <= v(q) <=
// missed(x). Where v(q) was not looked at, in(q) = 0 and q was none before, m(q) <= missed(a(q)),
// which is at most missed(x): for x = a(q) and for a new x (its `missed` begins so); and if a(q)
// was dropped, q lies below the dropped one and x is above it or new below it, as before by its v.
// All v <= D'.
//
// Merging two summaries puts all their entries together: count is the sum, and delta and missed are
// the sums of what both sides say of that prefix, where a side on which it is no entry says missed
// of its nearest entry above. (1) and (2) hold for the sums, D_a + D_b <= D(n_a + n_b), and a step
// with an empty window drops what became too light.
//
// Size: O((h / epsilon) log(epsilon n)) entries for h levels (Cormode et al.). Measured after 8.4
// million values (hierarchy_bench; docs/measurements.md has all of it): 7 to 10 bytes an entry for
// 32-bit keys, 10 to 17 for 128-bit ones; at epsilon = 0.1 % 256 to 1,007 entries, 2.3 to 9.9 kB,
// for the 5 levels of IPv4 by bytes, and 498 to 4,032, 4.6 to 37 kB, for all 33.
//
// Why one structure and not one frequency summary for each level: with 33 levels it holds 20 to
// 60 % of the bytes and takes windows in 1.4 to 13 times as fast (2^18 keys at epsilon = 0.1 %: 963
// to 3,663 million values/s, 32-bit keys, one core, against 237 to 326). With 5 levels both hold
// about the same, and it is 2 to 5 times as fast in windows of 2^18 keys at epsilon = 0.1 %.
// Where it loses: few levels and windows of few times 1/epsilon keys: at epsilon = 0.01 %, 5 levels
// and windows of 2^14 it takes 38 to 122 million values/s, one summary for each level 55 to 283.
//
// Deterministic bytes: the serialized form is a function of the sequence of windows added, as
// multisets.
#ifndef TIDEMARK_SUMMARIES_HIERARCHICAL_FREQUENCY_H_
#define TIDEMARK_SUMMARIES_HIERARCHICAL_FREQUENCY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/hierarchy.h"
#include "summaries/key_weight.h"
#include "summaries/prefix_entries.h"

namespace tidemark {

/// What a summary held at one moment. Copying it copies two pointers. Any thread may read it.
template <class Key>
struct HierarchicalSnapshot {
  double epsilon = 0;
  std::uint64_t count = 0;    ///< n
  std::uint64_t dropped = 0;  ///< D(n)
  PrefixRoot root;
  std::shared_ptr<const PrefixLevels<Key>> levels;    ///< not null
  std::shared_ptr<const PackedEntries<Key>> entries;  ///< not null

  std::vector<PrefixEntry<Key>> Entries() const { return entries->Unpack(*levels, dropped); }
};

/// Thread: one writer. Snapshot() must not run at the same time as a writing method (take it under
/// the writer's lock: it copies two pointers); what it returns may be read by any thread, without
/// lock.
template <class Key>
class HierarchicalFrequencySummary {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5.
  HierarchicalFrequencySummary(double epsilon, PrefixLevels<Key> levels);

  /// Takes in a window. `sorted`: ascending keys, any number of them, not kept.
  /// Errors: throws std::length_error when n would be 2^63 or more.
  void AddWindow(std::span<const Key> sorted);

  /// Takes in a window of values that have weights (bytes of a flow): all counts, n among them, are
  /// then sums of weights. `sorted`: ascending keys, which may be equal. A weight of 0 is no value.
  /// Errors: as above.
  void AddWeighted(std::span<const KeyWeight<Key>> sorted);

  /// Takes in all that `other` summarises. The guarantee holds for the union.
  /// Errors: throws std::invalid_argument if the epsilons or the levels differ, std::length_error
  /// as above.
  void Merge(const HierarchicalFrequencySummary& other);

  double epsilon() const { return epsilon_; }
  const PrefixLevels<Key>& levels() const { return *levels_; }
  std::uint64_t count() const { return count_; }
  /// D(n).
  std::uint64_t dropped() const;
  std::size_t entries() const { return entries_->size(); }
  /// No entry was ever dropped: answers are exact.
  bool exact() const { return dropped() == 0; }
  /// Memory held, without what snapshots alone keep alive.
  std::size_t bytes() const;

  HierarchicalSnapshot<Key> Snapshot() const {
    return {epsilon_, count_, dropped(), root_, levels_, entries_};
  }

  /// Little-endian:
  ///   0  8  frame: magic "TMHF", version 1, key bits, 0 (byte_io.h)
  ///   8  8  epsilon, IEEE 754 double
  ///  16  8  n
  ///  24  8  number of entries
  ///  32  8  missed of the root, whose count is n less those of the entries
  ///  40  1  number of levels
  ///         then for each, 1 byte: its length in bits
  ///         then the entries, as prefix_entries.h describes them
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong and where, for any bytes that are
  /// not a whole, undamaged summary of this key width. Takes memory only for entries that are
  /// there.
  static HierarchicalFrequencySummary Deserialize(std::string_view bytes);

 private:
  void CheckRoom(std::uint64_t more) const;
  void Keep(const std::vector<PrefixEntry<Key>>& entries);

  // Invariants: what the comment above proves; of each entry delta <= missed <= D < count + delta;
  // the root's count and those of the entries add up to count_. What the pointers show never
  // changes.
  double epsilon_;
  std::uint64_t count_ = 0;
  PrefixRoot root_;
  std::shared_ptr<const PrefixLevels<Key>> levels_;
  std::shared_ptr<const PackedEntries<Key>> entries_;
};

extern template class HierarchicalFrequencySummary<std::uint32_t>;
extern template class HierarchicalFrequencySummary<std::uint64_t>;
extern template class HierarchicalFrequencySummary<Key128>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_HIERARCHICAL_FREQUENCY_H_
