// The stages together: same bytes whatever the threads and sorters did, nothing lost when a sorter
// fails, backpressure, memory of quiet streams. Answers are tested in tests/server/query.
#include "server/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <random>
#include <thread>

#include "gpu/sort/routed_sorter.h"
#include "server/window/keyed_stream.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

// Sorts with std::sort; may fail, and may make windows finish out of order.
class FakeSorter final : public sort::WindowSorter {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override {
    return SortAll(channels);
  }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override {
    return SortAll(channels);
  }

  std::atomic<int> calls{0};
  int fail_every = 0;
  bool reorder = false;

 private:
  template <class Key>
  std::string_view SortAll(sort::Channels<Key> channels) {
    const int call = ++calls;
    if (fail_every > 0 && call % fail_every == 0) {
      std::shuffle(channels[0].begin(), channels[0].end(), std::minstd_rand(1));
      throw sort::SorterError("injected failure");
    }
    if (reorder && call % 3 == 0) {
      for (int i = 0; i < 2000; ++i) std::this_thread::yield();
    }
    for (const auto& channel : channels) std::sort(channel.begin(), channel.end());
    return name();
  }
};

sort::SorterSelection Fake(FakeSorter** fake) {
  sort::SorterSelection selection;
  auto sorter = std::make_unique<FakeSorter>();
  *fake = sorter.get();
  selection.sorter = std::move(sorter);
  selection.report.requested = selection.report.active = "fake";
  return selection;
}

struct Batch {
  RecordedTime time;
  std::vector<float> values;
};

std::vector<Batch> MakeBatches(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Batch> batches;
  RecordedTime now = 1'000'000;
  for (int i = 0; i < 400; ++i) {
    Batch batch;
    // Busy spells, quiet spells, and a clock that steps back now and then.
    now += i % 100 < 70 ? static_cast<RecordedTime>(random() % 2000)
                        : static_cast<RecordedTime>(random() % 300'000);
    if (i % 57 == 56) now -= 10'000'000;
    batch.time = now;
    batch.values.resize(random() % (i % 3 == 0 ? 9000 : 300));
    for (float& value : batch.values) {
      value = static_cast<float>(random() % (i % 2 == 0 ? 50 : 1'000'000));
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::string BytesAfter(TestPipeline& test, const std::vector<Batch>& batches,
                       bool query_in_between) {
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat32).value();
  for (const Batch& batch : batches) {
    test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch.values)), batch.time);
    if (query_in_between) {
      const auto& keyed = static_cast<const KeyedStream<std::uint32_t>&>(*stream);
      ViewRule<std::uint32_t> rule;
      rule.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      EXPECT_TRUE(keyed.View(rule).ok());
      stream->TrimStorage();
    }
  }
  return test.Bytes("s");
}

TEST(Pipeline, SameBatchesSameBytesWhateverRan) {
  const std::uint64_t seed = 77;
  SCOPED_TRACE(seed);
  const std::vector<Batch> batches = MakeBatches(seed);
  TestPipeline reference;
  const std::string expected = BytesAfter(reference, batches, false);
  ASSERT_GT(expected.size(), 1000u);
  {
    TestPipeline threads({.sort_workers = 4});
    EXPECT_EQ(BytesAfter(threads, batches, false), expected) << "four workers";
  }
  {
    TestPipeline queries({.sort_workers = 2});
    EXPECT_EQ(BytesAfter(queries, batches, true), expected) << "queries and trims in between";
  }
  {
    FakeSorter* fake = nullptr;
    TestPipeline reordered({.sort_workers = 4}, Fake(&fake));
    fake->reorder = true;
    EXPECT_EQ(BytesAfter(reordered, batches, false), expected) << "windows finish out of order";
  }
  {
    FakeSorter* fake = nullptr;
    TestPipeline failing({.sort_workers = 1}, Fake(&fake));
    fake->fail_every = 2;
    EXPECT_EQ(BytesAfter(failing, batches, false), expected) << "every second request fails";
    EXPECT_GT(failing.sorter_errors.size(), 5u);
    EXPECT_EQ(failing.sorter_errors.front(), "injected failure");
  }
  {
    std::vector<Batch> changed = batches;
    changed[100].values.push_back(1e6f);
    TestPipeline other;
    EXPECT_NE(BytesAfter(other, changed, false), expected) << "the comparison can fail";
  }
}

// The label says who sorted, not who was asked: "auto" and a fallback sort under other names.
TEST(Pipeline, SortsAreCountedUnderTheSorterThatDidThem) {
  constexpr std::size_t kWindow = 1 << 10;
  sort::RouteTable table;
  table.always_gl = true;
  table.gl_window_max = kWindow;
  auto fake = std::make_unique<FakeSorter>();
  FakeSorter& gl = *fake;
  sort::SorterSelection selection;
  selection.sorter = std::make_unique<sort::RoutedSorter>("auto", TestPipeline::CpuSorter().sorter,
                                                          std::move(fake), table, nullptr);
  TestPipeline test({.window_limits = {.min = kWindow, .max = 2 * kWindow}}, std::move(selection));
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat64).value();
  const auto sort = [&](std::size_t keys) {
    const std::vector<double> batch(keys, 1.0);
    test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
    test.Bytes("s");
  };
  const auto keys = [&](const char* sorter) { return test.metrics.SortKeys(sorter).Value(); };
  const auto requests = [&](std::string_view sorter) {
    return test.metrics.SortSeconds(sorter).Collect().histogram.sample_count;
  };
  sort(kWindow);
  EXPECT_EQ(keys("fake"), kWindow);
  EXPECT_EQ(requests("fake"), 1u);
  sort(2 * kWindow);  // longer than GL takes
  EXPECT_EQ(keys("cpu"), 2 * kWindow);
  EXPECT_EQ(requests("cpu"), 1u);
  gl.fail_every = 1;
  // Filled slowly, the next windows are small enough for GL again.
  for (int i = 0; i < 2; ++i) {
    const double value = 1;
    test.pipeline.AppendPacked(stream, std::as_bytes(std::span(&value, 1)), i * 1'000'000);
  }
  const int calls = gl.calls;
  sort(1 << 13);
  EXPECT_EQ(gl.calls, calls + 1) << "once, and never again after it failed";
  EXPECT_EQ(keys("fake"), kWindow);
  EXPECT_EQ(requests("fake"), 1u);
  EXPECT_GT(keys("cpu"), 4 * kWindow);
  EXPECT_EQ(test.metrics.Serialize().find("sorter=\"auto\""), std::string::npos);
}

// Windows that wait before the one worker starts, so that it finds all of them.
class Requests {
 public:
  explicit Requests(const sort::RouteTable& table) {
    auto gl = std::make_unique<FakeSorter>();
    auto cpu = std::make_unique<FakeSorter>();
    gl_ = gl.get();
    cpu_ = cpu.get();
    sort::SorterSelection selection;
    selection.sorter =
        std::make_unique<sort::RoutedSorter>("auto", std::move(cpu), std::move(gl), table, nullptr);
    selection.report.active = "gl-bitonic";
    pipeline_.emplace(PipelineOptions{.window_limits = {.min = kWindow, .max = kWindow}},
                      std::move(selection), metrics_, [](const std::string&) {});
  }
  FakeSorter& gl() { return *gl_; }
  FakeSorter& cpu() { return *cpu_; }

  template <class Value>
  void Sort(ValueType type, std::size_t windows) {
    const StreamHandle stream = pipeline_->Open("s", type).value();
    const std::vector<Value> values(windows * kWindow);
    pipeline_->AppendPacked(stream, std::as_bytes(std::span(values)), 0);
    pipeline_->Start();
    pipeline_->Stop();
    EXPECT_EQ(stream->Stats().windows_summarized, windows);
  }

  static sort::RouteTable AlwaysGl() {
    sort::RouteTable table;
    table.always_gl = true;
    table.gl_window_max = kWindow;
    return table;
  }

 private:
  static constexpr std::size_t kWindow = 256;
  FakeSorter* gl_ = nullptr;
  FakeSorter* cpu_ = nullptr;
  Metrics metrics_{"test"};
  std::optional<Pipeline> pipeline_;
};

TEST(Pipeline, AGpuGetsFourWindowsAtATime) {
  Requests requests(Requests::AlwaysGl());
  requests.Sort<double>(ValueType::kFloat64, 10);
  EXPECT_EQ(requests.gl().calls, 3);
  EXPECT_EQ(requests.cpu().calls, 0);
}

// Four windows in the hands of one worker are three that the others wait for.
TEST(Pipeline, AfterAFailureOfTheGpuWorkersTakeOneWindowAtATime) {
  Requests requests(Requests::AlwaysGl());
  requests.gl().fail_every = 1;
  requests.Sort<double>(ValueType::kFloat64, 10);
  EXPECT_EQ(requests.gl().calls, 1);
  EXPECT_EQ(requests.cpu().calls, 1 + 6) << "the request that failed, and the rest one by one";
}

TEST(Pipeline, WorkersTakeOneWindowAtATimeOfKeysThatTheCpuSorts) {
  sort::RouteTable table;
  table.gl_window_max = 1 << 20;
  table.cpu_key_seconds[0].fill(1);
  table.cpu_key_seconds[1].fill(1);
  table.gl_request_seconds[1].fill(std::numeric_limits<double>::infinity());
  Requests wide(table);
  wide.Sort<double>(ValueType::kFloat64, 8);
  EXPECT_EQ(wide.gl().calls, 0);
  EXPECT_EQ(wide.cpu().calls, 8);
  Requests narrow(table);
  narrow.Sort<float>(ValueType::kFloat32, 8);
  EXPECT_EQ(narrow.gl().calls, 2);
  EXPECT_EQ(narrow.cpu().calls, 0);
}

TEST(Pipeline, WindowBytesAreCountedWhereverTheyAre) {
  constexpr std::size_t kWindow = kPooledKeys;
  constexpr std::size_t kWindows = 20;
  constexpr double kBytes = kWindows * kWindow * sizeof(double);
  Metrics metrics("test");
  Pipeline pipeline({.window_limits = {.min = kWindow, .max = kWindow}}, TestPipeline::CpuSorter(),
                    metrics, [](const std::string&) {});
  const auto gauge = [&] {
    pipeline.UpdateGauges();
    return metrics.window_bytes().Value();
  };
  const StreamHandle stream = pipeline.Open("s", ValueType::kFloat64).value();
  EXPECT_EQ(gauge(), 0);
  const std::vector<double> values(kWindows * kWindow);
  pipeline.AppendPacked(stream, std::as_bytes(std::span(values)), 0);
  EXPECT_EQ(gauge(), kBytes) << "waiting for a worker";
  pipeline.Start();
  stream->SerializeSummaries();
  EXPECT_EQ(gauge(), kBytes) << "free, and kept for the next windows";
  pipeline.Trim();
  EXPECT_EQ(gauge(), 0);
}

TEST(Pipeline, ManyProducersOfOneStreamLoseNothing) {
  TestPipeline test({.sort_workers = 3});
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kUint32).value();
  constexpr int kProducers = 4;
  constexpr std::uint32_t kEach = 500'000;
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      std::vector<std::uint32_t> batch;
      for (std::uint32_t i = 0; i < kEach;) {
        batch.clear();
        for (std::uint32_t k = 0; k < 1000 + 37u * static_cast<std::uint32_t>(p) && i < kEach;
             ++k) {
          batch.push_back(i++);
        }
        const auto result = test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
        ASSERT_TRUE(result.status.ok());
        while (test.pipeline.saturated()) std::this_thread::yield();
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  test.Bytes("s");
  const StreamStats stats = stream->Stats();
  EXPECT_EQ(stats.count, std::uint64_t{kProducers} * kEach);
  EXPECT_EQ(stats.pending, stats.window_fill);
  EXPECT_EQ(test.pipeline.values(), stats.count);
}

TEST(Pipeline, BackpressureHoldsTheLevelNearTheLimit) {
  PipelineOptions options;
  options.pending_keys_max = 1 << 14;
  TestPipeline test(options);
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat64).value();
  std::vector<double> batch(1 << 12, 1.0);
  int paused = 0;
  for (int i = 0; i < 500; ++i) {
    test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
    if (test.pipeline.saturated()) {
      ++paused;
      std::atomic<bool> ready{false};
      test.pipeline.WhenReady([&] { ready = true; });
      while (!ready) std::this_thread::yield();
    }
  }
  EXPECT_GT(paused, 0);
  EXPECT_EQ(stream->Stats().count, 500u << 12);
}

TEST(Pipeline, HasTwoWindowsUnderWayForEachWorkerOrTwoRequestsOfAGlSorter) {
  constexpr std::uint32_t kWindow = 1 << 10;
  const auto limit = [&](const std::string& active, int workers, std::uint64_t set) {
    FakeSorter* fake = nullptr;
    sort::SorterSelection selection = Fake(&fake);
    selection.report.active = active;
    Metrics metrics("test");
    const Pipeline pipeline({.window_limits = {.min = 256, .max = kWindow},
                             .sort_workers = workers,
                             .pending_keys_max = set},
                            std::move(selection), metrics, [](const std::string&) {});
    return metrics.QueueLimit("sort_keys").Value();
  };
  EXPECT_EQ(limit("cpu", 1, 0), 2 * kWindow);
  EXPECT_EQ(limit("cpu", 3, 0), 6 * kWindow);
  EXPECT_EQ(limit("gl-bitonic", 1, 0), 8 * kWindow);
  EXPECT_EQ(limit("gl-bitonic", 5, 0), 10 * kWindow);
  EXPECT_EQ(limit("gl-bitonic", 5, 77), 77);
}

TEST(Pipeline, StopSummarizesWhatIsQueuedAndReleasesSources) {
  PipelineOptions options;
  options.pending_keys_max = 1;
  TestPipeline test(options);
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat64).value();
  const std::vector<double> batch(1 << 16, 1.0);
  test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
  std::atomic<int> resumed{0};
  test.pipeline.WhenReady([&] { ++resumed; });
  test.pipeline.Stop();
  EXPECT_EQ(resumed, 1);
  const StreamStats stats = stream->Stats();
  EXPECT_EQ(stats.count, batch.size());
  EXPECT_EQ(stats.pending, stats.window_fill);
}

TEST(Pipeline, QuietStreamCostsAtMostTwoKilobytes) {
  TestPipeline test;
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat64).value();
  for (int i = 0; i < 100; ++i) {
    const double value = i;
    test.pipeline.AppendPacked(stream, std::as_bytes(std::span(&value, 1)), i * 1'000'000);
  }
  EXPECT_LE(stream->Stats().window_bytes + sizeof(KeyedStream<std::uint64_t>), 2048u);
}

TEST(Pipeline, IdleStreamGivesItsLargeWindowBack) {
  TestPipeline test;
  const StreamHandle stream = test.pipeline.Open("s", ValueType::kFloat64).value();
  const std::vector<double> batch((1 << 20) + 100, 1.0);
  test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), 0);
  test.Bytes("s");
  const StreamStats busy = stream->Stats();
  test.pipeline.Trim();
  EXPECT_EQ(stream->Stats().window_bytes, busy.window_bytes) << "a batch has just come";
  test.pipeline.Trim();
  EXPECT_LE(stream->Stats().window_bytes, std::max<std::size_t>(16, 2 * busy.window_fill) * 8);
  EXPECT_EQ(stream->Stats().count, batch.size());
}

// Refuses everything while it fails.
class FailingLog final : public StreamLog {
 public:
  absl::StatusOr<LoggedStream> Created(std::string_view, const StreamSettings&) override {
    return LoggedStream{1, ++last_};
  }
  absl::StatusOr<std::unique_ptr<PreparedState>> Prepare(std::string_view) override {
    return std::make_unique<PreparedState>();
  }
  absl::StatusOr<LoggedStream> CreatedFrom(std::string_view, const StreamSettings&,
                                           std::unique_ptr<PreparedState>) override {
    return LoggedStream{1, ++last_};
  }
  absl::Status Deleted(std::uint64_t) override { return Answer(); }
  absl::StatusOr<std::uint64_t> Batch(const LoggedBatch&) override {
    if (fails) return Answer();
    return ++last_;
  }
  absl::StatusOr<std::uint64_t> Subscribed(std::uint64_t, std::string_view,
                                           std::string_view) override {
    return ++last_;
  }
  absl::StatusOr<std::uint64_t> Unsubscribed(std::uint64_t, std::string_view) override {
    return ++last_;
  }
  bool failing() const override { return fails; }
  std::uint64_t last_sequence() const override { return last_; }
  void WhenDurable(std::uint64_t, IngestSink::Durable done) override { done(last_, Answer()); }

  bool fails = false;

 private:
  absl::Status Answer() const {
    return fails ? absl::UnavailableError("the disk is full") : absl::OkStatus();
  }
  std::uint64_t last_ = 0;
};

// While the log fails senders cannot be told from silent ones, and afterwards they need time.
TEST(Pipeline, NoStreamExpiresWhileTheLogFailsNorAtOnceAfterwards) {
  PipelineOptions options;
  options.idle_trims_max = 3;
  TestPipeline test(options);
  FailingLog log;
  test.pipeline.UseLog(&log);
  const double value = 1;
  const auto send = [&] {
    return test.Append<double>("s", ValueType::kFloat64, std::span(&value, 1)).status;
  };
  ASSERT_TRUE(send().ok());
  log.fails = true;
  for (int tick = 0; tick < 10; ++tick) test.pipeline.Trim();
  EXPECT_FALSE(send().ok());
  log.fails = false;
  for (int tick = 0; tick < 3; ++tick) {
    test.pipeline.Trim();
    EXPECT_EQ(test.pipeline.streams().size(), 1u) << "tick " << tick;
  }
  test.pipeline.Trim();
  EXPECT_EQ(test.pipeline.streams().size(), 0u);
  EXPECT_EQ(test.pipeline.deletions(), 1u);
  EXPECT_EQ(test.metrics.streams_expired().Value(), 1);
  test.pipeline.UseLog(nullptr);
}

TEST(Pipeline, RefusedBatchesKeepAStream) {
  PipelineOptions options;
  options.idle_trims_max = 2;
  options.text_bytes_max = 100;
  TestPipeline test(options);
  const std::string long_item(200, 'x');
  const std::string_view item = long_item;
  for (int tick = 0; tick < 8; ++tick) {
    const auto sent = test.Append<std::string_view>("s", ValueType::kString, std::span(&item, 1));
    EXPECT_FALSE(sent.status.ok());
    test.pipeline.Trim();
    EXPECT_EQ(test.pipeline.streams().size(), 1u) << "tick " << tick;
  }
  for (int tick = 0; tick < 3; ++tick) test.pipeline.Trim();
  EXPECT_EQ(test.pipeline.streams().size(), 0u);
}

TEST(Pipeline, NumbersFromTextBecomeTheStreamsType) {
  TestPipeline test;
  const std::vector<double> whole = {1, 2, 3};
  const std::vector<double> broken = {1, 2.5};
  for (const ValueType type : {ValueType::kFloat64, ValueType::kFloat32, ValueType::kInt64,
                               ValueType::kUint64, ValueType::kUint32}) {
    const StreamHandle stream = test.pipeline.Open(ValueTypeName(type), type).value();
    EXPECT_EQ(test.pipeline.AppendNumbers(stream, whole, 0).accepted, 3u);
    const bool floating = type == ValueType::kFloat64 || type == ValueType::kFloat32;
    const AppendResult result = test.pipeline.AppendNumbers(stream, broken, 0);
    EXPECT_EQ(result.status.ok(), floating) << ValueTypeName(type);
    EXPECT_EQ(stream->Stats().count, floating ? 5u : 3u) << "all or nothing";
  }
  const StreamHandle text = test.pipeline.Open("text", ValueType::kString).value();
  EXPECT_EQ(test.pipeline.AppendNumbers(text, whole, 0).status.code(),
            absl::StatusCode::kFailedPrecondition);
  const std::vector<double> negative = {-1};
  const StreamHandle unsigned_stream = test.pipeline.Open("uint32", ValueType::kUint32).value();
  EXPECT_EQ(test.pipeline.AppendNumbers(unsigned_stream, negative, 0).status.message(),
            "value -1 at position 0 of the batch is not a whole uint32 number");
}

}  // namespace
}  // namespace tidemark::server
