#include "summaries/quantile_view.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "summaries/fraction.h"

namespace tidemark {
namespace {

/// The first index in [begin, end) whose key is not below v. (With a conditional move forced
/// instead of the branch that GCC 12 makes, a quantile took 2.8 instead of 1.9 us: speculation
/// loads ahead.)
template <class Key>
std::size_t LowerBound(const Key* keys, std::size_t begin, std::size_t end, Key v) {
  std::size_t length = end - begin;
  const Key* base = keys + begin;
  while (length > 1) {
    const std::size_t half = length / 2;
    base += base[half - 1] < v ? half : 0;
    length -= half;
  }
  return static_cast<std::size_t>(base - keys) + (length == 1 && *base < v ? 1 : 0);
}

}  // namespace

std::uint64_t TargetRank(double phi, std::uint64_t n) {
  return std::min(std::max<std::uint64_t>(1, CeilFraction(phi, n)), n);
}

template <class Key>
QuantileView<Key>::QuantileView(QuantileSnapshot<Key> snapshot, std::span<const Key> open_sorted,
                                std::uint64_t unseen, std::optional<double> epsilon)
    : snapshot_(std::move(snapshot)),
      unseen_(unseen),
      n_(snapshot_.count + open_sorted.size() + unseen),
      epsilon_(epsilon.value_or(snapshot_.epsilon)) {
  for (const auto& packed : snapshot_.packed) {
    snapshot_.ranked.push_back(std::make_shared<const RankedSamples<Key>>(packed->Unpack()));
  }
  snapshot_.packed.clear();
  parts_.reserve(snapshot_.buckets.size() + snapshot_.ranked.size() + snapshot_.edges.size() + 2);
  for (const auto& bucket : snapshot_.buckets) {
    parts_.push_back({bucket.keys.get(), bucket.shape.samples, bucket.shape});
  }
  bucket_parts_ = parts_.size();
  for (const auto& ranked : snapshot_.ranked) {
    if (ranked->count > 0) {
      parts_.push_back({ranked->keys.data(), ranked->keys.size(), {}, ranked.get()});
    }
  }
  for (const auto& edge : snapshot_.edges) {
    if (edge->count > 0) {
      parts_.push_back({edge->keys.data(), edge->keys.size(), {}, edge.get(), true});
    }
  }
  if (!open_sorted.empty()) {
    parts_.push_back({open_sorted.data(), open_sorted.size(), {1, open_sorted.size(), 0}});
  }
  counted_parts_ = parts_.size();
  if (bucket_parts_ > 0) {
    min_ = std::make_shared<const Key>(snapshot_.min);
    parts_.push_back({min_.get(), 1, {1, 0, 0}});
  }
  assert(std::accumulate(parts_.begin(), parts_.end(), unseen,
                         [](std::uint64_t sum, const Part& part) { return sum + part.count(); }) ==
         n_);
}

template <class Key>
std::uint64_t QuantileView<Key>::Width() const {
  std::uint64_t width = unseen_;
  for (std::size_t i = 0; i < counted_parts_; ++i) width += parts_[i].Width();
  return width;
}

template <class Key>
std::uint64_t QuantileView<Key>::worst_gap() const {
  const std::uint64_t width = Width();
  std::uint64_t at_ends = unseen_;
  for (const auto& edge : snapshot_.edges) at_ends += edge->count;
  return std::max(at_ends, width / 2 + width % 2);
}

template <class Key>
bool QuantileView<Key>::WithinEpsilon() const {
  if (snapshot_.end != TailEnd::kNone) return unseen_ == 0;
  return worst_gap() <= FloorFraction(epsilon_, n_);
}

// At least so many of the part's values come no later than its `samples`-th sample.
template <class Key>
std::uint64_t QuantileView<Key>::Part::Low(std::size_t samples) const {
  return ranked != nullptr ? ranked->Low(samples) : samples * shape.weight;
}

// At most so many of the part's values come before its sample number `samples` + 1. The last sample
// is the maximum, so that one of the values comes behind unless all samples are counted.
template <class Key>
std::uint64_t QuantileView<Key>::Part::High(std::size_t samples) const {
  if (ranked != nullptr) return ranked->High(samples);
  if (samples == size) return shape.count();
  return std::min((samples + 1) * shape.weight + shape.slack - 1, shape.count() - 1);
}

template <class Key>
std::uint64_t QuantileView<Key>::Part::Width() const {
  if (edge) return ranked->count;
  return ranked != nullptr ? ranked->Width() : shape.weight - 1 + shape.slack;
}

template <class Key>
template <class PlaceOf>
RankBounds QuantileView<Key>::BoundsAt(Key v, PlaceOf place) const {
  RankBounds bounds;
  const auto add = [&](std::size_t i) {
    const Place at = place(i);
    bounds.less_low += parts_[i].Low(at.less);
    bounds.less_high += parts_[i].High(at.less);
    bounds.at_most_low += parts_[i].Low(at.at_most);
    bounds.at_most_high += parts_[i].High(at.at_most);
  };
  for (std::size_t i = 0; i < bucket_parts_; ++i) add(i);
  if (bucket_parts_ > 0) {
    if (v <= snapshot_.min) bounds.less_low = bounds.less_high = 0;
    if (v < snapshot_.min) bounds.at_most_low = bounds.at_most_high = 0;
    if (v > snapshot_.min) bounds.less_low = std::max<std::uint64_t>(bounds.less_low, 1);
    if (v >= snapshot_.min) bounds.at_most_low = std::max<std::uint64_t>(bounds.at_most_low, 1);
  }
  for (std::size_t i = bucket_parts_; i < counted_parts_; ++i) add(i);
  bounds.less_high += unseen_;
  bounds.at_most_high += unseen_;
  return bounds;
}

template <class Key>
typename QuantileView<Key>::Place QuantileView<Key>::Find(const Part& part, Key v,
                                                          Range within) const {
  Place place;
  place.less = LowerBound(part.keys, within.begin, within.end, v);
  place.at_most = place.less;
  if (place.less < within.end && part.keys[place.less] == v) {
    // Equal keys: seldom many, so from the front, doubling.
    std::size_t step = 1, known = place.less;
    while (known + step < within.end && part.keys[known + step] == v) {
      known += step;
      step *= 2;
    }
    const std::size_t end = std::min(known + step, within.end);
    place.at_most = v == static_cast<Key>(-1)
                        ? within.end
                        : LowerBound(part.keys, known + 1, end, static_cast<Key>(v + 1));
  }
  return place;
}

template <class Key>
RankBounds QuantileView<Key>::Bounds(Key v) const {
  return BoundsAt(v, [&](std::size_t i) { return Find(parts_[i], v, {0, parts_[i].size}); });
}

// A key such that at least a quarter of the undecided samples lie at or below it and at least a
// quarter at or above it: the median of the ranges' medians, weighted by the ranges' lengths.
template <class Key>
Key QuantileView<Key>::Pivot(Search& search) const {
  auto& medians = search.medians;
  medians.clear();
  std::size_t total = 0;
  for (std::size_t i = 0; i < search.ranges.size(); ++i) {
    const std::size_t length = search.ranges[i].end - search.ranges[i].begin;
    if (length == 0 || parts_[i].edge) continue;
    const Key median = parts_[i].keys[search.ranges[i].begin + length / 2];
    std::size_t at = medians.size();
    medians.emplace_back();
    for (; at > 0 && medians[at - 1].first > median; --at) medians[at] = medians[at - 1];
    medians[at] = {median, length};
    total += length;
  }
  std::size_t at = 0;
  for (std::size_t below = medians[0].second; 2 * below < total; below += medians[at].second) ++at;
  return medians[at].first;
}

// The certificate of a candidate v for target t is [low(v), high(v)], where the position nearest to
// t is a clamp of t between v's first and last position, and so grows with v. Its distance from t,
// max(t - low, high - t), therefore falls while low + high <= 2t and grows after: the best
// candidate is the last of the former or the first of the latter. The search keeps, in each part,
// the range of candidates of which it is not known yet; a pivot decides its own and all on one side
// of it.
template <class Key>
QuantileAnswer<Key> QuantileView<Key>::Select(std::uint64_t target, Search& search) const {
  const auto certify = [target](const Candidate& candidate) {
    const RankBounds& b = candidate.bounds;
    QuantileAnswer<Key> answer;
    answer.value = candidate.value;
    answer.target = target;
    // The value is in the stream: its first position is at most at_most, its last at least less
    // + 1.
    answer.rank_low = std::max(b.less_low + 1, std::min(target, b.at_most_low));
    answer.rank_high =
        std::max(std::min(b.less_high + 1, b.at_most_high), std::min(target, b.at_most_high));
    return answer;
  };
  const auto off = [target](const QuantileAnswer<Key>& answer) {
    return std::max(target > answer.rank_low ? target - answer.rank_low : 0,
                    answer.rank_high > target ? answer.rank_high - target : 0);
  };

  auto& [ranges, places, medians, below] = search;
  Candidate above;
  for (std::size_t i = 0; i < parts_.size(); ++i) ranges[i].end = parts_[i].size;
  const auto undecided = [this, &search] {  // clang before 16 captures no structured binding
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (search.ranges[i].begin < search.ranges[i].end && !parts_[i].edge) return true;
    }
    return false;
  };
  while (undecided()) {
    Candidate candidate;
    candidate.found = true;
    candidate.value = Pivot(search);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      places[i] = Find(parts_[i], candidate.value, ranges[i]);
    }
    candidate.bounds = BoundsAt(candidate.value, [&](std::size_t i) { return search.places[i]; });
    const QuantileAnswer<Key> answer = certify(candidate);
    // The sum fits: both are at most n < 2^63.
    const bool is_below = answer.rank_low + answer.rank_high <= 2 * target;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (is_below) {
        ranges[i].begin = places[i].at_most;
      } else {
        ranges[i].end = places[i].less;
      }
    }
    (is_below ? below : above) = candidate;
  }
  if (!above.found) return certify(below);
  if (!below.found) return certify(above);
  const QuantileAnswer<Key> lower = certify(below), upper = certify(above);
  return off(lower) <= off(upper) ? lower : upper;
}

template <class Key>
bool QuantileView<Key>::HasAnswers() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return !part.edge; });
}

template <class Key>
void QuantileView<Key>::RequireValues() const {
  if (!HasAnswers()) {
    throw std::logic_error(n_ == 0 ? "a quantile was asked of an empty stream"
                                   : "a quantile was asked before any of the stream's " +
                                         std::to_string(n_) + " values is at hand");
  }
}

template <class Key>
QuantileAnswer<Key> QuantileView<Key>::Quantile(double phi) const {
  return Quantiles({&phi, 1}).front();
}

template <class Key>
std::vector<QuantileAnswer<Key>> QuantileView<Key>::Quantiles(std::span<const double> phis) const {
  for (const double phi : phis) {
    if (!(phi >= 0 && phi <= 1)) {
      throw std::invalid_argument("phi is " + std::to_string(phi) +
                                  ", expected a number from 0 to 1");
    }
  }
  std::vector<QuantileAnswer<Key>> answers(phis.size());
  if (phis.empty()) return answers;
  RequireValues();
  std::vector<std::pair<std::uint64_t, std::size_t>> order(phis.size());
  for (std::size_t i = 0; i < phis.size(); ++i) order[i] = {TargetRank(phis[i], n_), i};
  std::sort(order.begin(), order.end());
  Search search(parts_.size());
  for (const auto& [target, i] : order) answers[i] = Select(target, search);
  return answers;
}

template <class Key>
std::vector<QuantileAnswer<Key>> QuantileView<Key>::AtRanks(
    std::span<const std::uint64_t> ascending_ranks) const {
  if (ascending_ranks.empty()) return {};
  if (ascending_ranks.front() < 1 || ascending_ranks.back() > n_ ||
      !std::is_sorted(ascending_ranks.begin(), ascending_ranks.end())) {
    throw std::invalid_argument("ranks were asked that do not ascend from 1 to " +
                                std::to_string(n_));
  }
  RequireValues();
  std::vector<QuantileAnswer<Key>> answers;
  answers.reserve(ascending_ranks.size());
  // What lies below one target lies below every greater one: low + high - 2t falls as t grows.
  Search search(parts_.size());
  for (const std::uint64_t target : ascending_ranks) answers.push_back(Select(target, search));
  return answers;
}

template <class Key>
std::vector<Key> QuantileView<Key>::EquiDepthBounds(std::size_t buckets) const {
  if (buckets == 0) {
    throw std::invalid_argument(
        "an equi-depth histogram of 0 buckets was asked, expected 1 or more");
  }
  if (n_ == 0) return {};
  std::vector<double> phis(buckets);
  for (std::size_t i = 0; i < buckets; ++i) {
    phis[i] = static_cast<double>(i + 1) / static_cast<double>(buckets);
  }
  std::vector<Key> bounds;
  for (const auto& answer : Quantiles(phis)) {
    // Answers ascend with their targets; equal ones stand for one heavy value.
    if (bounds.empty() || answer.value > bounds.back()) bounds.push_back(answer.value);
  }
  return bounds;
}

// Of the values equal to v the first has a rank of at most less_high + 1 and the last one of at
// least at_most_low. If these cross, one value lies between them; if not, v is there twice.
template <class Key>
RankedSamples<Key> QuantileView<Key>::Samples() const {
  if (unseen_ > 0) {
    throw std::logic_error("the samples of a view were asked for that has " +
                           std::to_string(unseen_) + " unseen values");
  }
  std::vector<Key> keys;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    keys.insert(keys.end(), parts_[i].keys, parts_[i].keys + parts_[i].size);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  RankedSamples<Key> samples{.count = n_};
  const auto append = [&](Key key, std::uint64_t low, std::uint64_t high) {
    // Later elements have greater ranks.
    if (!samples.low.empty()) low = std::max(low, samples.low.back() + 1);
    samples.keys.push_back(key);
    samples.low.push_back(low);
    samples.high.push_back(high);
  };
  for (const Key key : keys) {
    const RankBounds bounds = Bounds(key);
    if (bounds.at_most_low <= bounds.less_high + 1) {
      append(key, bounds.at_most_low, bounds.less_high + 1);
    } else {
      append(key, bounds.less_low + 1, bounds.less_high + 1);
      append(key, bounds.at_most_low, bounds.at_most_high);
    }
  }
  for (std::size_t i = samples.high.size(); i-- > 1;) {
    samples.high[i - 1] = std::min(samples.high[i - 1], samples.high[i] - 1);
  }
  return samples;
}

template <class Key>
std::vector<CountBounds> QuantileView<Key>::CountsBetween(
    std::span<const Key> ascending_bounds) const {
  if (!std::is_sorted(ascending_bounds.begin(), ascending_bounds.end())) {
    throw std::invalid_argument("the bounds of a histogram do not ascend");
  }
  std::vector<CountBounds> counts(ascending_bounds.size() + 1);
  // From before the first value to behind the last, each part on its own: of a part's values
  // between two bounds there are at least (surely <= upper) - (possibly <= lower), and at least one
  // if a sample lies between them; at most (possibly <= upper) - (surely <= lower).
  for (std::size_t i = 0; i < counted_parts_; ++i) {
    const Part& part = parts_[i];
    std::size_t samples = 0;          // at or below the bound before
    std::uint64_t low = 0, high = 0;  // bounds of the number of values there
    for (std::size_t j = 0; j < counts.size(); ++j) {
      const bool last = j == ascending_bounds.size();
      const std::size_t next =
          last ? part.size : Find(part, ascending_bounds[j], {samples, part.size}).at_most;
      const std::size_t next_samples = std::max(samples, next);
      const bool below_all = i < bucket_parts_ && !last && ascending_bounds[j] < snapshot_.min;
      const std::uint64_t next_low = part.Low(next_samples);
      const std::uint64_t next_high = below_all ? 0 : part.High(next_samples);
      const std::uint64_t sure = next_low > high ? next_low - high : 0;
      counts[j].low += std::max<std::uint64_t>(sure, next_samples > samples && !part.edge ? 1 : 0);
      counts[j].high += next_high - low;
      samples = next_samples;
      low = next_low;
      high = next_high;
    }
  }
  // The minimum is known apart, and so are the bounds of each end over all parts: take what is
  // tighter.
  RankBounds before;  // nothing lies before the first value
  for (std::size_t j = 0; j < counts.size(); ++j) {
    const bool last = j == ascending_bounds.size();
    const RankBounds here = last ? RankBounds{n_, n_, n_, n_} : Bounds(ascending_bounds[j]);
    const bool empty = j > 0 && !last && ascending_bounds[j] == ascending_bounds[j - 1];
    CountBounds& count = counts[j];
    if (here.at_most_low > before.at_most_high) {
      count.low = std::max(count.low, here.at_most_low - before.at_most_high);
    }
    count.high = empty ? 0 : std::min(count.high + unseen_, here.at_most_high - before.at_most_low);
    before = here;
  }
  return counts;
}

template <class Key>
CdfSteps<Key> QuantileView<Key>::Steps() const {
  CdfSteps<Key> steps;
  steps.n = n_;
  steps.below = unseen_;
  // Those of edges last: they may have come before the window, and are no values of it then.
  for (const bool edges : {false, true}) {
    std::vector<Key> merged;
    for (const Part& part : parts_) {
      if (part.edge != edges) continue;
      merged.clear();
      merged.reserve(steps.keys.size() + part.size);
      std::merge(steps.keys.begin(), steps.keys.end(), part.keys, part.keys + part.size,
                 std::back_inserter(merged));
      steps.keys.swap(merged);
    }
    steps.keys.erase(std::unique(steps.keys.begin(), steps.keys.end()), steps.keys.end());
    if (!edges) steps.elements = steps.keys.size();
  }
  steps.low.reserve(steps.keys.size());
  steps.high.reserve(steps.keys.size());
  std::vector<std::size_t> at_most(parts_.size(), 0);
  for (const Key v : steps.keys) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      while (at_most[i] < parts_[i].size && parts_[i].keys[at_most[i]] <= v) ++at_most[i];
    }
    const RankBounds bounds = BoundsAt(v, [&](std::size_t i) {
      return Place{at_most[i], at_most[i]};
    });
    steps.low.push_back(bounds.at_most_low);
    steps.high.push_back(bounds.at_most_high);
  }
  return steps;
}

template class QuantileView<std::uint32_t>;
template class QuantileView<std::uint64_t>;

}  // namespace tidemark
