// Walks the entries of a frequency summary and what a window holds side by side.
#ifndef TIDEMARK_SUMMARIES_MERGE_RUNS_H_
#define TIDEMARK_SUMMARIES_MERGE_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "summaries/frequency_entries.h"
#include "summaries/key_weight.h"
#include "summaries/sorted_runs.h"

namespace tidemark::internal {

/// Calls visit(entry) for each of some ascending entries, with the number of times that its key is
/// in `sorted` added to its count. Returns how many keys of `sorted` lie before all keys above the
/// last.
template <class Key, class Visit>
std::size_t CountEntries(std::span<const Key> sorted, std::span<const FrequencyEntry<Key>> entries,
                         Visit visit) {
  // Up to so many, searches one after the other cost less than FindKeys, which runs eight at once.
  constexpr std::size_t kFew = 3;
  // A search costs about as much as reading this many keys one after the other.
  constexpr std::size_t kKeysPerSearch = 8;
  const Key* const data = sorted.data();
  std::size_t at = 0;
  if (entries.size() <= kFew && !sorted.empty()) {
    for (const FrequencyEntry<Key>& entry : entries) {
      const auto begin =
          static_cast<std::size_t>(LowerBound(data + at, data + sorted.size(), entry.key) - data);
      at = begin < sorted.size() && sorted[begin] == entry.key ? RunEnd(sorted, begin) : begin;
      visit(FrequencyEntry<Key>{entry.key, entry.count + (at - begin), entry.delta});
    }
  } else if (entries.size() >= sorted.size() / kKeysPerSearch) {
    for (const FrequencyEntry<Key>& entry : entries) {
      while (at < sorted.size() && sorted[at] < entry.key) ++at;
      const std::size_t begin = at;
      while (at < sorted.size() && sorted[at] == entry.key) ++at;
      visit(FrequencyEntry<Key>{entry.key, entry.count + (at - begin), entry.delta});
    }
  } else {
    FindKeys(
        sorted, entries.size(), [&](std::size_t i) { return entries[i].key; },
        [&](std::size_t i, std::size_t begin, std::size_t end) {
          visit(FrequencyEntry<Key>{entries[i].key, entries[i].count + (end - begin),
                                    entries[i].delta});
          at = end;
        });
  }
  return at;
}

/// See MergeRuns. Looks for the long runs alone, and between them for the entries that are not
/// among them.
template <class Key, class Visit>
void MergeLongRuns(const FrequencyEntries<Key>& entries, std::span<const Key> sorted,
                   std::uint64_t least, std::uint64_t absent, Visit visit) {
  typename FrequencyEntries<Key>::Reader reader(entries);
  FrequencyEntry<Key> entry;
  bool more = reader.Next(entry);
  std::array<FrequencyEntry<Key>, 64> waiting;  // entries before `entry`, not counted yet
  std::size_t waiting_size = 0;
  std::size_t counted = 0;  // keys that no waiting entry can have
  const auto settle = [&](std::size_t end) {
    counted +=
        CountEntries(sorted.subspan(counted, end - counted),
                     std::span<const FrequencyEntry<Key>>(waiting).first(waiting_size), visit);
    waiting_size = 0;
  };
  const auto settle_below = [&](std::size_t end, auto is_below) {
    while (more && is_below(entry.key)) {
      waiting[waiting_size++] = entry;
      if (waiting_size == waiting.size()) settle(end);
      more = reader.Next(entry);
    }
    if (waiting_size > 0) settle(end);
  };
  ForEachRunAt(sorted, least, [&](std::size_t begin, std::size_t end) {
    const Key key = sorted[begin];
    settle_below(begin, [key](Key other) { return other < key; });
    if (more && entry.key == key) {
      entry.count += end - begin;
      visit(entry);
      more = reader.Next(entry);
    } else {
      visit(FrequencyEntry<Key>{key, end - begin, absent});
    }
    counted = end;
  });
  settle_below(sorted.size(), [](Key) { return true; });
}

/// See MergeRuns. Goes through all runs. Where entries and runs alternate at random, what comes
/// next is chosen without a branch.
template <class Key, class Visit>
void MergeAllRuns(const FrequencyEntries<Key>& entries, std::span<const Key> sorted,
                  std::uint64_t absent, Visit visit) {
  constexpr std::size_t kBlock = 64;  // entries and runs that are unpacked at once
  typename FrequencyEntries<Key>::Reader reader(entries);
  std::array<FrequencyEntry<Key>, kBlock> known, fresh;
  std::size_t known_at = 0, known_size = 0, fresh_size = 0;
  const auto refill = [&] {
    known_at = known_size = 0;
    while (known_size < kBlock && reader.Next(known[known_size])) ++known_size;
    return known_size > 0;
  };
  const auto merge_runs = [&] {
    std::size_t fresh_at = 0;
    while (fresh_at < fresh_size && (known_at < known_size || refill())) {
      const FrequencyEntry<Key>*entry = &known[known_at], *entries_end = &known[0] + known_size;
      const FrequencyEntry<Key>*run = &fresh[fresh_at], *runs_end = &fresh[0] + fresh_size;
      while (entry != entries_end && run != runs_end) {
        const bool has_entry = entry->key <= run->key, has_run = run->key <= entry->key;
        const std::size_t of_entry = Mask(has_entry), of_run = Mask(has_run);
        const FrequencyEntry<Key> merged = {
            static_cast<Key>((entry->key & of_entry) | (run->key & ~of_entry)),
            (entry->count & of_entry) + (run->count & of_run),
            (entry->delta & of_entry) + (absent & ~of_entry)};
        entry += has_entry;
        run += has_run;
        visit(merged);
      }
      known_at = static_cast<std::size_t>(entry - &known[0]);
      fresh_at = static_cast<std::size_t>(run - &fresh[0]);
    }
    for (; fresh_at < fresh_size; ++fresh_at) visit(fresh[fresh_at]);
    fresh_size = 0;
  };
  VisitAllRuns(sorted, [&](std::size_t begin, std::size_t end) {
    fresh[fresh_size++] = {sorted[begin], end - begin, absent};
    if (fresh_size == kBlock) merge_runs();
  });
  merge_runs();
  while (known_at < known_size || refill()) visit(known[known_at++]);
}

/// Puts what a window holds to the entries that were there before it, where a key without an entry
/// counts as {0, absent}: calls visit({key, count with the window's, delta}), in ascending order of
/// keys, for each entry and each other key that is in `sorted` at least `least` times (>= 1), and
/// possibly for some that are there less often.
template <class Key, class Visit>
void MergeRuns(const FrequencyEntries<Key>& entries, std::span<const Key> sorted,
               std::uint64_t least, std::uint64_t absent, Visit visit) {
  // A search costs about as much as reading this many keys one after the other.
  constexpr std::size_t kKeysPerSearch = 8;
  if (least == 1 || entries.size() > sorted.size() / kKeysPerSearch) {
    MergeAllRuns(entries, sorted, absent, visit);
  } else {
    MergeLongRuns(entries, sorted, least, absent, visit);
  }
}

/// The same for ascending items, which are given one after the other.
template <class Key, class Visit>
class ItemMerger {
 public:
  ItemMerger(const FrequencyEntries<Key>& entries, std::uint64_t least, std::uint64_t absent,
             Visit visit)
      : reader_(entries), least_(least), absent_(absent), visit_(visit) {
    more_ = reader_.Next(entry_);
  }

  void Add(const KeyWeight<Key>& item) {
    for (; more_ && entry_.key < item.key; more_ = reader_.Next(entry_)) visit_(entry_);
    if (more_ && entry_.key == item.key) {
      entry_.count += item.weight;
      visit_(entry_);
      more_ = reader_.Next(entry_);
    } else if (item.weight >= least_) {
      visit_(FrequencyEntry<Key>{item.key, item.weight, absent_});
    }
  }
  /// Behind the last item.
  void Finish() {
    for (; more_; more_ = reader_.Next(entry_)) visit_(entry_);
  }

 private:
  typename FrequencyEntries<Key>::Reader reader_;
  std::uint64_t least_, absent_;
  Visit visit_;
  FrequencyEntry<Key> entry_;
  bool more_;
};

/// All at once.
template <class Key, class Visit>
void MergeItems(const FrequencyEntries<Key>& entries, std::span<const KeyWeight<Key>> items,
                std::uint64_t least, std::uint64_t absent, Visit visit) {
  ItemMerger<Key, Visit> merger(entries, least, absent, visit);
  for (const KeyWeight<Key>& item : items) merger.Add(item);
  merger.Finish();
}

/// Throws std::invalid_argument unless the items ascend and weigh at most `total` together.
template <class Key>
void CheckItems(std::span<const KeyWeight<Key>> items, std::uint64_t total) {
  std::uint64_t left = total;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && items[i].key <= items[i - 1].key) {
      throw std::invalid_argument("items of a window do not ascend at place " + std::to_string(i));
    }
    if (items[i].weight > left) {
      throw std::invalid_argument("items of a window come to more than its " +
                                  std::to_string(total));
    }
    left -= items[i].weight;
  }
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_MERGE_RUNS_H_
