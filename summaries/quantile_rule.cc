#include "summaries/quantile_rule.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <string>

namespace tidemark {

QuantileRule::QuantileRule(double epsilon) : epsilon_(epsilon), base_samples_(1) {
  // 2^-40 keeps 4/epsilon a small power of two; no memory could hold more anyway.
  if (!(epsilon >= 0x1p-40) || epsilon > 0.5) {
    throw std::invalid_argument("epsilon of a quantile summary is " + std::to_string(epsilon) +
                                ", expected a number above 0 (at least 2^-40) and at most 0.5");
  }
  while (static_cast<double>(base_samples_) * epsilon < 4) base_samples_ *= 2;
}

BucketShape QuantileRule::ForWindow(std::uint64_t size) const {
  assert(std::has_single_bit(size));
  if (size <= base_samples_) return {1, size, 0};
  return {size / base_samples_, base_samples_, 0};
}

bool QuantileRule::WithinBudget(std::uint64_t gap, std::uint64_t count) const {
  // Exact: count is a power of two of at most 2^62, and so the product, at most 2^62, is not
  // rounded.
  return gap <= static_cast<std::uint64_t>(2 * epsilon_ * static_cast<double>(count));
}

bool QuantileRule::MayPrune(std::uint64_t gap, std::uint64_t samples, std::uint64_t count) const {
  // The share is below 1 by at least 2^-42, far more than the rounding of the product (2^-53), so
  // that a gap let through here is truly within the budget.
  const int phase = std::bit_width(samples / base_samples_) - 1;
  const double share = 1 - std::ldexp(1.0, -(std::min(phase, 40) + 2));
  return gap <= static_cast<std::uint64_t>(2 * epsilon_ * share * static_cast<double>(count));
}

CombinePlan QuantileRule::Combine(const BucketShape& a, const BucketShape& b) const {
  assert(a.count() == b.count());
  assert(a.count() <= std::uint64_t{1} << 61);
  const std::uint64_t count = 2 * a.count();
  CombinePlan plan;
  std::uint64_t weight = std::max(a.weight, b.weight);
  std::uint64_t slack = weight - 1 + a.slack + b.slack;
  if (a.weight != b.weight && !WithinBudget(weight + slack, count)) {
    weight = std::min(a.weight, b.weight);
    slack = weight - 1 + (a.slack + a.weight - weight) + (b.slack + b.weight - weight);
    plan.repeat_a = a.weight / weight;
    plan.repeat_b = b.weight / weight;
  } else {
    plan.stride_a = weight / a.weight;
    plan.stride_b = weight / b.weight;
  }
  std::uint64_t samples = count / weight;
  while (samples > base_samples_ && MayPrune(2 * weight + slack, samples / 2, count)) {
    weight *= 2;
    samples /= 2;
    plan.keep *= 2;
  }
  plan.result = {weight, samples, slack};
  assert(Holds(plan.result));
  return plan;
}

bool QuantileRule::Holds(const BucketShape& shape) const {
  if (!std::has_single_bit(shape.weight) || !std::has_single_bit(shape.samples)) return false;
  if (std::bit_width(shape.weight) + std::bit_width(shape.samples) > 64) return false;
  if (shape.lossless()) return true;
  if (shape.slack > shape.count()) return false;
  return WithinBudget(shape.weight + shape.slack, shape.count());
}

}  // namespace tidemark
