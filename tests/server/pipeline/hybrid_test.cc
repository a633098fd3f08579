// Windows divided between a GL sorter and the CPU by a clock that says anything: the same bytes,
// and what an operator sees of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/sort/routed_sorter.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

constexpr std::size_t kWindow = 1 << 10;

class PlayedGl final : public sort::WindowSorter {
 public:
  std::string_view name() const override { return "gl-played"; }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override { return Play(channels); }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override { return Play(channels); }

 private:
  template <class Key>
  std::string_view Play(sort::Channels<Key> channels) {
    for (const std::span<Key> keys : channels) std::sort(keys.begin(), keys.end());
    return name();
  }
};

// GL is twice as fast as one CPU thread, until the clock says otherwise.
sort::SorterSelection Both(sort::RoutedSorter::Clock clock) {
  sort::RouteTable table;
  table.gl_window_max = kWindow;
  for (auto& width : table.gl_request_seconds) width.fill(2e-3);
  for (auto& width : table.cpu_key_seconds) width.fill(1e-3 / kWindow);
  sort::SorterSelection selection;
  selection.sorter = std::make_unique<sort::RoutedSorter>("auto", TestPipeline::CpuSorter().sorter,
                                                          std::make_unique<PlayedGl>(), table,
                                                          nullptr, std::move(clock));
  selection.report.active = "gl-played";
  return selection;
}

PipelineOptions Options(int workers) {
  PipelineOptions options;
  options.window_limits = {.min = kWindow, .max = kWindow};
  options.sort_workers = workers;
  options.sort_workers_for_gl = 3;
  return options;
}

std::string BytesOf(TestPipeline& test, QuantileKind form, bool frequencies) {
  StreamSettings settings;
  settings.type = ValueType::kFloat64;
  settings.quantile_form = form;
  settings.frequencies = frequencies;
  test.pipeline.streams().set_defaults(settings);
  std::mt19937_64 random(7);
  std::vector<double> values(100 * kWindow + 77);
  for (double& value : values) value = static_cast<double>(random() % 100'000);
  test.Append("s", ValueType::kFloat64, std::span<const double>(values));
  return test.Bytes("s");
}

TEST(Hybrid, TheSameBytesWhereverWindowsAreSorted) {
  const std::uint64_t seed = 2005;
  std::mt19937_64 seeds(seed);
  for (const bool frequencies : {true, false}) {
    const QuantileKind form = frequencies ? QuantileKind::kHistogram : QuantileKind::kCompact;
    TestPipeline plain(Options(1));
    const std::string expected = BytesOf(plain, form, frequencies);
    double on_gl = 0, on_cpu = 0;
    for (int round = 0; round < 8; ++round) {
      // Steps of nanoseconds to seconds: of every rate and every choice.
      const std::uint64_t own_seed = seeds();
      std::atomic<std::uint64_t> calls{0};
      std::atomic<std::int64_t> time{0};
      TestPipeline test(Options(1 + round % 4), Both([&] {
                          std::minstd_rand random(
                              static_cast<std::uint32_t>(own_seed + 977 * calls.fetch_add(1)));
                          random.discard(3);
                          const std::int64_t step = std::int64_t{1} << random() % 30;
                          return sort::RouteChoice::Time(time += step);
                        }));
      EXPECT_EQ(BytesOf(test, form, frequencies), expected) << "seed " << seed << ", " << round;
      on_gl += test.metrics.SortKeys("gl-played").Value();
      on_cpu += test.metrics.SortKeys("cpu").Value() + test.metrics.SortKeys("grid").Value();
      test.pipeline.Stop();
    }
    EXPECT_GT(on_gl, 0);
    EXPECT_GT(on_cpu, 0);
  }
}

TEST(Hybrid, IsInTheMetricsAndHasRoomToWork) {
  std::atomic<std::int64_t> time{0};
  TestPipeline test(Options(2), Both([&] { return sort::RouteChoice::Time(time += 1'000'000); }));
  EXPECT_EQ(test.metrics.QueueLimit("sort_keys").Value(), (4 * 4 + 2 * 2) * kWindow)
      << "four requests of GL, two windows for each worker";
  BytesOf(test, QuantileKind::kHistogram, true);
  const auto routes = [&] {
    double sum = 0;
    for (const char* sorter : {"cpu", "gl-played"}) {
      for (const char* reason : {"faster", "busy", "probe", "only"}) {
        sum += test.metrics.SortRoutes(sorter, reason).Value();
      }
    }
    return sum;
  };
  const auto requests = [&] {
    std::uint64_t sum = 0;
    const sort::RouteStats stats = test.pipeline.routes().value();
    for (const sort::RouteStats::Count& count : stats.counts) {
      sum += count.requests;
    }
    return static_cast<double>(sum);
  };
  EXPECT_EQ(routes(), 0) << "told when they are asked for";
  for (int scrape = 0; scrape < 2; ++scrape) {
    test.pipeline.UpdateGauges();
    EXPECT_GE(routes(), 25);
    EXPECT_EQ(routes(), requests()) << "counted once";
  }
  EXPECT_NE(test.metrics.Serialize().find("tidemark_sort_observed_keys_per_second{key_bits=\"64\","
                                          "sorter=\"gl-played\",window=\"1024\"}"),
            std::string::npos);
}

}  // namespace
}  // namespace tidemark::server
