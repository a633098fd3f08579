// Serialized hierarchical frequency summaries, with the checksum that they came with and with one
// that fits: what is not a summary is refused with a reason; what is accepted serializes to the
// same bytes, counts within its epsilon, and stays so after a merge and after another window.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/hierarchical_frequency.h"
#include "summaries/hierarchical_view.h"
#include "summaries/quantile_rule.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::HierarchicalFrequencySummary;
using tidemark::HierarchicalView;
using tidemark::fuzz::AcceptedOrRefusedAs;
using tidemark::fuzz::Require;

constexpr std::uint64_t kUnseen = 3;

template <class Key>
void CheckView(const HierarchicalFrequencySummary<Key>& summary, std::span<const Key> open,
               std::uint64_t unseen) {
  const HierarchicalView<Key> view(summary.Snapshot(), open, unseen);
  const std::uint64_t n = view.n(), width = summary.dropped() + unseen;
  Require(n == summary.count() + open.size() + unseen);
  Require(unseen > 0 || view.WithinEpsilon());
  for (int level = 0; level < summary.levels().size(); ++level) {
    for (const Key key : open) {
      const auto item = view.Count(level, key);
      Require(item.count_low > 0 && item.count_low <= item.count_high && item.count_high <= n &&
              item.count_high - item.count_low <= width);
    }
  }
  for (const double support : {view.MinimumSupport(), 0.1, 0.5, 1.0}) {
    if (!(support > 0 && support <= 1)) continue;
    if (!view.Serves(support)) {
      try {
        view.HeavyHitters(support);
        Require(false);
      } catch (const std::invalid_argument&) {
      }
      continue;
    }
    std::uint64_t before = n;
    for (const auto& item : view.HeavyHitters(support)) {
      const auto count = view.Count(item.level, item.prefix);
      Require(count.count_low == item.count_low && count.count_high == item.count_high);
      Require(item.discounted_low <= item.discounted_high && item.discounted_high <= before);
      before = item.discounted_high;
    }
  }
}

template <class Key, class Change>
void CheckChange(const HierarchicalFrequencySummary<Key>& summary, std::uint64_t more,
                 std::span<const Key> open, Change change) {
  tidemark::fuzz::CheckChange(
      summary, more, [](const auto& of) { return of.count(); }, change,
      [&](const auto& changed) {
        if (changed.count() > tidemark::kMaxSummaryCount - open.size() - kUnseen) return;
        CheckView<Key>(changed, open, 0);
        CheckView<Key>(changed, open, kUnseen);
      });
}

template <class Key>
void Check(std::string_view bytes) {
  const auto summary = HierarchicalFrequencySummary<Key>::Deserialize(bytes);
  Require(summary.Serialize() == bytes);
  const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
  CheckChange<Key>(summary, 0, window, [](auto&) {});
  CheckChange<Key>(summary, summary.count(), window, [&](auto& into) { into.Merge(into); });
  CheckChange<Key>(summary, window.size(), window, [&](auto& into) { into.AddWindow(window); });
  HierarchicalFrequencySummary<Key> other(summary.epsilon(), summary.levels());
  for (std::size_t size = window.size(); size > 0; size -= 4) {
    other.AddWindow(std::span<const Key>(window).first(size));
  }
  CheckChange<Key>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t, tidemark::Key128>(
      data, size, []<class Key>(std::string_view bytes) {
        AcceptedOrRefusedAs("serialized hierarchical ", [&] { Check<Key>(bytes); });
      });
}
