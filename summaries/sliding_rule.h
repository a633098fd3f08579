// What a sliding summary keeps of a stream of blocks, how coarsely, and for how long: the
// arithmetic of its error budget, apart from the keys, so that a test can drive it to any length.
//
// Source: Arasu and Manku (PODS 2004), who keep levels of blocks, each level with its own error,
// and Govindaraju et al. (SIGMOD 2005 §5.3; 003 §5.3), who build upper levels by merging lower
// ones. Where we deviate: one structure answers every width up to the widest, not one width. Arasu
// and Manku keep each level over the whole window; we keep fine blocks only while they are recent
// and let every block grow coarser with its age, because what an answer over the last w values may
// miss grows with w. Upper blocks are merged from the samples of lower ones, nothing is sorted
// again.
//
// Blocks. The stream's values come in blocks of B_0 (a power of two), sorted. A block of level l
// stands for the B_l = B_0 * 2^l values from number * B_l on; the two of level l with numbers 2i
// and 2i + 1 become number i of level l + 1, and stay beside it. The newest R = kappa * B_0 values
// are kept too as they came. Let the newest block end at value number t.
//
// Cover of the newest w values, from p = t - w on. Let f be the largest level with
// kappa * B_f <= w; none if w < R. The block of level f (0 if none) in which p lies is cut: of its
// values w' < B_f come from p on. The rest, from its end to t, is covered by whole blocks: always
// the largest that begins there, fits and exists. First their levels rise, then they fall; at most
// one of each level rises, and at most one falls. If w < R, the w' values are at hand as they came:
// exact. If not, w' is known, but in the cut block's summary the w' values cannot be told from the
// others.
//
// Quantiles: a block is a shape (w, m, E) of quantile_rule.h with its samples, and its minimum.
// Between neighbours in the order of all samples of whole blocks the bounds differ by at most
// w + E - 1 for each whole block and w' for the cut one, which bounds ranks and never is an answer:
// its samples may lie before p. With W the sum, half-width max(w', ceil(W / 2)) is enough
// (quantile_view.h).
// Frequencies: an item that a block does not list came there at most D times, one that it lists is
// known within D_l. An item that the cut block lists with f came between max(0, f - (B_f - w')) and
// min(w', f) times from p on: within B_f / 2.
// Trees (sliding_hierarchy.h): as frequencies; but of a prefix that the cut block does not list its
// entries may count values, so that B_f / 2 and what the block dropped add up.
//
// Budget. kappa = ceil(1 / epsilon), so that B_f <= epsilon * w: the cut block takes half. If
// windows may go by time, kappa = ceil(8 / (7 epsilon)), and the border of a window may be known
// only to lie between two values at most epsilon * w / 8 apart (sliding_times.h). The rest:
//   - New blocks: w + E - 1 <= gamma_l * B_l, where gamma_l rises evenly with the level. Two of a
//     level become one with slack 2E + w - 1; of its samples every second one is kept as far as
//     gamma_(l+1) allows. D_l = floor(epsilon / 4 * B_l). Over a cover: at most max(gamma) * w.
//   - Old blocks: a block whose first value is a >= 4 B_l values old may double its weight (drop
//     what came at most twice as often) to no more than a / A. Blocks that fall begin less than 2
//     B_l and 16 B_0 (sliding_blocks.h) ago, and less than 4 B_l as l >= 4 for all but new ones of
//     level 0: they are new. So a cover holds at most one old block of each level, and since a <= w
//     each adds at most w / A to what a new one would.
// A is the least for which the sum is within epsilon * w at every w from 32 / epsilon on: the bound
// is linear between the widths at which a level is cut or fits, or a weight doubles, and is checked
// there when a rule is made. Below 32 / epsilon rounding to whole values eats the budget: there a
// cover that is too coarse is replaced by the values as they came, which reach that far since R >=
// 64 / epsilon. The test drives covers of streams up to 5 * 10^9 values against the same promise.
//
// Windows by time. A block that would begin before the first value of the widest window is not
// made: it could only be cut, and then the finer one, which is kept as long, does better. The
// values up to the end of such a block of level f are then covered by a finer cut block and by
// risen ones, which together miss no more than they are, less than B_f; for frequencies each of
// them at most min(B_l, w / A), which the check takes into account.
//
// Kept: a block until it ended 2 * kappa * B_l values ago (for wider windows level l + 1 is cut),
// or is outside the widest window.
//
// Memory, in keys, for a widest window of N values, as KeysKept() adds it up:
//   min(R, N) + B_0 + sum over the levels l with B_l <= N of
//     m_l * min(4, N / B_l) + 1.2 * A * log2(min(N, 2 kappa B_l) / (4 B_l))
// values as they came; new samples; old ones, A for every doubling of the age, a fifth more as
// neighbours are thinned together. A * epsilon is 4 to 20 with default blocks (10 at epsilon = 1 %,
// 17 at 0.1 % and 10^8 values). Each level is kept for 2 kappa B_l values, so that for N beyond
// 2 kappa B_0 every doubling of N adds the same: O(R + (1 / epsilon) * log(1 / epsilon) *
// log(epsilon * N / B_0)). Measured in sliding_bench, u32, both in thousands of keys: epsilon = 1
// %, N = 10^5, 10^6, 10^7, 10^8: 117, 264, 318, 382 (formula 118, 267, 331, 407); epsilon = 0.1 %:
// 165, 1,214, 3,421, 4,202 (150, 1,192, 3,551, 4,427). So with N below R everything is kept as it
// came, and samples beside: choose smaller blocks if that is too much.
#ifndef TIDEMARK_SUMMARIES_SLIDING_RULE_H_
#define TIDEMARK_SUMMARIES_SLIDING_RULE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "summaries/quantile_rule.h"

namespace tidemark {

struct SlidingOptions {
  double epsilon = 0.01;         ///< of the window's size, at every width
  std::uint64_t max_values = 0;  ///< the widest window by count; 0: none is answered by count
  std::int64_t max_age_us = 0;   ///< the widest by time, microseconds; 0: none is answered by time
  /// Values in a block: a power of two from 64 to 2^20; 0: DefaultBlockSize(). With a smaller one
  /// fewer values are kept as they came, and merging costs more.
  std::size_t block_size = 0;
  friend bool operator==(const SlidingOptions&, const SlidingOptions&) = default;
};

class SlidingRule {
 public:
  /// Errors: throws std::invalid_argument, naming what is wrong, unless 1e-6 <= epsilon <= 0.2, at
  /// least one of the two widths is above 0, neither is above its limit (2^48 values, 2^62
  /// microseconds) and the block size is allowed.
  explicit SlidingRule(const SlidingOptions& options);

  const SlidingOptions& options() const { return options_; }
  double epsilon() const { return options_.epsilon; }
  /// How many values to sort at a time.
  std::size_t block_size() const { return options_.block_size; }
  bool by_time() const { return options_.max_age_us > 0; }

  int levels() const { return static_cast<int>(young_.size()); }
  /// B_l.
  std::uint64_t BlockValues(int level) const { return std::uint64_t{block_size()} << level; }
  std::uint64_t kappa() const { return kappa_; }
  /// R: how many of the newest values are kept as they came.
  std::uint64_t recent_values() const { return kappa_ * block_size(); }
  /// f, or -1 if the values as they came are at hand.
  int CutLevel(std::uint64_t values) const;

  /// Of a new block of quantiles: weight and slack.
  const BucketShape& YoungShape(int level) const { return young_[static_cast<std::size_t>(level)]; }
  /// D_l: what a new block of frequencies may drop.
  std::uint64_t YoungDropped(int level) const;
  /// Whether a block may grow to this weight (drop this much) when its first value is `age` old.
  bool MayWeigh(int level, std::uint64_t weight, std::uint64_t age) const {
    return age >= kYoung * BlockValues(level) && weight <= age / quantile_aging_;
  }
  bool MayDrop(int level, std::uint64_t dropped, std::uint64_t age) const {
    return age >= kYoung * BlockValues(level) && dropped <= age / frequency_aging_;
  }

  /// The same for blocks of trees (sliding_hierarchy.h).
  bool MayDropFromTree(int level, std::uint64_t dropped, std::uint64_t age) const {
    return age >= kYoung * BlockValues(level) && dropped <= age / tree_aging_;
  }

  /// How many values may lie between those surely out of and those surely in a window by time that
  /// surely holds `values`.
  std::uint64_t TimeSlack(std::uint64_t values) const;

  /// A block is not cut any more, but the one of the next level, when it ended so many values ago.
  std::uint64_t KeptFor(int level) const { return 2 * kappa_ * BlockValues(level); }
  /// Blocks of this level are never cut.
  bool NeverCut(int level) const;

  /// The formula of the comment above, for quantiles.
  std::uint64_t KeysKept(std::uint64_t values) const;

 private:
  /// A block stays as it was made until its first value is that many blocks old, so that those that
  /// fall in a cover are new: they begin less than 2 B_l and kTogether B_0 (sliding_blocks.h) ago.
  static constexpr std::uint64_t kYoung = 4;

  void MakeShapes();
  /// The least A with which the bound `width` stays within `budget` of every width.
  template <class Width>
  std::uint64_t Solve(Width width, double budget) const;
  double QuantileWidth(std::uint64_t values, std::uint64_t aging) const;
  double FrequencyWidth(std::uint64_t values, std::uint64_t aging) const;
  double TreeWidth(std::uint64_t values, std::uint64_t aging) const;
  std::pair<std::uint64_t, std::uint64_t> Widths() const;
  std::vector<std::uint64_t> Breaks() const;

  SlidingOptions options_;
  std::uint64_t kappa_;
  std::vector<BucketShape> young_;
  std::uint64_t quantile_aging_, frequency_aging_, tree_aging_;  ///< A
};

/// With it samples of a block are so few that merging them costs a fraction of the sort: the least
/// power of two that is at least 16 / epsilon, if that does not make the record keep more than 2^22
/// values as they came; at least 256, and not much more than a quarter of the widest window.
std::size_t DefaultBlockSize(double epsilon, std::uint64_t max_values);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_RULE_H_
