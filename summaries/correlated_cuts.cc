#include "summaries/correlated_cuts.h"

#include <algorithm>
#include <cassert>

namespace tidemark {
namespace {

Uint128 RoundedUp(Uint128 value, int bits) {
  const Uint128 down = value >> bits;
  return down + (down << bits != value ? 1 : 0);
}

/// floor(2 * epsilon * weight), epsilon as the least real that rounds to it. 0 < epsilon <= 0.5.
Uint128 TwiceEpsilonOf(double epsilon, Uint128 weight) {
  // 2 * epsilon = numerator / 2^shift, and shift >= 53 as epsilon < 1. The product has up to 182
  // bits; the result is at most `weight`.
  const auto [mantissa, shift] = internal::Split(epsilon);
  const Uint128 numerator = 2 * mantissa - 1;
  const Uint128 of_low = numerator * static_cast<std::uint64_t>(weight);
  const Uint128 above = numerator * static_cast<std::uint64_t>(weight >> 64) + (of_low >> 64);
  if (shift >= 64) return shift - 64 < 128 ? above >> (shift - 64) : 0;
  return above << (64 - shift) | static_cast<std::uint64_t>(of_low) >> shift;
}

}  // namespace

MassBounds Coarsened(const MassBounds& bounds, int bits) {
  return {{bounds.low.count, bounds.low.positive >> bits, bounds.low.negative >> bits},
          {bounds.high.count, RoundedUp(bounds.high.positive, bits),
           RoundedUp(bounds.high.negative, bits)}};
}

MassBudget BudgetOf(double epsilon, const Mass& total, std::uint64_t rounding) {
  return {2 * FloorFraction(epsilon, total.count),
          TwiceEpsilonOf(epsilon, total.weight()) + rounding};
}

template <class Key>
MassBounds CorrelatedCuts<Key>::BoundsAt(std::size_t i) const {
  MassBounds bounds{{count_low_[i], positive_low_[i], 0}, {}};
  bounds.high = {count_low_[i] + count_width_[i], positive_low_[i] + positive_width_[i], 0};
  if (!negative_low_.empty()) {
    bounds.low.negative = negative_low_[i];
    bounds.high.negative = negative_low_[i] + negative_width_[i];
  }
  return bounds;
}

template <class Key>
std::size_t CorrelatedCuts<Key>::CutsAtMost(Key v) const {
  return static_cast<std::size_t>(std::upper_bound(keys_.begin(), keys_.end(), v) - keys_.begin());
}

template <class Key>
MassBounds CorrelatedCuts<Key>::AtMost(Key v) const {
  const std::size_t at = CutsAtMost(v);
  if (at > 0 && keys_[at - 1] == v) return BoundsAt(at - 1);
  return Inside(at);
}

template <class Key>
CountBounds CorrelatedCuts<Key>::CountAtMost(Key v) const {
  const std::size_t at = CutsAtMost(v);
  if (at == 0) return {};
  const std::uint64_t low = count_low_[at - 1], high = low + count_width_[at - 1];
  if (keys_[at - 1] == v || at == size() || atomic(at)) return {low, high};
  return {low, count_low_[at] + count_width_[at] - (element(at) ? 1 : 0)};
}

template <class Key>
MassBounds CorrelatedCuts<Key>::Inside(std::size_t i) const {
  const MassBounds before = i == 0 ? MassBounds() : BoundsAt(i - 1);
  if (i == size() || atomic(i)) return before;
  MassBounds inside{before.low, BoundsAt(i).high};
  if (element(i)) --inside.high.count;
  return inside;
}

template <class Key>
void CorrelatedCuts<Key>::Reserve(std::size_t cuts) {
  keys_.reserve(cuts);
  kinds_.reserve(cuts);
  count_low_.reserve(cuts);
  count_width_.reserve(cuts);
  positive_low_.reserve(cuts);
  positive_width_.reserve(cuts);
}

template <class Key>
void CorrelatedCuts<Key>::Append(const Cut<Key>& cut) {
  assert(empty() || cut.key > keys_.back());
  const auto& [low, high] = cut.at_most;
  keys_.push_back(cut.key);
  kinds_.push_back(
      static_cast<std::uint8_t>((cut.element ? kElement : 0) | (cut.atomic ? kAtomic : 0)));
  count_low_.push_back(low.count);
  count_width_.push_back(high.count - low.count);
  positive_low_.push_back(low.positive);
  positive_width_.push_back(high.positive - low.positive);
  if (negative_low_.empty() && high.negative == 0) return;
  if (negative_low_.empty()) {  // F grows: those before have none
    negative_low_.reserve(keys_.capacity());
    negative_width_.reserve(keys_.capacity());
    negative_low_.resize(keys_.size() - 1);
    negative_width_.resize(keys_.size() - 1);
  }
  negative_low_.push_back(low.negative);
  negative_width_.push_back(high.negative - low.negative);
}

template <class Key>
bool CorrelatedCuts<Key>::closed() const {
  return std::all_of(kinds_.begin(), kinds_.end(),
                     [](std::uint8_t kind) { return (kind & kAtomic) != 0; });
}

template <class Key>
bool CorrelatedCuts<Key>::exact() const {
  const auto zero = [](Uint128 width) { return width == 0; };
  return closed() && std::all_of(count_width_.begin(), count_width_.end(), zero) &&
         std::all_of(positive_width_.begin(), positive_width_.end(), zero) &&
         std::all_of(negative_width_.begin(), negative_width_.end(), zero);
}

template <class Key>
std::size_t CorrelatedCuts<Key>::bytes() const {
  return sizeof(*this) + keys_.capacity() * sizeof(Key) + kinds_.capacity() +
         (count_low_.capacity() + count_width_.capacity()) * sizeof(std::uint64_t) +
         (positive_low_.capacity() + positive_width_.capacity() + negative_low_.capacity() +
          negative_width_.capacity()) *
             sizeof(Uint128);
}

template <class Key>
CorrelatedCuts<Key> Condense(const std::vector<Cut<Key>>& cuts, const MassBudget& budget) {
  // Two passes over a bit for each cut, so that the result takes the memory that it needs.
  std::vector<std::size_t> kept;
  kept.reserve(cuts.size());
  for (std::size_t i = 0; i < cuts.size();) {
    kept.push_back(i);
    const Mass& low = cuts[i].at_most.low;
    std::size_t next = i + 1;
    while (next + 1 < cuts.size() &&
           Fits(low, cuts[next + 1].at_most.high, cuts[next + 1].element, budget)) {
      ++next;
    }
    i = next;
  }
  CorrelatedCuts<Key> result;
  result.Reserve(kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    Cut<Key> cut = cuts[kept[k]];
    cut.atomic = cut.atomic && (k == 0 || kept[k] == kept[k - 1] + 1);
    result.Append(cut);
  }
  return result;
}

template <class Key>
std::vector<Cut<Key>> UnionOf(const CorrelatedCuts<Key>& a, const CorrelatedCuts<Key>& b,
                              const MassBudget& budget) {
  std::vector<Cut<Key>> result;
  result.reserve(a.size() + b.size());
  std::size_t at_a = 0, at_b = 0;  // the gaps in which the next cut lies
  while (at_a < a.size() || at_b < b.size()) {
    const bool from_a = at_a < a.size() && (at_b == b.size() || a.keys()[at_a] <= b.keys()[at_b]);
    const bool from_b = at_b < b.size() && (at_a == a.size() || b.keys()[at_b] <= a.keys()[at_a]);
    Cut<Key> cut;
    cut.key = from_a ? a.keys()[at_a] : b.keys()[at_b];
    cut.element = (from_a && a.element(at_a)) || (from_b && b.element(at_b));
    cut.at_most = (from_a ? a.BoundsAt(at_a) : a.Inside(at_a));
    cut.at_most += (from_b ? b.BoundsAt(at_b) : b.Inside(at_b));
    // No pair of either lies between this cut and the one before.
    const bool adjacent = !result.empty() && cut.key == static_cast<Key>(result.back().key + 1);
    cut.atomic =
        adjacent || ((at_a == a.size() || a.atomic(at_a)) && (at_b == b.size() || b.atomic(at_b)));
    if (!cut.atomic && cut.element && !result.empty() &&
        !Fits(result.back().at_most.low, cut.at_most.high, true, budget)) {
      // One of them is too heavy here: fence it in.
      const Key below = static_cast<Key>(cut.key - 1);
      result.push_back({below, false, below == static_cast<Key>(result.back().key + 1),
                        a.Inside(at_a) + b.Inside(at_b)});
      cut.atomic = true;
    }
    result.push_back(cut);
    at_a += from_a;
    at_b += from_b;
  }
  return result;
}

template <class Key>
CorrelatedCuts<Key> Coarsened(const CorrelatedCuts<Key>& cuts, int bits) {
  CorrelatedCuts<Key> result;
  result.Reserve(cuts.size());
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    Cut<Key> cut = cuts[i];
    cut.at_most = Coarsened(cut.at_most, bits);
    result.Append(cut);
  }
  return result;
}

#define TIDEMARK_INSTANTIATE(Key)                                                                \
  template class CorrelatedCuts<Key>;                                                            \
  template CorrelatedCuts<Key> Condense(const std::vector<Cut<Key>>&, const MassBudget&);        \
  template std::vector<Cut<Key>> UnionOf(const CorrelatedCuts<Key>&, const CorrelatedCuts<Key>&, \
                                         const MassBudget&);                                     \
  template CorrelatedCuts<Key> Coarsened(const CorrelatedCuts<Key>&, int);
TIDEMARK_INSTANTIATE(std::uint32_t)
TIDEMARK_INSTANTIATE(std::uint64_t)
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark
