// Quantiles and ranks over the last w values or the last T of time, for every width up to the
// widest configured one, from one summary.
//
// Guarantee: for every width, at every moment (right at the border of a block, too, after a pause,
// in a burst, when the clock stepped back) and for every order of input: of the n values in the
// window, for every rank t an element of the window can be named that takes, in sorted order, a
// position proven to lie within epsilon * n of t. QuantileView names it and gives the tighter
// bounds that hold. Exact while w < 1 / epsilon, and while all of the window's values are among
// those that came after the last block and those of the last block. For a window by time, of which
// the record knows n only from n_low() to n_high() (sliding_record.h): of the values that may be
// outside, the lower bounds count none and the upper ones all; n() of the view is n_high(), and the
// position of the answer lies within epsilon * n_low() of ceil(phi * n) for the true n, too. Not
// guaranteed: the exact minimum and maximum (values of the cut block may be beyond them; for widths
// below rule().recent_values() they are exact); a relative error in the tails.
//
// Why the true n: let the view's target be t' = ceil(phi * n_high) and k of the d uncertain values
// be inside, so that t = ceil(phi * (n_high - d + k)). A certificate [low, high] with t' - low <= e
// and high - t' <= e bounds the position r in the window: t - r <= t' - low <= e. And high
// counts all d below the value, though at most k are: r <= high - (d - k) <= t' + e - (d - k) <=
// t + e, as t' - t <= d - k.
//
// Source, proof and memory: sliding_rule.h. Cost, measured on one core of an AMD EPYC with windows
// of 10^6 values at epsilon = 1 % (sliding_bench): copying, sorting and taking in a block runs at
// 255 to 269 million u32 values/s (u64: 148 to 164) in random, sorted, few-distinct and Zipf order,
// the bare sort of the same blocks at 390 to 412 (210 to 239). An answer takes 0.7 to 15
// microseconds, most where values as they came are sorted for it; at epsilon = 0.1 %, where all
// 10^6 are kept as they came, up to 0.5 ms.
//
// Deterministic bytes: the serialized form is a function of the blocks added (each as a multiset)
// and of what had expired with each.
#ifndef TIDEMARK_SUMMARIES_SLIDING_QUANTILES_H_
#define TIDEMARK_SUMMARIES_SLIDING_QUANTILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/quantile_view.h"
#include "summaries/sliding_blocks.h"
#include "summaries/sliding_record.h"

namespace tidemark {

/// What a sliding answer is made from: pointers to what the summary and the record held. Any thread
/// may read it, as long as it likes.
template <class Key>
struct SlidingQuantileCover {
  double epsilon = 0;
  SlidingRange range;
  std::vector<SampleBucket<Key>> whole;
  Key min = 0;  ///< of the whole blocks, if there are any
  /// The block in which the window begins, of which the last `cut_values` are inside; empty keys if
  /// there is none or its values are in `recent`.
  SampleBucket<Key> cut;
  Key cut_min = 0;
  std::uint64_t cut_values = 0;
  RecentValues<Key> recent;  ///< values of the window as they came

  /// As parts for a view. Sorts `recent`: do it without the writer's lock.
  QuantileSnapshot<Key> Snapshot() const;
  /// `later_sorted`: those of range.later that are at hand, ascending; outlives the view. The
  /// others (being sorted) count as unseen.
  QuantileView<Key> View(std::span<const Key> later_sorted) const;
};

namespace internal {

/// Blocks of quantiles: of each its minimum, then its samples.
template <class Key>
struct SlidingQuantileKind {
  struct Data {
    std::shared_ptr<const Key[]> keys;
    std::size_t size = 0;
  };
  using Chunk = SlidingChunk<Data>;
  std::shared_ptr<const SlidingRule> rule;

  Data First(std::span<const Key> sorted) const;
  std::vector<Data> Merge(int level, std::span<const Chunk> children) const;
  std::uint64_t YoungStep(int level) const { return rule->YoungShape(level).weight; }
  bool MayStep(int level, std::uint64_t step, std::uint64_t age) const;
  Data Coarsen(int level, const Chunk& chunk, std::uint64_t step) const;
  Data Join(const Chunk& a, const Chunk& b) const;
  std::size_t Size(const Data& data) const { return data.size; }
  std::size_t Bytes(const Data& data) const;
  void Write(ByteWriter& writer, const Data& data) const;
  Data Read(ByteReader& reader, int level, std::uint64_t blocks, std::uint64_t step) const;
};

}  // namespace internal

/// Thread: one writer. Cover() must not run at the same time as a writing method (it is short: take
/// it under the writer's lock).
template <class Key>
class SlidingQuantiles {
 public:
  explicit SlidingQuantiles(std::shared_ptr<const SlidingRule> rule);

  /// Takes in the next block. `sorted`: rule().block_size() ascending keys, not kept. `expired`: of
  /// the record, after it took in the same block.
  /// Errors: throws std::invalid_argument for another number of keys. Nothing has then changed.
  void AddBlock(std::span<const Key> sorted, std::uint64_t expired);
  /// Frees what expired without a new block.
  void Expire(std::uint64_t expired) { blocks_.Expire(expired); }

  const SlidingRule& rule() const { return blocks_.rule(); }
  /// Values added.
  std::uint64_t end() const { return blocks_.end(); }

  /// What answers for `range`, which `record` gave.
  /// Errors: throws std::logic_error unless record and summary took in the same blocks.
  SlidingQuantileCover<Key> Cover(const SlidingRange& range,
                                  const SlidingRecord<Key>& record) const;

  /// Samples held.
  std::size_t samples() const { return blocks_.Size(); }
  /// Memory held, without the record and what answers alone keep alive.
  std::size_t bytes() const { return sizeof(*this) + blocks_.bytes(); }

  /// Little-endian:
  ///   0  8  frame: magic "TMSQ", version 1, key bits, 0 (byte_io.h)
  ///   8 32  options, as in a record
  ///  40    blocks (sliding_blocks.h), of each its minimum and its samples, ascending
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged summary of this key width.
  static SlidingQuantiles Deserialize(std::string_view bytes);

 private:
  SlidingBlocks<internal::SlidingQuantileKind<Key>> blocks_;
};

extern template struct SlidingQuantileCover<std::uint32_t>;
extern template struct SlidingQuantileCover<std::uint64_t>;
extern template class SlidingQuantiles<std::uint32_t>;
extern template class SlidingQuantiles<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_QUANTILES_H_
