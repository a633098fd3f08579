// Exports keep the promise of the stream that they come from, alone and together, and are small.
#include "summaries/quantile_export.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "summaries/compact_quantiles.h"
#include "summaries/quantile_summary.h"
#include "tests/summaries/adversaries.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/mixed_input.h"
#include "tests/summaries/property.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/view_checks.h"
#include "tests/support/fix_checksum.h"

namespace tidemark {
namespace {

using testing::Epsilon;
using testing::MixedInput;
using testing::Oracle;

constexpr TailEnd kEnds[] = {TailEnd::kNone, TailEnd::kUpper, TailEnd::kLower};

/// Two or three streams are exported on their own; what was imported is viewed together.
template <class Key>
void CheckExports(const MixedInput<Key>& input) {
  std::mt19937_64 random(input.seed);
  const double epsilon = 1.0 / static_cast<double>(input.parts);
  const TailEnd end = kEnds[random() % 3];
  const std::size_t streams = 1 + random() % 3;
  const std::span<const Key> keys(input.keys);
  QuantileSnapshot<Key> all{.epsilon = epsilon, .end = end};
  for (std::size_t s = 0; s < streams; ++s) {
    const std::size_t begin = keys.size() * s / streams, last = keys.size() * (s + 1) / streams;
    const auto own = keys.subspan(begin, last - begin);
    CompactQuantiles<Key> summary(epsilon, end);
    std::vector<Key> open;
    testing::ForEachWindow(
        own, [&] { return 1 + random() % 600; },
        [&](std::span<const Key> window) {
          if (open.empty() && random() % 4 == 0) {
            open.assign(window.begin(), window.end());
          } else {
            summary.AddWindow(window);
          }
        });
    const std::string bytes = ExportQuantiles(QuantileView<Key>(summary.Snapshot(), open));
    const QuantileSnapshot<Key> imported = ImportQuantiles<Key>(bytes);
    ASSERT_EQ(imported.count, own.size());
    ASSERT_EQ(imported.epsilon, epsilon);
    ASSERT_EQ(imported.end, end);
    all.count += imported.count;
    all.ranked.insert(all.ranked.end(), imported.ranked.begin(), imported.ranked.end());
  }
  const QuantileView<Key> view(all);
  const Oracle<Key> truth(input.keys);
  testing::CheckPromise(view, truth, RankRule(epsilon, end), input.seed);
  testing::CheckView(view, truth, Epsilon{input.parts}, input.seed);
}

template <class Key>
class Export : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Export, Keys);

TYPED_TEST(Export, KeepsThePromiseAloneAndTogether) {
  testing::ForSeeds<MixedInput<TypeParam>>(
      Cases(1000), [](auto& random) { return testing::DrawMixed<TypeParam>(random, 3000); },
      CheckExports<TypeParam>);
}

TYPED_TEST(Export, OfThePermille) {
  // 1,001 keys whatever the order.
  using Key = TypeParam;
  for (const auto attack : {testing::Attack::kUnknownRange, testing::Attack::kZoomAny}) {
    testing::Adversary<Key> adversary(attack, 1);
    CompactQuantiles<Key> summary(0.001);
    std::vector<Key> all;
    for (int window = 0; window < 60; ++window) {
      const auto keys = adversary.Next(QuantileView<Key>(summary.Snapshot()), 10'000);
      summary.AddWindow(keys);
      all.insert(all.end(), keys.begin(), keys.end());
    }
    const std::string bytes = ExportQuantiles(QuantileView<Key>(summary.Snapshot()));
    EXPECT_LE(bytes.size(), 41 + 1001 * sizeof(Key));
    ASSERT_NO_FATAL_FAILURE(testing::CheckView(QuantileView<Key>(ImportQuantiles<Key>(bytes)),
                                               Oracle<Key>(all), Epsilon{1000}, 1));
  }
}

TYPED_TEST(Export, OfAHistogram) {
  using Key = TypeParam;
  const auto keys = testing::Generate<Key>(testing::Distribution::kZipf, 1 << 16, 2);
  QuantileSummary<Key> summary(0.01);
  testing::ForEachWindow(
      std::span<const Key>(keys), [] { return 1024; },
      [&](std::span<const Key> window) { summary.AddWindow(window); });
  const std::string bytes = ExportQuantiles(QuantileView<Key>(summary.Snapshot()));
  ASSERT_NO_FATAL_FAILURE(testing::CheckView(QuantileView<Key>(ImportQuantiles<Key>(bytes)),
                                             Oracle<Key>(keys), Epsilon{100}, 1));
}

TYPED_TEST(Export, EmptyAndTiny) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    const CompactQuantiles<Key> summary(0.1, end);
    const std::string bytes = ExportQuantiles(QuantileView<Key>(summary.Snapshot()));
    EXPECT_EQ(ImportQuantiles<Key>(bytes).count, 0u);
    for (const std::vector<Key>& few : {std::vector<Key>{7}, {7, 7}, {7, 8}, {7, 7, 7}}) {
      const QuantileView<Key> open(summary.Snapshot(), few);
      const QuantileView<Key> view(ImportQuantiles<Key>(ExportQuantiles(open)));
      EXPECT_TRUE(view.exact());
      EXPECT_EQ(view.n(), few.size());
      EXPECT_EQ(view.Quantile(1).value, few.back());
    }
  }
}

TYPED_TEST(Export, RefusesWhatItCannotProve) {
  using Key = TypeParam;
  CompactQuantiles<Key> summary(0.01);
  summary.AddWindow(testing::Spread<Key>(0, 1'000'000, 10'000));
  EXPECT_THROW(ExportQuantiles(QuantileView<Key>(summary.Snapshot(), {}, 3)), std::logic_error);
  EXPECT_THROW(ExportQuantiles(QuantileView<Key>(summary.Snapshot(), {}, 0, 0.001)),
               std::invalid_argument);
}

// 2^40 times the same value are known in two samples; even ranks at this epsilon are 2^29.
TYPED_TEST(Export, RefusesMoreKeysThanItMayHave) {
  using Key = TypeParam;
  constexpr std::uint64_t n = std::uint64_t{1} << 40;
  QuantileSnapshot<Key> snapshot;
  snapshot.epsilon = 0x1p-30;
  snapshot.count = n;
  RankedSamples<Key> samples{.count = n};
  samples.keys = {7, 7};
  samples.low = samples.high = {1, n};
  snapshot.ranked.push_back(std::make_shared<const RankedSamples<Key>>(std::move(samples)));
  EXPECT_THROW(ExportQuantiles(QuantileView<Key>(snapshot)), std::length_error);
  snapshot.epsilon = 0x1p-10;
  EXPECT_LT(ExportQuantiles(QuantileView<Key>(snapshot)).size(), 600 * sizeof(Key));
}

TYPED_TEST(Export, LiesUnderARightChecksumAreRefusedOrHarmless) {
  using Key = TypeParam;
  for (const TailEnd end : kEnds) {
    CompactQuantiles<Key> summary(0.05, end);
    const auto keys = testing::Generate<Key>(testing::Distribution::kZipf, 3000, 2);
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return 256; },
        [&](std::span<const Key> window) { summary.AddWindow(window); });
    const std::string bytes = ExportQuantiles(QuantileView<Key>(summary.Snapshot()));
    int accepted = 0;
    const int cases = Cases(5000, 200'000);
    for (int seed = 0; seed < cases; ++seed) {
      std::mt19937_64 random(static_cast<std::uint64_t>(seed));
      std::string lie = bytes;
      for (std::uint64_t change = 1 + random() % 2; change > 0; --change) {
        lie[random() % (lie.size() - 4)] ^= static_cast<char>(1 << random() % 8);
      }
      testing::FixChecksum(lie);
      try {
        const QuantileView<Key> view(ImportQuantiles<Key>(lie));
        ++accepted;
        ASSERT_TRUE(view.WithinEpsilon());
        ASSERT_GE(view.Quantile(1).value, view.Quantile(0).value);
        ASSERT_NO_THROW(ExportQuantiles(view));
      } catch (const std::invalid_argument& error) {
        ASSERT_NE(std::string(error.what()).find("quantile export"), std::string::npos)
            << error.what();
      }
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, cases);
  }
}

}  // namespace
}  // namespace tidemark
