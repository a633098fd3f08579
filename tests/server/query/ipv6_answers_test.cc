// Streams of IPv6 addresses: items and prefixes over history and over sliding windows, weights,
// unions, and what they refuse. Items up to n = 10^6: query_grid_test.cc; the same bytes whatever
// sorts: determinism_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "server/query/query_engine.h"
#include "summaries/key_codec.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/prefix_truth.h"

namespace tidemark::server {
namespace {

using test::MakeAddresses;
using test::Reported;
using test::WrongWith;

constexpr double kEpsilon = 0.01;

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class Ipv6Answers : public testing::Test {
 protected:
  StreamHandle Create(const std::string& name, const std::vector<int>& levels,
                      PayloadType payload = PayloadType::kNone) {
    StreamSettings settings;
    settings.type = ValueType::kIpv6;
    settings.frequency_epsilon = kEpsilon;
    settings.payload = payload;
    settings.hierarchy.prefix_lengths = levels;
    settings.sliding = {
        .values_max = 20'000, .time_max_us = 3'600'000'000, .epsilon = kSlidingEpsilon};
    const auto stream = test_.pipeline.streams().Create(name, settings);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  void Append(const StreamHandle& stream, std::span<const Key128> addresses,
              std::span<const std::uint64_t> weights = {}) {
    while (!addresses.empty()) {
      const std::size_t taken = std::min<std::size_t>(1 + random_() % 5000, addresses.size());
      std::vector<Ipv6Bytes> packed(taken);
      std::transform(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(taken),
                     packed.begin(), DecodeIpv6);
      time_ += static_cast<RecordedTime>(random_() % 10'000);
      const auto bytes = std::as_bytes(std::span(packed));
      const AppendResult result =
          weights.empty() ? test_.pipeline.AppendPacked(stream, bytes, time_)
                          : test_.pipeline.AppendPairs(stream, bytes,
                                                       std::as_bytes(weights.first(taken)), time_);
      ASSERT_TRUE(result.status.ok()) << result.status;
      ASSERT_EQ(result.accepted, taken);
      addresses = addresses.subspan(taken);
      if (!weights.empty()) weights = weights.subspan(taken);
    }
  }

  static std::vector<Reported> RowsOf(const PrefixesAnswer& answer) {
    std::vector<Reported> rows;
    for (const PrefixRow& row : answer.rows) {
      rows.push_back({std::get<Ipv6>(row.prefix).address, row.length, row.count_low, row.count_high,
                      row.discounted_low, row.discounted_high});
    }
    return rows;
  }
  /// Items are prefixes of the one level 128.
  static std::vector<Reported> RowsOf(const ItemsAnswer& answer) {
    std::vector<Reported> rows;
    for (const ItemRow& row : answer.rows) {
      rows.push_back({std::get<Ipv6>(row.value).address, 128, row.count_low, row.count_high,
                      row.count_low, row.count_high});
    }
    return rows;
  }
  void Check(const std::string& name, std::span<const Key128> addresses,
             const std::vector<int>& levels, double support, double epsilon, const Ask& ask,
             std::span<const std::uint64_t> weights = {}) {
    const auto prefixes = engine_.HierarchicalHeavyHitters(name, support, ask);
    ASSERT_TRUE(prefixes.ok()) << prefixes.status();
    EXPECT_EQ(WrongWith(RowsOf(*prefixes), addresses, weights, levels, support, epsilon), "");
    const auto items = engine_.HeavyHitters(name, support, 0, ask, !weights.empty());
    ASSERT_TRUE(items.ok()) << items.status();
    EXPECT_EQ(WrongWith(RowsOf(*items), addresses, weights, {128}, support, epsilon), "");
    std::vector<Value> asked{Ipv6{1}};
    for (int i = 0; i < 20 && !addresses.empty(); ++i) {
      asked.push_back(Ipv6{addresses[random_() % addresses.size()]});
    }
    const auto counts = engine_.Counts(name, asked, ask, !weights.empty());
    ASSERT_TRUE(counts.ok()) << counts.status();
    for (std::size_t i = 0; i < asked.size(); ++i) {
      std::uint64_t truth = 0;
      for (std::size_t k = 0; k < addresses.size(); ++k) {
        if (Value(Ipv6{addresses[k]}) == asked[i]) truth += weights.empty() ? 1 : weights[k];
      }
      EXPECT_LE(counts->rows[i].count_low, truth);
      EXPECT_GE(counts->rows[i].count_high, truth);
    }
  }

  static constexpr double kSlidingEpsilon = 0.02;
  TestPipeline test_{{.sort_workers = 2}};
  QueryEngine engine_{test_.pipeline};
  std::mt19937_64 random_{20'261'122};
  RecordedTime time_ = 1'000'000'000'000;
};

TEST_F(Ipv6Answers, PrefixesAndItemsOfTheWholeHistory) {
  const std::vector<std::vector<int>> levels = {{16, 32, 48, 64, 128}, {0, 61, 120}, {48}};
  for (std::size_t kind = 0; kind < levels.size(); ++kind) {
    for (const std::size_t n : {0u, 1u, 99u, 101u, 3000u, 90'000u}) {
      const std::string name = std::to_string(kind) + "." + std::to_string(n);
      SCOPED_TRACE(name);
      const StreamHandle stream = Create(name, levels[kind]);
      const std::vector<Key128> addresses = MakeAddresses(random_, n);
      Append(stream, addresses);
      for (const double support : {0.5, 0.06, 0.013}) {
        Check(name, addresses, levels[kind], support, kEpsilon, Soon());
      }
      EXPECT_EQ(stream->Stats().count, n);
      EXPECT_EQ(stream->Stats().quantile_bytes, 0u);
      EXPECT_EQ(stream->Stats().exact, stream->Stats().windows_summarized == 0 || n <= 100);
    }
  }
}

TEST_F(Ipv6Answers, PrefixesAndItemsOfTheLastValues) {
  const std::vector<int> levels{32, 48, 64, 128};
  const StreamHandle stream = Create("s", levels);
  std::vector<Key128> addresses;
  for (int part = 0; part < 4; ++part) {  // other networks each time
    const std::vector<Key128> more = MakeAddresses(random_, 12'345);
    Append(stream, more);
    addresses.insert(addresses.end(), more.begin(), more.end());
    for (const std::uint64_t width : {1u, 100u, 5000u, 12'000u, 20'000u}) {
      SCOPED_TRACE(testing::Message() << "part " << part << ", width " << width);
      const auto last =
          std::span<const Key128>(addresses).last(std::min<std::size_t>(width, addresses.size()));
      Check("s", last, levels, 0.07, kSlidingEpsilon, Ask(Soon(), {.values = width}));
    }
  }
  const auto hour = engine_.HierarchicalHeavyHitters(
      "s", 0.1, Ask(Soon(), {.time_us = 3'600'000'000, .now_us = time_}));
  ASSERT_TRUE(hour.ok()) << hour.status();
  EXPECT_EQ(hour->coverage.n, addresses.size());
  EXPECT_GT(stream->Stats().sliding_bytes, 0u);
}

TEST_F(Ipv6Answers, WeightsOfAddressesAndOfPrefixes) {
  const std::vector<int> levels{16, 48, 64, 128};
  for (const std::size_t n : {10u, 40'000u}) {
    const std::string name = "w" + std::to_string(n);
    const StreamHandle stream = Create(name, levels, PayloadType::kWeight);
    const std::vector<Key128> addresses = MakeAddresses(random_, n);
    std::vector<std::uint64_t> weights(n);
    for (auto& weight : weights) weight = random_() % 1500;
    Append(stream, addresses, weights);
    Check(name, addresses, levels, 0.06, kEpsilon, Soon(), weights);
    const auto items = engine_.HeavyHitters(name, 0.02, 0, Soon());  // by number
    ASSERT_TRUE(items.ok());
    EXPECT_EQ(WrongWith(RowsOf(*items), addresses, {}, {128}, 0.02, kEpsilon), "");
  }
}

TEST_F(Ipv6Answers, AStateGoesOnElsewhereAndUnionsHaveTheBoundsOfTheWhole) {
  const std::vector<int> levels{32, 64};
  std::vector<Key128> all;
  std::vector<StreamState> states;
  for (const std::size_t n : {70'000u, 11u, 5000u}) {
    const std::string name = "part" + std::to_string(n);
    const std::vector<Key128> addresses = MakeAddresses(random_, n);
    Append(Create(name, levels), addresses);
    all.insert(all.end(), addresses.begin(), addresses.end());
    auto state = engine_.State(name, Soon());
    ASSERT_TRUE(state.ok()) << state.status();
    states.push_back(*std::move(state));
  }
  // Bytes that are read again are the same bytes.
  auto& first = std::get<KeyedState<Key128>>(states[0]);
  const SummaryFrames frames = first.summaries.Frames();
  const auto again =
      StreamSummaries<Key128>::FromFrames(first.settings.summaries(), frames).Frames();
  EXPECT_EQ(again.frequencies, frames.frequencies);
  EXPECT_EQ(again.hierarchy, frames.hierarchy);
  // Items are a hierarchy of whole addresses, and no other is taken for it.
  SummaryFrames swapped = frames;
  swapped.frequencies = frames.hierarchy;
  EXPECT_THROW(StreamSummaries<Key128>::FromFrames(first.settings.summaries(), swapped),
               std::invalid_argument);
  SummaryFrames more = frames;
  more.quantiles = frames.hierarchy;
  EXPECT_THROW(StreamSummaries<Key128>::FromFrames(first.settings.summaries(), more),
               std::invalid_argument);

  for (std::size_t i = 1; i < states.size(); ++i) {
    ASSERT_TRUE(MergeInto(states[0], states[i]).ok());
  }
  const auto made = test_.pipeline.streams().Restore("all", std::move(states[0]));
  ASSERT_TRUE(made.ok()) << made.status();
  Check("all", all, levels, 0.05, kEpsilon, Soon());
  const std::vector<Key128> later = MakeAddresses(random_, 30'000);
  Append(*made, later);
  all.insert(all.end(), later.begin(), later.end());
  Check("all", all, levels, 0.05, kEpsilon, Soon());
}

TEST_F(Ipv6Answers, WhatAddressesDoNotHaveIsRefused) {
  const StreamHandle stream = Create("s", {64});
  Append(stream, MakeAddresses(random_, 100));
  const std::vector<double> half{0.5};
  const std::vector<Value> address{Ipv6{1}};
  const auto expect = [](const absl::Status& status, absl::StatusCode code,
                         const std::string& message) {
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), message);
  };
  const std::string no_ranks =
      "stream \"s\" holds addresses of ipv6, which have counts but no ranks";
  expect(engine_.Quantiles("s", half, Soon()).status(), absl::StatusCode::kFailedPrecondition,
         no_ranks);
  expect(engine_.Ranks("s", address, Soon()).status(), absl::StatusCode::kFailedPrecondition,
         no_ranks);
  expect(engine_.EquiDepthHistogram("s", 4, Soon()).status(), absl::StatusCode::kFailedPrecondition,
         no_ranks);
  expect(engine_.Spread("s", {}, Soon()).status(), absl::StatusCode::kFailedPrecondition, no_ranks);
  expect(engine_.Compare("s", Soon(), "s", Soon(), 0).status(),
         absl::StatusCode::kFailedPrecondition, no_ranks);
  EXPECT_EQ(engine_.Sums("s", {}, Soon()).status().code(), absl::StatusCode::kFailedPrecondition);
  const std::vector<Value> other{Ipv4{1}};
  expect(engine_.Counts("s", other, Soon()).status(), absl::StatusCode::kInvalidArgument,
         "item 0 is no address of ipv6, but the stream holds ipv6");
  const std::vector<double> numbers{1, 2};
  expect(test_.pipeline.AppendNumbers(stream, numbers, 1).status,
         absl::StatusCode::kFailedPrecondition, "stream \"s\" holds ipv6, not numbers");
  const std::vector<std::string_view> texts{"::1"};
  expect(test_.pipeline.AppendStrings(stream, texts, 1).status,
         absl::StatusCode::kFailedPrecondition, "stream \"s\" holds ipv6, not strings");
  const std::string bytes(33, 'a');
  expect(test_.pipeline.AppendPacked(stream, std::as_bytes(std::span(bytes)), 1).status,
         absl::StatusCode::kInvalidArgument,
         "a batch of 33 bytes is not a whole number of ipv6 values of 16 bytes");
  EXPECT_EQ(stream->Stats().count, 100u);
  EXPECT_TRUE(test_.sorter_errors.empty());
}

}  // namespace
}  // namespace tidemark::server
