// The whole grid against an exact oracle, through the pipeline without sockets: each type of stream
// × each shape × each ε × each n. tests/e2e takes a sample of it through the daemon; the summaries
// alone are tested harder in tests/summaries.
//
// For each type and shape the values are made once. Three streams, one for each ε (of quantiles;
// the frequencies have another of the three), take them in, in batches of their own sizes and
// times, and stop at each n of the grid, where every kind of answer is held against the sorted
// prefix. Between those stops they are asked as well, while windows are under way; what they then
// answer is counted over in the unsorted prefix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/server/query/grid_oracle.h"
#include "tests/server/query/grid_values.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

constexpr double kEpsilons[] = {0.05, 0.01, 0.001};
// 20: with ε = 0.05 the last n that is exact by definition, 1/ε.
constexpr std::size_t kSizes[] = {0, 1, 2, 20, 21, 1000, 100'000, 1'000'000};
#ifdef TIDEMARK_SANITIZED
// Sanitizers slow everything by up to ten times; the larger n are the same code.
constexpr std::size_t kSizesRun = std::size(kSizes) - 1;
#else
constexpr std::size_t kSizesRun = std::size(kSizes);
#endif
constexpr std::size_t kSizeMax = kSizes[kSizesRun - 1];

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

// One stream on its way through the grid.
template <class KindOf>
class GridStream {
 public:
  using T = typename KindOf::Type;

  GridStream(TestPipeline& test, KindOf& kind, Shape shape, const StreamSettings& settings,
             std::uint64_t seed)
      : test_(test),
        engine_(test.pipeline),
        kind_(kind),
        settings_(settings),
        name_(std::to_string(settings.quantile_epsilon)),
        random_(seed) {
    stream_ = test.pipeline.streams().Create(name_, settings).value();
    // A few NaN among values that are easy and many among others.
    nan_every_ = 2 + static_cast<std::size_t>(shape) * 17;
    if constexpr (KindOf::kFloating) AppendNan();
  }

  // Takes in values[0, n), of which it has the first already.
  void Advance(std::span<const T> values, std::size_t n, Spent& spent) {
    while (taken_ < n) {
      // 1 to 2^17 values, every order of magnitude as likely as another.
      const auto batch = static_cast<std::size_t>(
          std::exp2(std::uniform_real_distribution<double>(0, 17)(random_)));
      // From standing still to as fast as a window of 2^18 in a few milliseconds.
      const std::uint64_t pause = random_() % 8 == 0 ? 400'000 : 2'000;
      time_ += static_cast<RecordedTime>(random_() % pause);
      Append(values.subspan(taken_, std::min(batch, n - taken_)));
      if (testing::Test::HasFailure()) return;
      // Not after every batch: windows should pile up as well.
      if (random_() % 2 == 0) AskBriefly(values.first(taken_), spent);
    }
  }

  template <class Truth>
  void CheckEverything(const Truth& truth, std::span<const T> values, Spent& spent) {
    GridOracle<KindOf, Truth> oracle(truth, settings_, spent);
    const std::vector<Value> asked = SomeValues(values);
    if constexpr (KindOf::kRanks) {
      CheckRanks(oracle, asked);
    } else {
      const std::vector<double> half = {0.5};
      EXPECT_EQ(engine_.Quantiles(name_, half, Soon()).status().code(),
                absl::StatusCode::kFailedPrecondition);
    }
    CheckItems(oracle, truth, asked);
    const StreamStats stats = stream_->Stats();
    EXPECT_EQ(stats.count, values.size());
    EXPECT_EQ(stats.refused, nan_sent_);
    EXPECT_EQ(KindOf::kFloating, nan_sent_ > 0);
  }

 private:
  void Append(std::span<const T> values) {
    AppendResult result;
    std::uint64_t nan = 0;
    if constexpr (KindOf::kType == ValueType::kString) {
      result = test_.pipeline.AppendStrings(stream_, values, time_);
    } else if constexpr (KindOf::kFloating) {
      std::vector<T> mixed;
      for (const T value : values) {
        if (random_() % nan_every_ == 0) {
          mixed.push_back(
              std::copysign(std::numeric_limits<T>::quiet_NaN(), nan % 2 == 0 ? 1 : -1));
          ++nan;
        }
        mixed.push_back(value);
      }
      result = test_.pipeline.AppendPacked(stream_, std::as_bytes(std::span(mixed)), time_);
    } else {
      result = test_.pipeline.AppendPacked(stream_, std::as_bytes(values), time_);
    }
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.accepted, values.size());
    ASSERT_EQ(result.refused, nan);
    taken_ += values.size();
    nan_sent_ += nan;
  }

  void AppendNan() {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    const AppendResult result =
        test_.pipeline.AppendPacked(stream_, std::as_bytes(std::span(&nan, 1)), time_);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.accepted, 0u);
    EXPECT_EQ(result.refused, 1u);
    ++nan_sent_;
  }

  // Some of the stream's values, its ends among the shapes that have them, and foreign ones.
  std::vector<Value> SomeValues(std::span<const T> values) {
    std::vector<Value> some;
    for (int i = 0; i < 10 && !values.empty(); ++i) {
      some.push_back(KindOf::ToValue(values[random_() % values.size()]));
    }
    for (const Shape shape : {Shape::kUniform, Shape::kExtremes, Shape::kTiny}) {
      for (int i = 0; i < 3; ++i) some.push_back(KindOf::ToValue(kind_.Make(shape, 0, 1, random_)));
    }
    return some;
  }

  template <class Oracle>
  void CheckRanks(Oracle& oracle, std::vector<Value> asked) {
    std::vector<double> phis = {0, 0.001, 0.01, 0.1, 0.25, 1.0 / 3, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    for (int i = 0; i < 10; ++i) {
      phis.push_back(std::uniform_real_distribution<double>(0, 1)(random_));
    }
    const auto quantiles = engine_.Quantiles(name_, phis, Soon());
    ASSERT_TRUE(quantiles.ok()) << quantiles.status();
    oracle.Check(*quantiles, phis);
    const auto ranks = engine_.Ranks(name_, asked, Soon());
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    oracle.Check(*ranks, asked);
    for (const std::uint32_t buckets : {1u, 10u, 64u}) {
      const auto depths = engine_.EquiDepthHistogram(name_, buckets, Soon());
      ASSERT_TRUE(depths.ok()) << depths.status();
      oracle.Check(*depths);
      oracle.CheckDepths(*depths, buckets);
    }
    std::sort(asked.begin(), asked.end(), [](const Value& a, const Value& b) {
      return KindOf::FromValue(a) < KindOf::FromValue(b);
    });
    const auto bounded = engine_.BoundedHistogram(name_, asked, Soon());
    ASSERT_TRUE(bounded.ok()) << bounded.status();
    EXPECT_EQ(bounded->rows.size(), asked.size() + 1);
    oracle.Check(*bounded);
  }

  template <class Oracle, class Truth>
  void CheckItems(Oracle& oracle, const Truth& truth, std::span<const Value> asked) {
    const auto counts = engine_.Counts(name_, asked, Soon());
    ASSERT_TRUE(counts.ok()) << counts.status();
    oracle.Check(*counts, asked);
    const double epsilon = settings_.frequency_epsilon;
    std::vector<double> supports = {1, 0.3, 0.1, 2 * epsilon, 1.25 * epsilon, epsilon};
    // Exactly the share of some item, which then must be there.
    if (!truth.runs().empty()) {
      const auto n = static_cast<double>(truth.n());
      for (int i = 0; i < 3; ++i) {
        const std::size_t top = std::min<std::size_t>(truth.runs().size(), 20);
        const double share = static_cast<double>(truth.runs()[random_() % top].second) / n;
        if (share >= epsilon) supports.push_back(share);
      }
      // So few that all are kept: any support is served.
      if (n <= std::floor(1 / epsilon)) supports.push_back(1 / n);
    }
    for (const double support : supports) {
      const auto heavy = engine_.HeavyHitters(name_, support, 0, Soon());
      ASSERT_TRUE(heavy.ok()) << heavy.status();
      oracle.CheckHeavy(*heavy, support);
    }
  }

  // At once, while windows are under way.
  void AskBriefly(std::span<const T> values, Spent& spent) {
    // Counting in the whole prefix is dear: with many values only now and then.
    if (random_() % (1 + values.size() / 20'000) != 0) return;
    SCOPED_TRACE(testing::Message() << "in between, n " << values.size());
    const ScannedTruth<KindOf> truth(values);
    GridOracle<KindOf, ScannedTruth<KindOf>> oracle(truth, settings_, spent);
    const std::vector<Value> asked = {KindOf::ToValue(values[random_() % values.size()])};
    if constexpr (KindOf::kRanks) {
      // No end among them: such an answer need not wait for windows under way.
      const std::vector<double> phis = {0.01, 0.5, 0.999};
      const auto quantiles = engine_.Quantiles(name_, phis, Soon());
      ASSERT_TRUE(quantiles.ok()) << quantiles.status();
      oracle.Check(*quantiles, phis);
      const auto ranks = engine_.Ranks(name_, asked, Soon());
      ASSERT_TRUE(ranks.ok()) << ranks.status();
      oracle.Check(*ranks, asked);
    }
    const auto counts = engine_.Counts(name_, asked, Soon());
    ASSERT_TRUE(counts.ok()) << counts.status();
    oracle.Check(*counts, asked);
  }

  TestPipeline& test_;
  const QueryEngine engine_;
  KindOf& kind_;
  const StreamSettings settings_;
  const std::string name_;
  std::mt19937_64 random_;
  StreamHandle stream_;
  std::size_t nan_every_ = 0;
  RecordedTime time_ = 1'000'000;
  std::size_t taken_ = 0;
  std::uint64_t nan_sent_ = 0;
};

template <class KindOf>
class QueryGrid : public testing::Test {};

template <ValueType... kTypes>
using Kinds = testing::Types<Kind<kTypes>...>;
using AllKinds =
    Kinds<ValueType::kFloat64, ValueType::kFloat32, ValueType::kInt64, ValueType::kUint64,
          ValueType::kUint32, ValueType::kIpv4, ValueType::kIpv6, ValueType::kString>;
struct KindNames {
  template <class KindOf>
  static std::string GetName(int) {
    return std::string(ValueTypeName(KindOf::kType));
  }
};
TYPED_TEST_SUITE(QueryGrid, AllKinds, KindNames);

TYPED_TEST(QueryGrid, EveryCellAgreesWithTheOracle) {
  using KindOf = TypeParam;
  using T = typename KindOf::Type;
  Spent spent;
  std::size_t cells = 0;
  for (const Shape shape : test::kShapes) {
    const std::uint64_t seed = 4000 + static_cast<std::uint64_t>(shape);
    SCOPED_TRACE(testing::Message() << test::ShapeName(shape) << ", seed " << seed);
    KindOf kind;
    std::mt19937_64 random(seed);
    std::vector<T> values;
    values.reserve(kSizeMax);
    for (std::size_t i = 0; i < kSizeMax; ++i) {
      values.push_back(kind.Make(shape, i, kSizeMax, random));
    }
    TestPipeline test({.sort_workers = 2});
    std::vector<std::unique_ptr<GridStream<KindOf>>> streams;
    for (std::size_t e = 0; e < std::size(kEpsilons); ++e) {
      const StreamSettings settings{.type = KindOf::kType,
                                    .quantile_epsilon = kEpsilons[e],
                                    .frequency_epsilon = kEpsilons[(e + 1) % std::size(kEpsilons)]};
      streams.push_back(
          std::make_unique<GridStream<KindOf>>(test, kind, shape, settings, random()));
    }
    for (const std::size_t n : std::span(kSizes).first(kSizesRun)) {
      const std::span<const T> prefix = std::span<const T>(values).first(n);
      const SortedTruth<KindOf> truth(prefix);
      for (std::size_t e = 0; e < streams.size(); ++e) {
        SCOPED_TRACE(testing::Message() << "epsilon " << kEpsilons[e] << ", n " << n);
        streams[e]->Advance(values, n, spent);
        streams[e]->CheckEverything(truth, prefix, spent);
        if (testing::Test::HasFailure()) return;
        ++cells;
      }
    }
    EXPECT_TRUE(test.sorter_errors.empty());
  }
  EXPECT_EQ(cells, std::size(test::kShapes) * std::size(kEpsilons) * kSizesRun);
  std::cout << cells << " cells up to n = " << kSizeMax
            << "; largest share of the guarantee used: " << std::setprecision(3) << "quantiles "
            << spent.quantiles << ", ranks " << spent.ranks << ", buckets " << spent.buckets
            << ", counts " << spent.counts << '\n';
  // The checks met answers that are far from exact. (Ordinary for quantiles, ranks and buckets is a
  // quarter; more where windows are under way.)
  if (KindOf::kRanks) {
    EXPECT_GT(spent.quantiles, 0.1);
    EXPECT_GT(spent.ranks, 0.1);
    EXPECT_GT(spent.buckets, 0.1);
  }
  EXPECT_GT(spent.counts, 0.5);
}

}  // namespace
}  // namespace tidemark::server
