// Serialized frequency summaries, with the checksum that they came with and with one that fits:
// what is not a summary is refused with a reason; what is accepted serializes to the same bytes,
// counts within its epsilon, and stays so after a merge and after another window.
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
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_rule.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::FrequencySummary;
using tidemark::FrequencyView;
using tidemark::ItemCount;

constexpr std::uint64_t kUnseen = 3;

void Require(bool property) {
  if (!property) std::abort();
}

template <class Key>
void CheckView(const FrequencyView<Key>& view, const FrequencySummary<Key>& summary,
               std::span<const Key> open, std::uint64_t unseen) {
  const std::uint64_t n = view.n();
  Require(n == summary.count() + open.size() + unseen);
  Require(unseen > 0 || view.WithinEpsilon());
  const std::uint64_t width = tidemark::DroppedBound(view.epsilon(), summary.count()) + unseen;
  std::uint64_t sum = 0;
  const auto check = [&](const ItemCount<Key>& item) {
    Require(item.count_low <= item.count_high && item.count_high <= n);
    Require(item.count_high - item.count_low <= width);
  };
  summary.Snapshot().ForEachKey([&](Key key) {
    const ItemCount<Key> item = view.Count(key);
    Require(item.key == key && item.count_low > 0);
    check(item);
    sum += item.count_low;
  });
  Require(sum <= n);
  for (const Key key : open) check(view.Count(key));
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
    for (const ItemCount<Key>& item : view.HeavyHitters(support)) {
      check(item);
      Require(item == view.Count(item.key));
      Require(item.count_high <= before);
      before = item.count_high;
    }
  }
}

template <class Key>
void CheckAnswers(const FrequencySummary<Key>& summary, std::span<const Key> open) {
  using View = FrequencyView<Key>;
  CheckView<Key>(View(summary.Snapshot()), summary, {}, 0);
  CheckView<Key>(View(summary.Snapshot(), open), summary, open, 0);
  CheckView<Key>(View(summary.Snapshot(), open, kUnseen), summary, open, kUnseen);
}

/// `change` takes `more` values in, or throws and leaves the summary as it was.
template <class Key, class Change>
void CheckChange(FrequencySummary<Key> summary, std::uint64_t more, std::span<const Key> open,
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
  Require(FrequencySummary<Key>::Deserialize(after).Serialize() == after);
}

template <class Key>
void Check(std::string_view bytes) {
  try {
    const auto summary = FrequencySummary<Key>::Deserialize(bytes);
    Require(summary.Serialize() == bytes);
    const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
    CheckAnswers<Key>(summary, window);
    CheckChange<Key>(summary, summary.count(), window, [&](auto& into) { into.Merge(into); });
    CheckChange<Key>(summary, window.size(), window, [&](auto& into) { into.AddWindow(window); });
    FrequencySummary<Key> other(summary.epsilon());
    for (std::size_t size = window.size(); size > 0; size -= 4) {
      other.AddWindow(std::span<const Key>(window).first(size));
    }
    CheckChange<Key>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
  } catch (const std::invalid_argument& refusal) {
    Require(std::string_view(refusal.what()).starts_with("serialized frequency summary "));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check<std::uint32_t>(bytes);
  Check<std::uint64_t>(bytes);
  if (tidemark::fuzz::FixChecksum(bytes)) {
    Check<std::uint32_t>(bytes);
    Check<std::uint64_t>(bytes);
  }
  return 0;
}
