// How far a rank may be off, and how wide the gaps between the entries of a compact quantile
// summary may be for that: the arithmetic apart from the keys, so that a test can drive it to 2^62
// values.
//
// Promise. The answer for rank t of n values is an element whose rank is proven to lie within
//     e(t) = floor(eps * n)                                        everywhere, or
//     e(t) = floor(eps * min(r, floor(n / 2))),  r = n + 1 - t     in the tail form:
// in proportion to the distance from the upper end, counted from 1, and uniform below the middle.
// The tail form for the lower end is its mirror image: keys complemented, ranks counted from the
// other side; nothing below speaks of it again.
//
// Gap. A summary is one or more parts (ranked_samples.h), each of which holds, for neighbours x < y
// of different keys and some f <= eps,
//     high(y) - low(x) <= 1 + 2 * floor(f * B(y)),                                              (1)
//     B(y) = count, or in the tail form min(count + 1 - high(y), floor(count / 2)).
//
// Uniting parts (Cormode and others call it merging) leaves (1) true for their union. Let x < y be
// neighbours in the union, and S, D the parts. Each has the same entries at or below x as below y,
// so that it adds to high(y) - low(x) - 1 at most the width of one of its own gaps, whose upper
// entry y_S is not below y: 2 * floor(f * B_S(y_S)) + 2 * floor(f * B_D(y_D)). The numbers of
// values that are certainly not below y add up, B_S(y_S) + B_D(y_D) <= B(y), and floor(a) +
// floor(b) <= floor(a + b). Nothing is lost: f stays, however often it is done. A window digest
// (stride - 1 <= 2 * floor(f * count), or (1) itself in the tail form) is such a part. Pruning
// drops entries as long as (1) holds for what is left.
//
// What an answer is worth. With A(x) and B'(y) the lower bound of the number of values <= x and the
// upper bound of those < y, sums over the parts, the proof of quantile_view.h needs for every t: if
// x is the last sample with B'(x) + 1 <= t + e, e = e(t), then A(x) >= t - e. Uniform: the widths
// add up to at most 2 * floor(f * n) <= 2e. Tail: let y follow x. n - B'(y) values are certainly
// not below y, so that the widths add up to at most 2 * floor(f * min(n - B'(y), n/2)), and
//     A(x) >= B'(y) - 2 * floor(f * min(n - B'(y), n/2)),
// which grows with B'(y) >= t + e; put that in: n - (t + e) < r, the last term is at most 2e, and
// A(x) >= t + e - 2e. The open window is a part of width 0.
//
// Shares. f = share * eps.
// - Uniform: share = 1/2. So every answer is within eps/2, and the half that is left pays for an
//   export of keys at even ranks without their bounds (quantile_export.h) and for windows that a
//   query does not wait for.
// - Tail: share = 1 - (7/8)^d / 4 at depth d, the number of times that two parts of like size
//   had to become one (compact_quantiles.h says when). A series, so that there is room to prune at
//   every depth, for ever.
// - Digests of windows: an eighth of the share at depth 0 (uniform: stride = eps * count / 8); a
//   sixth where eps * count is 1,000 or more. Coarser ones leave more entries in random order, the
//   more so the more windows there are; finer ones cost the window more time. At 0.1 % and
//   n = 10^8 a sixth takes 9 % more memory than an eighth, and up to an eighth less time.
#ifndef TIDEMARK_SUMMARIES_RANK_RULE_H_
#define TIDEMARK_SUMMARIES_RANK_RULE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "summaries/fraction.h"

namespace tidemark {

/// Where ranks are known in proportion to their distance from an end.
enum class TailEnd : std::uint8_t { kNone = 0, kUpper = 1, kLower = 2 };

/// (1) for a part of `count` values, the lower end mirrored.
struct GapLimit {
  std::uint64_t fraction = 0;  ///< f, in 2^-64
  std::uint64_t count = 0;
  bool tail = false;

  /// The most that High - Low of quantile_view.h may come to below an entry whose upper bound is
  /// `high`. Grows as `high` falls, and by less than `high` does.
  std::uint64_t Width(std::uint64_t high) const {
    const std::uint64_t base = tail ? std::min(count + 1 - high, count / 2) : count;
    return 2 * static_cast<std::uint64_t>(static_cast<Uint128>(fraction) * base >> 64);
  }
};

class RankRule {
 public:
  /// Errors: throws std::invalid_argument unless 0 < epsilon <= 0.5 (at least 2^-40).
  RankRule(double epsilon, TailEnd end);

  double epsilon() const { return epsilon_; }
  TailEnd end() const { return end_; }
  bool tail() const { return end_ != TailEnd::kNone; }

  /// epsilon, in 2^-64.
  std::uint64_t fraction() const { return fraction_; }

  /// e(t) of the promise. REQUIRES: 1 <= target <= n.
  std::uint64_t Promise(std::uint64_t target, std::uint64_t n) const;

  /// Of a part of `count` values that was made by `depth` unions of parts of like size.
  GapLimit Limit(std::uint64_t count, int depth) const;
  /// Of the digest of a window.
  GapLimit DigestLimit(std::uint64_t count) const;

  /// How many entries a part may come to before the next window begins a part of its own; no limit
  /// in the uniform form, whose single part stays small in any order.
  std::size_t EntryLimit(std::uint64_t count, int depth) const;

  /// Whether parts of such counts become one. REQUIRES: smaller <= larger, or little more.
  bool Unites(std::uint64_t larger, std::uint64_t smaller) const {
    return !tail() || smaller >= larger / 2;
  }

  /// Windows of fewer values are collected until they are so many together, and then taken in at
  /// once: 2^ceil(log2(4 / eps)), as many as are kept whole (quantile_rule.h).
  std::uint64_t collected() const { return collected_; }

  friend bool operator==(const RankRule& a, const RankRule& b) {
    return a.epsilon_ == b.epsilon_ && a.end_ == b.end_;
  }

 private:
  std::uint64_t Fraction(int depth) const;

  double epsilon_;
  TailEnd end_;
  std::uint64_t fraction_;  ///< eps, in 2^-64
  std::uint64_t collected_ = 1;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_RANK_RULE_H_
