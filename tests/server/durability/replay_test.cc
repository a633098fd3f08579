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
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

using Random = std::mt19937_64;

// Every value type, payload and form of summary at least once.
std::vector<StreamSettings> KindsOfStreams() {
  std::vector<StreamSettings> kinds;
  for (int number = 1; ValueTypeFromNumber(static_cast<std::uint32_t>(number)); ++number) {
    const ValueType type = *ValueTypeFromNumber(static_cast<std::uint32_t>(number));
    kinds.push_back({.type = type, .quantile_epsilon = 0.02, .frequency_epsilon = 0.02});
    kinds.push_back(kinds.back());
    kinds.back().payload = PayloadType::kWeight;
    if (HasRanks(type)) {
      kinds.push_back(kinds.front());
      kinds.back().type = type;
      kinds.back().payload = PayloadType::kY;
    }
    kinds.push_back({.type = type, .sliding = {.values_max = 2'000, .epsilon = 0.2}});
    if (CanSumValues(type)) {
      kinds.push_back({.type = type, .quantile_form = QuantileKind::kCompact, .sums = true});
    }
  }
  kinds.push_back({.quantile_form = QuantileKind::kCompact, .frequencies = false});
  kinds.push_back({.quantile_form = QuantileKind::kTail, .sliding = {.time_max_us = 5'000'000}});
  kinds.push_back({.type = ValueType::kIpv4, .hierarchy = {.prefix_lengths = {8, 16, 32}}});
  kinds.push_back({.type = ValueType::kIpv6, .hierarchy = {.prefix_lengths = {48, 64}}});
  kinds.push_back({.type = ValueType::kString, .hierarchy = {.depth = 3}});
  kinds.push_back({.type = ValueType::kString,
                   .payload = PayloadType::kWeight,
                   .hierarchy = {.depth = 2, .separator = '/', .root_last = true}});
  for (const StreamSettings& settings : kinds) {
    EXPECT_TRUE(CheckSettings(settings).ok()) << Describe(settings);
  }
  return kinds;
}

double SomeNumber(Random& random) {
  switch (random() % 16) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return -0.0;
    default:
      return static_cast<double>(random() % 2000);
  }
}

std::string SomePacked(Random& random, ValueType type, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double number = SomeNumber(random);
    const auto narrow = static_cast<float>(number);
    const std::uint64_t wide[2] = {random() % 4, random() % 50};
    const std::size_t size = PackedBytes(type);
    if (type == ValueType::kFloat64) {
      bytes.append(reinterpret_cast<const char*>(&number), size);
    } else if (type == ValueType::kFloat32) {
      bytes.append(reinterpret_cast<const char*>(&narrow), size);
    } else if (size == 16) {
      bytes.append(reinterpret_cast<const char*>(wide), size);
    } else {
      bytes.append(reinterpret_cast<const char*>(&wide[1]), size);
    }
  }
  return bytes;
}

std::string SomePayloads(Random& random, PayloadType type, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count && type != PayloadType::kNone; ++i) {
    const std::uint64_t bits = type == PayloadType::kWeight
                                   ? random() % 1000
                                   : std::bit_cast<std::uint64_t>(SomeNumber(random));
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// One batch, good or bad, the same for the same state of `random`.
AppendResult SomeBatch(Random& random, Pipeline& pipeline, const StreamHandle& stream,
                       RecordedTime time) {
  const ElementType type = stream->settings().element();
  const std::size_t count = random() % 8 == 0 ? 0 : random() % 300;
  const std::uint64_t how = random() % 12;
  if (how == 0) {  // half a value, a string for numbers, or numbers for strings
    return pipeline.AppendPacked(stream, Bytes(std::string(3, 'x')), time);
  }
  const std::string payloads = SomePayloads(random, type.payload, how == 1 ? count + 1 : count);
  if (type.value == ValueType::kString) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
      texts.push_back(Concat(random() % 3, ".", random() % 5, "/", random() % 40));
    }
    if (how == 2 && count > 0) texts.back() = "\xff";
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    return type.payload == PayloadType::kNone
               ? pipeline.AppendStrings(stream, views, time)
               : pipeline.AppendStringPairs(stream, views, Bytes(payloads), time);
  }
  if (how < 5) {
    std::vector<double> numbers(count);
    for (double& number : numbers)
      number = how == 2 ? SomeNumber(random) : static_cast<double>(random() % 99);
    return pipeline.AppendNumbers(stream, numbers, time);
  }
  const std::string values = SomePacked(random, type.value, count);
  return type.payload == PayloadType::kNone
             ? pipeline.AppendPacked(stream, Bytes(values), time)
             : pipeline.AppendPairs(stream, Bytes(values), Bytes(payloads), time);
}

// Everything that can be seen of the streams.
std::string Seen(Pipeline& pipeline) {
  std::string seen;
  for (const StreamHandle& stream : pipeline.streams().All()) {
    const std::string bytes = stream->SerializeSummaries();  // waits for windows under way
    const StreamStats stats = stream->Stats();
    seen += Concat(stream->name(), ": ", Describe(stream->settings()), "; n ", stats.count,
                   ", refused ", stats.refused, ", open ", stats.window_fill, " of ",
                   stats.window_capacity, ", windows ", stats.windows_summarized, ", bytes ",
                   bytes.size(), ", hash ", std::hash<std::string>()(bytes), "\n");
  }
  return seen;
}

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
    const std::vector<StreamHandle> all = pipeline.streams().All();
    for (const StreamHandle& stream : all) {
      const StreamHandle other = usual.pipeline().streams().Find(stream->name()).value();
      for (int i = 0; i < 5; ++i) {
        const std::uint64_t both = random();
        Random a(both);
        Random b(both);
        const AppendResult first = SomeBatch(a, pipeline, stream, time + i * 1000);
        const AppendResult second = SomeBatch(b, usual.pipeline(), other, time + i * 1000);
        EXPECT_EQ(first.status.code(), second.status.code());
        EXPECT_EQ(first.accepted, second.accepted);
      }
    }
    EXPECT_EQ(Seen(pipeline), Seen(usual.pipeline()));
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
    testing::FakeDisk disk;
    store::LogOptions options;
    options.folder = kLogFolder;
    store::LogWriter writer(disk, options, {}, 5, {});
    for (const store::LogEntry& entry : entries) EXPECT_TRUE(writer.Append(entry, {}).ok());
    EXPECT_TRUE(writer.Close().ok());
    TestPipeline fresh;
    const absl::Status status = ReplayLog(disk, kLogFolder, fresh.pipeline).status();
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
