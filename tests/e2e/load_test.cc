// Memory of many quiet streams, and what happens when values come faster than they can be sorted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/e2e/values.h"

namespace tidemark::test {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

TEST(Memory, TenThousandQuietStreams) {
  constexpr std::uint64_t kStreams = 10'000;
  constexpr std::size_t kValues = 100;
  [[maybe_unused]] constexpr double kBytesMax = 40e6;  // a sanitizer adds memory of its own
  TestDaemon daemon;
  const std::uint64_t before = daemon.RssBytes();
  const auto producer = daemon.Producer();
  for (std::uint64_t s = 0; s < kStreams; ++s) {
    const auto stream = producer->Open(Numbered("sensor.", s));
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE(
        producer->SendBatch(*stream, MakeValues<double>(Shape::kLognormal, kValues, s)).ok());
  }
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_EQ(producer->accepted(), kStreams * kValues);
  const std::uint64_t after = daemon.RssBytes();
  EXPECT_EQ(daemon.client().Info().streams, kStreams);
  const client::QuantilesAnswer answer = daemon.client().Quantiles("sensor.4321", {0.5});
  EXPECT_EQ(answer.n, kValues);
  EXPECT_EQ(answer.answers.at(0).rank_low, answer.answers.at(0).rank_high);
  const double added = static_cast<double>(after) - static_cast<double>(before);
  std::cout << kStreams << " streams of " << kValues << " float64: resident memory from "
            << static_cast<double>(before) / kMiB << " to " << static_cast<double>(after) / kMiB
            << " MiB, " << added / 1e6 << " MB more, " << added / kStreams << " bytes a stream\n";
#ifndef TIDEMARK_SANITIZED
  EXPECT_LE(added, kBytesMax);
#endif
}

// Few keys may wait, one thread sorts, three connections send as fast as they can.
TEST(Backpressure, FastProducersAreSlowedAndLoseNothing) {
  constexpr std::size_t kProducers = 3;
  constexpr std::size_t kBatch = 65'536;
  constexpr std::size_t kBatches = 300;
  constexpr std::uint64_t kAll = kProducers * kBatch * kBatches;
  TestDaemon daemon(
      {"--max-pending-keys", "131072", "--sort-workers", "1", "--window-max", "16384"});
  const std::uint64_t before = daemon.RssBytes();
  std::vector<std::thread> threads;
  std::atomic<std::size_t> done{0};
  std::atomic<std::uint64_t> accepted{0};
  for (std::size_t p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      const std::vector<double> values = MakeValues<double>(Shape::kUniform, kBatch, p);
      const auto producer = daemon.Producer();
      const auto stream = producer->Open(Numbered("s", p));
      for (std::size_t b = 0; b < kBatches; ++b) {
        if (!producer->SendBatch(*stream, values).ok()) break;
      }
      EXPECT_TRUE(producer->Flush().ok());
      accepted += producer->accepted();
      ++done;
    });
  }
  // Answers go on meanwhile.
  std::uint64_t peak = 0, queries = 0;
  double depth = 0;
  EXPECT_TRUE(WaitUntil(
      [&] {
        peak = std::max(peak, daemon.RssBytes());
        depth = std::max(depth, daemon.Metric(R"(tidemark_queue_depth{queue="sort_keys"})"));
        try {
          queries += daemon.client().Quantiles("s0", {0.5}).n > 0;
        } catch (const client::Error& error) {
          EXPECT_EQ(error.code(), client::Code::kNotFound) << error.what();  // not opened yet
        }
        return done == kProducers;
      },
      std::chrono::minutes(3)));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(accepted, kAll);
  std::uint64_t counted = 0;
  for (std::size_t p = 0; p < kProducers; ++p) {
    counted += daemon.client().DescribeStream(Numbered("s", p)).count;
  }
  EXPECT_EQ(counted, kAll) << "values were lost or doubled";
  EXPECT_GT(daemon.Metric(R"(tidemark_ingest_paused_total{source="tcp"})"), 0)
      << "the producers were never slowed, so that this test shows nothing";
  EXPECT_GT(queries, 0u);
  // The limit and one batch for each connection.
  EXPECT_LE(depth, 131'072.0 + kProducers * kBatch);
  std::cout << kAll << " values through a queue of 131072 keys: " << queries
            << " queries meanwhile, at most " << depth
            << " keys seen waiting, resident memory from " << static_cast<double>(before) / kMiB
            << " to " << static_cast<double>(peak) / kMiB << " MiB\n";
#ifndef TIDEMARK_SANITIZED
  // All values would be 450 MiB.
  EXPECT_LT(peak, before + (std::uint64_t{100} << 20));
#endif
}

}  // namespace
}  // namespace tidemark::test
