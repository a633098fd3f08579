// From bounds of prefixes' counts to hierarchical heavy hitters: which prefixes to report, and how
// many values lie below each that no reported prefix below it has.
//
// Definitions (Cormode, Korn, Muthukrishnan, Srivastava, VLDB 2003). f(p) is the number of values
// below a prefix p. Given a set P of prefixes, the discounted count F(p) is the number of values
// below p that are below no prefix of P which is itself below p (and not p): f(p) less the f of
// M(p), the topmost ones of P below p, whose values are disjoint. With exact counts and a threshold
// t, the hierarchical heavy hitters are the P made from the finest level to the coarsest, in which
// p is if F(p) >= t with respect to what is in P already.
//
// Guarantee, for low(p) <= f(p) <= high(p) of all candidates, and f(p) < t for every other prefix:
//   coverage   every prefix that is not reported, on any level, seen or not, has F(p) < t with
//              respect to what is reported.
//   accuracy   discounted_low <= F(p) <= discounted_high for each reported p, again with respect to
//              what is reported; and F(p) >= t - (high - low of p) - (the sum of high - low of
//              M(p)).
//   few        the F of all reported prefixes add up to at most n; so with widths of at most w,
//              and t > 2w, at most n / (t - 2w) prefixes are reported.
// Where all counts are exact the answer is the hierarchical heavy hitters.
// Not guaranteed: that every exact hierarchical heavy hitter is reported, nor that what is reported
// is one. A prefix p of the exact set that is missing has a reported prefix below it which is not
// of the exact set and takes its values; if all that is reported below p is of the exact set, p is
// reported, since F(p) is then at least its exact discounted count. So on the finest level none is
// missing.
//
// Proof. p is reported if and only if high(p) - sum of low(h) over M(p) >= t. That number is at
// least F(p), which is coverage for candidates, and any other prefix has F(p) <= f(p) < t. A value
// counts in the F of the lowest reported prefix above it alone, so that the F add up to at most n;
// with r reported prefixes sum |M(p)| <= r, so that n >= r * t - w * r - w * r. For discounted_low:
// low(p) - sum of high(h) over M(p) is one bound. Another follows the levels: F(p) is the sum of
// F(c) over the candidates c right below p that are not reported, and of what is below p but below
// no candidate right below. Of low(p), low(p) - sum of low(c) is not counted below candidates, and
// at most sum of (high(c) - low(c)) of that belongs to them; where counts are kept in one tree, at
// most what is counted at p itself (`own`).
#ifndef TIDEMARK_SUMMARIES_DISCOUNTED_COUNTS_H_
#define TIDEMARK_SUMMARIES_DISCOUNTED_COUNTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace tidemark {

/// A prefix of an answer. Its true count lies in [count_low, count_high], its true discounted
/// count, with respect to the prefixes of the same answer, in [discounted_low, discounted_high].
template <class Key>
struct HierarchyItem {
  Key prefix = 0;
  int level = 0;
  std::uint64_t count_low = 0, count_high = 0;
  std::uint64_t discounted_low = 0, discounted_high = 0;
  friend bool operator==(const HierarchyItem&, const HierarchyItem&) = default;
};

namespace internal {

/// A prefix that may be heavy.
template <class Key>
struct HierarchyCandidate {
  static constexpr std::size_t kNoParent = std::numeric_limits<std::size_t>::max();

  Key prefix = 0;
  std::uint64_t low = 0, high = 0;  ///< of its count, without unseen values
  std::size_t parent = kNoParent;   ///< what stands right above it: its place on the level above
  /// Of the values that `low` has and the candidates right below have not, at most so many may be
  /// theirs, beside what their own bounds say.
  std::uint64_t own = std::numeric_limits<std::uint64_t>::max();
};

/// What the candidates below a prefix come to.
struct BelowPrefix {
  std::uint64_t reported_low = 0, reported_high = 0;  // of the topmost ones that are reported
  std::uint64_t low = 0, width = 0;                   // of those right below
  std::uint64_t discounted_low = 0;                   // of those right below, unless reported
};

/// `levels`: the candidates of each level, the coarsest first; those right below a prefix with a
/// candidate have it as their parent, and are candidates only if it is one. `threshold`: t, above
/// 0. `unseen`: that many values more, each of which may be below any prefix. By discounted_high,
/// then discounted_low, the largest first, then the finer level, then by prefix.
template <class Key>
std::vector<HierarchyItem<Key>> ReportDiscounted(
    const std::vector<std::vector<HierarchyCandidate<Key>>>& levels, std::uint64_t threshold,
    std::uint64_t unseen) {
  std::vector<HierarchyItem<Key>> items;
  std::vector<BelowPrefix> below, above;
  for (std::size_t level = levels.size(); level-- > 0;) {
    const auto& candidates = levels[level];
    std::swap(below, above);
    below.resize(candidates.size());
    above.assign(level > 0 ? levels[level - 1].size() : 0, {});
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const HierarchyCandidate<Key>& candidate = candidates[i];
      const BelowPrefix& taken = below[i];
      const auto less = [](std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); };
      const std::uint64_t width = candidate.high - candidate.low;
      const std::uint64_t discounted_high = less(candidate.high, taken.reported_low) + unseen;
      const std::uint64_t rest = less(candidate.low, taken.low);
      const std::uint64_t discounted_low =
          std::max(less(candidate.low, taken.reported_high),
                   taken.discounted_low + less(rest, std::min(candidate.own, taken.width)));
      const bool reported = discounted_high >= threshold;
      if (reported) {
        items.push_back({candidate.prefix, static_cast<int>(level), candidate.low,
                         candidate.high + unseen, discounted_low, discounted_high});
      }
      if (candidate.parent == HierarchyCandidate<Key>::kNoParent) continue;
      BelowPrefix& parent = above[candidate.parent];
      parent.low += candidate.low;
      parent.width += width;
      parent.reported_low += reported ? candidate.low : taken.reported_low;
      parent.reported_high += reported ? candidate.high : taken.reported_high;
      parent.discounted_low += reported ? 0 : discounted_low;
    }
  }
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return std::tie(b.discounted_high, b.discounted_low, b.level, a.prefix) <
           std::tie(a.discounted_high, a.discounted_low, a.level, b.prefix);
  });
  return items;
}

}  // namespace internal
}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_DISCOUNTED_COUNTS_H_
