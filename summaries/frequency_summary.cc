#include "summaries/frequency_summary.h"

#include "summaries/merge_runs.h"

namespace tidemark {
namespace {

constexpr internal::LossyKind kKind = {.magic = "TMFS",
                                       .version = 2,
                                       .version_fixed = 1,
                                       .name = "frequency summary",
                                       .unit = "values"};

}  // namespace

template <class Key>
FrequencySummary<Key>::FrequencySummary(double epsilon) : counts_(kKind, epsilon) {}

template <class Key>
void FrequencySummary<Key>::AddWindow(std::span<const Key> sorted) {
  counts_.CheckRoom(sorted.size());
  counts_.Take(sorted.size(),
               [&](const auto& entries, std::uint64_t least, std::uint64_t absent, auto visit) {
                 internal::MergeRuns(entries, sorted, least, absent, visit);
               });
}

template <class Key>
void FrequencySummary<Key>::AddItems(std::uint64_t window_count,
                                     std::span<const KeyWeight<Key>> items) {
  counts_.CheckRoom(window_count);
  internal::CheckItems(items, window_count);
  counts_.Take(window_count,
               [&](const auto& entries, std::uint64_t least, std::uint64_t absent, auto visit) {
                 internal::MergeItems(entries, items, least, absent, visit);
               });
}

template <class Key>
FrequencySummary<Key> FrequencySummary<Key>::Deserialize(std::string_view bytes) {
  return FrequencySummary(internal::LossyCounts<Key>::Deserialize(kKind, bytes));
}

template class FrequencySummary<std::uint32_t>;
template class FrequencySummary<std::uint64_t>;

}  // namespace tidemark
