// Serialized quantile summaries, with the checksum that they came with and with one that fits: what
// is not a summary is refused with a reason; what is accepted serializes to the same bytes, answers
// within its epsilon, and stays so after a merge and after another window.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/fuzz/quantile_answers.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::QuantileSummary;
using tidemark::QuantileView;
using tidemark::fuzz::AcceptedOrRefusedAs;
using tidemark::fuzz::Require;

constexpr std::uint64_t kUnseen = 3;

template <class Key>
void CheckView(const QuantileView<Key>& view, bool within_epsilon) {
  Require(!within_epsilon || view.WithinEpsilon());
  const std::uint64_t gap = within_epsilon && !view.exact()
                                ? tidemark::FloorFraction(view.epsilon(), view.n())
                                : view.worst_gap();
  tidemark::fuzz::CheckQuantiles(view, [&](std::uint64_t) { return gap; });
}

template <class Key>
void CheckAnswers(const QuantileSummary<Key>& summary, std::span<const Key> open) {
  if (summary.count() > 0) CheckView(QuantileView<Key>(summary.Snapshot()), true);
  CheckView(QuantileView<Key>(summary.Snapshot(), open), true);
  CheckView(QuantileView<Key>(summary.Snapshot(), open, kUnseen), false);
}

template <class Key, class Change>
void CheckChange(const QuantileSummary<Key>& summary, std::uint64_t more, std::span<const Key> open,
                 Change change) {
  tidemark::fuzz::CheckChange(
      summary, more, [](const auto& of) { return of.count(); }, change,
      [&](const auto& changed) { CheckAnswers<Key>(changed, open); });
}

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized quantile summary ", [&] {
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
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t>(
      data, size, []<class Key>(std::string_view bytes) { Check<Key>(bytes); });
}
