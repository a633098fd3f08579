// A summary of weighted keys that is fed with keys alone, so that it can take the place of the
// other summaries in tests of what they share.
#ifndef TIDEMARK_TESTS_SUMMARIES_WEIGHTED_KEYS_H_
#define TIDEMARK_TESTS_SUMMARIES_WEIGHTED_KEYS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "summaries/weighted_frequency.h"

namespace tidemark::testing {

/// What a key weighs follows from it, and may be 0.
template <class Key>
class WeightedKeys : public WeightedFrequencySummary<Key> {
 public:
  using WeightedFrequencySummary<Key>::WeightedFrequencySummary;

  void AddWindow(std::span<const Key> sorted) {
    std::vector<KeyWeight<Key>> pairs;
    for (const Key key : sorted) pairs.push_back({key, key % 3});
    WeightedFrequencySummary<Key>::AddWindow(pairs);
  }
  std::uint64_t count() const { return this->weight(); }
  static WeightedKeys Deserialize(std::string_view bytes) {
    return WeightedKeys(WeightedFrequencySummary<Key>::Deserialize(bytes));
  }

 private:
  explicit WeightedKeys(WeightedFrequencySummary<Key> summary)
      : WeightedFrequencySummary<Key>(std::move(summary)) {}
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_WEIGHTED_KEYS_H_
