// The registry of metrics: names, labels, caching, and promtool's opinion of the exposition.
// What is counted where is tested with each stage.
#include "server/telemetry/metrics.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::server {
namespace {

bool Has(const Metrics& metrics, const std::string& line) {
  std::istringstream text(metrics.Serialize());
  for (std::string found; std::getline(text, found);) {
    if (found == line) return true;
  }
  return false;
}

// Every metric once, so that the exposition is complete. Unused where there is no promtool.
[[maybe_unused]] void TouchAll(Metrics& metrics) {
  for (int i = 0; i < kSources; ++i) {
    const auto source = static_cast<Source>(i);
    metrics.source(source).values.Increment(10);
    metrics.Refused(source, "nan").Increment();
    metrics.Dropped(source, "saturated").Increment();
    metrics.StatsdLines(source, "timer").Increment();
    metrics.StatsdFieldsIgnored(source, "container").Increment();
  }
  metrics.QueueDepth("windows").Set(3);
  metrics.QueueLimit("windows").Set(64);
  metrics.SortSeconds("cpu").Observe(0.001);
  metrics.SortKeys("cpu").Increment(4096);
  metrics.SortRoutes("gl-compute", "probe").Increment();
  metrics.SortObservedRate("gl-compute", 32, 65536).Set(2e9);
  metrics.QuerySeconds("Quantile").Observe(0.0002);
  metrics.QueryErrors("Quantile", "NOT_FOUND").Increment();
  metrics.HttpRequests("/metrics", 200).Increment();
  metrics.SetSorterInfo("auto", "cpu", "no_gl", "");
  metrics.windows_sorted().Increment();
  metrics.window_fill().Observe(1024);
  metrics.merge_seconds().Observe(0.01);
  metrics.sorter_failures().Increment();
  metrics.config_reloads(true).Increment();
  metrics.config_reloads(false).Increment();
}

TEST(MetricsTest, SourcesAreThereAtZeroFromTheStart) {
  const Metrics metrics("1.2.3");
  EXPECT_TRUE(Has(metrics, "tidemark_ingest_values_total{source=\"grpc\"} 0"));
  EXPECT_TRUE(Has(metrics, "tidemark_ingest_values_total{source=\"statsd_udp\"} 0"));
  EXPECT_TRUE(Has(metrics, "tidemark_build_info{version=\"1.2.3\"} 1"));
}

TEST(MetricsTest, ALabelSetIsOneMetricWhoeverAsks) {
  Metrics metrics("0");
  auto& first = metrics.Refused(Source::kTcp, "nan");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        auto& again = metrics.Refused(Source::kTcp, "nan");
        EXPECT_EQ(&again, &first);
        again.Increment();
        metrics.QueryErrors("m", i % 2 == 0 ? "a" : "b").Increment();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(first.Value(), 4000);
  EXPECT_EQ(metrics.QueryErrors("m", "a").Value(), 2000);
  EXPECT_NE(&metrics.Refused(Source::kGrpc, "nan"), &first);
  EXPECT_NE(&metrics.Dropped(Source::kTcp, "nan"), &first);
}

TEST(MetricsTest, SorterInfoHasOneSeries) {
  Metrics metrics("0");
  metrics.SetSorterInfo("auto", "gl-bitonic", "measured", "llvmpipe");
  metrics.SetSorterInfo("auto", "cpu", "gl_failed", "llvmpipe");
  const std::string text = metrics.Serialize();
  EXPECT_EQ(text.find("gl-bitonic"), std::string::npos);
  EXPECT_NE(text.find("active=\"cpu\""), std::string::npos);
  EXPECT_NE(text.find("reason=\"gl_failed\""), std::string::npos);
}

TEST(MetricsTest, PromtoolFindsNothingToSay) {
#ifndef TIDEMARK_PROMTOOL
  GTEST_SKIP() << "promtool is not installed";
#else
  Metrics metrics("0.1.0");
  TouchAll(metrics);
  FILE* promtool = popen(TIDEMARK_PROMTOOL " check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = metrics.Serialize();
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), promtool), text.size());
  EXPECT_EQ(pclose(promtool), 0) << text;
#endif
}

}  // namespace
}  // namespace tidemark::server
