// What the sliding summaries of one stream share: how many values came and when, and the newest of
// them as they came.
//
// The stream's values come in blocks of rule().block_size(), in the order in which they were taken
// in. Each block is added here first, and then, sorted, to the summaries (sliding_quantiles.h,
// sliding_frequencies.h), with expired(). Values that do not fill a block yet are `later` ones
// here: the caller still has them in order, and knows them all.
//
// A question is a width; Last and Within turn it into the values that it covers, which the
// summaries answer for. By count these are known exactly. By time they are, too, where runs of
// equal times next to the border are still known; else the window surely holds n_low() values and
// at most n_high(), and epsilon is met for n_low() (sliding_times.h).
//
// Memory: rule().recent_values() keys and up to one block, and 16 bytes for each mark of a time.
// Deterministic bytes: a function of the blocks added and of the times passed.
#ifndef TIDEMARK_SUMMARIES_SLIDING_RECORD_H_
#define TIDEMARK_SUMMARIES_SLIDING_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/sliding_blocks.h"
#include "summaries/sliding_rule.h"
#include "summaries/sliding_times.h"

namespace tidemark {

/// Values as they came: pieces of blocks, in order. Any thread may read it for as long as it likes.
template <class Key>
struct RecentValues {
  struct Piece {
    std::shared_ptr<const Key[]> block;
    std::size_t first = 0, count = 0;
  };
  std::vector<Piece> pieces;

  std::uint64_t count() const;
  std::vector<Key> Sorted() const;
};

/// Thread: one writer; reading methods must not run at the same time as a writing one (they are
/// short: take what they return under the writer's lock).
template <class Key>
class SlidingRecord {
 public:
  /// Errors: as SlidingRule's.
  explicit SlidingRecord(const SlidingOptions& options);

  const SlidingRule& rule() const { return *rule_; }
  const std::shared_ptr<const SlidingRule>& shared_rule() const { return rule_; }

  /// The stream's next rule().block_size() values in the order in which they came, shared, not
  /// copied; `batches` are their times in the same order, and may be empty if no window goes by
  /// time. Errors: throws std::invalid_argument if the batches do not add up to a block,
  /// std::length_error when the stream would hold 2^63 values. Nothing has then changed.
  void AddBlock(std::shared_ptr<const Key[]> arrived, std::span<const TimedCount> batches);

  /// Nobody asks for a time before this from now on (an earlier one counts as this): frees what no
  /// window can hold any more while nothing comes. What is held is then a function of these calls
  /// too.
  void Advance(std::int64_t now_us);

  /// Values in blocks so far.
  std::uint64_t end() const { return end_; }
  /// Values before it are in no window from now on.
  std::uint64_t expired() const { return expired_; }
  /// The greatest time of a value in a block, and that the record was told.
  std::int64_t now_us() const { return std::max(times_.latest(), told_); }

  /// The last `values` values, or all if there are fewer. `later`: how many came after the blocks.
  /// Errors: throws std::invalid_argument if they are 0 or more than options().max_values.
  SlidingRange Last(std::uint64_t values, std::uint64_t later) const;
  /// The values of the last `age_us` as seen at `now_us` (or at now_us() or the time of a later
  /// value, if that is greater). `later`: the batches that came after the blocks.
  /// Errors: throws std::invalid_argument if the age is not above 0 or above options().max_age_us.
  SlidingRange Within(std::int64_t age_us, std::int64_t now_us,
                      std::span<const TimedCount> later) const;

  /// The values numbered [begin, end). REQUIRES: end - recent_values() <= begin <= end <= end(), or
  /// within one block less.
  RecentValues<Key> Recent(std::uint64_t begin, std::uint64_t end) const;

  /// For a dictionary that keeps what answers need: calls visit(key) for each value that is kept as
  /// it came.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    for (const auto& block : blocks_) {
      for (std::size_t i = 0; i < rule_->block_size(); ++i) visit(block[i]);
    }
  }

  /// Memory held, without what answers alone keep alive.
  std::size_t bytes() const;

  /// Little-endian:
  ///   0  8  frame: magic "TMSR", version 1, key bits, 0 (byte_io.h)
  ///   8 32  options: epsilon (IEEE 754 double), widest window by count, by time, block size
  ///  40  8  values in blocks
  ///  48  8  values that expired
  ///  56  8  time that the record was told
  ///  64 32  times (sliding_times.h), then 17 for each of their marks
  ///      8  number of blocks kept as they came
  ///      then their keys, oldest first
  ///   -4 4  CRC-32C of all bytes before
  std::string Serialize() const;
  /// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a
  /// whole, undamaged record of this key width.
  static SlidingRecord Deserialize(std::string_view bytes);

 private:
  void Expire();
  bool ExpiredFits() const;

  std::shared_ptr<const SlidingRule> rule_;
  SlidingTimes times_;
  std::int64_t told_ = SlidingTimes::kNever;
  std::uint64_t end_ = 0, expired_ = 0;
  std::deque<std::shared_ptr<const Key[]>> blocks_;  ///< the newest, up to end_
};

extern template struct RecentValues<std::uint32_t>;
extern template struct RecentValues<std::uint64_t>;
extern template class SlidingRecord<std::uint32_t>;
extern template class SlidingRecord<std::uint64_t>;
extern template struct RecentValues<Uint128>;
extern template class SlidingRecord<Uint128>;

/// Options in a frame, shared by the sliding summaries: 32 bytes.
void WriteOptions(ByteWriter& writer, const SlidingOptions& options);
std::shared_ptr<const SlidingRule> ReadRule(ByteReader& reader);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_RECORD_H_
