// What the fuzz targets of the quantile summaries ask of every view.
#ifndef TIDEMARK_TESTS_FUZZ_QUANTILE_ANSWERS_H_
#define TIDEMARK_TESTS_FUZZ_QUANTILE_ANSWERS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "summaries/quantile_view.h"
#include "tests/fuzz/summary_bytes.h"

namespace tidemark::fuzz {

/// `gap`(target): how far from it a bound may lie.
template <class Key, class Gap>
void CheckQuantiles(const QuantileView<Key>& view, Gap gap) {
  const std::uint64_t n = view.n();
  constexpr double kPhis[] = {0, 0.001, 0.25, 0.5, 0.9, 0.9999, 1};
  Key before = 0;
  for (const auto& answer : view.Quantiles(kPhis)) {
    Require(answer.value >= before);
    before = answer.value;
    Require(answer.rank_low >= 1 && answer.rank_low <= answer.rank_high && answer.rank_high <= n);
    Require(answer.target - std::min(answer.target, answer.rank_low) <= gap(answer.target));
    Require(answer.rank_high - std::min(answer.target, answer.rank_high) <= gap(answer.target));
    const RankBounds bounds = view.Bounds(answer.value);
    Require(bounds.less_low <= bounds.less_high && bounds.less_high < n);
    Require(bounds.at_most_low <= bounds.at_most_high && bounds.at_most_high <= n);
    Require(bounds.less_low < bounds.at_most_high);
  }
  const std::vector<Key> depths = view.EquiDepthBounds(7);
  Require(!depths.empty() && depths.size() <= 7);
  const std::vector<CountBounds> counts = view.CountsBetween(depths);
  Require(counts.size() == depths.size() + 1);
  std::uint64_t low = 0;
  for (const CountBounds& count : counts) {
    Require(count.low <= count.high && count.high <= n);
    low += count.low;
  }
  Require(low <= n);
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_QUANTILE_ANSWERS_H_
