// Walks the entries of a frequency summary and the runs of a sorted array side by side.
#ifndef TIDEMARK_SUMMARIES_MERGE_RUNS_H_
#define TIDEMARK_SUMMARIES_MERGE_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summaries/frequency_summary.h"
#include "summaries/sorted_runs.h"

namespace tidemark::internal {

/// Calls, in ascending order of keys,
///   on_entry(entry, count)  for each entry, with the number of times its key is in `sorted`,
///   on_new(key, count)      for each other key that is there at least `least` times (>= 1), and
///                           possibly for some that are there less often.
template <class Key, class OnEntry, class OnNew>
void MergeRuns(const std::vector<FrequencyEntry<Key>>& entries, std::span<const Key> sorted,
               std::uint64_t least, OnEntry on_entry, OnNew on_new) {
  // A search costs about as much as reading this many keys one after the other.
  constexpr std::size_t kKeysPerSearch = 8;
  if (least > 1 && entries.size() < sorted.size() / kKeysPerSearch) {
    std::size_t done = 0;
    FindKeys(
        sorted, entries.size(), [&](std::size_t i) { return entries[i].key; },
        [&](std::size_t i, std::size_t begin, std::size_t end) {
          ForEachRun(sorted.subspan(done, begin - done), least, on_new);
          on_entry(entries[i], static_cast<std::uint64_t>(end - begin));
          done = end;
        });
    ForEachRun(sorted.subspan(done), least, on_new);
    return;
  }
  std::size_t next = 0;
  ForEachRun(sorted, 1, [&](Key key, std::uint64_t count) {
    for (; next < entries.size() && entries[next].key < key; ++next) on_entry(entries[next], 0);
    if (next < entries.size() && entries[next].key == key) {
      on_entry(entries[next], count);
      ++next;
    } else {
      on_new(key, count);
    }
  });
  for (; next < entries.size(); ++next) on_entry(entries[next], 0);
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_MERGE_RUNS_H_
