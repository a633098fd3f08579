#include "summaries/correlated_view.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "summaries/key_codec.h"
#include "summaries/pair_window.h"

namespace tidemark {
namespace {

/// A y as EncodeKey maps it, as the nearest double not above or not below.
double LowerY(std::uint64_t key, SumType type) {
  if (type == SumType::kFloat64) return DecodeFloat64(key);
  return LowerDouble(type == SumType::kInt64 ? Int128{DecodeInt64(key)} : Int128{key}, 0);
}
double UpperY(std::uint64_t key, SumType type) {
  if (type == SumType::kFloat64) return DecodeFloat64(key);
  return UpperDouble(type == SumType::kInt64 ? Int128{DecodeInt64(key)} : Int128{key}, 0);
}

std::uint64_t Off(std::uint64_t target, std::uint64_t low, std::uint64_t high) {
  return std::max(target > low ? target - low : 0, high > target ? high - target : 0);
}

}  // namespace

template <class Key>
CorrelatedView<Key>::CorrelatedView(CorrelatedSnapshot<Key> snapshot, OpenPairs<Key> open)
    : snapshot_(std::move(snapshot)), open_(open), scale_(snapshot_.scale) {
  if (!snapshot_.cuts->empty()) {
    least_y_ = LowerY(snapshot_.least_y, type());
    greatest_y_ = UpperY(snapshot_.greatest_y, type());
  }
  std::visit(
      [&](auto y) {
        using Y = std::remove_cv_t<typename decltype(y)::element_type>;
        if (y.size() != open_.x.size()) {
          throw std::invalid_argument("an open window has " + std::to_string(open_.x.size()) +
                                      " x and " + std::to_string(y.size()) +
                                      " y, expected as many of both");
        }
        if (y.empty()) return;
        if (SumTypeOf<Y>::value != type()) {
          throw std::invalid_argument("an open window has y of another type than its summary");
        }
        const auto [least, greatest] = internal::ExtentOf(y);
        const double low = LowerY(EncodeKey(least), type());
        const double high = UpperY(EncodeKey(greatest), type());
        least_y_ = snapshot_.cuts->empty() ? low : std::min(least_y_, low);
        greatest_y_ = snapshot_.cuts->empty() ? high : std::max(greatest_y_, high);
        if constexpr (std::is_floating_point_v<Y>) {
          const int more = BitsBeforePoint(std::max(std::abs(least), std::abs(greatest))) +
                           static_cast<int>(std::bit_width(y.size()));
          const int held = scale_ + BitWidth(snapshot_.cuts->total().high.weight());
          scale_ = std::max(scale_, std::max(more, held) - (kSumBits - 1));
        }
      },
      open_.y);
  MassBounds mass;
  blocks_.reserve(open_.x.size() / kBlock + 1);
  blocks_.push_back(mass);
  for (std::size_t begin = 0; begin < open_.x.size(); begin += kBlock) {
    mass += SumOpen(begin, std::min(begin + kBlock, open_.x.size()));
    blocks_.push_back(mass);
  }
  total_ = Coarsened(snapshot_.cuts->total(), std::min(scale_ - snapshot_.scale, 127)) + mass;
}

template <class Key>
MassBounds CorrelatedView<Key>::SumOpen(std::size_t begin, std::size_t end) const {
  return std::visit([&](auto y) { return internal::SumOf(y.subspan(begin, end - begin), scale_); },
                    open_.y);
}

template <class Key>
MassBounds CorrelatedView<Key>::FirstOpen(std::size_t pairs) const {
  const std::size_t block = pairs / kBlock;
  if (pairs % kBlock == 0) return blocks_[block];
  return blocks_[block] + SumOpen(block * kBlock, pairs);
}

template <class Key>
MassBounds CorrelatedView<Key>::AtMost(Key v) const {
  MassBounds bounds = snapshot_.cuts->AtMost(v);
  if (scale_ != snapshot_.scale)
    bounds = Coarsened(bounds, std::min(scale_ - snapshot_.scale, 127));
  if (open_.x.empty()) return bounds;
  return bounds + FirstOpen(static_cast<std::size_t>(
                      std::upper_bound(open_.x.begin(), open_.x.end(), v) - open_.x.begin()));
}

template <class Key>
CountBounds CorrelatedView<Key>::CountAtMost(Key v) const {
  CountBounds count = snapshot_.cuts->CountAtMost(v);
  const auto open = static_cast<std::uint64_t>(std::upper_bound(open_.x.begin(), open_.x.end(), v) -
                                               open_.x.begin());
  return {count.low + open, count.high + open};
}

template <class Key>
RankBounds CorrelatedView<Key>::Bounds(Key v) const {
  const CountBounds less = v == 0 ? CountBounds() : CountAtMost(static_cast<Key>(v - 1));
  const CountBounds at_most = CountAtMost(v);
  return {less.low, less.high, at_most.low, at_most.high};
}

template <class Key>
PairSums CorrelatedView<Key>::Difference(const MassBounds& below, const MassBounds& through) const {
  const auto least = [](auto high, auto low) { return high > low ? high - low : 0; };
  PairSums sums;
  sums.count = {least(through.low.count, below.high.count), through.high.count - below.low.count};
  const auto positive_low = static_cast<Int128>(least(through.low.positive, below.high.positive));
  const auto negative_low = static_cast<Int128>(least(through.low.negative, below.high.negative));
  sums.sum = {positive_low - static_cast<Int128>(through.high.negative - below.low.negative),
              static_cast<Int128>(through.high.positive - below.low.positive) - negative_low,
              scale_};
  sums.average = Average(sums.count, sums.sum);
  return sums;
}

template <class Key>
std::optional<RealBounds> CorrelatedView<Key>::Average(const CountBounds& count,
                                                       const SumBounds& sum) const {
  if (count.low == 0) return std::nullopt;
  // Of a negative sum the fewest pairs make the least average, of a positive one the most.
  RealBounds average;
  average.low = sum.low < 0 ? DivDown(sum.low_value(), CountDown(count.low))
                            : DivDown(sum.low_value(), CountUp(count.high));
  average.high = sum.high > 0 ? DivUp(sum.high_value(), CountDown(count.low))
                              : DivUp(sum.high_value(), CountUp(count.high));
  const RealBounds clamped{std::max(average.low, least_y_), std::min(average.high, greatest_y_)};
  // Only a forged summary can contradict itself, as its least and greatest y are not checked
  // against every range.
  return clamped.low <= clamped.high ? clamped : average;
}

template <class Key>
PairSums CorrelatedView<Key>::Between(Key first, Key last) const {
  if (first > last) return SumsOf({});
  return Difference(Less(first), AtMost(last));
}

template <class Key>
std::uint64_t CorrelatedView<Key>::TargetOf(double phi) const {
  if (!(phi >= 0 && phi <= 1)) {
    throw std::invalid_argument("phi is " + std::to_string(phi) +
                                ", expected a number from 0 to 1");
  }
  if (n() == 0) throw std::logic_error("correlated sums were asked of an empty stream");
  return TargetRank(phi, n());
}

template <class Key>
QuantileAnswer<Key> CorrelatedView<Key>::Certify(Key v, std::uint64_t target) const {
  const RankBounds b = Bounds(v);
  QuantileAnswer<Key> answer;
  answer.value = v;
  answer.target = target;
  // As in QuantileView: v is an element.
  answer.rank_low = std::max(b.less_low + 1, std::min(target, b.at_most_low));
  answer.rank_high =
      std::max(std::min(b.less_high + 1, b.at_most_high), std::min(target, b.at_most_high));
  return answer;
}

template <class Key>
Key CorrelatedView<Key>::ElementAt(std::size_t cut) const {
  const Key key = snapshot_.cuts->keys()[cut];
  return snapshot_.cuts->element(cut) ? key : static_cast<Key>(key + 1);
}

// As in QuantileView, certificates move upwards with the elements: the best one is the last whose
// certificate's middle is at or below the target, or the first above it, of the cuts or of the open
// window.
template <class Key>
QuantileAnswer<Key> CorrelatedView<Key>::Select(std::uint64_t target) const {
  std::optional<QuantileAnswer<Key>> best;
  const auto off = [&](const QuantileAnswer<Key>& answer) {
    return Off(target, answer.rank_low, answer.rank_high);
  };
  const auto consider = [&](Key v) {
    const auto answer = Certify(v, target);
    if (!best || off(answer) < off(*best) || (off(answer) == off(*best) && v < best->value)) {
      best = answer;
    }
  };
  const auto search = [&](std::size_t size, auto element_at) {
    std::size_t begin = 0, end = size;  // the first above lies in [begin, end]
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      const auto answer = Certify(element_at(middle), target);
      if (answer.rank_low + answer.rank_high <= 2 * target) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    if (begin > 0) consider(element_at(begin - 1));
    if (begin < size) consider(element_at(begin));
  };
  search(snapshot_.cuts->size(), [&](std::size_t i) { return ElementAt(i); });
  search(open_.x.size(), [&](std::size_t i) { return open_.x[i]; });
  return *best;
}

template <class Key>
template <bool upper>
Key CorrelatedView<Key>::LeastReaching(std::uint64_t target) const {
  Key begin = 0, end = std::numeric_limits<Key>::max();  // it lies in [begin, end]
  while (begin < end) {
    const Key middle = static_cast<Key>(begin + (end - begin) / 2);
    const CountBounds count = CountAtMost(middle);
    if ((upper ? count.high : count.low) >= target) {
      end = middle;
    } else {
      begin = static_cast<Key>(middle + 1);
    }
  }
  return begin;
}

template <class Key>
QuantileSums<Key> CorrelatedView<Key>::ThroughQuantile(double phi) const {
  const std::uint64_t target = TargetOf(phi);
  QuantileSums<Key> sums;
  sums.at = Select(target);
  sums.through_element = Through(sums.at.value);
  sums.value_low = LeastReaching<true>(target);
  sums.value_high = LeastReaching<false>(target);
  sums.through_quantile = SumsOf(AtQuantile(target));
  return sums;
}

template <class Key>
MassBounds CorrelatedView<Key>::AtQuantile(std::uint64_t target) const {
  MassBounds mass{AtMost(LeastReaching<true>(target)).low,
                  AtMost(LeastReaching<false>(target)).high};
  mass.low.count = std::max(mass.low.count, target);
  return mass;
}

template <class Key>
typename CorrelatedView<Key>::Range CorrelatedView<Key>::BetweenQuantiles(double low_phi,
                                                                          double high_phi) const {
  const std::uint64_t low = TargetOf(low_phi), high = TargetOf(high_phi);
  if (low_phi > high_phi) {
    throw std::invalid_argument("a range of quantiles begins at " + std::to_string(low_phi) +
                                " and ends at " + std::to_string(high_phi));
  }
  Range range;
  if (low_phi == 0) {
    range.elements = Through(Select(high).value);
    range.quantiles = SumsOf(AtQuantile(high));
  } else {
    range.elements = Difference(AtMost(Select(low).value), AtMost(Select(high).value));
    range.quantiles = Difference(AtQuantile(low), AtQuantile(high));
  }
  return range;
}

template <class Key>
CdfSteps<Key> CorrelatedView<Key>::Steps() const {
  const auto& cuts = *snapshot_.cuts;
  // What the cuts say from each key on.
  struct Step {
    Key key;
    CountBounds count;
  };
  std::vector<Step> own;
  own.reserve(2 * cuts.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Key key = cuts.keys()[i];
    own.push_back({key, cuts.CountAtMost(key)});
    // Inside an open gap, which has more than one key, the upper bound is that of its end.
    if (i + 1 < cuts.size() && !cuts.atomic(i + 1)) {
      const auto inside = static_cast<Key>(key + 1);
      own.push_back({inside, cuts.CountAtMost(inside)});
    }
  }
  CdfSteps<Key> steps;
  steps.n = n();
  CountBounds held;
  std::size_t open = 0;
  for (std::size_t i = 0; i < own.size() || open < open_.x.size();) {
    const Key key = i == own.size() || (open < open_.x.size() && open_.x[open] < own[i].key)
                        ? open_.x[open]
                        : own[i].key;
    if (i < own.size() && own[i].key == key) held = own[i++].count;
    while (open < open_.x.size() && open_.x[open] == key) ++open;
    steps.keys.push_back(key);
    steps.low.push_back(held.low + open);
    steps.high.push_back(held.high + open);
  }
  return steps;
}

template class CorrelatedView<std::uint32_t>;
template class CorrelatedView<std::uint64_t>;

}  // namespace tidemark
