#include "summaries/correlated_sums.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "summaries/absorb_window.h"
#include "summaries/key_codec.h"
#include "summaries/pair_window.h"

namespace tidemark {
namespace {

const char* Name(SumType type) {
  switch (type) {
    case SumType::kInt64:
      return "int64";
    case SumType::kUint64:
      return "uint64";
    case SumType::kFloat64:
      return "float64";
  }
  return "unknown";
}

}  // namespace

template <class Key>
CorrelatedSums<Key>::CorrelatedSums(double epsilon, SumType type)
    : epsilon_(QuantileRule(epsilon).epsilon()),
      type_(type),
      scale_(type == SumType::kFloat64 ? kFinestScale : 0),
      cuts_(std::make_shared<const CorrelatedCuts<Key>>()) {}

template <class Key>
std::size_t CorrelatedSums<Key>::exact_keys() const {
  return static_cast<std::size_t>(1 / epsilon_);
}

template <class Key>
void CorrelatedSums<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - count()) {
    throw std::length_error("correlated sums of " + std::to_string(count()) +
                            " pairs cannot take in " + std::to_string(more) +
                            " more: the limit is 2^63 - 1");
  }
}

template <class Key>
void CorrelatedSums<Key>::RaiseScaleFor(int bits_before_point) {
  // Both terms stay below 2^125 units.
  const int held = scale_ + BitWidth(cuts_->total().high.weight());
  const int scale = std::max(held, bits_before_point) - (kSumBits - 1);
  if (scale <= scale_) return;
  const int bits = std::min(scale - scale_, 127);  // more clear all bits, too
  scale_ = scale;
  auto coarse = std::make_shared<const CorrelatedCuts<Key>>(Coarsened(*cuts_, bits));
  // Exactly the same sums, if no bit was lost. Else bounds of two sums, each rounded by less than a
  // unit, and the total's, by which the budget is counted, make up less than 8.
  const auto lossless = [&] {
    for (std::size_t i = 0; i < coarse->size(); ++i) {
      const MassBounds fine = cuts_->BoundsAt(i), now = coarse->BoundsAt(i);
      for (const auto& [a, b] : {std::pair(fine.low, now.low), std::pair(fine.high, now.high)}) {
        if (b.positive << bits != a.positive || b.negative << bits != a.negative) return false;
      }
    }
    return true;
  };
  if (rounding_ > 0 || !lossless()) {
    const std::uint64_t down = bits < 64 ? rounding_ >> bits : 0;
    rounding_ = down + 1 + 8;
  }
  cuts_ = std::move(coarse);
}

template <class Key>
template <class Y>
void CorrelatedSums<Key>::AddWindow(std::span<const Key> x, std::span<const Y> y) {
  if (SumTypeOf<Y>::value != type_) {
    throw std::invalid_argument(std::string("a window with y of type ") +
                                Name(SumTypeOf<Y>::value) + " was given to correlated sums of " +
                                Name(type_));
  }
  if (x.size() != y.size()) {
    throw std::invalid_argument("a window for correlated sums has " + std::to_string(x.size()) +
                                " x and " + std::to_string(y.size()) +
                                " y, expected as many of both");
  }
  if (x.empty()) return;
  CheckRoom(x.size());
  assert(std::is_sorted(x.begin(), x.end()));
  const internal::Extent<Y> extent = internal::ExtentOf(y);
  if constexpr (std::is_floating_point_v<Y>) {
    RaiseScaleFor(BitsBeforePoint(std::max(std::abs(extent.least), std::abs(extent.greatest))) +
                  static_cast<int>(std::bit_width(x.size())));
  }
  const std::uint64_t least = EncodeKey(extent.least), greatest = EncodeKey(extent.greatest);
  const bool first = cuts_->empty();
  least_y_ = first ? least : std::min(least_y_, least);
  greatest_y_ = first ? greatest : std::max(greatest_y_, greatest);
  const bool all = cuts_->closed() && internal::FewKeys(*cuts_, x, exact_keys());
  const auto absorbed = internal::Absorb(*cuts_, internal::PairWindow<Key, Y>(x, y, scale_),
                                         epsilon_, rounding_, all);
  rounding_ = absorbed.rounding;
  cuts_ = std::make_shared<const CorrelatedCuts<Key>>(Condense(absorbed.cuts, absorbed.budget));
}

template <class Key>
void CorrelatedSums<Key>::Merge(const CorrelatedSums& other) {
  if (other.epsilon_ != epsilon_ || other.type_ != type_) {
    throw std::invalid_argument(
        "correlated sums of " + std::string(Name(type_)) + " with epsilon " +
        std::to_string(epsilon_) + " and of " + Name(other.type_) + " with epsilon " +
        std::to_string(other.epsilon_) + " cannot be merged: expected the same of both");
  }
  if (other.cuts_->empty()) return;
  CheckRoom(other.count());
  CorrelatedSums theirs = other;  // `other` may be this summary
  if (type_ == SumType::kFloat64) {
    const auto bits = [](const CorrelatedSums& sums) {
      return sums.scale_ + BitWidth(sums.cuts_->total().high.weight());
    };
    const int needed =
        std::max({bits(*this), bits(theirs), scale_ + kSumBits - 1, theirs.scale_ + kSumBits - 1});
    RaiseScaleFor(needed);
    theirs.RaiseScaleFor(needed);
    assert(scale_ == theirs.scale_);
  }
  const bool first = cuts_->empty();
  least_y_ = first ? theirs.least_y_ : std::min(least_y_, theirs.least_y_);
  greatest_y_ = first ? theirs.greatest_y_ : std::max(greatest_y_, theirs.greatest_y_);
  rounding_ += theirs.rounding_;
  const MassBudget budget =
      BudgetOf(epsilon_, (cuts_->total() + theirs.cuts_->total()).low, rounding_);
  const bool closed = cuts_->closed() && theirs.cuts_->closed();
  const auto both = UnionOf(*cuts_, *theirs.cuts_, budget);
  const bool all = closed && both.size() <= exact_keys();
  cuts_ = std::make_shared<const CorrelatedCuts<Key>>(Condense(both, all ? MassBudget() : budget));
}

template class CorrelatedSums<std::uint32_t>;
template class CorrelatedSums<std::uint64_t>;

#define TIDEMARK_INSTANTIATE(Key, Y) \
  template void CorrelatedSums<Key>::AddWindow(std::span<const Key>, std::span<const Y>);
TIDEMARK_INSTANTIATE(std::uint32_t, std::int64_t)
TIDEMARK_INSTANTIATE(std::uint32_t, std::uint64_t)
TIDEMARK_INSTANTIATE(std::uint32_t, double)
TIDEMARK_INSTANTIATE(std::uint64_t, std::int64_t)
TIDEMARK_INSTANTIATE(std::uint64_t, std::uint64_t)
TIDEMARK_INSTANTIATE(std::uint64_t, double)
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark
