#include "tests/fault/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "server/durability/replay.h"
#include "server/durability/snapshots.h"
#include "server/store/log_reader.h"
#include "server/window/stream_image.h"
#include "tests/e2e/oracle.h"
#include "tests/fault/fault_daemon.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::fault {
namespace {

constexpr std::array<double, 7> kPhis{0, 0.01, 0.25, 0.5, 0.9, 0.99, 1};

// Every value that was sent to one stream, as the type of the client's answers.
template <class Wire, class Value = Wire>
std::vector<Value> ValuesOf(std::uint64_t seed, Kind kind, const SentOfAll& sent) {
  std::vector<Value> values;
  for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
    if (kStreams[kFeeds[feed].stream].kind != kind) continue;
    for (std::uint64_t number = 2; number <= sent[feed].last_number; ++number) {
      const FaultBatch batch = BatchOf(seed, kFeeds[feed], number);
      for (std::size_t at = 0; at < batch.values.size(); at += sizeof(Wire)) {
        Wire value;
        std::memcpy(&value, batch.values.data() + at, sizeof value);
        values.push_back(Value{value});
      }
    }
  }
  return values;
}

template <class T>
void ExpectRanks(client::Client& client, const FaultStream& stream, std::vector<T> values) {
  const test::Oracle<T> truth(std::move(values));
  if (truth.n() == 0) return;
  const std::string name(stream.name);
  const client::StreamConfig config = client.DescribeStream(name).config;
  const std::vector<double> phis(kPhis.begin(), kPhis.end());
  truth.Check(client.Quantiles(name, phis), phis, config.quantile_epsilon);
  std::vector<client::Value> asked;
  for (const double phi : kPhis) {
    const auto at = static_cast<std::size_t>(phi * static_cast<double>(truth.n() - 1));
    asked.push_back(client::Value{truth.sorted()[at]});
  }
  truth.Check(client.Ranks(name, asked), asked, config.quantile_epsilon);
  // Those with weights count for them.
  if (stream.kind != Kind::kWeighted) {
    truth.Check(client.Counts(name, asked), asked, config.frequency_epsilon);
  }
}

void ExpectSums(client::Client& client, const FaultStream& stream,
                const std::vector<float>& values) {
  if (values.empty()) return;
  double sum = 0;  // exact: whole eighths
  for (const float value : values) sum += static_cast<double>(value);
  const client::SumsAnswer answer = client.Sums(std::string(stream.name), {client::AtMostShare{1}});
  ASSERT_EQ(answer.answers.size(), 1u);
  EXPECT_EQ(answer.n, values.size());
  EXPECT_LE(answer.answers[0].sum_low, sum);
  EXPECT_GE(answer.answers[0].sum_high, sum);
}

void ExpectTexts(client::Client& client, const FaultStream& stream, std::uint64_t seed,
                 const SentOfAll& sent) {
  std::vector<std::string> values;
  for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
    if (kStreams[kFeeds[feed].stream].kind != stream.kind) continue;
    for (std::uint64_t number = 2; number <= sent[feed].last_number; ++number) {
      const FaultBatch batch = BatchOf(seed, kFeeds[feed], number);
      for (const std::string_view text : TextsOf(batch.values)) values.emplace_back(text);
    }
  }
  const test::Oracle<std::string> truth(std::move(values));
  if (truth.n() == 0) return;
  std::vector<client::Value> asked;
  for (const std::size_t at : {std::size_t{0}, truth.n() / 2, truth.n() - 1}) {
    asked.push_back(client::Value{truth.sorted()[at]});
  }
  const std::string name(stream.name);
  truth.Check(client.Counts(name, asked), asked,
              client.DescribeStream(name).config.frequency_epsilon);
}

// Whose a batch of the log is: its place in kFeeds, or kFeeds.size().
std::size_t FeedOf(std::size_t stream, const store::Batch& batch) {
  for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
    if (kFeeds[feed].stream != stream) continue;
    if (kStreams[stream].kind != Kind::kShared) return feed;
    if (!batch.values.empty() && kFeeds[feed].writer == WriterOf(batch.values)) return feed;
  }
  return kFeeds.size();
}

// The image but for the number of the stream's last record, which a replay without a log has not,
// and for the order in which producers were heard of last: a batch that comes again counts there,
// and is in no log (server/window/producers.h).
template <class Key>
std::string ComparableOf(const std::string& bytes) {
  server::StreamImage<Key> image = server::DecodeImage<Key>(bytes);
  image.log_sequence = 0;
  std::sort(image.producers.begin(), image.producers.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return server::EncodeImage(image);
}
std::string Comparable(const std::string& image, server::ValueType type) {
  return server::PackedBytes(type) == sizeof(std::uint32_t) ? ComparableOf<std::uint32_t>(image)
                                                            : ComparableOf<std::uint64_t>(image);
}

}  // namespace

void ExpectAnswersOf(client::Client& client, std::uint64_t seed, const SentOfAll& sent) {
  for (std::size_t i = 0; i < kStreams.size(); ++i) {
    const FaultStream& stream = kStreams[i];
    SCOPED_TRACE(stream.name);
    std::uint64_t values = 0;
    for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
      if (kFeeds[feed].stream == i) values += sent[feed].values;
    }
    const client::StreamInfo info = client.DescribeStream(std::string(stream.name));
    EXPECT_EQ(info.count, values) << (info.count < values ? "lost" : "counted twice");
    EXPECT_EQ(info.refused, 0u);
    switch (stream.kind) {
      case Kind::kShared:
        ExpectRanks(client, stream, ValuesOf<std::uint64_t>(seed, stream.kind, sent));
        break;
      case Kind::kFloats: {
        const std::vector<float> floats = ValuesOf<float>(seed, stream.kind, sent);
        ExpectRanks(client, stream, floats);
        ExpectSums(client, stream, floats);
        break;
      }
      case Kind::kTexts:
        ExpectTexts(client, stream, seed, sent);
        break;
      case Kind::kWeighted:
        ExpectRanks(client, stream, ValuesOf<std::uint32_t>(seed, stream.kind, sent));
        break;
      case Kind::kTimed:
        ExpectRanks(client, stream, ValuesOf<double>(seed, stream.kind, sent));
        break;
    }
  }
}

std::uint64_t ExpectLogOf(const std::string& folder, std::uint64_t seed, const SentOfAll& sent) {
  std::map<std::uint64_t, std::size_t> streams;  // places, by the log's ids
  std::map<std::pair<std::uint64_t, std::array<std::uint64_t, 2>>, std::uint64_t> introduced;
  std::array<std::set<std::uint64_t>, kFeeds.size()> found;
  std::uint64_t batches = 0;
  const auto visit = [&](std::uint64_t sequence, const store::LogEntry& entry) {
    const auto here = [&] { return "record " + std::to_string(sequence) + " of the log"; };
    if (const auto* created = std::get_if<store::StreamCreated>(&entry)) {
      for (std::size_t i = 0; i < kStreams.size(); ++i) {
        if (created->definition.ends_with(kStreams[i].name)) streams.emplace(created->stream_id, i);
      }
      return absl::OkStatus();
    }
    const auto* batch = std::get_if<store::Batch>(&entry);
    if (batch == nullptr) return absl::OkStatus();
    const std::uint64_t number = batch->producer.sequence;
    if (number == 1) {  // once for each producer of a stream
      EXPECT_EQ(batch->count, 0u) << here();
      EXPECT_EQ(++introduced[std::make_pair(batch->stream_id, batch->producer.producer)], 1u)
          << here();
      return absl::OkStatus();
    }
    const auto stream = streams.find(batch->stream_id);
    if (stream == streams.end()) return absl::OkStatus();  // of another test's own
    const std::size_t feed = FeedOf(stream->second, *batch);
    EXPECT_LT(feed, kFeeds.size()) << here();
    if (feed == kFeeds.size()) return absl::OkStatus();
    ++batches;
    EXPECT_TRUE(found[feed].insert(number).second)
        << here() << ": batch " << number << " of feed " << feed << " is counted twice";
    const FaultBatch expected = BatchOf(seed, kFeeds[feed], number);
    EXPECT_TRUE(batch->values == expected.values && batch->payloads == expected.payloads &&
                batch->count == expected.count)
        << here() << ": batch " << number << " of feed " << feed << " has other bytes";
    return absl::OkStatus();
  };
  const auto end = store::ReadLog(store::PosixFileSystem(), folder, 0, visit);
  EXPECT_TRUE(end.ok()) << end.status();
  for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
    const std::uint64_t last = found[feed].empty() ? 1 : *found[feed].rbegin();
    EXPECT_EQ(last, sent[feed].last_number) << "feed " << feed;
    EXPECT_EQ(found[feed].size(), sent[feed].last_number - 1) << "feed " << feed;
  }
  return batches;
}

std::map<std::string, std::string> ImagesOf(const std::string& folder, bool with_snapshot) {
  server::PipelineOptions options;
  options.window_limits = {.min = kWindowMin, .max = kWindowMax};
  server::TestPipeline held(options);
  std::map<std::string, std::string> images;
  server::LoadedSnapshot snapshot;
  if (with_snapshot) {
    auto loaded = server::LoadSnapshot(store::PosixFileSystem(), folder, held.pipeline);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (!loaded.ok()) return images;
    snapshot = *std::move(loaded);
  }
  const auto replayed =
      server::ReplayLog(store::PosixFileSystem(), folder, held.pipeline, snapshot);
  EXPECT_TRUE(replayed.ok()) << replayed.status();
  if (!replayed.ok()) return images;
  for (const server::StreamHandle& stream : held.pipeline.streams().All()) {
    images[std::string(stream->name())] = Comparable(stream->Image().value(), stream->type());
  }
  held.pipeline.Stop();
  return images;
}

std::map<std::string, std::string> ExportsOf(client::Client& client) {
  std::map<std::string, std::string> exports;
  for (const client::StreamInfo& stream : client.ListStreams()) {
    exports[stream.name] = client.ExportStream(stream.name);
  }
  return exports;
}

}  // namespace tidemark::fault
