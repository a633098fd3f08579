// The summaries of the whole history under random inputs, window sizes, merges in random trees,
// and bytes that are written and read on the way: every certificate holds and is within epsilon.
// 10^5 inputs for each in the extended run (cases.h). Single aspects: quantile_summary_test.cc,
// frequency_summary_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "summaries/compact_quantiles.h"
#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/mixed_input.h"
#include "tests/summaries/property.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/view_checks.h"

namespace tidemark {
namespace {

using testing::MixedInput;
using testing::Oracle;

/// What became of the keys of an input: one summary, and an open window of the last ones.
template <class Summary, class Key>
struct Fed {
  Summary summary;
  std::vector<Key> open;
};

/// Cuts the keys into windows, gives each to one of a few summaries, writes and reads some of them,
/// and merges all in a random tree. `window_size()` gives the size of the next window; a shorter
/// one at the end stays open.
/// `options`: what the summaries are made with besides epsilon.
template <class Summary, class Key, class WindowSize, class... Options>
Fed<Summary, Key> FeedAndMerge(const MixedInput<Key>& input, std::mt19937_64& random,
                               WindowSize window_size, Options... options) {
  const double epsilon = 1.0 / static_cast<double>(input.parts);
  std::vector<Summary> parts(1 + random() % 4, Summary(epsilon, options...));
  Fed<Summary, Key> fed{Summary(epsilon, options...), {}};
  std::size_t size = 0;
  testing::ForEachWindow(
      std::span<const Key>(input.keys), [&] { return size = window_size(); },
      [&](std::span<const Key> window) {
        if (window.size() < size) {
          fed.open.assign(window.begin(), window.end());
        } else {
          parts[random() % parts.size()].AddWindow(window);
        }
      });
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    Summary other = parts.back();
    if (random() % 4 == 0) other = Summary::Deserialize(other.Serialize());
    parts.pop_back();
    parts[random() % parts.size()].Merge(other);
  }
  fed.summary = parts.front();
  return fed;
}

template <class Key>
void CheckQuantiles(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  const std::uint64_t largest = 1 + random() % 9;
  const auto fed = FeedAndMerge<QuantileSummary<Key>, Key>(
      input, random, [&] { return std::size_t{1} << (random() % largest); });
  testing::CheckView(QuantileView<Key>(fed.summary.Snapshot(), fed.open), Oracle<Key>(input.keys),
                     testing::Epsilon{input.parts}, input.seed);
}

template <class Key>
void CheckCompact(const MixedInput<Key>& input) {
  static constexpr TailEnd kEnds[] = {TailEnd::kNone, TailEnd::kUpper, TailEnd::kLower};
  std::mt19937_64 random(input.seed);
  const TailEnd end = kEnds[random() % std::size(kEnds)];
  const std::uint64_t largest = 1 + random() % 400;
  const auto fed = FeedAndMerge<CompactQuantiles<Key>, Key>(
      input, random, [&] { return 1 + random() % largest; }, end);
  const QuantileView<Key> view(fed.summary.Snapshot(), fed.open);
  const Oracle<Key> truth(input.keys);
  testing::CheckPromise(view, truth, fed.summary.rule(), input.seed);
  testing::CheckView(view, truth, testing::Epsilon{input.parts}, input.seed);
}

template <class Key>
void CheckCounts(const FrequencyView<Key>& view, const Oracle<Key>& truth, std::uint64_t parts) {
  std::uint64_t heavy = 0;
  const std::uint64_t n = truth.n();
  const double support = view.MinimumSupport();
  const std::uint64_t wanted = std::max<std::uint64_t>(CeilFraction(support, n), 1);
  for (std::size_t i = 0; i < n;) {
    const Key key = truth.sorted()[i];
    const std::uint64_t count = truth.Count(key);
    const ItemCount<Key> item = view.Count(key);
    ASSERT_LE(item.count_low, count) << "key " << key;
    ASSERT_GE(item.count_high, count) << "key " << key;
    ASSERT_LE((item.count_high - item.count_low) * parts, n) << "key " << key;
    heavy += count >= wanted ? 1 : 0;
    i += count;
  }
  const auto other = static_cast<Key>(truth.sorted().back() + 1);  // most often absent
  ASSERT_LE(view.Count(other).count_low, truth.Count(other));
  ASSERT_GE(view.Count(other).count_high, truth.Count(other));
  if (support <= 0 || support > 1) return;
  std::uint64_t found = 0;
  for (const auto& item : view.HeavyHitters(support)) {
    const std::uint64_t count = truth.Count(item.key);
    found += count >= wanted ? 1 : 0;
    // None below (support - epsilon) * n.
    if (count < wanted) {
      ASSERT_LE((wanted - count - 1) * parts, n) << "key " << item.key;
    }
  }
  ASSERT_EQ(found, heavy);
}

template <class Key>
void CheckFrequencies(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  const std::uint64_t largest = 1 + random() % 400;
  const auto fed = FeedAndMerge<FrequencySummary<Key>, Key>(input, random,
                                                            [&] { return 1 + random() % largest; });
  CheckCounts(FrequencyView<Key>(fed.summary.Snapshot(), fed.open), Oracle<Key>(input.keys),
              input.parts);
}

constexpr std::size_t kMostKeys = 2000;

template <class Key>
class History : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(History, Keys);

TYPED_TEST(History, QuantilesHoldWhateverComes) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(1500), [](auto& random) { return testing::DrawMixed<TypeParam>(random, kMostKeys); },
      CheckQuantiles<TypeParam>);
}

TYPED_TEST(History, CompactQuantilesHoldWhateverComes) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(2000), [](auto& random) { return testing::DrawMixed<TypeParam>(random, kMostKeys); },
      CheckCompact<TypeParam>);
}

TYPED_TEST(History, CountsHoldWhateverComes) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(1500), [](auto& random) { return testing::DrawMixed<TypeParam>(random, kMostKeys); },
      CheckFrequencies<TypeParam>);
}

}  // namespace
}  // namespace tidemark
