// Every kind of answer against an exact oracle, through the whole pipeline (without sockets): types
// × distributions × batch sizes. The summaries alone are tested harder in tests/summaries; here it
// matters that keys, windows, open windows and windows under way add up.
#include "server/query/query_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

using std::chrono::steady_clock;

QueryEngine::Deadline Soon() { return steady_clock::now() + std::chrono::seconds(60); }

template <class T>
constexpr ValueType TypeOf() {
  if constexpr (std::is_same_v<T, double>) return ValueType::kFloat64;
  if constexpr (std::is_same_v<T, float>) return ValueType::kFloat32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ValueType::kInt64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ValueType::kUint64;
  return ValueType::kUint32;
}

enum class Shape { kUniform, kLognormal, kFew, kSorted, kReversed, kEqual, kSawtooth, kExtreme };

template <class T>
std::vector<T> Draw(Shape shape, std::size_t n, std::mt19937_64& random) {
  std::vector<T> values;
  values.reserve(n);
  std::lognormal_distribution<double> lognormal(3, 2);
  for (std::size_t i = 0; i < n; ++i) {
    double v = 0;
    switch (shape) {
      case Shape::kUniform:
        v = static_cast<double>(random() >> 33);
        break;
      case Shape::kLognormal:
        v = std::min(lognormal(random), 4e9);
        break;
      case Shape::kFew:
        v = static_cast<double>(random() % 7);
        break;
      case Shape::kSorted:
        v = static_cast<double>(i);
        break;
      case Shape::kReversed:
        v = static_cast<double>(n - i);
        break;
      case Shape::kEqual:
        v = 42;
        break;
      case Shape::kSawtooth:
        v = static_cast<double>(i % 1000);
        break;
      case Shape::kExtreme: {
        const T choices[] = {
            std::numeric_limits<T>::lowest(),
            std::numeric_limits<T>::max(),
            T{0},
            T{1},
            std::numeric_limits<T>::min(),
            std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : T{2},
            std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : T{3},
            std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::denorm_min() : T{4},
            static_cast<T>(-0.0)};
        values.push_back(choices[random() % std::size(choices)]);
        continue;
      }
    }
    values.push_back(static_cast<T>(v));
  }
  return values;
}

// The position of `value` in sorted order that is nearest to `target`.
template <class T>
std::uint64_t NearestRank(const std::vector<T>& sorted, T value, std::uint64_t target) {
  const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
  EXPECT_NE(first, last) << "the answer " << value << " is not an element of the stream";
  const auto low = static_cast<std::uint64_t>(first - sorted.begin()) + 1;
  const auto high = static_cast<std::uint64_t>(last - sorted.begin());
  return std::clamp(target, low, high);
}

template <class T>
void CheckAnswers(const QueryEngine& engine, std::vector<T> values, double epsilon,
                  double frequency_epsilon) {
  std::sort(values.begin(), values.end());
  const std::uint64_t n = values.size();
  const std::vector<double> phis = {0, 0.001, 0.01, 0.1, 0.25, 1.0 / 3, 0.5, 0.75, 0.9, 0.999, 1};
  const auto quantiles = engine.Quantiles("s", phis, Soon());
  ASSERT_TRUE(quantiles.ok()) << quantiles.status();
  ASSERT_EQ(quantiles->coverage.n, n);
  ASSERT_EQ(quantiles->rows.size(), n == 0 ? 0 : phis.size());
  for (const QuantileRow& row : quantiles->rows) {
    const auto target = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(std::ceil(row.phi * static_cast<double>(n))), 1, n);
    const std::uint64_t rank = NearestRank(values, std::get<T>(row.value), target);
    EXPECT_LE(row.rank_low, rank) << "phi " << row.phi;
    EXPECT_GE(row.rank_high, rank) << "phi " << row.phi;
    const double slack = epsilon * static_cast<double>(n);
    EXPECT_LE(std::abs(static_cast<double>(row.rank_low) - static_cast<double>(target)), slack);
    EXPECT_LE(std::abs(static_cast<double>(row.rank_high) - static_cast<double>(target)), slack);
  }

  std::vector<Value> probes;
  for (std::size_t i = 0; i < n; i += n / 20 + 1) probes.emplace_back(values[i]);
  const auto ranks = engine.Ranks("s", probes, Soon());
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  for (const RankRow& row : ranks->rows) {
    const auto truth = static_cast<std::uint64_t>(
        std::upper_bound(values.begin(), values.end(), std::get<T>(row.value)) - values.begin());
    EXPECT_LE(row.rank_low, truth);
    EXPECT_GE(row.rank_high, truth);
    EXPECT_LE(static_cast<double>(row.rank_high - row.rank_low),
              2 * epsilon * static_cast<double>(n) + 1);
  }

  const auto histogram = engine.EquiDepthHistogram("s", 10, Soon());
  ASSERT_TRUE(histogram.ok()) << histogram.status();
  for (const BucketRow& row : histogram->rows) {
    const auto upper =
        std::upper_bound(values.begin(), values.end(), std::get<T>(*row.high)) - values.begin();
    const auto lower =
        row.low
            ? std::upper_bound(values.begin(), values.end(), std::get<T>(*row.low)) - values.begin()
            : 0;
    EXPECT_LE(row.count_low, static_cast<std::uint64_t>(upper - lower));
    EXPECT_GE(row.count_high, static_cast<std::uint64_t>(upper - lower));
  }

  std::map<T, std::uint64_t> counts;
  for (const T value : values) ++counts[value];
  const double support = std::max(0.01, 2 * frequency_epsilon);
  const auto top = engine.HeavyHitters("s", support, 0, Soon());
  ASSERT_TRUE(top.ok()) << top.status();
  std::set<T> reported;
  for (const ItemRow& row : top->rows) {
    const T item = std::get<T>(row.value);
    reported.insert(item);
    const std::uint64_t truth = counts[item];
    EXPECT_LE(row.count_low, truth);
    EXPECT_GE(row.count_high, truth);
    EXPECT_LE(static_cast<double>(row.count_high - row.count_low),
              frequency_epsilon * static_cast<double>(n));
    EXPECT_GE(static_cast<double>(truth), (support - frequency_epsilon) * static_cast<double>(n));
  }
  for (const auto& [item, count] : counts) {
    if (static_cast<double>(count) >= support * static_cast<double>(n)) {
      EXPECT_TRUE(reported.contains(item)) << "missed " << item;
    }
  }
}

template <class T>
void RunType() {
  for (const Shape shape : {Shape::kUniform, Shape::kLognormal, Shape::kFew, Shape::kSorted,
                            Shape::kReversed, Shape::kEqual, Shape::kSawtooth, Shape::kExtreme}) {
    for (const double epsilon : {0.05, 0.001}) {
      const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(shape);
      SCOPED_TRACE(testing::Message() << "shape " << static_cast<int>(shape) << " epsilon "
                                      << epsilon << " seed " << seed);
      std::mt19937_64 random(seed);
      TestPipeline test({.sort_workers = 2});
      const StreamSettings settings{
          .type = TypeOf<T>(), .quantile_epsilon = epsilon, .frequency_epsilon = epsilon / 10};
      ASSERT_TRUE(test.pipeline.streams().Create("s", settings).ok());
      const QueryEngine engine(test.pipeline);
      std::vector<T> sent;
      RecordedTime now = 0;
      for (const std::size_t n : {0u, 1u, 2u, 100u, 5000u, 60'000u}) {
        const std::vector<T> values = Draw<T>(shape, n - std::min(n, sent.size()), random);
        for (std::size_t at = 0; at < values.size();) {
          const std::size_t batch = std::min<std::size_t>(values.size() - at, 1 + random() % 7000);
          now += static_cast<RecordedTime>(random() % 50'000);
          const auto result =
              test.Append<T>("s", TypeOf<T>(), std::span(values).subspan(at, batch), now);
          ASSERT_TRUE(result.status.ok()) << result.status;
          ASSERT_EQ(result.accepted, batch);
          at += batch;
        }
        sent.insert(sent.end(), values.begin(), values.end());
        SCOPED_TRACE(testing::Message() << "n " << sent.size());
        CheckAnswers<T>(engine, sent, epsilon, epsilon / 10);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(QueryEngine, Float64AgainstTheOracle) { RunType<double>(); }
TEST(QueryEngine, Float32AgainstTheOracle) { RunType<float>(); }
TEST(QueryEngine, Int64AgainstTheOracle) { RunType<std::int64_t>(); }
TEST(QueryEngine, Uint64AgainstTheOracle) { RunType<std::uint64_t>(); }
TEST(QueryEngine, Uint32AgainstTheOracle) { RunType<std::uint32_t>(); }

TEST(QueryEngine, NanIsRefusedAndCounted) {
  TestPipeline test;
  const double nan = std::nan("");
  const std::vector<double> values = {3, nan, 1, nan, nan, 2};
  const auto result = test.Append<double>("s", ValueType::kFloat64, values);
  EXPECT_EQ(result.accepted, 3u);
  EXPECT_EQ(result.refused, 3u);
  const QueryEngine engine(test.pipeline);
  const std::vector<double> phis = {0, 0.5, 1};
  const auto answer = engine.Quantiles("s", phis, Soon());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->coverage.n, 3u);
  EXPECT_EQ(answer->rows[1].value, Value(2.0));
  EXPECT_EQ(answer->rows[1].rank_low, 2u);
  EXPECT_EQ(answer->rows[1].rank_high, 2u);
  EXPECT_EQ(test.pipeline.streams().Find("s").value()->Stats().refused, 3u);
}

TEST(QueryEngine, BoundedHistogramCountsEveryValueOnce) {
  TestPipeline test;
  std::vector<std::uint32_t> values(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) values[i] = i;
  test.Append<std::uint32_t>("s", ValueType::kUint32, values);
  const QueryEngine engine(test.pipeline);
  const std::vector<Value> bounds = {-5.0, 9.5, 99u, std::int64_t{5000}};
  const auto answer = engine.BoundedHistogram("s", bounds, Soon());
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->rows.size(), 5u);
  const std::uint64_t expected[] = {0, 10, 90, 900, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(answer->rows[i].count_low, expected[i]) << i;
    EXPECT_EQ(answer->rows[i].count_high, expected[i]) << i;
  }
  EXPECT_FALSE(answer->rows.front().low.has_value());
  EXPECT_FALSE(answer->rows.back().high.has_value());
  const std::vector<Value> descending = {5u, 4u};
  EXPECT_EQ(engine.BoundedHistogram("s", descending, Soon()).status().message(),
            "bound 1 is below the one before; expected ascending bounds");
}

TEST(QueryEngine, StringsAreReportedByTheirText) {
  PipelineOptions options;
  options.stream_defaults.frequency_epsilon = 0.01;
  TestPipeline test(options);
  std::mt19937_64 random(5);
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t n = 0;
  for (int batch = 0; batch < 200; ++batch) {
    std::vector<std::string> items;
    for (int i = 0; i < 1000; ++i) {
      // A fifth of the items are three frequent ones, the rest hardly ever come twice.
      items.push_back(random() % 5 == 0 ? "frequent-" + std::to_string(random() % 3)
                                        : "rare-" + std::to_string(random()));
      ++counts[items.back()];
      ++n;
    }
    const std::vector<std::string_view> views(items.begin(), items.end());
    ASSERT_TRUE(test.Append<std::string_view>("s", ValueType::kString, views).status.ok());
  }
  const QueryEngine engine(test.pipeline);
  const auto top = engine.HeavyHitters("s", 0.03, 0, Soon());
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(top->coverage.n, n);
  ASSERT_EQ(top->rows.size(), 3u);
  for (const ItemRow& row : top->rows) {
    const std::uint64_t truth = counts.at(std::get<std::string>(row.value));
    EXPECT_LE(row.count_low, truth);
    EXPECT_GE(row.count_high, truth);
  }
  const std::vector<Value> asked = {std::string("frequent-0"), std::string("never came")};
  const auto found = engine.Counts("s", asked, Soon());
  ASSERT_TRUE(found.ok());
  EXPECT_GE(found->rows[0].count_high, counts.at("frequent-0"));
  EXPECT_EQ(found->rows[1].count_low, 0u);
  EXPECT_LE(static_cast<double>(found->rows[1].count_high), 0.01 * static_cast<double>(n));

  // 160,000 distinct items came; the dictionary keeps a small share of their text.
  test.Bytes("s");
  EXPECT_LT(test.pipeline.streams().Find("s").value()->Stats().dictionary_bytes, 20u << 20);

  const std::vector<double> half = {0.5};
  EXPECT_EQ(engine.Quantiles("s", half, Soon()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(QueryEngine, SaysWhatIsWrongWithARequest) {
  TestPipeline test;
  const QueryEngine engine(test.pipeline);
  const std::vector<double> half = {0.5};
  EXPECT_EQ(engine.Quantiles("s", half, Soon()).status().message(), "there is no stream \"s\"");
  const std::vector<double> values = {1, 2};
  test.Append<double>("s", ValueType::kFloat64, values);
  const std::vector<double> outside = {0.5, 1.5};
  EXPECT_EQ(engine.Quantiles("s", outside, Soon()).status().message(), "phi 1.5 is outside [0, 1]");
  const std::vector<double> not_a_number = {std::nan("")};
  EXPECT_FALSE(engine.Quantiles("s", not_a_number, Soon()).ok());
  EXPECT_EQ(engine.HeavyHitters("s", 0, 0, Soon()).status().message(),
            "support 0 is outside (0, 1]");
  EXPECT_FALSE(engine.HeavyHitters("s", 1.01, 0, Soon()).ok());
  const std::vector<double> many(10'001, 0.5);
  EXPECT_EQ(engine.Quantiles("s", many, Soon()).status().message(),
            "10001 phi in one request; expected at most 10000");
  EXPECT_FALSE(engine.EquiDepthHistogram("s", 0, Soon()).ok());
  const std::vector<Value> text = {std::string("x")};
  EXPECT_FALSE(engine.Counts("s", text, Soon()).ok());
}

TEST(QueryEngine, SupportBelowWhatCanBeAnsweredIsRefusedOnceInexact) {
  PipelineOptions options;
  options.stream_defaults.frequency_epsilon = 0.01;
  TestPipeline test(options);
  std::mt19937_64 random(9);
  std::vector<std::uint64_t> values(1 << 16);
  for (auto& value : values) value = random();
  test.Append<std::uint64_t>("s", ValueType::kUint64, std::span(values).first(50));
  const QueryEngine engine(test.pipeline);
  EXPECT_TRUE(engine.HeavyHitters("s", 0.001, 0, Soon()).ok()) << "exact: any support";
  test.Append<std::uint64_t>("s", ValueType::kUint64, values);
  const auto refused = engine.HeavyHitters("s", 0.001, 0, Soon());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  EXPECT_TRUE(engine.HeavyHitters("s", 0.01, 0, Soon()).ok());
}

TEST(QueryEngine, AnswersCoverAPrefixWhileValuesComeIn) {
  // One writer appends 0, 1, 2, ... : every answer must be that of the first n numbers for its own
  // n, whatever was under way. Bounds are checked against the known ranks.
  TestPipeline test({.sort_workers = 2});
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kUint64).value();
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> appended{0};
  std::thread writer([&] {
    std::vector<std::uint64_t> batch(4096);
    for (std::uint64_t next = 0; next < 6'000'000; next += batch.size()) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = next + i;
      test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
      appended.store(next + batch.size());
      while (test.pipeline.saturated()) std::this_thread::yield();
    }
    done.store(true);
  });
  const QueryEngine engine(test.pipeline);
  const std::vector<double> phis = {0.1, 0.5, 0.9};
  std::uint64_t last_n = 0;
  while (!done.load()) {
    const std::uint64_t before = appended.load();
    const auto answer = engine.Quantiles("s", phis, Soon());
    ASSERT_TRUE(answer.ok()) << answer.status();
    const std::uint64_t n = answer->coverage.n;
    ASSERT_GE(n, before) << "an accepted value is missing";
    ASSERT_GE(n, last_n);
    last_n = n;
    for (const QuantileRow& row : answer->rows) {
      const std::uint64_t rank = std::get<std::uint64_t>(row.value) + 1;
      ASSERT_LE(row.rank_low, rank);
      ASSERT_GE(row.rank_high, rank);
      const double target = std::ceil(row.phi * static_cast<double>(n));
      ASSERT_LE(std::abs(static_cast<double>(row.rank_low) - target),
                0.001 * static_cast<double>(n));
      ASSERT_LE(std::abs(static_cast<double>(row.rank_high) - target),
                0.001 * static_cast<double>(n));
    }
  }
  writer.join();
}

}  // namespace
}  // namespace tidemark::server
