// Snapshots of pipelines that go on meanwhile, and what a start makes of them and of the log behind
// them: the same streams to the byte, and the same again after more batches.
#include "server/durability/snapshots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/window/concat.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/meanwhile_disk.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

// Streams of every kind come and go; snapshots are taken in the midst of it.
void RunCase(std::uint64_t seed, std::size_t kinds_used) {
  SCOPED_TRACE(Concat("seed ", seed));
  Random random(seed);
  testing::FakeDisk disk;
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  RecordedTime time = 1'000'000;
  LoggedPipeline live(disk);
  Pipeline& pipeline = live.pipeline();
  Snapshots snapshots(disk, kLogFolder, pipeline, &live.log(), std::nullopt, 0);
  std::uint64_t numbers = 0;
  const auto step = [&] {
    const std::string name = Concat("s", random() % 6);
    const absl::StatusOr<StreamHandle> stream = pipeline.streams().Find(name);
    if (!stream.ok()) {
      ASSERT_TRUE(pipeline.streams().Create(name, kinds[random() % kinds_used]).ok());
      return;
    }
    if (random() % 60 == 0) {
      ASSERT_TRUE(pipeline.streams().Delete(name).ok());
      return;
    }
    time += static_cast<RecordedTime>(random() % 120'000) - 10'000;
    if (random() % 8 == 0 && (*stream)->type() == ValueType::kFloat64 &&
        (*stream)->settings().payload == PayloadType::kNone) {
      const std::vector<double> values(random() % 20, 3.5);
      pipeline.AppendPacked(*stream, std::as_bytes(std::span(values)), {time, {{1, 2}, ++numbers}});
      return;
    }
    SomeBatch(random, pipeline, *stream, time);
  };
  for (int i = 0; i < 1000; ++i) {
    step();
    if (random() % 150 == 0) {
      const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
      ASSERT_TRUE(taken.ok()) << taken.status();
    }
  }
  ASSERT_TRUE(snapshots.Take().ok());
  for (int i = 0; i < 40; ++i) step();
  const std::string before = Seen(pipeline);
  ASSERT_TRUE(live.log().Stop().ok());
  pipeline.UseLog(nullptr);
  LoggedPipeline again(disk);
  ASSERT_EQ(Seen(again.pipeline()), before);
  EXPECT_LE(again.replayed_batches(), 40u) << "the snapshot has the others";
  ExpectTheyGoOnAlike(random, pipeline, again.pipeline(), time, 20);
}

TEST(Snapshots, WithTheLogBehindThemGiveTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= Seeds(3, 1'000); ++seed) {
    RunCase(seed, KindsOfStreams().size());
    if (HasFailure()) return;
  }
}

TEST(Snapshots, OfEveryKindOfStream) {
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  TestPipeline first(SmallWindows());
  TestPipeline second(SmallWindows());
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    SCOPED_TRACE(Describe(kinds[kind]));
    Random random(kind + 1);
    const StreamHandle stream = first.pipeline.streams().Create("s", kinds[kind]).value();
    for (const int batches : {0, 1, 40}) {
      for (int i = 0; i < batches; ++i) {
        SomeBatch(random, first.pipeline, stream, i * 40'000);
      }
      const std::string image = stream->Image().value();
      const absl::StatusOr<StreamHandle> other =
          second.pipeline.streams().RestoreImage("s", kinds[kind], 7, image);
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_EQ((*other)->Image().value(), image);
      EXPECT_EQ(Seen(first.pipeline), Seen(second.pipeline));
      ASSERT_TRUE(second.pipeline.streams().Delete("s").ok());
    }
    ASSERT_TRUE(first.pipeline.streams().Delete("s").ok());
  }
}

// No bytes but those of an image make a stream; and none make the program fail.
TEST(Snapshots, DamagedImagesAreRefused) {
  TestPipeline held(SmallWindows());
  Random random(3);
  const StreamSettings settings{.type = ValueType::kString,
                                .frequency_epsilon = 0.02,
                                .sliding = {.values_max = 2'000, .epsilon = 0.2},
                                .hierarchy = {.depth = 3}};
  const StreamHandle stream = held.pipeline.streams().Create("s", settings).value();
  for (int i = 0; i < 40; ++i) SomeBatch(random, held.pipeline, stream, i);
  const std::string image = stream->Image().value();
  TestPipeline fresh(SmallWindows());
  const auto restored = [&](const std::string& bytes) {
    fresh.pipeline.streams().Delete("s").IgnoreError();
    return fresh.pipeline.streams().RestoreImage("s", settings, 1, bytes).status();
  };
  EXPECT_TRUE(restored(image).ok());
  EXPECT_TRUE(absl::IsDataLoss(restored("")));
  EXPECT_TRUE(absl::IsDataLoss(restored(image + "x")));
  for (int i = 0; i < 300; ++i) {
    std::string bad = image.substr(0, random() % image.size());
    EXPECT_TRUE(absl::IsDataLoss(restored(bad)));
    bad = image;
    bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    EXPECT_TRUE(absl::IsDataLoss(restored(bad)));
  }
  StreamSettings other = settings;
  other.hierarchy.depth = 2;
  EXPECT_TRUE(
      absl::IsDataLoss(fresh.pipeline.streams().RestoreImage("s", other, 1, image).status()));
  EXPECT_EQ(fresh.pipeline.streams().size(), 0u);
}

// Without a log: the streams as they were.
TEST(Snapshots, WithoutALogHoldTheMomentOfTheirImages) {
  testing::FakeDisk disk;
  TestPipeline first(SmallWindows());
  Random random(5);
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const StreamHandle stream =
        first.pipeline.streams().Create(Concat("kind ", i), kinds[i]).value();
    for (int batch = 0; batch < 10; ++batch) {
      SomeBatch(random, first.pipeline, stream, batch * 40'000);
    }
  }
  Snapshots snapshots(disk, kLogFolder, first.pipeline, nullptr, std::nullopt, 0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(snapshots.Take().ok());
  TestPipeline second(SmallWindows());
  const absl::StatusOr<LoadedSnapshot> loaded =
      LoadSnapshotAlone(disk, kLogFolder, second.pipeline);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->header->number, 4u);
  EXPECT_EQ(loaded->next_stream_id, kinds.size() + 1);
  EXPECT_EQ(Seen(first.pipeline), Seen(second.pipeline));
  EXPECT_EQ(store::CheckSnapshots(disk, kLogFolder).value().size(), 2u) << "two stay";
  // The one before the newest is for a log to go on from.
  disk.bytes(kLogFolder + ("/" + store::SnapshotName(4)))[200] ^= 1;
  TestPipeline third(SmallWindows());
  EXPECT_TRUE(absl::IsDataLoss(LoadSnapshotAlone(disk, kLogFolder, third.pipeline).status()));
  EXPECT_EQ(third.pipeline.streams().size(), 0u);
  EXPECT_EQ(LoadSnapshot(disk, kLogFolder, third.pipeline).value().header->number, 3u);
}

// What comes between a snapshot's position and its images is in both, and counted once.
TEST(Snapshots, KnowWhatCameWhileTheyWereTaken) {
  testing::FakeDisk under;
  MeanwhileDisk disk(under);
  LoggedPipeline live(disk);
  Pipeline& pipeline = live.pipeline();
  Random random(9);
  const auto some = [&](const std::string& name, int batches) {
    const StreamHandle stream = pipeline.Open(name, ValueType::kFloat64).value();
    for (int i = 0; i < batches; ++i) SomeBatch(random, pipeline, stream, i * 1000);
  };
  for (const char* name : {"goes on", "is deleted", "is created anew"}) some(name, 10);
  disk.meanwhile = [&] {
    some("goes on", 7);
    ASSERT_TRUE(pipeline.streams().Delete("is deleted").ok());
    ASSERT_TRUE(pipeline.streams().Delete("is created anew").ok());
    some("is created anew", 3);
    some("is created", 5);
    ASSERT_TRUE(pipeline.streams().Delete("is created").ok());
    some("is created", 4);
  };
  Snapshots snapshots(disk, kLogFolder, pipeline, &live.log(), std::nullopt, 0);
  const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->streams, 1u) << "the others were deleted before their turn";
  some("goes on", 2);
  const std::string before = Seen(pipeline);
  ASSERT_TRUE(live.log().Stop().ok());
  LoggedPipeline again(under);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

// An end does not wait for what the log has anyway.
TEST(Snapshots, AreGivenUpAndTheNextIsWhole) {
  testing::FakeDisk under;
  MeanwhileDisk disk(under);
  LoggedPipeline live(disk);
  Pipeline& pipeline = live.pipeline();
  Random random(11);
  for (const char* name : {"a", "b"}) {
    SomeBatch(random, pipeline, pipeline.Open(name, ValueType::kFloat64).value(), 1000);
  }
  Snapshots snapshots(disk, kLogFolder, pipeline, &live.log(), std::nullopt, 0);
  std::stop_source stop;
  disk.meanwhile = [&] { stop.request_stop(); };
  EXPECT_TRUE(absl::IsCancelled(snapshots.Take(stop.get_token()).status()));
  EXPECT_FALSE(store::NewestSnapshot(under, kLogFolder).value().header);
  // The thread of its own ends at once, too.
  int told = 0;
  snapshots.Run(std::chrono::hours(1), [&](const auto&) { ++told; });
  snapshots.Stop();
  EXPECT_EQ(told, 0);
  const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->streams, 2u);
  const std::string before = Seen(pipeline);
  ASSERT_TRUE(live.log().Stop().ok());
  LoggedPipeline again(under);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

// Busy producers meanwhile: what is acknowledged is there, whenever the snapshots were taken.
TEST(Snapshots, DoNotStopThoseWhoSend) {
  testing::FakeDisk disk;
  std::string before;
  {
    LoggedPipeline live(disk);
    Snapshots snapshots(disk, kLogFolder, live.pipeline(), &live.log(), std::nullopt, 0);
    std::atomic<bool> ends{false};
    std::vector<std::thread> senders;
    for (int sender = 0; sender < 3; ++sender) {
      senders.emplace_back([&, sender] {
        const StreamHandle stream =
            live.pipeline().Open(Concat("s", sender % 2), ValueType::kUint64).value();
        std::vector<std::uint64_t> values(100);
        std::uint64_t next = 0;
        while (!ends) {
          // As sources do; or the windows under way, which a snapshot waits for, would only grow.
          const auto room = std::make_shared<std::promise<void>>();
          live.pipeline().WhenReady([room] { room->set_value(); });
          room->get_future().wait();
          for (std::uint64_t& value : values) value = next++ % 1000;
          live.pipeline().AppendPacked(stream, std::as_bytes(std::span(values)),
                                       {static_cast<RecordedTime>(next),
                                        {{1, static_cast<std::uint64_t>(sender)}, next / 100}});
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      const absl::StatusOr<SnapshotReport> taken = snapshots.Take();
      EXPECT_TRUE(taken.ok()) << taken.status();
    }
    ends = true;
    for (std::thread& sender : senders) sender.join();
    before = Seen(live.pipeline());
    ASSERT_TRUE(live.log().Stop().ok());
  }
  LoggedPipeline again(disk);
  EXPECT_EQ(Seen(again.pipeline()), before);
}

}  // namespace
}  // namespace tidemark::server
