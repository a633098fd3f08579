// Serialized quantile summaries, with the checksum that they came with and with one that fits: what
// is not a summary is refused with a reason; what is accepted serializes to the same bytes, answers
// within its epsilon, and stays so after a merge and after another window.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/fuzz/summary_bytes.h"
#include "tests/support/fix_checksum.h"

namespace {

using tidemark::CountBounds;
using tidemark::QuantileSummary;
using tidemark::QuantileView;
using tidemark::RankBounds;

constexpr std::uint64_t kUnseen = 3;

void Require(bool property) {
  if (!property) std::abort();
}

template <class Key>
void CheckView(const QuantileView<Key>& view, bool within_epsilon) {
  const std::uint64_t n = view.n();
  Require(!within_epsilon || view.WithinEpsilon());
  const std::uint64_t gap = within_epsilon && !view.exact()
                                ? tidemark::FloorFraction(view.epsilon(), n)
                                : view.worst_gap();
  constexpr double kPhis[] = {0, 0.001, 0.25, 0.5, 0.9, 0.9999, 1};
  Key before = 0;
  for (const auto& answer : view.Quantiles(kPhis)) {
    Require(answer.value >= before);
    before = answer.value;
    Require(answer.rank_low >= 1 && answer.rank_low <= answer.rank_high && answer.rank_high <= n);
    Require(answer.target - std::min(answer.target, answer.rank_low) <= gap);
    Require(answer.rank_high - std::min(answer.target, answer.rank_high) <= gap);
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

template <class Key>
void CheckAnswers(const QuantileSummary<Key>& summary, std::span<const Key> open) {
  if (summary.count() > 0) CheckView(QuantileView<Key>(summary.Snapshot()), true);
  CheckView(QuantileView<Key>(summary.Snapshot(), open), true);
  CheckView(QuantileView<Key>(summary.Snapshot(), open, kUnseen), false);
}

/// `change` takes `more` values in, or throws and leaves the summary as it was.
template <class Key, class Change>
void CheckChange(QuantileSummary<Key> summary, std::uint64_t more, std::span<const Key> open,
                 Change change) {
  const std::string before = summary.Serialize();
  const std::uint64_t count = summary.count();
  try {
    change(summary);
    Require(summary.count() == count + more);
  } catch (const std::length_error&) {
    Require(more > tidemark::kMaxSummaryCount - count && summary.Serialize() == before);
  }
  CheckAnswers(summary, open);
  const std::string after = summary.Serialize();
  Require(QuantileSummary<Key>::Deserialize(after).Serialize() == after);
}

template <class Key>
void Check(std::string_view bytes) {
  try {
    const auto summary = QuantileSummary<Key>::Deserialize(bytes);
    Require(summary.Serialize() == bytes);
    const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
    CheckAnswers<Key>(summary, window);
    CheckChange<Key>(summary, summary.count(), window, [&](auto& into) { into.Merge(into); });
    CheckChange<Key>(summary, window.size(), window, [&](auto& into) { into.AddWindow(window); });
    QuantileSummary<Key> other(summary.epsilon());
    for (std::size_t size = window.size(); size > 0; size /= 2) {
      other.AddWindow(std::span<const Key>(window).first(size));
    }
    CheckChange<Key>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
  } catch (const std::invalid_argument& refusal) {
    Require(std::string_view(refusal.what()).starts_with("serialized quantile summary "));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check<std::uint32_t>(bytes);
  Check<std::uint64_t>(bytes);
  if (tidemark::testing::FixChecksum(bytes)) {
    Check<std::uint32_t>(bytes);
    Check<std::uint64_t>(bytes);
  }
  return 0;
}
