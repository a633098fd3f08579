// Streams that begin with a state, in the log and in snapshots: what a start makes of them is the
// same to the byte, whatever came between and wherever the machine stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/durability/definition.h"
#include "server/durability/replay.h"
#include "server/durability/snapshots.h"
#include "server/query/query_engine.h"
#include "server/window/concat.h"
#include "server/window/refusal.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/replayed_entries.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

StreamState StateOf(Pipeline& pipeline, const std::string& stream) {
  const QueryEngine engine(pipeline);
  return engine.State(stream, std::chrono::steady_clock::now() + std::chrono::seconds(20)).value();
}

// Batches to streams of every kind, some of which are merged into new ones; perhaps snapshots.
void RunCase(std::uint64_t seed, bool snapshots_too) {
  SCOPED_TRACE(Concat("seed ", seed));
  Random random(seed);
  testing::FakeDisk disk;
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  LoggedPipeline live(disk);
  Pipeline& pipeline = live.pipeline();
  Snapshots snapshots(disk, kLogFolder, pipeline, &live.log(), std::nullopt, 0);
  RecordedTime time = 1'000'000;
  int merged = 0;
  for (int step = 0; step < 600; ++step) {
    const std::string name = Concat(random() % 3 == 0 ? "made " : "s", random() % 6);
    const absl::StatusOr<StreamHandle> stream = pipeline.streams().Find(name);
    if (!stream.ok() && name.starts_with("made")) continue;
    if (!stream.ok()) {
      ASSERT_TRUE(pipeline.streams().Create(name, kinds[random() % kinds.size()]).ok());
      continue;
    }
    if (random() % (name.starts_with("made") ? 10 : 40) == 0) {
      ASSERT_TRUE(pipeline.streams().Delete(name).ok());
      continue;
    }
    if (snapshots_too && random() % 100 == 0) {
      ASSERT_TRUE(snapshots.Take().ok());
      continue;
    }
    if (random() % 12 == 0) {
      StreamState state = StateOf(pipeline, name);
      const StreamState other = state;
      if (random() % 2 == 0) {
        ASSERT_TRUE(MergeInto(state, other).ok());
      }
      const std::string made = Concat("made ", random() % 6);
      const bool absent = !pipeline.streams().Find(made).ok();
      const std::uint64_t before = live.log().last_sequence();
      const absl::StatusOr<StreamHandle> restored = pipeline.streams().Restore(made, state);
      EXPECT_EQ(restored.ok(), absent) << restored.status();
      EXPECT_EQ(live.log().last_sequence() > before, absent);
      if (restored.ok()) {
        EXPECT_EQ((*restored)->last_logged(), live.log().last_sequence());
        ++merged;
      }
      continue;
    }
    time += static_cast<RecordedTime>(random() % 120'000) - 10'000;
    SomeBatch(random, pipeline, *stream, time);
  }
  EXPECT_GT(merged, 0);
  const std::string before = Seen(pipeline);
  ASSERT_TRUE(live.log().Stop().ok());
  pipeline.UseLog(nullptr);
  LoggedPipeline again(disk);
  ASSERT_EQ(Seen(again.pipeline()), before);
  again.log().Stop().IgnoreError();
  again.pipeline().UseLog(nullptr);
  ExpectTheyGoOnAlike(random, pipeline, again.pipeline(), time, 20);
}

TEST(Imports, AReplayGivesTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= Seeds(4, 1'000); ++seed) {
    RunCase(seed, false);
    if (HasFailure()) return;
  }
}

TEST(Imports, SnapshotsAndTheLogBehindThemGiveTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= Seeds(4, 1'000); ++seed) {
    RunCase(seed, true);
    if (HasFailure()) return;
  }
}

TEST(Imports, OfEveryKindOfStreamAreInSnapshotsWithoutALog) {
  testing::FakeDisk disk;
  TestPipeline first(SmallWindows());
  Random random(3);
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string name = Concat("kind ", i);
    const StreamHandle stream = first.pipeline.streams().Create(name, kinds[i]).value();
    for (int batch = 0; batch < 10; ++batch) {
      SomeBatch(random, first.pipeline, stream, batch * 40'000);
    }
    ASSERT_TRUE(
        first.pipeline.streams().Restore(name + " again", StateOf(first.pipeline, name)).ok());
  }
  Snapshots snapshots(disk, kLogFolder, first.pipeline, nullptr, std::nullopt, 0);
  ASSERT_TRUE(snapshots.Take().ok());
  TestPipeline second(SmallWindows());
  ASSERT_TRUE(LoadSnapshotAlone(disk, kLogFolder, second.pipeline).ok());
  EXPECT_EQ(Seen(first.pipeline), Seen(second.pipeline));
  ExpectTheyGoOnAlike(random, first.pipeline, second.pipeline, 500'000, 20);
}

// A state of several records, for segments, and so parts, have 32 KiB here.
constexpr std::size_t kLongValues = 15'000;

StreamState LongState() {
  static const StreamState state = [] {
    TestPipeline source(SmallWindows());
    std::vector<double> values(kLongValues);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(i * 7919 % 9973);
    const StreamHandle stream =
        source.pipeline.streams().Create("s", {.quantile_epsilon = 1e-5}).value();
    EXPECT_TRUE(
        source.pipeline.AppendPacked(stream, std::as_bytes(std::span(values)), 1).status.ok());
    return StateOf(source.pipeline, "s");
  }();
  return state;
}

// OK when the log's last record is durable.
absl::Status Durable(LoggedPipeline& live) {
  const auto told = std::make_shared<std::promise<absl::Status>>();
  live.pipeline().WhenDurable(
      live.log().last_sequence(),
      [told](std::uint64_t, const absl::Status& status) { told->set_value(status); });
  return told->get_future().get();
}

TEST(Imports, ALongStateIsARowOfRecords) {
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  ASSERT_TRUE(live.pipeline().streams().Restore("a", LongState()).ok());
  EXPECT_GT(live.log().last_sequence(), 4u);
  const std::string before = Seen(live.pipeline());
  ASSERT_TRUE(live.log().Stop().ok());
  LoggedPipeline again(disk);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

// Wherever the machine stops: a stream is there in whole or not at all, and is there if it was
// durable; and what is imported after a start is there after the next one.
TEST(Imports, AreThereInWholeOrNotAtAllAfterACrash) {
  std::string whole;
  std::uint64_t operations = 0;
  {
    testing::FakeDisk disk;
    LoggedPipeline live(disk);
    ASSERT_TRUE(live.pipeline().streams().Restore("a", LongState()).ok());
    ASSERT_TRUE(Durable(live).ok());
    whole = Seen(live.pipeline());
    operations = disk.operations();
  }
  int cut = 0;
  const std::uint64_t rounds = std::min<std::uint64_t>(Seeds(12, 1'000), operations + 2);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const std::uint64_t stop = round * (operations + 2) / rounds;
    SCOPED_TRACE(Concat("stopped in operation ", stop));
    std::mt19937_64 random(stop);
    testing::FakeDisk disk;
    bool durable = false;
    {
      disk.StopAt(stop);
      LoggedPipeline live(disk);
      durable = live.pipeline().streams().Restore("a", LongState()).ok() && Durable(live).ok();
      disk.StopAt(1);
    }
    disk.Crash(random);
    {
      LoggedPipeline again(disk);
      const std::string seen = Seen(again.pipeline());
      EXPECT_TRUE(seen == whole || (seen.empty() && !durable)) << seen;
      cut += seen.empty() && again.log().last_sequence() > 0 ? 1 : 0;
      again.pipeline().streams().Delete("a").IgnoreError();
      ASSERT_TRUE(again.pipeline().streams().Restore("a", LongState()).ok());
      ASSERT_TRUE(Durable(again).ok());
    }
    LoggedPipeline third(disk);
    EXPECT_EQ(Seen(third.pipeline()), whole);
  }
  EXPECT_GT(cut, 0) << "no crash came between the records of a row";
}

TEST(Imports, AreRefusedWhileTheDiskFailsAndLeaveNoTrace) {
  testing::FakeDisk disk;
  std::promise<void> failed;
  std::promise<void> recovered;
  LoggedPipeline live(disk, SmallWindows(), [&](const absl::Status& status) {
    (status.ok() ? recovered : failed).set_value();
  });
  StreamRegistry& streams = live.pipeline().streams();
  disk.FailAll(ENOSPC);
  ASSERT_TRUE(streams.Restore("doubtful", LongState()).ok());
  EXPECT_TRUE(absl::IsUnavailable(Durable(live)));
  failed.get_future().wait();
  const absl::Status refused = streams.Restore("a", LongState()).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused, Attempt::kOpen), "log_unavailable");
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(streams.Restore("doubtful", LongState()).status()));
  disk.Heal();
  recovered.get_future().wait();
  ASSERT_TRUE(streams.Restore("a", LongState()).ok());
  ASSERT_TRUE(Durable(live).ok());
  const std::string before = Seen(live.pipeline());
  ASSERT_TRUE(live.log().Stop().ok());
  LoggedPipeline again(disk);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

class StateRecordsTest : public ::testing::Test {
 protected:
  StateRecordsTest() {
    TestPipeline source(SmallWindows());
    const std::vector<double> values = {1, 2, 3};
    source.Append<double>("s", ValueType::kFloat64, values);
    TestPipeline held(SmallWindows());
    const StreamHandle stream =
        held.pipeline.streams().Restore("a", StateOf(source.pipeline, "s")).value();
    image_ = stream->Image().value();
    definition_ = EncodeDefinition("a", stream->settings());
    seen_ = Seen(held.pipeline);
  }
  store::StreamFromState Made(std::size_t last_bytes) const {
    return {1, image_.size(), definition_,
            std::string_view(image_).substr(image_.size() - last_bytes)};
  }
  store::StatePart Part(std::size_t from, std::size_t bytes) const {
    return {std::string_view(image_).substr(from, bytes)};
  }

  std::string image_, definition_, seen_;
};

TEST_F(StateRecordsTest, AreReadInOneAndInParts) {
  const std::size_t n = image_.size();
  EXPECT_EQ(ReplayEntries({Made(n)}), (ReplayedEntries{absl::OkStatus(), seen_}));
  EXPECT_EQ(ReplayEntries({Part(0, 7), Part(7, 9), Made(n - 16)}),
            (ReplayedEntries{absl::OkStatus(), seen_}));
  EXPECT_EQ(ReplayEntries({Part(0, n), Made(0)}), (ReplayedEntries{absl::OkStatus(), seen_}));
}

TEST_F(StateRecordsTest, OfAStateThatWasCutOffDoNothing) {
  const std::size_t n = image_.size();
  EXPECT_EQ(ReplayEntries({Part(0, 7)}), (ReplayedEntries{absl::OkStatus(), {}}));
  EXPECT_EQ(ReplayEntries({Part(0, 7), Made(n)}), (ReplayedEntries{absl::OkStatus(), seen_}));
  EXPECT_EQ(ReplayEntries({Part(0, 7), Part(0, 7), Part(7, 8), Made(n - 15)}),
            (ReplayedEntries{absl::OkStatus(), seen_}));
}

TEST_F(StateRecordsTest, ThatContradictThemselvesAreNamed) {
  const std::size_t n = image_.size();
  const std::string other = EncodeDefinition("b", {});
  const auto error = [&](const std::vector<store::LogEntry>& entries) {
    const absl::Status status = ReplayEntries(entries).status;
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    const std::string text(status.message());
    return text.substr(std::min(text.size(), text.find(": record ") + 2));
  };
  EXPECT_EQ(error({Part(0, 7), store::StreamCreated{1, other}, Made(n - 7)}).substr(0, 64),
            "record 3 of the log cannot be replayed: the stream's id 1 is not");
  EXPECT_EQ(error({Made(n - 7)}),
            Concat("record 1 of the log cannot be replayed: the state of stream \"a\" has ", n - 7,
                   " bytes; expected ", n));
  EXPECT_EQ(error({Made(n), Made(n)}).substr(0, 45),
            "record 2 of the log cannot be replayed: the s");
  EXPECT_NE(error({Part(0, 8), Part(0, 8), Made(n - 16)}).find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace tidemark::server
