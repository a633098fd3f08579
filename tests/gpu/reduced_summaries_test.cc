// Summaries take whole sorted channels or reduced ones, with the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "gpu/reduce/reduced_channel.h"
#include "summaries/frequency_summary.h"
#include "summaries/quantile_summary.h"

namespace tidemark::reduce {
namespace {

template <class Key>
class ReducedSummariesTest : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(ReducedSummariesTest, Keys);

template <class Key>
std::vector<Key> Window(std::size_t size, std::uint64_t different, std::mt19937_64& random) {
  std::vector<Key> keys(size);
  for (Key& key : keys) {
    const std::uint64_t drawn = random() % different;
    key = static_cast<Key>(drawn * drawn);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Key>
void AddReduced(std::span<const Key> sorted, QuantileSummary<Key>& quantiles) {
  const auto stride = static_cast<std::uint32_t>(quantiles.SampleStride(sorted.size()));
  const std::vector<Key> samples = SamplesOf<Key>(sorted, {stride - 1, stride});
  quantiles.AddSamples(sorted.size(), sorted.front(), samples);
}

template <class Key>
void AddReduced(std::span<const Key> sorted, FrequencySummary<Key>& items) {
  std::vector<KeyWeight<Key>> runs;
  std::uint32_t before = 0;
  for (const KeyRun<Key>& run : RunsOf<Key>(sorted)) {
    runs.push_back({run.key, run.end - before});
    before = run.end;
  }
  items.AddItems(sorted.size(), runs);
}

TYPED_TEST(ReducedSummariesTest, HaveTheBytesOfWholeOnes) {
  std::mt19937_64 random(1);
  for (const double epsilon : {0.3, 0.01, 0.001}) {
    QuantileSummary<TypeParam> quantiles(epsilon), reduced_quantiles(epsilon);
    FrequencySummary<TypeParam> items(epsilon), reduced_items(epsilon);
    for (int i = 0; i < 60; ++i) {
      const std::vector<TypeParam> window = Window<TypeParam>(
          std::size_t{1} << random() % 14, 1 + random() % (i % 3 == 0 ? 20 : 100'000), random);
      quantiles.AddWindow(window);
      AddReduced<TypeParam>(window, reduced_quantiles);
      items.AddWindow(window);
      AddReduced<TypeParam>(window, reduced_items);
      ASSERT_EQ(reduced_quantiles.Serialize(), quantiles.Serialize()) << "window " << i;
      ASSERT_EQ(reduced_items.Serialize(), items.Serialize()) << "window " << i;
    }
  }
}

TYPED_TEST(ReducedSummariesTest, WrongSamplesAreRefusedAndChangeNothing) {
  QuantileSummary<TypeParam> summary(0.01);
  const std::vector<TypeParam> samples = {3, 5, 5, 9};
  summary.AddSamples(4, 3, samples);
  const std::string before = summary.Serialize();
  EXPECT_THROW(summary.AddSamples(4, 4, samples), std::invalid_argument) << "not the smallest";
  EXPECT_THROW(summary.AddSamples(8, 3, samples), std::invalid_argument) << "too few";
  EXPECT_THROW(summary.AddSamples(3, 3, samples), std::invalid_argument) << "not a power of two";
  const std::vector<TypeParam> unsorted = {3, 5, 4, 9};
  EXPECT_THROW(summary.AddSamples(4, 3, unsorted), std::invalid_argument);
  EXPECT_EQ(summary.Serialize(), before);
}

}  // namespace
}  // namespace tidemark::reduce
