// A quantile summary in few kilobytes: one array of elements with rank bounds, fed by windows; in
// the tail form with ranks that are known in proportion to their distance from one end.
//
// Guarantee: for every rank t in [1, n] an element of the stream can be named that takes, in sorted
// order, a position proven to lie within e(t) of t (QuantileView names it):
//   uniform     e(t) = floor(eps * n); in truth floor(eps/2 * n) while no value is unseen;
//   tail        e(t) = floor(eps * min(r, floor(n/2))), r the distance of t from the chosen end,
//               counted from 1: the 1 / eps values at the end are exact.
// Deterministic, in any input order, n not known in advance, for ever, and for merged summaries.
// Exact while n is less than 4 / eps. The proof and the arithmetic are in rank_rule.h and
// quantile_view.h. Not guaranteed: a bound on the number of entries; see the figures below.
//
// Source: Greenwald and Khanna (SIGMOD 2001, PODS 2004); Govindaraju, Raghuvanshi, Manocha (SIGMOD
// 2005) §5.2 feed such a summary with sorted windows. Where we deviate: a window comes as its
// digest (window_digest.h), and leaves entries only in gaps that would be too wide without
// (ranked_merge.h); entries are packed (packed_samples.h). The tail form is a sequence of parts,
// because one array can be driven to grow in proportion to n there (Zhang, Lin, Xu, Korn and Wang,
// ICDE 2006, show it of Cormode, Korn, Muthukrishnan and Srivastava's biased quantiles, PODS 2006;
// so do our tests): in one place the limit of a gap grows only by what is added nearer to the end.
//
// Parts. Descending by count. A window goes into the first part that, pruned with it, has no more
// entries than before or than RankRule::EntryLimit; if there is none, it becomes a part of its own.
// Then a part that holds at least half as much as the one before it is united with that one and
// pruned at the next depth, where the limit is a little wider. In the uniform form there is one
// part. So the uniform form and, in orders that do not work against it, the tail form hold one
// array; the worst that order does to the tail form is to keep O(log(n / window)) of them.
//
// Windows of fewer than 4 / eps values are collected, sorted and whole, until they are so many
// together: a merge costs as much for ten values as for ten thousand.
//
// Cost at n = 10^8 in windows of 2^18 u32 keys (one core of an AMD EPYC):
//   epsilon = 0.1 %: 9.9 KB in random, 7.9 in sorted, 9.6 in reversed order; at most 55 KB in every
//   order tried, streams that read the summary and attack its gaps among them. Taking in a digest
//   takes 21 us, about the time in which 7,000 keys are sorted.
//   tail, epsilon = 0.5 %: 14 KB in random order, 125 KB at most. 60 us for a digest.
//
// Deterministic bytes: the serialized form is a function of the sequence of windows added, as
// multisets.
#ifndef TIDEMARK_SUMMARIES_COMPACT_QUANTILES_H_
#define TIDEMARK_SUMMARIES_COMPACT_QUANTILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/packed_samples.h"
#include "summaries/quantile_snapshot.h"
#include "summaries/rank_rule.h"
#include "summaries/window_digest.h"

namespace tidemark {

/// Thread: one writer. Snapshot() must not run at the same time as a writing method; what it
/// returns may be read by any thread for as long as it likes.
template <class Key>
class CompactQuantiles {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5 (at least 2^-40).
  explicit CompactQuantiles(double epsilon, TailEnd end = TailEnd::kNone);

  /// Takes in a window. `sorted`: any number of ascending keys, not kept.
  /// Errors: throws std::length_error when the summary would hold 2^63 values or more. Nothing has
  /// then changed.
  void AddWindow(std::span<const Key> sorted);

  /// Takes in a window that is known by its digest; the same bits as AddWindow of the whole window
  /// if `digest` has the stride DigestStride().
  /// Errors: as AddWindow; throws std::invalid_argument for a digest that is too coarse.
  void AddDigest(const WindowDigest<Key>& digest);

  /// The stride of the digest that AddWindow takes from a window of `count` keys; none where it
  /// takes the window whole, or a digest of another kind.
  std::optional<std::uint64_t> DigestStride(std::uint64_t count) const;

  /// Takes in all that `other` summarises. The guarantee holds for the union.
  /// Errors: throws std::invalid_argument if epsilon or end differ, std::length_error as above.
  void Merge(const CompactQuantiles& other);

  double epsilon() const { return rule_.epsilon(); }
  TailEnd end() const { return rule_.end(); }
  const RankRule& rule() const { return rule_; }
  std::uint64_t count() const { return count_; }
  /// Every rank is known: answers are exact.
  bool exact() const;
  /// Memory held, entries and bookkeeping, without what snapshots alone keep alive.
  std::size_t bytes() const;
  /// Entries and collected keys.
  std::size_t entries() const;

  QuantileSnapshot<Key> Snapshot() const;

  /// Little-endian:
  ///   0  8  frame: magic "TMCQ", version 1, key bits, 0 (byte_io.h)
  ///   8  8  epsilon, IEEE 754 double
  ///  16  1  end: 0 none, 1 upper, 2 lower
  ///  17  8  n
  ///  25  1  number of parts
  ///      then for each part, the one with the largest count first:
  ///      1  depth
  ///         entries (packed_samples.h)
  ///      1  number of collected runs
  ///      then for each run, the longest first:
  ///      4  keys m
  ///      m * key bytes, ascending
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged summary of this key width.
  static CompactQuantiles Deserialize(std::string_view bytes);

 private:
  struct Part {
    std::shared_ptr<const PackedSamples<Key>> samples;
    int depth = 0;
  };
  struct Run {
    std::shared_ptr<const Key[]> keys;
    std::size_t size = 0;
    std::span<const Key> span() const { return {keys.get(), size}; }
  };

  void CheckRoom(std::uint64_t more) const;
  WindowDigest<Key> DigestFor(std::span<const Key> sorted) const;
  static Run MergeRuns(const Run& a, const Run& b);
  void Collect(std::span<const Key> sorted);
  /// The window itself. Errors: throws std::invalid_argument if the digest leaves keys out.
  std::vector<Key> AllKeys(const WindowDigest<Key>& digest) const;
  void CheckFineness(const WindowDigest<Key>& digest) const;
  /// Takes in a window of at least one key.
  void Insert(const WindowDigest<Key>& digest);
  /// Unites parts of like size.
  void Carry();
  RankedSamples<Key> Open(const Part& part) const;
  /// Prunes and packs.
  Part Close(RankedSamples<Key> samples, int depth) const;
  void ReadPart(ByteReader& reader);
  void ReadRun(ByteReader& reader);

  // Invariants: (1) parts_ is descending by count, and each holds less than half of what the one
  // before it does; (2) each is within rule_.Limit(its count, its depth); (3) in collected_ each
  // run is longer than the next, and all together hold less than rule_.collected() keys; (4) count_
  // is the number of values in parts_ and collected_.
  RankRule rule_;
  std::uint64_t count_ = 0;
  std::vector<Part> parts_;
  std::vector<Run> collected_;
};

extern template class CompactQuantiles<std::uint32_t>;
extern template class CompactQuantiles<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_COMPACT_QUANTILES_H_
