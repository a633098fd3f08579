// Answers through the pipeline, without sockets: wrong requests, the text of items, values that
// come in meanwhile. Every kind of answer against an exact oracle: query_grid_test.cc.
#include "server/query/query_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

using std::chrono::steady_clock;

QueryEngine::Deadline Soon() { return steady_clock::now() + std::chrono::seconds(60); }

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

// Since the daemon began: the stream's batches, and datagrams for whatever stream they were.
TEST(QueryEngine, AnswersSayWhatTheyDoNotCover) {
  TestPipeline test;
  const std::vector<double> values = {1, 2, std::nan("")};
  test.Append<double>("s", ValueType::kFloat64, values);
  const StreamHandle stream = test.pipeline.streams().Find("s").value();
  test.pipeline.CountRefused(stream, 5);
  test.pipeline.CountRefused(stream, 2);
  test.metrics.Dropped(Source::kStatsdUdp, "saturated").Increment(3);
  test.metrics.Dropped(Source::kStatsdUdp, "kernel_buffer").Increment(5);
  const QueryEngine engine(test.pipeline);
  const auto expect = [](const auto& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->coverage.losses.refused, 1u);
    EXPECT_EQ(answer->coverage.losses.refused_whole, 7u);
    EXPECT_EQ(answer->coverage.losses.dropped_datagrams, 8u);
  };
  expect(engine.Quantiles("s", std::vector<double>{0.5}, Soon()));
  expect(engine.HeavyHitters("s", 0.5, 1, Soon()));
  expect(engine.Spread("s", {}, Soon()));
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
