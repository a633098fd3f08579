// Subscriptions that come and go with their streams, in the log and in snapshots: a start has
// exactly those that were there.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/durability/definition.h"
#include "server/durability/replay.h"
#include "server/durability/snapshots.h"
#include "server/window/concat.h"
#include "server/window/stream_image.h"
#include "tests/server/durability/kept.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/replayed_entries.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"
#include "tests/support/fix_checksum.h"

namespace tidemark::server {
namespace {

void RunCase(std::uint64_t seed, bool snapshots_too) {
  SCOPED_TRACE(Concat("seed ", seed));
  Random random(seed);
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  StreamRegistry& streams = live.pipeline().streams();
  Snapshots snapshots(disk, kLogFolder, live.pipeline(), &live.log(), std::nullopt, 0);
  int kept = 0;
  for (int step = 0; step < 500; ++step) {
    const std::string stream = Concat("s", random() % 4);
    const std::string name = Concat("q", random() % 8);
    const std::uint64_t before = live.log().last_sequence();
    switch (random() % 12) {
      case 0:
        streams.Delete(stream).IgnoreError();
        break;
      case 1:
      case 2:
      case 3: {
        const bool there = streams.FindSubscription(name).ok();
        const auto sequence = streams.Unsubscribe(name);
        EXPECT_EQ(sequence.ok(), there) << sequence.status();
        EXPECT_EQ(live.log().last_sequence() - before, there ? 1u : 0u);
        break;
      }
      case 4:
        if (snapshots_too) {
          ASSERT_TRUE(snapshots.Take().ok());
        }
        break;
      case 5: {
        const StreamHandle to = live.pipeline().Open(stream, ValueType::kFloat64).value();
        SomeBatch(random, live.pipeline(), to, step);
        break;
      }
      default: {
        const Subscription asked{name, stream, Concat("request ", random() % 2)};
        const auto old = streams.FindSubscription(name);
        const auto sequence = streams.Subscribe(asked);
        if (old.ok()) {
          const bool same = old->stream == asked.stream && old->request == asked.request;
          EXPECT_EQ(sequence.status().code(),
                    same ? absl::StatusCode::kOk : absl::StatusCode::kAlreadyExists);
          EXPECT_EQ(live.log().last_sequence(), before);
        } else {
          const bool there = streams.Find(stream).ok();
          EXPECT_EQ(sequence.status().code(),
                    there ? absl::StatusCode::kOk : absl::StatusCode::kNotFound);
          EXPECT_EQ(sequence.value_or(0), there ? before + 1 : 0);
          kept += there ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(kept, 0);
  const std::string before = Kept(live.pipeline());
  ASSERT_TRUE(live.log().Stop().ok());
  PipelineOptions tighter = SmallWindows();
  tighter.registry_limits = {.streams_max = 1, .name_bytes_max = 1, .subscriptions_max = 0};
  LoggedPipeline again(disk, tighter);
  EXPECT_EQ(Kept(again.pipeline()), before);
}

TEST(KeptSubscriptions, AreThereAfterAReplay) {
  for (std::uint64_t seed = 1; seed <= Seeds(4, 1'000); ++seed) {
    RunCase(seed, false);
    if (HasFailure()) return;
  }
}

TEST(KeptSubscriptions, AreThereAfterSnapshotsAndTheLogBehindThem) {
  for (std::uint64_t seed = 1; seed <= Seeds(4, 1'000); ++seed) {
    RunCase(seed, true);
    if (HasFailure()) return;
  }
}

TEST(KeptSubscriptions, AreInSnapshotsWithoutALog) {
  testing::FakeDisk disk;
  TestPipeline first(SmallWindows());
  for (const char* stream : {"a", "b"}) {
    ASSERT_TRUE(first.pipeline.streams().Create(stream, {}).ok());
  }
  for (const auto& [name, stream] : {std::pair("one", "a"), {"two", "b"}, {"three", "a"}}) {
    EXPECT_EQ(first.pipeline.streams().Subscribe({name, stream, "asked"}).value(), 0u);
  }
  Snapshots snapshots(disk, kLogFolder, first.pipeline, nullptr, std::nullopt, 0);
  ASSERT_TRUE(snapshots.Take().ok());
  TestPipeline second(SmallWindows());
  ASSERT_TRUE(LoadSnapshotAlone(disk, kLogFolder, second.pipeline).ok());
  EXPECT_EQ(Kept(second.pipeline), Kept(first.pipeline));
  ASSERT_TRUE(second.pipeline.streams().Delete("a").ok());
  EXPECT_EQ(second.pipeline.streams().subscriptions(), 1u);
}

TEST(KeptSubscriptions, OfALogThatContradictsItselfAreNamed) {
  const std::string a = EncodeDefinition("a", {});
  const std::string b = EncodeDefinition("b", {});
  const auto replay_of = [&](std::vector<store::LogEntry> entries) {
    entries.insert(entries.begin(), {store::StreamCreated{1, a}, store::StreamCreated{2, b},
                                     store::Subscribed{1, "q", "asked"}});
    const absl::Status status = ReplayEntries(entries).status;
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    const std::string text(status.message());
    const std::size_t at = text.find("record ");
    EXPECT_TRUE(at == std::string::npos || text.starts_with("/log")) << text;
    return text.substr(std::min(text.size(), at));
  };
  EXPECT_EQ(replay_of({}), "");
  EXPECT_EQ(replay_of({store::Unsubscribed{1, "q"}, store::Subscribed{2, "q", "asked"}}), "");
  EXPECT_EQ(replay_of({store::StreamDeleted{1}, store::Subscribed{2, "q", "asked"}}), "");
  EXPECT_EQ(replay_of({store::Subscribed{1, "q", "asked"}}),
            "record 4 of the log cannot be replayed: subscription \"q\" is created a second time");
  // Of two streams: seen at the end alone, since images may be of later moments than records; what
  // is named is the last record that says so.
  EXPECT_EQ(replay_of({store::Subscribed{2, "q", "asked"}, store::Subscribed{2, "r", "asked"}}),
            "record 4 of the log cannot be replayed: subscription \"q\" is that of two streams, "
            "\"a\" and \"b\"");
  EXPECT_EQ(replay_of({store::Unsubscribed{2, "q"}}),
            "record 4 of the log cannot be replayed: stream \"b\" has no subscription \"q\"");
  EXPECT_EQ(replay_of({store::Unsubscribed{1, "r"}}),
            "record 4 of the log cannot be replayed: stream \"a\" has no subscription \"r\"");
  EXPECT_EQ(replay_of({store::Subscribed{3, "r", "asked"}}),
            "record 4 of the log cannot be replayed: there is no stream of id 3");
}

// Those of version 1 have none.
TEST(KeptSubscriptions, ImagesOfBeforeThemAreRead) {
  TestPipeline held(SmallWindows());
  Random random(1);
  const StreamHandle stream = held.pipeline.streams().Create("s", {}).value();
  for (int i = 0; i < 5; ++i) SomeBatch(random, held.pipeline, stream, i);
  const std::string image = stream->Image().value();
  std::string old = image;
  old.erase(old.size() - 12, 8);  // how many there are, before the checksum
  old[4] = 1;
  testing::FixChecksum(old);
  TestPipeline fresh(SmallWindows());
  const auto restored = fresh.pipeline.streams().RestoreImage("s", {}, 1, old);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ((*restored)->Image().value(), image);
}

}  // namespace
}  // namespace tidemark::server
