// A wall clock that jumps by an hour or by ten years, either way, between batches and between runs:
// what windows by time hold, that they and the log go on, and that a start makes the same bytes.
//
// Batches are recorded with the wall clock; the stream's time is the greatest of those
// (summaries/sliding_times.h). So after a jump forwards a window by time is empty until values
// come; after one backwards the values of the time in between count as of the latest time: no
// window loses what it had, none is ever negative.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/query/query_engine.h"
#include "server/window/concat.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kTenYears = 3652 * 24 * kHour;

// What the wall clock says; it may be set.
class WallClock {
 public:
  explicit WallClock(Random& random) : random_(random) {}
  RecordedTime now() const { return now_; }
  void GoOn() { now_ += static_cast<RecordedTime>(random_() % (2 * kSecond)); }
  void Jump() {
    constexpr std::array<std::int64_t, 4> kJumps = {kHour, -kHour, kTenYears, -kTenYears};
    now_ += kJumps[random_() % kJumps.size()];
  }

 private:
  Random& random_;
  RecordedTime now_ = 1'763'800'000 * kSecond;  // 2025
};

// Values 1, 2, 3, ..., and the stream's time at each.
struct Truth {
  std::vector<RecordedTime> times;

  void Add(std::size_t count, RecordedTime recorded) {
    times.insert(times.end(), count, times.empty() ? recorded : std::max(recorded, times.back()));
  }
  /// How many of the last values are inside.
  std::uint64_t Within(std::int64_t age_us, RecordedTime now) const {
    const RecordedTime latest = times.empty() ? now : std::max(now, times.back());
    return static_cast<std::uint64_t>(
        times.end() - std::upper_bound(times.begin(), times.end(), latest - age_us));
  }
};

class ClockJumps {
 public:
  explicit ClockJumps(std::uint64_t seed) : random_(seed), clock_(random_) {
    Start();
    const SlidingSettings sliding = {.values_max = 1'000, .time_max_us = 2 * kHour, .epsilon = 0.1};
    Create("plain", {.type = ValueType::kUint64});
    Create("windows", {.type = ValueType::kUint64, .sliding = sliding});
    Create("texts", {.type = ValueType::kString, .sliding = {.time_max_us = kHour}});
  }

  void Round() {
    for (std::uint64_t i = 1 + random_() % 6; i > 0; --i) {
      clock_.GoOn();
      Append();
    }
    Check();
    clock_.Jump();
    Check();
    Append();
    Check();
    if (random_() % 10 == 0) {
      ASSERT_TRUE(snapshots_->Take().ok());
    }
  }

  // The clock may be set while the daemon is down.
  void Restart() {
    const std::string before = Seen(live_->pipeline());
    ASSERT_TRUE(live_->log().Stop().ok());
    live_->pipeline().UseLog(nullptr);
    snapshots_.reset();
    live_.reset();
    if (random_() % 2 == 0) clock_.Jump();
    Start();
    EXPECT_EQ(Seen(live_->pipeline()), before);
    Check();
  }

 private:
  void Start() {
    live_ = std::make_unique<LoggedPipeline>(disk_);
    const auto chosen = store::NewestSnapshot(disk_, kLogFolder).value();
    snapshots_.emplace(disk_, kLogFolder, live_->pipeline(), &live_->log(), chosen.header,
                       chosen.highest_number);
  }
  void Create(std::string_view name, const StreamSettings& settings) {
    ASSERT_TRUE(live_->pipeline().streams().Create(name, settings).ok());
  }

  void Append() {
    Pipeline& pipeline = live_->pipeline();
    std::vector<std::uint64_t> values(1 + random_() % 60);
    for (std::uint64_t& value : values) value = ++last_;
    for (const char* name : {"plain", "windows"}) {
      const AppendResult result = pipeline.AppendPacked(
          pipeline.streams().Find(name).value(), std::as_bytes(std::span(values)), clock_.now());
      ASSERT_EQ(result.accepted, values.size()) << result.status;
    }
    truth_.Add(values.size(), clock_.now());
    const std::vector<std::string_view> texts = {"a", "b", "a"};
    ASSERT_TRUE(
        pipeline.AppendStrings(pipeline.streams().Find("texts").value(), texts, clock_.now())
            .status.ok());
    texts_.Add(texts.size(), clock_.now());
  }

  static Ask Asked(std::int64_t age, RecordedTime now) {
    return Ask(std::chrono::steady_clock::now() + std::chrono::minutes(1),
               {.time_us = age, .now_us = now});
  }

  static void CheckCount(const Coverage& coverage, std::uint64_t truth) {
    ASSERT_LE(coverage.uncertain, coverage.n);
    EXPECT_GE(coverage.n, truth);
    EXPECT_LE(coverage.n - coverage.uncertain, truth);
  }

  void Check() {
    const QueryEngine engine(live_->pipeline());
    // The asker's clock is the daemon's, or was it a moment ago.
    const std::int64_t age = std::array{kSecond, 30 * kSecond, kHour, 2 * kHour}[random_() % 4];
    SCOPED_TRACE(Concat("age ", age, ", now ", clock_.now()));
    const std::uint64_t truth = truth_.Within(age, clock_.now());
    const std::vector<double> phis = {0.01, 0.5, 1};
    const auto answer = engine.Quantiles("windows", phis, Asked(age, clock_.now()));
    ASSERT_TRUE(answer.ok()) << answer.status();
    CheckCount(answer->coverage, truth);
    for (const QuantileRow& row : answer->rows) {
      if (truth == 0) break;
      const std::uint64_t value = std::get<std::uint64_t>(row.value);
      EXPECT_LE(row.rank_low, row.rank_high);
      EXPECT_LE(row.rank_high, answer->coverage.n);
      EXPECT_LE(value, last_);
      const std::uint64_t first = last_ - truth + 1;  // the window's
      const std::uint64_t rank = value < first ? 0 : value - first + 1;
      EXPECT_LE(row.rank_low, rank);
      EXPECT_GE(row.rank_high, rank);
    }
    const std::int64_t text_age = std::min(age, kHour);
    const auto items = engine.HeavyHitters("texts", 0.2, 0, Asked(text_age, clock_.now()));
    ASSERT_TRUE(items.ok()) << items.status();
    CheckCount(items->coverage, texts_.Within(text_age, clock_.now()));
    const auto whole =
        engine.Quantiles("plain", phis, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(whole->coverage.n, last_);
  }

  Random random_;
  WallClock clock_;
  testing::FakeDisk disk_;
  std::unique_ptr<LoggedPipeline> live_;
  std::optional<Snapshots> snapshots_;
  Truth truth_, texts_;
  std::uint64_t last_ = 0;  // the last value
};

// A start costs most, so that there is one for every fourth jump.
TEST(ClockJumps, WindowsLogAndReplayGoOn) {
  for (std::uint64_t seed = 1; seed <= Seeds(5, 500); ++seed) {
    SCOPED_TRACE(Concat("seed ", seed));
    ClockJumps trial(seed);
    for (int round = 0; round < 40; ++round) {
      SCOPED_TRACE(Concat("round ", round));
      trial.Round();
      if (round % 4 == 3) trial.Restart();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Times at the ends of what a record can hold: nothing overflows.
TEST(ClockJumps, ToTheEndsOfTime) {
  constexpr std::array<RecordedTime, 7> kTimes = {
      0, INT64_MAX, 1'763'800'000 * kSecond, -1, INT64_MIN, INT64_MAX - 1, kSecond};
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  const StreamSettings settings = {
      .type = ValueType::kUint64,
      .sliding = {.values_max = 100, .time_max_us = 2 * kHour, .epsilon = 0.1}};
  for (std::size_t first = 0; first < kTimes.size(); ++first) {
    const std::string name = Concat("s", first);
    const StreamHandle stream = live.pipeline().streams().Create(name, settings).value();
    for (std::size_t i = 0; i < 40; ++i) {
      const std::vector<std::uint64_t> values(20, i);
      const RecordedTime time = kTimes[(first + i) % kTimes.size()];
      ASSERT_EQ(
          live.pipeline().AppendPacked(stream, std::as_bytes(std::span(values)), time).accepted,
          values.size());
      const QueryEngine engine(live.pipeline());
      for (const RecordedTime now : kTimes) {
        const std::vector<double> phis = {0.5};
        const auto answer =
            engine.Quantiles(name, phis,
                             Ask(std::chrono::steady_clock::now() + std::chrono::minutes(1),
                                 {.time_us = kHour, .now_us = now}));
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_LE(answer->coverage.uncertain, answer->coverage.n);
        EXPECT_LE(answer->coverage.n, 20 * (i + 1));
      }
    }
  }
  const std::string before = Seen(live.pipeline());
  ASSERT_TRUE(live.log().Stop().ok());
  live.pipeline().UseLog(nullptr);
  LoggedPipeline again(disk);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

// A stream's time to live is counted in calls of Trim, by a clock that does not step: recorded
// times change nothing.
TEST(ClockJumps, IdleStreamsAreKnownByTheSteadyClock) {
  Random random(7);
  WallClock clock(random);
  PipelineOptions options = SmallWindows();
  options.idle_trims_max = 3;
  TestPipeline held(options);
  const std::vector<std::uint64_t> values = {1};
  held.Append<std::uint64_t>("busy", ValueType::kUint64, values, clock.now());
  held.Append<std::uint64_t>("idle", ValueType::kUint64, values, clock.now());
  for (int trims = 1; trims <= 200; ++trims) {
    clock.Jump();
    held.Append<std::uint64_t>("busy", ValueType::kUint64, values, clock.now());
    held.pipeline.Trim();
    // The first call only sees that it came.
    EXPECT_EQ(held.pipeline.streams().Find("idle").ok(), trims <= 3) << trims;
  }
  EXPECT_EQ(held.pipeline.streams().Find("busy").value()->Stats().count, 201u);
}

}  // namespace
}  // namespace tidemark::server
