// Names of streams and of subscriptions that change hands while a snapshot is taken: its images are
// of different moments, and a start has all the same what a run without it has.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/durability/replay.h"
#include "server/durability/snapshots.h"
#include "server/store/store_check.h"
#include "server/window/concat.h"
#include "tests/server/durability/kept.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/meanwhile_disk.h"
#include "tests/server/durability/snapshot_in_steps.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

// What streams tell from here on, in a folder that has no log. Pipelines have threads, and are made
// once for all cases.
class NewLog {
 public:
  NewLog(store::FileSystem& disk, Pipeline& pipeline)
      : pipeline_(pipeline), log_(disk, Options(), {}, 5, 1, {}) {
    pipeline.UseLog(&log_);
  }
  ~NewLog() { pipeline_.UseLog(nullptr); }
  NewLog(const NewLog&) = delete;
  NewLog& operator=(const NewLog&) = delete;

  DurableLog& log() { return log_; }

 private:
  static store::LogOptions Options() {
    store::LogOptions options;
    options.folder = kLogFolder;
    options.sync_interval = std::chrono::microseconds(50);
    return options;
  }

  Pipeline& pipeline_;
  DurableLog log_;
};

// Deletes all, for the next case.
void Empty(Pipeline& pipeline) {
  for (const StreamHandle& stream : pipeline.streams().All()) {
    ASSERT_TRUE(pipeline.streams().Delete(stream->name()).ok());
  }
  ASSERT_EQ(pipeline.streams().subscriptions(), 0u);
}

// What happens before the snapshot, and between the image of "a" and that of "b".
struct Move {
  const char* what;
  std::function<void(StreamRegistry&)> before;
  std::function<void(StreamRegistry&)> between;
};

void Subscribe(StreamRegistry& streams, const std::string& name, const std::string& stream) {
  const auto kept = streams.Subscribe({name, stream, Concat(name, " of ", stream)});
  EXPECT_TRUE(kept.ok()) << kept.status();
}
void Unsubscribe(StreamRegistry& streams, const std::string& name) {
  EXPECT_TRUE(streams.Unsubscribe(name).ok());
}
void Expire(StreamRegistry& streams, const std::string& name) {
  for (int time = 0; time < 2; ++time) streams.Find(name).value()->TrimStorage();
  EXPECT_EQ(streams.DeleteIdle(1), 1u);
}

std::vector<Move> Moves() {
  const auto none = [](StreamRegistry&) {};
  const auto is_of_a = [](StreamRegistry& streams) { Subscribe(streams, "S", "a"); };
  return {
      {"it leaves a stream", is_of_a,
       [](StreamRegistry& streams) {
         Unsubscribe(streams, "S");
         Subscribe(streams, "S", "b");
       }},
      {"its stream is deleted", is_of_a,
       [](StreamRegistry& streams) {
         ASSERT_TRUE(streams.Delete("a").ok());
         Subscribe(streams, "S", "b");
       }},
      {"its stream expires", is_of_a,
       [](StreamRegistry& streams) {
         Expire(streams, "a");
         Subscribe(streams, "S", "b");
       }},
      {"it comes and leaves", none,
       [](StreamRegistry& streams) {
         Subscribe(streams, "S", "a");
         Unsubscribe(streams, "S");
         Subscribe(streams, "S", "b");
       }},
      {"it comes, and its stream is deleted", none,
       [](StreamRegistry& streams) {
         Subscribe(streams, "S", "a");
         ASSERT_TRUE(streams.Delete("a").ok());
         Subscribe(streams, "S", "b");
       }},
      {"it leaves a new stream", none,
       [](StreamRegistry& streams) {
         ASSERT_TRUE(streams.Create("c", {}).ok());
         Subscribe(streams, "S", "c");
         Unsubscribe(streams, "S");
         Subscribe(streams, "S", "b");
       }},
      {"its new stream is deleted", none,
       [](StreamRegistry& streams) {
         ASSERT_TRUE(streams.Create("c", {}).ok());
         Subscribe(streams, "S", "c");
         ASSERT_TRUE(streams.Delete("c").ok());
         Subscribe(streams, "S", "b");
       }},
  };
}

constexpr int kLong = 70;  // subscriptions whose bytes, in one image, are more than 1 MiB

// Streams "a", "aa" and "b". When the image of "aa" is written, that of "a" was taken, and that of
// "b" was not.
void Prepare(Pipeline& pipeline, DurableLog* log, MeanwhileDisk& disk, const Move& move) {
  StreamRegistry& streams = pipeline.streams();
  Random random(4);
  for (const char* name : {"a", "aa", "b"}) {
    const StreamHandle stream = pipeline.Open(name, ValueType::kFloat64).value();
    for (int i = 0; i < 5; ++i) SomeBatch(random, pipeline, stream, i * 1000);
  }
  for (int i = 0; i < kLong; ++i) {
    const auto kept =
        streams.Subscribe({Concat("long ", i), "aa", std::string(kSubscriptionBytesMax, 'x')});
    ASSERT_TRUE(kept.ok()) << kept.status();
    if (log == nullptr) continue;
    std::promise<void> durable;  // or the log is behind
    log->WhenDurable(*kept, [&](std::uint64_t, const absl::Status&) { durable.set_value(); });
    durable.get_future().wait();
  }
  move.before(streams);
  disk.written = [&] {
    ASSERT_EQ(streams.size(), 3u);
    move.between(streams);
  };
}

TEST(MovingNames, OfSubscriptionsAreThoseOfTheLogsEnd) {
  TestPipeline live(SmallWindows());
  TestPipeline fresh(SmallWindows());
  for (const Move& move : Moves()) {
    SCOPED_TRACE(move.what);
    testing::FakeDisk under;
    MeanwhileDisk disk(under);
    std::optional<NewLog> log(std::in_place, disk, live.pipeline);
    Prepare(live.pipeline, &log->log(), disk, move);
    Snapshots snapshots(disk, kLogFolder, live.pipeline, &log->log(), std::nullopt, 0);
    const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
    ASSERT_TRUE(taken.ok()) << taken.status();
    ASSERT_EQ(taken->streams, 3u);
    const std::string before = Kept(live.pipeline);
    EXPECT_NE(before.find("S of b: "), std::string::npos);
    ASSERT_TRUE(log->log().Stop().ok());
    log.reset();
    const auto loaded = LoadSnapshot(under, kLogFolder, fresh.pipeline);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto replayed = ReplayLog(under, kLogFolder, fresh.pipeline, *loaded);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(Kept(fresh.pipeline), before);
    EXPECT_EQ(replayed->end.notes, std::vector<std::string>());
    // It can move again.
    StreamRegistry& streams = fresh.pipeline.streams();
    EXPECT_EQ(streams.Subscribe({"S", "aa", ""}).status().code(), absl::StatusCode::kAlreadyExists);
    Unsubscribe(streams, "S");
    Subscribe(streams, "S", "aa");
    Empty(live.pipeline);
    Empty(fresh.pipeline);
    // And if the log's files are gone: that of the later image.
    ASSERT_TRUE(LoadSnapshotAlone(under, kLogFolder, fresh.pipeline).ok());
    EXPECT_EQ(streams.FindSubscription("S").value().request, "S of b");
    EXPECT_TRUE(streams.Find("a").value()->subscriptions().empty());
    Empty(fresh.pipeline);
  }
}

// Images are all that there is: the later one counts, and what it says is told.
TEST(MovingNames, OfSubscriptionsAreThoseOfTheLaterImageWithoutALog) {
  TestPipeline live(SmallWindows());
  TestPipeline fresh(SmallWindows());
  TestPipeline again(SmallWindows());
  StreamRegistry& streams = fresh.pipeline.streams();
  for (const Move& move : Moves()) {
    SCOPED_TRACE(move.what);
    testing::FakeDisk under;
    MeanwhileDisk disk(under);
    Prepare(live.pipeline, nullptr, disk, move);
    const bool twice = live.pipeline.streams().FindSubscription("S").ok();
    Snapshots snapshots(disk, kLogFolder, live.pipeline, nullptr, std::nullopt, 0);
    ASSERT_TRUE(snapshots.Take().ok());
    const std::optional<std::string> asked =
        live.pipeline.streams().Find("b").value()->FindSubscription("S");
    ASSERT_EQ(asked, "S of b");
    // With a log from now on, too.
    for (const bool alone : {true, false}) {
      const auto loaded = alone ? LoadSnapshotAlone(under, kLogFolder, fresh.pipeline)
                                : LoadSnapshot(under, kLogFolder, fresh.pipeline);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      ASSERT_EQ(loaded->notes.size(), twice ? 1u : 0u);
      if (twice) {
        EXPECT_EQ(loaded->notes[0],
                  "subscription \"S\" is that of stream \"b\"; stream \"a\", which had it before, "
                  "is without");
      }
      if (!alone) {
        const auto replayed = ReplayLog(under, kLogFolder, fresh.pipeline, *loaded);
        ASSERT_TRUE(replayed.ok()) << replayed.status();
      }
      EXPECT_EQ(streams.size(), 3u);
      EXPECT_EQ(streams.subscriptions(), 1u + kLong);
      EXPECT_EQ(streams.FindSubscription("S").value().stream, "b");
      EXPECT_TRUE(streams.Find("a").value()->subscriptions().empty());
      // Nor does it come back.
      Unsubscribe(streams, "S");
      testing::FakeDisk next;
      Snapshots later(next, kLogFolder, fresh.pipeline, nullptr, std::nullopt, 0);
      ASSERT_TRUE(later.Take().ok());
      ASSERT_TRUE(LoadSnapshotAlone(next, kLogFolder, again.pipeline).ok());
      EXPECT_EQ(again.pipeline.streams().subscriptions(), std::size_t{kLong});
      EXPECT_EQ(Kept(again.pipeline), Kept(fresh.pipeline));
      Empty(fresh.pipeline);
      Empty(again.pipeline);
    }
    Empty(live.pipeline);
  }
}

// Between the next stream's number and the list of streams, one is created, deleted, and created.
TEST(MovingNames, OfStreamsThatWereDeletedBeforeTheList) {
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  Pipeline& pipeline = live.pipeline();
  Random random(6);
  const auto created = [&](const std::string& name) {
    const StreamHandle stream = pipeline.Open(name, ValueType::kFloat64).value();
    for (int i = 0; i < 4; ++i) SomeBatch(random, pipeline, stream, i * 1000);
    return stream;
  };
  for (int i = 0; i < 5; ++i) {
    created("x");
    ASSERT_TRUE(pipeline.streams().Delete("x").ok());
  }
  TestPipeline fresh(SmallWindows());  // outlives the snapshot, whose streams are its own
  LoadedSnapshot snapshot;
  snapshot.header = store::SnapshotHeader{.number = 1, .log_position = live.log().last_sequence()};
  snapshot.next_stream_id = live.log().next_stream_id();
  ASSERT_EQ(snapshot.next_stream_id, 6u);
  created("x");
  ASSERT_TRUE(pipeline.streams().Delete("x").ok());
  const StreamHandle stream = created("x");
  ASSERT_EQ(stream->log_id(), 7u);
  const std::string image = stream->Image().value();
  snapshot.header->log_reaches = stream->last_logged();
  for (int i = 0; i < 4; ++i) SomeBatch(random, pipeline, stream, 5000);
  created("new");
  const std::string before = Kept(pipeline);
  ASSERT_TRUE(live.log().Stop().ok());

  fresh.pipeline.SetReplaying(true);
  snapshot.streams.emplace(
      7u, fresh.pipeline.streams().RestoreImage("x", stream->settings(), 7, image).value());
  fresh.pipeline.SetReplaying(false);
  const auto replayed = ReplayLog(disk, kLogFolder, fresh.pipeline, snapshot);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->next_stream_id, 9u);
  EXPECT_EQ(Kept(fresh.pipeline), before);
}

// Anything that may happen to few names.
void SomeChange(Random& random, Pipeline& pipeline, RecordedTime time) {
  StreamRegistry& streams = pipeline.streams();
  const std::string stream = Concat("s", random() % 3);
  const std::string name = Concat("q", random() % 3);
  const std::uint64_t what = random() % 32;
  if (what < 2) {
    streams.Delete(stream).IgnoreError();
  } else if (what == 2) {
    for (int i = 0; i < 2 && streams.Find(stream).ok(); ++i) {
      streams.Find(stream).value()->TrimStorage();
    }
    streams.DeleteIdle(1);
  } else if (what < 5) {
    streams.Unsubscribe(name).IgnoreError();
  } else if (what < 12) {
    streams.Subscribe({name, stream, Concat("request ", random() % 2)}).IgnoreError();
  } else if (what < 22) {
    streams.Unsubscribe(name).IgnoreError();
    streams.Subscribe({name, stream, "moved"}).IgnoreError();
  } else {
    SomeBatch(random, pipeline, pipeline.Open(stream, ValueType::kFloat64).value(), time, 12);
  }
}

// Each step of a snapshot at any moment of a history, with or without a log. Adds up how many
// subscriptions were in two images.
void RunHistory(std::uint64_t seed, bool logged, TestPipeline& live, TestPipeline& fresh,
                std::uint64_t& twice) {
  SCOPED_TRACE(Concat("seed ", seed));
  Random random(seed);
  testing::FakeDisk disk;
  Pipeline& pipeline = live.pipeline;
  std::optional<NewLog> log;
  if (logged) log.emplace(disk, pipeline);
  const std::uint64_t changes = 1 + random() % 8;  // between two steps, about
  for (int i = 0; i < 12; ++i) SomeChange(random, pipeline, 0);
  std::uint64_t number = 0;
  std::optional<SnapshotInSteps> snapshot;
  std::map<std::string, std::string> holders;
  std::uint64_t in_two = 0;
  // A few snapshots, and then as many changes as may be in the midst of one more.
  const std::uint64_t last = 1 + random() % 2;
  std::uint64_t left = random() % 20;
  for (RecordedTime time = 0; number <= last || left-- > 0; time += 1000) {
    if (random() % (changes + 1) != 0) {
      SomeChange(random, pipeline, time);
    } else if (!snapshot) {
      snapshot.emplace(disk, kLogFolder, pipeline, log ? &log->log() : nullptr, ++number);
    } else if (snapshot->Step()) {
      holders = snapshot->holders();
      in_two = snapshot->in_two();
      snapshot.reset();
    }
  }
  snapshot.reset();
  twice += in_two;
  const std::string before = Kept(pipeline);
  if (logged) {
    ASSERT_TRUE(log->log().Stop().ok());
    log.reset();
    const auto whole = ReplayLog(disk, kLogFolder, fresh.pipeline);
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(Kept(fresh.pipeline), before);
    Empty(fresh.pipeline);
    const auto loaded = LoadSnapshot(disk, kLogFolder, fresh.pipeline);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const auto replayed = ReplayLog(disk, kLogFolder, fresh.pipeline, *loaded);
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(Kept(fresh.pipeline), before);
    EXPECT_EQ(replayed->next_stream_id, whole->next_stream_id);
  } else {
    const auto loaded = LoadSnapshotAlone(disk, kLogFolder, fresh.pipeline);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    StreamRegistry& streams = fresh.pipeline.streams();
    EXPECT_EQ(loaded->notes.size(), in_two);
    std::size_t kept = 0;
    for (const StreamHandle& stream : streams.All()) kept += stream->subscriptions().size();
    EXPECT_EQ(kept, holders.size());
    EXPECT_EQ(streams.subscriptions(), holders.size());
    for (const auto& [name, stream] : holders) {
      EXPECT_EQ(streams.FindSubscription(name).value().stream, stream);
    }
  }
  Empty(fresh.pipeline);
  Empty(pipeline);
}

TEST(MovingNames, OfAnyHistoryAreThoseOfAReplayOfAllOfIt) {
  TestPipeline live(SmallWindows());
  TestPipeline fresh(SmallWindows());
  std::uint64_t twice = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(300, 20'000); ++seed) {
    RunHistory(seed, true, live, fresh, twice);
    if (HasFailure()) return;
  }
  EXPECT_GE(twice, 10u);
}

TEST(MovingNames, OfAnyHistoryWithoutALogAreThoseOfTheLastImages) {
  TestPipeline live(SmallWindows());
  TestPipeline fresh(SmallWindows());
  std::uint64_t twice = 0;
  for (std::uint64_t seed = 1; seed <= Seeds(300, 20'000); ++seed) {
    RunHistory(seed, false, live, fresh, twice);
    if (HasFailure()) return;
  }
  EXPECT_GE(twice, 10u);
}

// A repair says which records are lost, and images are of moments among these.
TEST(MovingNames, OfSubscriptionsWhoseRecordsAreLostAreThoseOfTheLaterImage) {
  testing::FakeDisk disk;
  {
    LoggedPipeline live(disk);
    StreamRegistry& streams = live.pipeline().streams();
    for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(streams.Create(name, {}).ok());
    Subscribe(streams, "S", "a");
    SnapshotInSteps snapshot(disk, kLogFolder, live.pipeline(), &live.log(), 1);
    for (int step = 0; step < 4; ++step) ASSERT_FALSE(snapshot.Step());
    Unsubscribe(streams, "S");
    Subscribe(streams, "S", "b");
    snapshot.StepToTheEnd();
    ASSERT_EQ(snapshot.holders().at("S"), "b");
    ASSERT_TRUE(live.log().Stop().ok());
    live.pipeline().UseLog(nullptr);
  }
  // Both records behind the position are in the last bytes of the only segment.
  const std::string segment = "/log/log-00000000000000000001";
  const std::uint64_t log_id = store::DecodeSegmentHeader(disk.bytes(segment))->log_id;
  std::size_t at = store::kFileHeaderBytes;
  for (;;) {
    const auto header =
        store::DecodeRecordHeader(std::string_view(disk.bytes(segment)).substr(at), log_id);
    ASSERT_TRUE(header.has_value());
    if (header->kind == store::RecordKind::kUnsubscribed) break;
    at += store::RecordBytes(header->body_bytes);
  }
  disk.bytes(segment)[at + 3] ^= 4;
  TestPipeline none(SmallWindows());
  const auto damaged = LoadSnapshot(disk, kLogFolder, none.pipeline).value();
  EXPECT_TRUE(absl::IsDataLoss(ReplayLog(disk, kLogFolder, none.pipeline, damaged).status()));
  const auto repaired = store::RepairStore(disk, kLogFolder);
  ASSERT_TRUE(repaired.ok()) << repaired.status();

  std::string before;
  {
    LoggedPipeline live(disk);
    StreamRegistry& streams = live.pipeline().streams();
    EXPECT_EQ(streams.FindSubscription("S").value().stream, "b");
    EXPECT_TRUE(streams.Find("a").value()->subscriptions().empty());
    Unsubscribe(streams, "S");
    Subscribe(streams, "T", "a");
    before = Kept(live.pipeline());
    ASSERT_TRUE(live.log().Stop().ok());
    live.pipeline().UseLog(nullptr);
  }
  for (int start = 0; start < 2; ++start) {
    LoggedPipeline again(disk);
    EXPECT_EQ(Kept(again.pipeline()), before);
  }
}

}  // namespace
}  // namespace tidemark::server
