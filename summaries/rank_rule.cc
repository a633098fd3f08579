#include "summaries/rank_rule.h"

#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace tidemark {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 32;  // a share of 1

/// The share of epsilon that the tail form spends at a depth.
std::uint64_t TailShare(int depth) {
  std::uint64_t left = kOne / 4;
  for (; depth > 0 && left > 0; --depth) left -= left / 8;
  return kOne - left;
}

/// A digest's share is one part in so many of that at depth 0. `error`: eps * count of its window.
constexpr std::uint64_t DigestsPart(std::uint64_t error) { return error < 1000 ? 8 : 6; }

}  // namespace

RankRule::RankRule(double epsilon, TailEnd end) : epsilon_(epsilon), end_(end) {
  if (!(epsilon >= 0x1p-40) || epsilon > 0.5) {
    throw std::invalid_argument("epsilon of a quantile summary is " + std::to_string(epsilon) +
                                ", expected a number above 0 (at least 2^-40) and at most 0.5");
  }
  fraction_ = static_cast<std::uint64_t>(std::ldexp(epsilon, 64));
  while (static_cast<double>(collected_) * epsilon < 4) collected_ *= 2;
}

std::uint64_t RankRule::Promise(std::uint64_t target, std::uint64_t n) const {
  if (!tail()) return FloorFraction(epsilon_, n);
  const std::uint64_t distance = end_ == TailEnd::kUpper ? n + 1 - target : target;
  return FloorFraction(epsilon_, std::min(distance, n / 2));
}

std::uint64_t RankRule::Fraction(int depth) const {
  const std::uint64_t share = tail() ? TailShare(depth) : kOne / 2;
  return static_cast<std::uint64_t>(static_cast<Uint128>(fraction_) * share >> 32);
}

GapLimit RankRule::Limit(std::uint64_t count, int depth) const {
  return {Fraction(depth), count, tail()};
}

GapLimit RankRule::DigestLimit(std::uint64_t count) const {
  return {Fraction(0) / DigestsPart(FloorFraction(epsilon_, count)), count, tail()};
}

std::size_t RankRule::EntryLimit(std::uint64_t count, int depth) const {
  if (!tail()) return std::numeric_limits<std::size_t>::max();
  // Twice the least that (1) can be held with, about (2 + ln(f * count)) / (2 * f).
  const auto [fraction, n, tail] = Limit(count, depth);
  const std::uint64_t per_unit = std::numeric_limits<std::uint64_t>::max() / fraction;
  const auto logarithm = static_cast<std::uint64_t>(std::bit_width(n / per_unit));
  return static_cast<std::size_t>(per_unit * (20 + 7 * logarithm) / 10);
}

}  // namespace tidemark
