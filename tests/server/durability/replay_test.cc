// A log of random batches to streams of every kind, replayed into a fresh pipeline: the same
// streams, the same summaries to the byte, and the same open windows, shown by going on with both.
#include "server/durability/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "server/durability/definition.h"
#include "server/window/concat.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/replayed_entries.h"
#include "tests/server/durability/some_batches.h"
#include "tests/summaries/cases.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

// Most of a case's third of a second goes into three pipelines with their sorters, so that it has
// many steps.
void RunCase(std::uint64_t seed) {
  SCOPED_TRACE(Concat("seed ", seed));
  Random random(seed);
  testing::FakeDisk disk;
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  std::string before;
  RecordedTime time = 1'000'000;
  std::uint64_t taken = 0;
  std::uint64_t refused = 0;
  {
    LoggedPipeline live(disk);
    Pipeline& pipeline = live.pipeline();
    for (int step = 0; step < 1000; ++step) {
      const std::string name = Concat("s", random() % 6);
      const absl::StatusOr<StreamHandle> stream = pipeline.streams().Find(name);
      if (!stream.ok()) {
        ASSERT_TRUE(pipeline.streams().Create(name, kinds[random() % kinds.size()]).ok());
        continue;
      }
      if (random() % 40 == 0) {
        ASSERT_TRUE(pipeline.streams().Delete(name).ok());
        EXPECT_FALSE(SomeBatch(random, pipeline, *stream, time).status.ok());
        continue;
      }
      time += static_cast<RecordedTime>(random() % 120'000) - 10'000;
      const std::uint64_t records = live.log().last_sequence();
      const AppendResult result = SomeBatch(random, pipeline, *stream, time);
      EXPECT_EQ(live.log().last_sequence() - records, result.status.ok() ? 1u : 0u)
          << result.status;
      EXPECT_EQ(result.log_sequence, result.status.ok() ? records + 1 : 0);
      ++(result.status.ok() ? taken : refused);
    }
    before = Seen(pipeline);
    ASSERT_TRUE(live.log().Stop().ok());
    // Both go on, the first without its log.
    pipeline.UseLog(nullptr);
    PipelineOptions tighter = SmallWindows();
    tighter.registry_limits = {.streams_max = 1, .name_bytes_max = 1};
    tighter.item_bytes_max = 1;
    tighter.text_bytes_max = 4096;
    LoggedPipeline again(disk, tighter);
    EXPECT_EQ(again.replayed_batches(), taken);
    EXPECT_GT(refused, 0u);
    ASSERT_EQ(Seen(again.pipeline()), before);
    LoggedPipeline usual(disk);
    ExpectTheyGoOnAlike(random, pipeline, usual.pipeline(), time, 5);
  }
}

TEST(Replay, GivesTheSameBytes) {
  for (std::uint64_t seed = 1; seed <= Seeds(8, 1'000); ++seed) {
    RunCase(seed);
    if (HasFailure()) return;
  }
}

TEST(Replay, OfEveryKindOfStream) {
  testing::FakeDisk disk;
  const std::vector<StreamSettings> kinds = KindsOfStreams();
  LoggedPipeline live(disk);
  Random random(7);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    ASSERT_TRUE(test::WaitUntil([&] {  // else it may refuse the stream
      const store::LogStats log = live.log().Stats();
      return log.durable_sequence == log.last_sequence;
    }));
    const StreamHandle stream =
        live.pipeline().streams().Create(Concat("kind ", i), kinds[i]).value();
    for (int batch = 0; batch < 30; ++batch) {
      SomeBatch(random, live.pipeline(), stream, batch * 40'000);
    }
    EXPECT_GT(stream->Stats().windows_summarized + stream->Stats().pending, 0u);
  }
  ASSERT_TRUE(live.log().Stop().ok());
  TestPipeline fresh(SmallWindows());
  ASSERT_TRUE(ReplayLog(disk, kLogFolder, fresh.pipeline).ok());
  EXPECT_EQ(Seen(live.pipeline()), Seen(fresh.pipeline));
}

// What was numbered is known after a replay: it is answered as before and not logged again, and
// what was not taken is.
TEST(Replay, NumberedBatchesAreCountedOnce) {
  for (std::uint64_t seed = 1; seed <= Seeds(3, 1'000); ++seed) {
    SCOPED_TRACE(Concat("seed ", seed));
    Random random(seed);
    testing::FakeDisk disk;
    struct Sent {
      std::string stream;
      ProducerBatch from;
      std::vector<double> values;
    };
    std::vector<Sent> sent;
    std::vector<AppendResult> answers;
    const auto send = [](Pipeline& pipeline, const Sent& batch) {
      const StreamHandle stream = pipeline.Open(batch.stream, ValueType::kFloat64).value();
      return pipeline.AppendPacked(stream, std::as_bytes(std::span(batch.values)), {5, batch.from});
    };
    {
      LoggedPipeline live(disk);
      std::uint64_t numbers[2][2] = {};
      for (int step = 0; step < 100; ++step) {
        const std::uint64_t stream = random() % 2;
        const std::uint64_t producer = random() % 2;
        std::vector<double> values(random() % 40, 1.5);
        if (random() % 4 == 0) values.push_back(std::numeric_limits<double>::quiet_NaN());
        sent.push_back(
            {Concat("s", stream), {{producer, 7}, ++numbers[stream][producer]}, std::move(values)});
        answers.push_back(send(live.pipeline(), sent.back()));
        EXPECT_TRUE(answers.back().status.ok()) << answers.back().status;
        EXPECT_FALSE(answers.back().duplicate);
      }
      ASSERT_TRUE(live.log().Stop().ok());
    }
    LoggedPipeline again(disk);
    const std::string before = Seen(again.pipeline());
    const std::uint64_t records = again.log().last_sequence();
    for (std::size_t i = sent.size(); i-- > 0;) {
      const AppendResult answer = send(again.pipeline(), sent[i]);
      EXPECT_TRUE(answer.duplicate) << answer.status;
      EXPECT_EQ(answer.accepted, answers[i].accepted);
      EXPECT_EQ(answer.refused, answers[i].refused);
      EXPECT_EQ(answer.log_sequence, records);
    }
    EXPECT_EQ(again.log().last_sequence(), records);
    EXPECT_EQ(Seen(again.pipeline()), before);
    Sent next = sent.back();
    next.from.number += 1;
    EXPECT_FALSE(send(again.pipeline(), next).duplicate);
    // A replay that may remember nobody takes all that is in the log, all the same.
    ASSERT_TRUE(again.log().Stop().ok());
    PipelineOptions forgetful = SmallWindows();
    forgetful.producers_max = 1;
    LoggedPipeline third(disk, forgetful);
    EXPECT_EQ(Seen(third.pipeline()), Seen(again.pipeline()));
    const auto forgotten = std::find_if(sent.rbegin(), sent.rend(), [&](const Sent& batch) {
      return batch.from.number > 1 && batch.from.producer != next.from.producer;
    });
    ASSERT_NE(forgotten, sent.rend());
    EXPECT_EQ(send(third.pipeline(), *forgotten).status.code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST(Replay, ContradictionsAreNamed) {
  const auto replay_of = [](const std::vector<store::LogEntry>& entries) {
    const absl::Status status = ReplayEntries(entries).status;
    if (status.ok()) return std::string();
    const std::string file = "/log/log-00000000000000000001: ";
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(status.message().substr(0, file.size()), file);
    return std::string(status.message().substr(file.size()));
  };
  const std::string definition = EncodeDefinition("a", {});
  const std::string other = EncodeDefinition("b", {});
  const store::StreamCreated created{1, definition};
  EXPECT_EQ(replay_of({created}), "");
  EXPECT_EQ(replay_of({store::StreamDeleted{1}}),
            "record 1 of the log cannot be replayed: there is no stream of id 1");
  EXPECT_EQ(replay_of({created, store::StreamCreated{1, other}}),
            "record 2 of the log cannot be replayed: the stream's id 1 is not above those before; "
            "expected at least 2");
  EXPECT_EQ(replay_of({created, store::StreamCreated{2, definition}}),
            "record 2 of the log cannot be replayed: stream \"a\" is created a second time");
  EXPECT_EQ(replay_of({created, store::StreamDeleted{1}, store::StreamCreated{2, definition}}), "");
  store::Batch batch{.stream_id = 1, .value_type = 2, .form = 1, .value_bytes = 4};
  EXPECT_EQ(replay_of({created, batch}),
            "record 2 of the log cannot be replayed: a batch of types 2 and 0; stream \"a\" holds "
            "float64");
  batch = {.stream_id = 1, .value_type = 1, .form = 9, .value_bytes = 8};
  EXPECT_EQ(replay_of({created, batch}),
            "record 2 of the log cannot be replayed: a batch of form 9 with values of 8 bytes");
}

}  // namespace
}  // namespace tidemark::server
