// Serialized frequency summaries, of keys and of weighted keys, with the checksum that they came
// with and with one that fits: what is not a summary is refused with a reason; what is accepted
// serializes to the same bytes (of version 1, to bytes that do), counts within its epsilon, and
// stays so after a merge and after another window.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_rule.h"
#include "summaries/weighted_frequency.h"
#include "tests/fuzz/summary_bytes.h"

namespace {

using tidemark::FrequencySummary;
using tidemark::FrequencyView;
using tidemark::ItemCount;
using tidemark::KeyWeight;
using tidemark::WeightedFrequencySummary;
using tidemark::fuzz::AcceptedOrRefusedAs;
using tidemark::fuzz::Require;

constexpr std::uint64_t kUnseen = 3;

template <class Key>
std::uint64_t TotalOf(const FrequencySummary<Key>& summary) {
  return summary.count();
}
template <class Key>
std::uint64_t TotalOf(const WeightedFrequencySummary<Key>& summary) {
  return summary.weight();
}

template <class Key>
void CheckTop(const FrequencyView<Key>& view, std::size_t k) {
  const auto top = view.TopK(k);
  Require(top.items.size() <= k && top.certain <= top.items.size());
  for (const ItemCount<Key>& item : top.items) {
    Require(item == view.Count(item.key));
    if (top.items.size() == k) Require(item.count_high >= top.top_low);
  }
}

template <class Key, class Summary>
void CheckView(const FrequencyView<Key>& view, const Summary& summary, std::span<const Key> open,
               std::uint64_t unseen) {
  const std::uint64_t n = view.n();
  Require(n == TotalOf(summary) + open.size() + unseen);
  Require(unseen > 0 || view.WithinEpsilon());
  const std::uint64_t width = summary.dropped() + unseen;
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
  CheckTop(view, 1);
  CheckTop(view, 5);
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

template <class Key, class Summary>
void CheckAnswers(const Summary& summary, std::span<const Key> open) {
  using View = FrequencyView<Key>;
  CheckView<Key>(View(summary.Snapshot()), summary, {}, 0);
  CheckView<Key>(View(summary.Snapshot(), open), summary, open, 0);
  CheckView<Key>(View(summary.Snapshot(), open, kUnseen), summary, open, kUnseen);
}

template <class Key, class Summary, class Change>
void CheckChange(const Summary& summary, std::uint64_t more, std::span<const Key> open,
                 Change change) {
  tidemark::fuzz::CheckChange(
      summary, more, [](const auto& of) { return TotalOf(of); }, change,
      [&](const auto& changed) { CheckAnswers(changed, open); });
}

template <class Key>
void CheckCounts(std::string_view bytes) {
  const auto summary = FrequencySummary<Key>::Deserialize(bytes);
  const std::string again = summary.Serialize();
  Require(again == bytes || bytes[4] == 1);
  Require(FrequencySummary<Key>::Deserialize(again).Serialize() == again);
  const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
  CheckAnswers<Key>(summary, window);
  CheckChange<Key>(summary, summary.count(), window, [&](auto& into) { into.Merge(into); });
  CheckChange<Key>(summary, window.size(), window, [&](auto& into) { into.AddWindow(window); });
  FrequencySummary<Key> other(summary.epsilon());
  for (std::size_t size = window.size(); size > 0; size -= 4) {
    other.AddWindow(std::span<const Key>(window).first(size));
  }
  CheckChange<Key>(summary, other.count(), window, [&](auto& into) { into.Merge(other); });
}

template <class Key>
void CheckWeights(std::string_view bytes) {
  const auto summary = WeightedFrequencySummary<Key>::Deserialize(bytes);
  Require(summary.Serialize() == bytes);
  const std::vector<Key> window = tidemark::fuzz::SortedKeys<Key>(bytes);
  CheckAnswers<Key>(summary, window);
  CheckChange<Key>(summary, summary.weight(), window, [&](auto& into) { into.Merge(into); });
  std::vector<KeyWeight<Key>> pairs;
  std::uint64_t weight = 0;
  for (const Key key : window) {
    pairs.push_back({key, key % 1000});
    weight += key % 1000;
  }
  CheckChange<Key>(summary, weight, window, [&](auto& into) { into.AddWindow(pairs); });
}

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized frequency summary ", [&] { CheckCounts<Key>(bytes); });
  AcceptedOrRefusedAs("serialized weighted frequency summary ", [&] { CheckWeights<Key>(bytes); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t>(
      data, size, []<class Key>(std::string_view bytes) { Check<Key>(bytes); });
}
