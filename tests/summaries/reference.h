// Exact and naive references: the truth about a sequence, and lossy counting as its paper words it.
#ifndef TIDEMARK_TESTS_SUMMARIES_REFERENCE_H_
#define TIDEMARK_TESTS_SUMMARIES_REFERENCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/key_weight.h"

namespace tidemark::testing {

/// Everything, sorted.
template <class Key>
class Oracle {
 public:
  explicit Oracle(std::vector<Key> keys) : sorted_(std::move(keys)) {
    std::sort(sorted_.begin(), sorted_.end());
  }
  std::uint64_t n() const { return sorted_.size(); }
  std::uint64_t Less(Key v) const {
    return static_cast<std::uint64_t>(std::lower_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  std::uint64_t AtMost(Key v) const {
    return static_cast<std::uint64_t>(std::upper_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  std::uint64_t Count(Key v) const { return AtMost(v) - Less(v); }
  const std::vector<Key>& sorted() const { return sorted_; }

 private:
  std::vector<Key> sorted_;
};

/// Cuts `keys` into windows whose sizes `next_size()` gives (the rest is the last one), sorts each
/// and calls visit(window).
template <class Key, class NextSize, class Visit>
void ForEachWindow(std::span<const Key> keys, NextSize next_size, Visit visit) {
  while (!keys.empty()) {
    const std::size_t size = std::min(static_cast<std::size_t>(next_size()), keys.size());
    std::vector<Key> window(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(size));
    std::sort(window.begin(), window.end());
    visit(std::span<const Key>(window));
    keys = keys.subspan(size);
  }
}

/// Lossy counting without any short cut. epsilon = numerator / denominator, exactly. Windows may be
/// of keys, which weigh 1, or of keys with weights.
template <class Key>
class NaiveLossyCounting {
 public:
  NaiveLossyCounting(std::uint64_t numerator, std::uint64_t denominator)
      : numerator_(numerator), denominator_(denominator) {}

  std::uint64_t dropped() const {
    const Uint128 ceil = (static_cast<Uint128>(n_) * numerator_ + denominator_ - 1) / denominator_;
    return ceil > 0 ? static_cast<std::uint64_t>(ceil - 1) : 0;
  }
  void AddWindow(std::span<const Key> window) {
    std::vector<KeyWeight<Key>> pairs;
    for (const Key key : window) pairs.push_back({key, 1});
    AddWindow(std::span<const KeyWeight<Key>>(pairs));
  }
  void AddWindow(std::span<const KeyWeight<Key>> window) {
    const std::uint64_t before = dropped();
    for (const auto& [key, weight] : window) {
      const auto [entry, is_new] = entries_.try_emplace(key, FrequencyEntry<Key>{key, 0, before});
      entry->second.count += weight;
      n_ += weight;
    }
    std::erase_if(entries_, [&](const auto& entry) {
      return entry.second.count + entry.second.delta <= dropped();
    });
  }
  std::vector<FrequencyEntry<Key>> entries() const {
    std::vector<FrequencyEntry<Key>> all;
    for (const auto& [key, entry] : entries_) all.push_back(entry);
    return all;
  }

 private:
  std::uint64_t numerator_, denominator_;
  std::uint64_t n_ = 0;
  std::map<Key, FrequencyEntry<Key>> entries_;
};

/// What a frequency summary holds, in order.
template <class Summary>
std::vector<typename Summary::Entry> EntriesOf(const Summary& summary) {
  std::vector<typename Summary::Entry> entries;
  summary.Snapshot().entries->ForEach([&](const auto& entry) { entries.push_back(entry); });
  return entries;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_REFERENCE_H_
