// Stores of every on-disk version that was ever written, kept as folders: a daemon starts from each
// of them for ever, and gives the answers that are kept beside it.
//
// golden/vVERSION-MODE/ holds the files of a store, golden/vVERSION-MODE.answers what a start has
// from it, golden/vVERSION-MODE.bytes what its summaries are while that version is written. A new
// version adds folders: MakeCurrent() makes them, and
//   TIDEMARK_GOLDEN_WRITE=1 golden_folder_test
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "server/durability/definition.h"
#include "server/query/query_engine.h"
#include "server/store/log_format.h"
#include "server/store/store_check.h"
#include "server/store/store_dump.h"
#include "server/window/concat.h"
#include "tests/server/durability/logged_pipeline.h"
#include "tests/server/durability/some_batches.h"
#include "tests/support/golden_files.h"

namespace tidemark::server {
namespace {

namespace fs = std::filesystem;
using testing::Contents;
using testing::FakeDisk;
using testing::WriteIfAbsent;
using testing::WritesGolden;

// Fewer than this in a batch, so that the folders stay small.
constexpr std::size_t kValuesEnd = 40;
constexpr std::array<std::uint64_t, 2> kProducer = {0x7469646d61726b, 7};

fs::path GoldenFolder() { return TIDEMARK_GOLDEN_DIR; }
std::string OnDisk(const std::string& name) { return std::string(kLogFolder) + "/" + name; }

// A copy, so that what is kept does not change.
void Load(const fs::path& folder, FakeDisk& disk) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto file = disk.Create(OnDisk(entry.path().filename().string()));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write(0, Contents(entry.path())).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }
}

void Save(FakeDisk& disk, const fs::path& folder) {
  fs::create_directories(folder);
  const std::vector<std::string> names = disk.List(kLogFolder).value();
  for (const std::string& name : names) {
    WriteIfAbsent(folder / name, disk.bytes(OnDisk(name)));
  }
}

std::string Text(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Ipv4>) {
          return Concat(held.address);
        } else if constexpr (std::is_same_v<Held, Ipv6>) {
          return Concat(static_cast<std::uint64_t>(held.address >> 64), ":",
                        static_cast<std::uint64_t>(held.address));
        } else {
          return Concat(held);
        }
      },
      value);
}

std::string Covered(const Coverage& coverage) {
  return Concat("n ", coverage.n, " uncertain ", coverage.uncertain, " refused ",
                coverage.losses.refused);
}

// The answers to everything that can be asked of any stream; of what cannot be asked of this one,
// the code.
std::string AnswersOf(const QueryEngine& engine, const std::string& stream, const Ask& ask) {
  std::string out;
  const auto told = [&](std::string_view question, const auto& answer, const auto& row) {
    out += Concat("  ", question, ": ");
    if (!answer.ok()) {
      out += absl::StatusCodeToString(answer.status().code()) + "\n";
      return;
    }
    out += Covered(answer->coverage);
    for (const auto& one : answer->rows) out += Concat("; ", row(one));
    out += "\n";
  };
  const std::vector<double> phis = {0, 0.1, 0.5, 0.9, 1};
  told("quantiles", engine.Quantiles(stream, phis, ask), [](const QuantileRow& row) {
    return Concat(row.phi, " ", Text(row.value), " [", row.rank_low, ", ", row.rank_high, "]");
  });
  const auto item = [](const ItemRow& row) {
    return Concat(Text(row.value), " [", row.count_low, ", ", row.count_high, "]");
  };
  told("items", engine.HeavyHitters(stream, 0.05, 0, ask), item);
  told("weights", engine.HeavyHitters(stream, 0.05, 0, ask, true), item);
  told("prefixes", engine.HierarchicalHeavyHitters(stream, 0.1, ask), [](const PrefixRow& row) {
    return Concat(Text(row.prefix), "/", row.length, " [", row.count_low, ", ", row.count_high,
                  "] [", row.discounted_low, ", ", row.discounted_high, "]");
  });
  if (!ask.whole()) return out;
  const std::vector<PairRange> ranges = {AtMostShare{0.5}, AtMostShare{1}};
  told("sums", engine.Sums(stream, ranges, ask.deadline), [](const SumRow& row) {
    return Concat("[", row.count_low, ", ", row.count_high, "] [", row.sum_low, ", ", row.sum_high,
                  "]");
  });
  return out;
}

std::map<std::string, StreamHandle> ByName(Pipeline& pipeline) {
  std::map<std::string, StreamHandle> streams;
  for (const StreamHandle& stream : pipeline.streams().All()) {
    streams.emplace(stream->name(), stream);
  }
  return streams;
}

// Not Describe, whose words may change.
std::string Text(const StreamSettings& settings) {
  std::string out = Concat(
      "type ", static_cast<int>(settings.type), " payload ", static_cast<int>(settings.payload),
      " form ", static_cast<int>(settings.quantile_form), " epsilon ", settings.quantile_epsilon,
      " ", settings.frequency_epsilon, " ", settings.tail_epsilon, " frequencies ",
      settings.frequencies, " sums ", settings.sums, " sliding ", settings.sliding.values_max, " ",
      settings.sliding.time_max_us, " ", settings.sliding.epsilon, " depth ",
      settings.hierarchy.depth, " ", static_cast<int>(settings.hierarchy.separator), " ",
      settings.hierarchy.root_last, " prefixes");
  for (const int length : settings.hierarchy.prefix_lengths) out += Concat(" ", length);
  return out;
}

// All that a start has, as text.
std::string Answers(Pipeline& pipeline) {
  const QueryEngine engine(pipeline);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string out;
  for (const auto& [name, stream] : ByName(pipeline)) {
    stream->SerializeSummaries();  // waits for windows under way
    const StreamStats stats = stream->Stats();
    out += Concat(name, " (id ", stream->log_id(), "): ", Text(stream->settings()), "\n  n ",
                  stats.count, ", refused ", stats.refused, ", open ", stats.window_fill, " of ",
                  stats.window_capacity, ", windows ", stats.windows_summarized, "\n");
    for (const auto& [subscription, request] : stream->subscriptions()) {
      out += Concat("  subscription ", subscription, ": ", request, "\n");
    }
    out += AnswersOf(engine, name, soon);
    const SlidingSettings& sliding = stream->settings().sliding;
    if (sliding.values_max != 0) {
      out += " of the last 100\n" + AnswersOf(engine, name, Ask(soon, {.values = 100}));
    }
    if (sliding.time_max_us != 0) {
      out += " of the last 2 s\n" + AnswersOf(engine, name, Ask(soon, {.time_us = 2'000'000}));
    }
  }
  return out;
}

// The bytes of all summaries: the same for one version of their layouts.
std::string Checksums(Pipeline& pipeline) {
  std::string out;
  for (const auto& [name, stream] : ByName(pipeline)) {
    const std::string bytes = stream->SerializeSummaries();
    out += Concat(name, ": ", bytes.size(), " bytes, ", store::Checksum(bytes, 0), "\n");
  }
  return out;
}

// Streams of every kind, some of them deleted, producers whose batches have numbers; what is in
// the snapshot before the newest, in the newest, and in the log alone.
class Story {
 public:
  /// Of the kinds of streams only each `step`-th.
  explicit Story(Pipeline& pipeline, std::size_t step = 1) : pipeline_(pipeline), step_(step) {}

  void Begin() {
    const std::vector<StreamSettings> kinds = KindsOfStreams();
    for (std::size_t i = 0; i < kinds.size(); i += step_) {
      ASSERT_TRUE(pipeline_.streams().Create(Concat("kind ", i), kinds[i]).ok());
    }
    for (const char* name : {"deleted early", "deleted late", "made again", "numbered", "empty"}) {
      ASSERT_TRUE(pipeline_.streams().Create(name, {}).ok());
    }
    Subscribe("early", "numbered");
    Subscribe("deleted", "numbered");
    GoOn(3);
    ASSERT_TRUE(pipeline_.streams().Delete("deleted early").ok());
  }
  void Middle() {
    GoOn(1);
    ASSERT_TRUE(pipeline_.streams().Delete("made again").ok());
    ASSERT_TRUE(pipeline_.streams().Create("made again", {.type = ValueType::kString}).ok());
  }
  void End() {
    GoOn(1);
    ASSERT_TRUE(pipeline_.streams().Delete("deleted late").ok());
    ASSERT_TRUE(pipeline_.streams().Create("late", {.type = ValueType::kUint32}).ok());
    const auto soon = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    absl::StatusOr<StreamState> state = QueryEngine(pipeline_).State("kind 0", soon);
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_TRUE(pipeline_.streams().Restore("imported", *std::move(state)).ok());
    Subscribe("late", "imported");
    ASSERT_TRUE(pipeline_.streams().Unsubscribe("deleted").ok());
    GoOn(1);
  }

 private:
  void Subscribe(const char* name, const char* stream) {
    ASSERT_TRUE(pipeline_.streams().Subscribe({name, stream, "what is asked for"}).ok());
  }
  void GoOn(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (const auto& [name, stream] : ByName(pipeline_)) {
        if (name == "empty") continue;
        time_ += 30'000;
        if (name == "numbered") {
          const std::vector<double> values = {1, 2, static_cast<double>(++number_)};
          ASSERT_TRUE(pipeline_
                          .AppendPacked(stream, std::as_bytes(std::span(values)),
                                        {time_, {kProducer, number_}})
                          .status.ok());
          continue;
        }
        SomeBatch(random_, pipeline_, stream, time_, kValuesEnd);
      }
    }
  }

  Pipeline& pipeline_;
  const std::size_t step_;
  Random random_{20'261'122};
  RecordedTime time_ = 1'763'800'000'000'000;
  std::uint64_t number_ = 0;
};

// The folders of today's version.
void MakeCurrent() {
  const std::string version = Concat("v", store::kStoreVersion);
  {
    FakeDisk disk;
    LoggedPipeline live(disk);
    Snapshots snapshots(disk, kLogFolder, live.pipeline(), &live.log(), std::nullopt, 0);
    Story story(live.pipeline());
    story.Begin();
    ASSERT_TRUE(snapshots.Take().ok());
    story.Middle();
    ASSERT_TRUE(snapshots.Take().ok());
    story.End();
    const std::string answers = Answers(live.pipeline());
    const std::string checksums = Checksums(live.pipeline());
    ASSERT_TRUE(live.log().Stop().ok());
    Save(disk, GoldenFolder() / (version + "-log"));
    WriteIfAbsent(GoldenFolder() / (version + "-log.answers"), answers);
    WriteIfAbsent(GoldenFolder() / (version + "-log.bytes"), checksums);
    live.pipeline().UseLog(nullptr);
  }
  FakeDisk disk;
  TestPipeline held(SmallWindows());
  Snapshots snapshots(disk, kLogFolder, held.pipeline, nullptr, std::nullopt, 0);
  Story story(held.pipeline, 6);
  story.Begin();
  ASSERT_TRUE(snapshots.Take().ok());
  Save(disk, GoldenFolder() / (version + "-snapshot"));
  TestPipeline again(SmallWindows());  // ids are given by the snapshot
  ASSERT_TRUE(LoadSnapshotAlone(disk, kLogFolder, again.pipeline).ok());
  WriteIfAbsent(GoldenFolder() / (version + "-snapshot.answers"), Answers(again.pipeline));
  WriteIfAbsent(GoldenFolder() / (version + "-snapshot.bytes"), Checksums(again.pipeline));
}

TEST(GoldenFolder, OfEveryVersionGivesItsAnswers) {
  if (WritesGolden()) MakeCurrent();
  const std::vector<fs::path> folders = testing::FoldersIn(GoldenFolder());
  ASSERT_GE(folders.size(), 2u);
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder);
    FakeDisk disk;
    Load(folder, disk);
    const auto report = store::VerifyStore(disk, kLogFolder);
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->ok()) << report->faults.front();
    LoggedPipeline started(disk);
    testing::ExpectSameAnswers(Answers(started.pipeline()), Contents(folder.string() + ".answers"));
    if (folder.filename().string().starts_with(Concat("v", store::kStoreVersion, "-"))) {
      testing::ExpectSameAnswers(Checksums(started.pipeline()),
                                 Contents(folder.string() + ".bytes"));
    }
    // Batches that were taken in are known.
    const StreamHandle numbered = started.pipeline().streams().Find("numbered").value();
    const std::uint64_t before = numbered->Stats().count;
    const std::vector<double> values(3);
    const auto send = [&](std::uint64_t number) {
      return started.pipeline().AppendPacked(numbered, std::as_bytes(std::span(values)),
                                             {RecordedTime{0}, {kProducer, number}});
    };
    const AppendResult known = send(before / 3);
    EXPECT_TRUE(known.status.ok() && known.duplicate) << known.status;
    EXPECT_EQ(known.accepted, 3u);
    const AppendResult next = send(before / 3 + 1);
    EXPECT_TRUE(next.status.ok() && !next.duplicate) << next.status;
    // It goes on as a store of today.
    ASSERT_TRUE(started.log().Stop().ok());
    const std::string after = Seen(started.pipeline());
    started.pipeline().UseLog(nullptr);
    LoggedPipeline again(disk);
    EXPECT_EQ(Seen(again.pipeline()), after);
  }
}

// The version of a snapshot's file is that of everything in it: layouts of images and of summaries
// must not change without it, or an older program would take a newer file for a damaged one. If
// this fails, count store::kStoreVersion up and write folders of the new version; the reader of the
// old one stays.
TEST(GoldenFolder, OfThisVersionHoldsTheImagesThatAreWrittenToday) {
  const fs::path folder = GoldenFolder() / Concat("v", store::kStoreVersion, "-log");
  ASSERT_TRUE(fs::is_directory(folder));
  FakeDisk disk;
  Load(folder, disk);
  TestPipeline held(SmallWindows());
  const auto loaded = LoadSnapshot(disk, kLogFolder, held.pipeline);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::size_t blobs = 0;
  const auto compare = [&](std::string_view name, std::string_view blob) {
    if (blobs++ == 0) return absl::OkStatus();  // the next stream
    const StreamHandle& stream = loaded->streams.at(std::stoull(std::string(name)));
    const std::string definition = EncodeDefinition(stream->name(), stream->settings());
    EXPECT_EQ(blob.substr(4, definition.size()), definition) << stream->name();
    EXPECT_TRUE(blob.substr(4 + definition.size()) == stream->Image().value()) << stream->name();
    return absl::OkStatus();
  };
  ASSERT_TRUE(store::ReadSnapshot(disk, kLogFolder, loaded->header->number, compare).status().ok());
  EXPECT_GT(blobs, KindsOfStreams().size());
}

// A header of a version that is not known, with the checksum that it would have.
void MakeNewer(std::string& file) {
  file[8] = static_cast<char>(store::kStoreVersion + 1);
  std::string sum;
  store::PutU64(sum, store::Checksum(std::string_view(file).substr(0, 56), 0));
  file.replace(56, 8, sum);
}

TEST(GoldenFolder, OfANewerVersionIsRefusedAndLeftAsItIs) {
  for (const bool snapshot : {true, false}) {
    SCOPED_TRACE(snapshot);
    FakeDisk disk;
    Load(GoldenFolder() / Concat("v", store::kStoreVersion, "-log"), disk);
    std::string newest;
    const std::vector<std::string> names = disk.List(kLogFolder).value();
    for (const std::string& name : names) {
      const bool is = snapshot ? store::SnapshotNumber(name).has_value()
                               : store::SegmentNumber(name).has_value();
      if (is) newest = std::max(newest, name);
    }
    MakeNewer(disk.bytes(OnDisk(newest)));
    const std::uint64_t changes = disk.operations();
    TestPipeline fresh(SmallWindows());
    const auto loaded = LoadSnapshot(disk, kLogFolder, fresh.pipeline);
    const absl::Status refused =
        snapshot ? loaded.status()
                 : ReplayLog(disk, kLogFolder, fresh.pipeline, loaded.value()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(refused.message().find(Concat(newest, ": offset 0: the file is of version ",
                                            store::kStoreVersion + 1, "; this program reads")),
              std::string::npos)
        << refused;
    EXPECT_EQ(store::RepairStore(disk, kLogFolder).status().code(),
              absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(disk.operations(), changes) << "something was changed";
  }
}

}  // namespace
}  // namespace tidemark::server
