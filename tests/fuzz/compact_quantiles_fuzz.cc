// Serialized compact quantile summaries, even and tail, and exports of quantiles, with the checksum
// that they came with and with one that fits: what is none is refused with a reason; what is
// accepted serializes to the same bytes (an export, to one that promises the same), answers within
// its epsilon, and stays so after a merge and after another window.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/compact_quantiles.h"
#include "summaries/fraction.h"
#include "summaries/quantile_export.h"
#include "summaries/quantile_view.h"
#include "summaries/rank_rule.h"
#include "tests/fuzz/quantile_answers.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::CompactQuantiles;
using tidemark::QuantileView;
using tidemark::RankRule;
using tidemark::fuzz::AcceptedOrRefusedAs;
using tidemark::fuzz::Require;

constexpr std::uint64_t kUnseen = 3;
constexpr std::uint64_t kExportedMost = 2048;  // larger exports take too long here

/// A view of all values, none unseen.
template <class Key>
void CheckPromise(const QuantileView<Key>& view, const RankRule& rule) {
  Require(view.WithinEpsilon());
  if (view.n() == 0) return;
  tidemark::fuzz::CheckQuantiles(
      view, [&](std::uint64_t target) { return rule.Promise(target, view.n()); });
}

template <class Key>
void CheckExport(const QuantileView<Key>& view, const RankRule& rule) {
  const std::uint64_t within = tidemark::FloorFraction(view.epsilon(), view.n()) - view.worst_gap();
  if (view.n() / (2 * within + 1) > kExportedMost) return;
  const QuantileView<Key> back(tidemark::ImportQuantiles<Key>(tidemark::ExportQuantiles(view)));
  Require(back.n() == view.n() && back.epsilon() == view.epsilon() && back.end() == view.end());
  CheckPromise(back, rule);
}

template <class Key>
void CheckAnswers(const CompactQuantiles<Key>& summary, std::span<const Key> open) {
  CheckPromise(QuantileView<Key>(summary.Snapshot()), summary.rule());
  if (summary.count() <= tidemark::kMaxSummaryCount - open.size() - kUnseen) {
    CheckPromise(QuantileView<Key>(summary.Snapshot(), open), summary.rule());
    const QuantileView<Key> unseen(summary.Snapshot(), open, kUnseen);
    tidemark::fuzz::CheckQuantiles(unseen, [&](std::uint64_t) { return unseen.worst_gap(); });
  }
  CheckExport(QuantileView<Key>(summary.Snapshot()), summary.rule());
}

template <class Key, class Change>
void CheckChange(const CompactQuantiles<Key>& summary, std::uint64_t more,
                 std::span<const Key> open, Change change) {
  tidemark::fuzz::CheckChange(
      summary, more, [](const auto& of) { return of.count(); }, change,
      [&](const auto& changed) { CheckAnswers<Key>(changed, open); });
}

template <class Key>
void CheckSummary(std::string_view bytes) {
  const auto summary = CompactQuantiles<Key>::Deserialize(bytes);
  Require(summary.Serialize() == bytes);
  const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
  CheckAnswers<Key>(summary, window);
  CheckChange<Key>(summary, summary.count(), window, [&](auto& into) { into.Merge(into); });
  CheckChange<Key>(summary, window.size(), window, [&](auto& into) { into.AddWindow(window); });
  CompactQuantiles<Key> other(summary.epsilon(), summary.end());
  for (std::size_t size = window.size(); size > 0; size /= 2) {
    other.AddWindow(std::span<const Key>(window).first(size));
  }
  CheckChange<Key>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
}

template <class Key>
void CheckImport(std::string_view bytes) {
  const QuantileView<Key> view(tidemark::ImportQuantiles<Key>(bytes));
  const RankRule rule(view.epsilon(), view.end());
  CheckPromise(view, rule);
  CheckExport(view, rule);
}

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized compact quantile summary ", [&] { CheckSummary<Key>(bytes); });
  AcceptedOrRefusedAs("serialized quantile export ", [&] { CheckImport<Key>(bytes); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t>(
      data, size, []<class Key>(std::string_view bytes) { Check<Key>(bytes); });
}
