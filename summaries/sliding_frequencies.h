// How often items came, and which came often, over the last w values or the last T of time, for
// every width up to the widest configured one, from one summary.
//
// Guarantee: for every width, at every moment (right at the border of a block, too, after a pause,
// in a burst, when the clock stepped back) and for every order of input: of the n values in the
// window, the number of times that an item came is known within epsilon * n; with a support s,
// FrequencyView reports every item that came at least s * n times, and none below (s - epsilon) *
// n. Exact while epsilon * w < 1. For a window by time, of which the record knows n only from
// n_low() to n_high() (sliding_record.h): of the values that may be outside, the lower bounds count
// none and the upper ones all; n() of the view is n_high(), and both promises hold for the true n.
// Not guaranteed: a bound relative to an item's own count; exact() of a view tells whether *all*
// counts are exact.
//
// Blocks are lossy counts (lossy counting: Manku and Motwani, VLDB 2002): an entry {key, f, delta}
// states f <= count <= f + delta, and an item without one came at most D times. A new block of
// level l has D = D_l = floor(epsilon / 4 * B_l); two new ones become one by adding, where an
// absent key counts as {0, D_l}, and what came at most D_(l+1) >= 2 * D_l times goes. A block grows
// coarser with its age by dropping what came at most so often as its age allows (sliding_rule.h).
//
// Why the true n: an item's upper bound counts all d uncertain values as this item, of which only k
// are inside, so that it is at least its true count + d - k; hence an item with a true count of at
// least s * (n_high - d + k) has an upper bound of at least s * n_high, and is reported.
//
// Some values of a block may be no item (AddItems: texts with fewer components than a level has,
// sliding_levels.h). Nothing above asks that the counts add up: n is the number of values, and the
// bounds of an item are those of the values that are that item.
//
// Source, proof: sliding_rule.h. Memory: 24 bytes an entry; of a block of B values that drops what
// came at most D times at most B / (D - D_l) entries can be there, most often a few, none for
// distinct items. With windows of 10^6 values: at epsilon = 1 % 17 KB of distinct items, 184 KB of
// Zipf(1.1), 386 KB of 100 distinct ones; at 0.1 % 10, 444 and 341 KB. Cost beside quantiles (one
// core of an AMD EPYC, u32, epsilon = 1 %, sliding_bench): the rate falls from 269 to 244 million
// values/s in random order, from 262 to 187 for Zipf(1.1), from 255 to 161 for 100 distinct items.
// The items of 5 % take 3 to 42 microseconds.
//
// Deterministic bytes: the serialized form is a function of the blocks added (each as a multiset)
// and of what had expired with each.
#ifndef TIDEMARK_SUMMARIES_SLIDING_FREQUENCIES_H_
#define TIDEMARK_SUMMARIES_SLIDING_FREQUENCIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/frequency_view.h"
#include "summaries/key_weight.h"
#include "summaries/sliding_blocks.h"
#include "summaries/sliding_record.h"

namespace tidemark {

namespace internal {

/// The entries of some blocks, one block after the other.
template <class Key>
struct SlidingEntries {
  std::vector<std::size_t> ends;  ///< where the entries of each block but the last end
  std::vector<FrequencyEntry<Key>> entries;

  std::span<const FrequencyEntry<Key>> Block(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    return {entries.data() + begin, (i == ends.size() ? entries.size() : ends[i]) - begin};
  }
};

template <class Key>
struct SlidingFrequencyKind {
  using Data = std::shared_ptr<const SlidingEntries<Key>>;
  using Chunk = SlidingChunk<Data>;
  std::shared_ptr<const SlidingRule> rule;

  Data First(std::span<const Key> sorted) const;
  Data First(std::span<const KeyWeight<Key>> items) const;
  std::vector<Data> Merge(int level, std::span<const Chunk> children) const;
  std::uint64_t YoungStep(int level) const { return rule->YoungDropped(level); }
  bool MayStep(int level, std::uint64_t step, std::uint64_t age) const;
  Data Coarsen(int level, const Chunk& chunk, std::uint64_t step) const;
  Data Join(const Chunk& a, const Chunk& b) const;
  std::size_t Size(const Data& data) const { return data->entries.size(); }
  std::size_t Bytes(const Data& data) const;
  void Write(ByteWriter& writer, const Data& data) const;
  Data Read(ByteReader& reader, int level, std::uint64_t blocks, std::uint64_t step) const;
};

}  // namespace internal

/// What a sliding answer is made from: pointers to what the summary and the record held. Any thread
/// may read it, as long as it likes.
template <class Key>
struct SlidingFrequencyCover {
  struct Part {
    std::shared_ptr<const internal::SlidingEntries<Key>> entries;
    std::size_t block = 0;      ///< which of them
    std::uint64_t dropped = 0;  ///< an item without an entry came at most so often
  };
  double epsilon = 0;
  SlidingRange range;
  std::vector<Part> whole;
  Part cut;  ///< the block in which the window begins; no entries if there is none
  std::uint64_t cut_size = 0;    ///< its values
  std::uint64_t cut_values = 0;  ///< those that are inside, its last ones
  RecentValues<Key> recent;      ///< values of the window as they came

  /// As one list of entries. Sorts `recent` and the entries: do it without the writer's lock.
  FrequencySnapshot<Key> Snapshot() const;
  /// Where the record's keys are not the items themselves: `recent_items` are the ascending items
  /// that `recent` comes to.
  FrequencySnapshot<Key> Snapshot(std::span<const KeyWeight<Key>> recent_items) const;
  /// `later_sorted`: those of range.later that are at hand, ascending; outlives the view. The
  /// others (being sorted) count as unseen.
  FrequencyView<Key> View(std::span<const Key> later_sorted) const;
  /// The same of items: `later_items` are those of `later_values` of the later values, ascending,
  /// and outlive the view.
  FrequencyView<Key> View(std::span<const KeyWeight<Key>> recent_items,
                          std::span<const KeyWeight<Key>> later_items,
                          std::uint64_t later_values) const;
};

/// Thread: one writer. Cover() must not run at the same time as a writing method (it is short: take
/// it under the writer's lock).
template <class Key>
class SlidingFrequencies {
 public:
  explicit SlidingFrequencies(std::shared_ptr<const SlidingRule> rule);

  /// Takes in the next block. `sorted`: rule().block_size() ascending keys, not kept. `expired`: of
  /// the record, after it took in the same block.
  /// Errors: throws std::invalid_argument for another number of keys. Nothing has then changed.
  void AddBlock(std::span<const Key> sorted, std::uint64_t expired);
  /// The same for a block whose items are known: ascending by key, each with the number of values
  /// that are this item. `values`: those of the block, with those that are no item.
  /// Errors: throws std::invalid_argument for another number of values than rule().block_size(),
  /// and if the items are more than those or not ascending. Nothing has then changed.
  void AddItems(std::uint64_t values, std::span<const KeyWeight<Key>> items, std::uint64_t expired);
  /// Frees what expired without a new block.
  void Expire(std::uint64_t expired) { blocks_.Expire(expired); }

  const SlidingRule& rule() const { return blocks_.rule(); }
  /// Values added.
  std::uint64_t end() const { return blocks_.end(); }
  /// The same, as a level of leveled_summary.h has it.
  std::uint64_t count() const { return end(); }

  /// What answers for `range`, which `record` gave.
  /// Errors: throws std::logic_error unless record and summary took in the same blocks.
  SlidingFrequencyCover<Key> Cover(const SlidingRange& range,
                                   const SlidingRecord<Key>& record) const;

  /// For a dictionary that keeps what the summary keeps: calls visit(key) for each key with an
  /// entry, for some several times.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    for (const auto& chunks : blocks_.levels()) {
      for (const auto& chunk : chunks) {
        for (const auto& entry : chunk.data->entries) visit(entry.key);
      }
    }
  }

  std::size_t entries() const { return blocks_.Size(); }
  /// Memory held, without the record and what answers alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + blocks_.bytes(); }

  /// Little-endian:
  ///   0  8  frame: magic "TMSF", version 1, key bits, 0 (byte_io.h)
  ///   8 32  options, as in a record
  ///  40    blocks (sliding_blocks.h), of each the number of its entries (4 bytes), and of each
  ///        entry, ascending by key: its key, f and delta (8 bytes each)
  ///  -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged summary of this key width.
  static SlidingFrequencies Deserialize(std::string_view bytes);

 private:
  SlidingBlocks<internal::SlidingFrequencyKind<Key>> blocks_;
};

extern template struct SlidingFrequencyCover<std::uint32_t>;
extern template struct SlidingFrequencyCover<std::uint64_t>;
extern template class SlidingFrequencies<std::uint32_t>;
extern template class SlidingFrequencies<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_FREQUENCIES_H_
