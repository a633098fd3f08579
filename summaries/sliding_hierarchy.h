// The counts of every prefix of the configured levels over the last w values or the last T of time,
// for every width up to the widest configured one, from one summary;
// sliding_hierarchical_view.h makes hierarchical heavy hitters of it.
//
// Guarantee: for every width, at every moment and for every order of input, as of sliding_rule.h:
// of the n values in the window, the number below a prefix, of any level, seen or not, is known
// within epsilon * n. For a window by time, of which the record knows n only from n_low() to
// n_high() (sliding_record.h), lower bounds count none of the values that may be outside and upper
// ones all. Exact while epsilon * w < 1.
// Not guaranteed: a bound relative to a prefix's own count.
//
// Blocks are trees of prefixes, as a hierarchical frequency summary holds one of its whole history
// (hierarchical_frequency.h has the rule and its proof, for any D that does not fall): what is
// missed of a prefix that is no entry is at most `missed` of the nearest entry above it, and that
// is at most D. A new block of level l has D = D_l; two of them become one by putting their entries
// together, and a step without a window drops what D_(l+1) >= 2 * D_l allows; growing coarser with
// age is such a step, too.
//
// The block in which the window begins is put together with the whole ones as if all its values
// were inside, and again kept apart. Let f_all(p) be the count of p with those outside values, o
// the number of them, i of those inside, and low(p) what the cut block's tree counts of p. Of its
// values below p, of which there are at least low(p), at most o are outside, and at least low(p) -
// i. So
//   low_all(p) - min(low(p), o) <= f(p) <= high_all(p) - max(0, low(p) - i):
// for the first bound, f(p) is at least what the whole blocks count and max(0, low(p) - o). The
// bounds are min(o, i) wider than those of f_all at most, which is half of the block.
//
// Source: Arasu and Manku (PODS 2004) for the blocks, Cormode, Korn, Muthukrishnan, Srivastava
// (VLDB 2003) for the trees. Neither has the other's. sliding_rule.h has the budget.
//
// Memory: 7 to 17 bytes an entry (prefix_entries.h) and 72 a block. Measured (hierarchy_bench
// --sliding: one core of an AMD EPYC, IPv4, windows of 10^6 values; docs/measurements.md has all of
// it): at epsilon = 1 % 186 to 249 kB with 5 levels and 475 to 747 kB with 33, where sliding
// frequencies of each level take 416 to 868 kB and 2.8 to 6.0 MB; at 0.1 % 139 to 335 kB and 0.6 to
// 1.1 MB (0.5 to 1.3 and 5.7 to 10 MB). An answer takes 29 microseconds to 1.7 ms.
// Where it loses: time. 26 to 37 million values/s with 5 levels at epsilon = 1 %, sliding
// frequencies of each level 53 to 136; with 33 levels 8 to 13 and 10 to 23. Trees of small blocks
// are unpacked, merged and packed again. And the bytes of the record come on top, as for all
// sliding summaries.
//
// Deterministic bytes: the serialized form is a function of the blocks added (each as a multiset)
// and of what had expired with each.
#ifndef TIDEMARK_SUMMARIES_SLIDING_HIERARCHY_H_
#define TIDEMARK_SUMMARIES_SLIDING_HIERARCHY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/hierarchical_frequency.h"
#include "summaries/prefix_merge.h"
#include "summaries/sliding_blocks.h"
#include "summaries/sliding_record.h"

namespace tidemark {

namespace internal {

/// The tree of a block.
template <class Key>
struct SlidingTree {
  PrefixRoot root;
  PackedEntries<Key> entries;
};

template <class Key>
struct SlidingTreeKind {
  using Trees = std::vector<SlidingTree<Key>>;  ///< one block after the other
  using Data = std::shared_ptr<const Trees>;
  using Chunk = SlidingChunk<Data>;
  std::shared_ptr<const SlidingRule> rule;
  std::shared_ptr<const PrefixLevels<Key>> levels;

  Data First(std::span<const Key> sorted) const;
  std::vector<Data> Merge(int level, std::span<const Chunk> children) const;
  std::uint64_t YoungStep(int level) const { return rule->YoungDropped(level); }
  bool MayStep(int level, std::uint64_t step, std::uint64_t age) const;
  Data Coarsen(int level, const Chunk& chunk, std::uint64_t step) const;
  Data Join(const Chunk& a, const Chunk& b) const;
  std::size_t Size(const Data& data) const;
  std::size_t Bytes(const Data& data) const;
  void Write(ByteWriter& writer, const Data& data) const;
  Data Read(ByteReader& reader, int level, std::uint64_t blocks, std::uint64_t step) const;
};

}  // namespace internal

/// What a sliding answer is made from: pointers to what the summary and the record held. Any thread
/// may read it, as long as it likes.
template <class Key>
struct SlidingHierarchyCover {
  struct Part {
    std::shared_ptr<const std::vector<internal::SlidingTree<Key>>> trees;
    std::size_t block = 0;      ///< which of them
    std::uint64_t dropped = 0;  ///< D
  };
  double epsilon = 0;
  SlidingRange range;
  std::shared_ptr<const PrefixLevels<Key>> levels;
  std::vector<Part> whole;
  Part cut;                    ///< the block in which the window begins; no trees if there is none
  std::uint64_t cut_size = 0;  ///< its values
  std::uint64_t cut_values = 0;  ///< those that are inside, its last ones
  RecentValues<Key> recent;      ///< values of the window as they came

  /// Of the cut block's values, those that are outside.
  std::uint64_t outside() const { return cut_size - cut_values; }
  /// The trees of all parts as one, the cut block with all its values. Cost: a merge of all entries
  /// in log2(parts) rounds: do it without the writer's lock.
  HierarchicalSnapshot<Key> Snapshot() const;
  /// That of the cut block alone. REQUIRES: there is one.
  HierarchicalSnapshot<Key> CutSnapshot() const;
};

/// Thread: one writer. Cover() must not run at the same time as a writing method (it is short: take
/// it under the writer's lock).
template <class Key>
class SlidingHierarchy {
 public:
  SlidingHierarchy(std::shared_ptr<const SlidingRule> rule, PrefixLevels<Key> levels);

  /// Takes in the next block. `sorted`: rule().block_size() ascending keys, not kept. `expired`: of
  /// the record, after it took in the same block.
  /// Errors: throws std::invalid_argument for another number of keys. Nothing has then changed.
  void AddBlock(std::span<const Key> sorted, std::uint64_t expired);
  /// Frees what expired without a new block.
  void Expire(std::uint64_t expired) { blocks_.Expire(expired); }

  const SlidingRule& rule() const { return blocks_.rule(); }
  const PrefixLevels<Key>& levels() const { return *blocks_.kind().levels; }
  /// Values added.
  std::uint64_t end() const { return blocks_.end(); }

  /// What answers for `range`, which `record` gave.
  /// Errors: throws std::logic_error unless record and summary took in the same blocks.
  SlidingHierarchyCover<Key> Cover(const SlidingRange& range,
                                   const SlidingRecord<Key>& record) const;

  std::size_t entries() const { return blocks_.Size(); }
  /// Memory held, without the record and what answers alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + blocks_.bytes(); }

  /// Little-endian:
  ///   0  8  frame: magic "TMSH", version 1, key bits, 0 (byte_io.h)
  ///   8 32  options, as in a record
  ///  40  1  number of levels
  ///         then for each, 1 byte: its length in bits
  ///         then the blocks (sliding_blocks.h), of each:
  ///         8  missed of the root, whose count is the block's values less those of the entries
  ///         4  number of entries
  ///         4  bytes of them
  ///            the entries, as prefix_entries.h describes them
  ///  -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged summary of this key width.
  static SlidingHierarchy Deserialize(std::string_view bytes);

 private:
  SlidingBlocks<internal::SlidingTreeKind<Key>> blocks_;
};

extern template struct SlidingHierarchyCover<std::uint32_t>;
extern template struct SlidingHierarchyCover<std::uint64_t>;
extern template struct SlidingHierarchyCover<Key128>;
extern template class SlidingHierarchy<std::uint32_t>;
extern template class SlidingHierarchy<std::uint64_t>;
extern template class SlidingHierarchy<Key128>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_HIERARCHY_H_
