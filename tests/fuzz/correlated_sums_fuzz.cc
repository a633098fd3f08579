// Serialized correlated sums, with the checksum that they came with and with one that fits: what is
// none is refused with a reason; what is accepted serializes to the same bytes, answers within its
// epsilon, and stays so after a merge and after another window.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/correlated_sums.h"
#include "summaries/correlated_view.h"
#include "summaries/fraction.h"
#include "summaries/value_spread.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::CorrelatedSums;
using tidemark::CorrelatedView;
using tidemark::PairSums;
using tidemark::SumType;
using tidemark::fuzz::AcceptedOrRefusedAs;
using tidemark::fuzz::Require;

void CheckSums(const PairSums& sums, std::uint64_t n) {
  Require(sums.count.low <= sums.count.high && sums.count.high <= n);
  Require(sums.sum.low <= sums.sum.high);
  Require(sums.sum.low_value() <= sums.sum.high_value());
  Require(!sums.average || sums.average->low <= sums.average->high);
}

template <class Key>
void CheckView(const CorrelatedView<Key>& view, std::span<const Key> keys) {
  const std::uint64_t n = view.n(), widest = 2 * tidemark::FloorFraction(view.epsilon(), n);
  const PairSums all = view.All();
  CheckSums(all, n);
  Require(all.count.low == n && all.count.high == n);
  tidemark::MassBounds before;
  for (const Key key : keys) {
    CheckSums(view.Through(key), n);
    CheckSums(view.Between(keys.front(), key), n);
    const auto mass = view.AtMost(key);
    Require(mass.high.count - mass.low.count <= widest);
    Require(before.low.count <= mass.low.count && before.high.count <= mass.high.count);
    Require(before.high.positive <= mass.high.positive);
    Require(before.high.negative <= mass.high.negative);
    const auto bounds = view.Bounds(key);
    Require(bounds.less_low <= bounds.less_high && bounds.at_most_low <= bounds.at_most_high);
    Require(bounds.at_most_low == mass.low.count && bounds.at_most_high == mass.high.count);
    before = mass;
  }
  if (n == 0) return;
  // As if y were x, which it need not be: bounds may contradict one another, and stay intervals.
  const tidemark::ValueOf<Key> number = [](Key key) {
    if constexpr (sizeof(Key) == 4) return tidemark::Uint32Value(key);
    if constexpr (sizeof(Key) == 8) return tidemark::Uint64Value(key);
  };
  for (const double trim : {0.0, 0.01, 0.4}) {
    const auto mean = tidemark::TrimmedMeanOf(view, trim, number);
    Require(mean.mean.low <= mean.mean.high);
  }
  Key value = 0;
  for (const double phi : {0.0, 0.001, 0.5, 0.9, 1.0}) {
    const auto answer = view.ThroughQuantile(phi);
    Require(answer.at.value >= value && answer.value_low <= answer.value_high);
    value = answer.at.value;
    Require(answer.at.rank_low <= answer.at.rank_high && answer.at.rank_high <= n);
    Require(answer.at.target - std::min(answer.at.target, answer.at.rank_low) <= widest / 2);
    Require(answer.at.rank_high - std::min(answer.at.target, answer.at.rank_high) <= widest / 2);
    CheckSums(answer.through_element, n);
    CheckSums(answer.through_quantile, n);
    const auto range = view.BetweenQuantiles(phi / 2, phi);
    CheckSums(range.elements, n);
    CheckSums(range.quantiles, n);
  }
}

template <class Key, class Y>
std::vector<Y> YOf(std::span<const Key> keys) {
  std::vector<Y> y;
  for (const Key key : keys) y.push_back(static_cast<Y>(key % 1000) - static_cast<Y>(key % 3));
  if (!std::is_signed_v<Y>) std::fill(y.begin(), y.end(), Y{5});
  return y;
}

template <class Key, class Y>
void CheckAnswers(const CorrelatedSums<Key>& summary, std::span<const Key> open) {
  CheckView<Key>(CorrelatedView<Key>(summary.Snapshot()), open);
  const std::vector<Y> y = YOf<Key, Y>(open);
  CheckView<Key>(CorrelatedView<Key>(summary.Snapshot(), {open, std::span<const Y>(y)}), open);
}

template <class Key, class Y, class Change>
void CheckChange(const CorrelatedSums<Key>& summary, std::uint64_t more, std::span<const Key> open,
                 Change change) {
  tidemark::fuzz::CheckChange(
      summary, more, [](const auto& of) { return of.count(); }, change,
      [&](const auto& changed) { CheckAnswers<Key, Y>(changed, open); });
}

template <class Key, class Y>
void CheckOf(const CorrelatedSums<Key>& summary, std::span<const Key> window) {
  CheckAnswers<Key, Y>(summary, window);
  CheckChange<Key, Y>(summary, summary.count(), window, [](auto& into) { into.Merge(into); });
  const auto add = [&](auto& into, std::size_t size) {
    const std::vector<Y> y = YOf<Key, Y>(window.first(size));
    into.AddWindow(window.first(size), std::span<const Y>(y));
  };
  CheckChange<Key, Y>(summary, window.size(), window,
                      [&](auto& into) { add(into, window.size()); });
  CorrelatedSums<Key> other(summary.epsilon(), summary.type());
  for (std::size_t size = window.size(); size > 0; size /= 2) add(other, size);
  CheckChange<Key, Y>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
}

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized summary of correlated sums ", [&] {
    const auto summary = CorrelatedSums<Key>::Deserialize(bytes);
    Require(summary.Serialize() == bytes);
    const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
    switch (summary.type()) {
      case SumType::kInt64:
        CheckOf<Key, std::int64_t>(summary, window);
        break;
      case SumType::kUint64:
        CheckOf<Key, std::uint64_t>(summary, window);
        break;
      case SumType::kFloat64:
        CheckOf<Key, double>(summary, window);
        break;
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t>(
      data, size, []<class Key>(std::string_view bytes) { Check<Key>(bytes); });
}
