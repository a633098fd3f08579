// Quantiles, ranks and histograms of a stream at one moment, each with its certificate: the answer
// side of QuantileSummary.
//
// A view covers n values: those of a summary's snapshot, part by part (buckets of samples whose
// ranks are an affine function of the position, and samples that carry their rank bounds), those of
// the open window (sorted, known exactly), and `unseen` ones that are known to exist but whose
// values are not at hand (windows being sorted). Lower bounds take the unseen ones to lie above
// whatever is asked, upper bounds below.
//
// Guarantee: every bound holds for every input order. The certificate of each quantile lies within
// worst_gap() of its target; while unseen == 0 that is at most epsilon * n if the summary keeps its
// own promise, and answers are exact while the summary is.
//
// Proof. Let A(v) and B(v) be the lower bound of the number of values <= v and the upper bound of
// those < v, sums over the parts. For neighbours x < y among all samples, each part has the same
// samples at or below x as it has below y, so that it adds to B(y) - A(x) at most its width: w + E
// - 1 for a bucket (quantile_rule.h), RankedSamples::Width(), 0 for the open window. Their sum,
// with the unseen, is W. The certificate of v for the target t is no wider than [min(t, A(v)),
// max(t, B(v) + 1)]. Let e = ceil(W / 2), and x the last sample with B(x) + 1 <= t + e. If there is
// a next one y, then A(x) >= B(y) - W >= t + e - W >= t - e. If not, x is the maximum and A(x) = n
// - unseen; if there is no such x, t + e lies below the bound of the minimum, 1 + unseen. Hence e =
// max(unseen, ceil(W / 2)) is enough. A part of c values that bounds ranks without being an answer
// (an edge) may have samples of its own between x and y: it adds c to W, and to `unseen` where the
// ends are concerned.
//
// Cost: a quantile is a selection over all samples by bisection, O(log(samples)) rounds of two
// binary searches in each part; nothing is merged or copied.
#ifndef TIDEMARK_SUMMARIES_QUANTILE_VIEW_H_
#define TIDEMARK_SUMMARIES_QUANTILE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "summaries/cdf_steps.h"
#include "summaries/quantile_summary.h"

namespace tidemark {

/// The true numbers of values < v and <= v lie in these closed intervals.
struct RankBounds {
  std::uint64_t less_low = 0, less_high = 0;
  std::uint64_t at_most_low = 0, at_most_high = 0;
};

template <class Key>
struct QuantileAnswer {
  Key value = 0;             ///< an element of the stream
  std::uint64_t target = 0;  ///< the rank asked for, from 1
  /// Of the positions that `value` takes in sorted order (from 1, several for equal values), the
  /// one nearest to `target` lies in [rank_low, rank_high].
  std::uint64_t rank_low = 0, rank_high = 0;
};

/// The rank that a share phi of n values asks for: ceil(phi * n), at least 1, at most n (0 if n is
/// 0). 0.1 of 30 is 3 (fraction.h).
std::uint64_t TargetRank(double phi, std::uint64_t n);

/// Thread: const methods from any thread. Lifetime: `open_sorted` outlives the view.
template <class Key>
class QuantileView {
 public:
  /// `open_sorted`: ascending, any number of keys. `epsilon`: the error bound that WithinEpsilon()
  /// is asked of; the snapshot's unless given.
  explicit QuantileView(QuantileSnapshot<Key> snapshot, std::span<const Key> open_sorted = {},
                        std::uint64_t unseen = 0, std::optional<double> epsilon = std::nullopt);

  std::uint64_t n() const { return n_; }
  std::uint64_t unseen() const { return unseen_; }
  double epsilon() const { return epsilon_; }
  TailEnd end() const { return snapshot_.end; }
  /// Every value is at hand: low == high in all answers. Cost: as worst_gap().
  bool exact() const { return Width() == 0; }

  /// How far from its target a bound of a quantile's certificate can lie, whatever the target.
  /// Cost: one pass over samples that carry their rank bounds.
  std::uint64_t worst_gap() const;
  /// worst_gap() is within epsilon * n. True whenever unseen == 0; with unseen values it tells
  /// whether they are few enough to answer without waiting for them. Where epsilon is in proportion
  /// to the distance from an end, no unseen value is few enough.
  bool WithinEpsilon() const;

  /// Of any key, in the stream or not. All zero if n is 0.
  RankBounds Bounds(Key v) const;

  /// phi 0 gives the minimum and 1 the maximum, exactly (of the values at hand).
  /// Errors: throws std::invalid_argument unless 0 <= phi <= 1, std::logic_error if no value is at
  /// hand (n is 0, or all are unseen or in edges).
  QuantileAnswer<Key> Quantile(double phi) const;
  /// One answer for each phi, in their order; ascending phis share their search.
  std::vector<QuantileAnswer<Key>> Quantiles(std::span<const double> phis) const;

  /// The answers for given ranks instead of shares: ascending ones, from 1 to n.
  /// Errors: throws std::invalid_argument for others, std::logic_error as above.
  std::vector<QuantileAnswer<Key>> AtRanks(std::span<const std::uint64_t> ascending_ranks) const;

  /// Upper bounds that divide the stream into at most `buckets` parts of nearly equal count:
  /// quantiles of i / buckets, ascending, without repetition; the last one is the maximum. Empty if
  /// n is 0. Errors: throws std::invalid_argument if `buckets` is 0.
  std::vector<Key> EquiDepthBounds(std::size_t buckets) const;

  /// Every sample once, with what all parts together prove of its rank: the view as one part.
  /// Errors: throws std::logic_error if there are unseen values.
  RankedSamples<Key> Samples() const;

  /// The numbers of values v <= b_0, b_0 < v <= b_1, …, v > b_last: one more than there are bounds.
  /// Tighter than differences of Bounds(): each bucket of samples bounds its own share.
  /// Errors: throws std::invalid_argument unless the bounds ascend (equal ones are allowed).
  std::vector<CountBounds> CountsBetween(std::span<const Key> ascending_bounds) const;

  /// The bounds of the number of values <= v for every v. The keys are elements. Cost: one pass
  /// over all samples and the open window for each part.
  CdfSteps<Key> Steps() const;

 private:
  /// One sorted array of samples and what they stand for.
  struct Part {
    const Key* keys;
    std::size_t size;
    BucketShape shape;                           ///< where `ranked` is null
    const RankedSamples<Key>* ranked = nullptr;  ///< has the bounds of their ranks
    bool edge = false;                           ///< bounds ranks, and is no answer

    std::uint64_t count() const { return ranked != nullptr ? ranked->count : shape.count(); }
    std::uint64_t Low(std::size_t samples) const;
    std::uint64_t High(std::size_t samples) const;
    std::uint64_t Width() const;
  };
  /// For one key and one part: the number of samples < key and <= key.
  struct Place {
    std::size_t less, at_most;
  };
  /// A range of one part that a search has not decided yet.
  struct Range {
    std::size_t begin, end;
  };
  struct Candidate {
    Key value;
    RankBounds bounds;
    bool found = false;
  };
  /// What one search for ascending targets carries on: for each part a range and a place.
  struct Search {
    explicit Search(std::size_t parts) : ranges(parts, Range{0, 0}), places(parts) {
      medians.reserve(parts);
    }
    std::vector<Range> ranges;
    std::vector<Place> places;
    std::vector<std::pair<Key, std::size_t>> medians;
    Candidate below;
  };

  Place Find(const Part& part, Key v, Range within) const;
  /// `place(i)` is that of v in parts_[i].
  template <class PlaceOf>
  RankBounds BoundsAt(Key v, PlaceOf place) const;
  Key Pivot(Search& search) const;
  QuantileAnswer<Key> Select(std::uint64_t target, Search& search) const;
  std::uint64_t Width() const;
  bool HasAnswers() const;
  void RequireValues() const;

  // parts_ holds the buckets of the snapshot, then its ranked samples, its edges, the open window,
  // and the minimum of the buckets alone (it stands for no values: BoundsAt knows its rank); empty
  // ones are left out. What they point to stays in place when a view is copied or moved.
  QuantileSnapshot<Key> snapshot_;
  std::shared_ptr<const Key> min_;
  std::vector<Part> parts_;
  std::size_t bucket_parts_;   ///< how many of parts_ are buckets of the snapshot
  std::size_t counted_parts_;  ///< how many of parts_ stand for values
  std::uint64_t unseen_;
  std::uint64_t n_;
  double epsilon_;
};

extern template class QuantileView<std::uint32_t>;
extern template class QuantileView<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_QUANTILE_VIEW_H_
