// `tidemark store` on folders written here, run in-process: output, messages, exit status. With a
// real daemon's folder: tests/e2e/store_command_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/tool/command.h"
#include "server/durability/definition.h"
#include "server/store/file_system.h"
#include "server/store/folder_lock.h"
#include "server/store/log_format.h"
#include "server/store/segment_file.h"
#include "server/store/snapshot_file.h"
#include "server/window/stream_log.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::tool {
namespace {

using nlohmann::json;
using server::BatchForm;

constexpr std::uint64_t kLogId = 0x5eed;

struct Result {
  int status = -1;
  std::string out;
  std::string err;
  // One JSON object a line.
  std::vector<json> lines() const {
    std::vector<json> lines;
    std::istringstream in(out);
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
  }
};

class StoreCommandTest : public testing::Test {
 protected:
  StoreCommandTest() { std::filesystem::create_directory(store()); }

  std::string store() const { return folder_ / "store"; }
  std::string Segment(std::uint64_t number) const {
    return store() + "/" + store::SegmentName(number);
  }
  static Result Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "store");
    std::ostringstream out, err;
    const Environment environment{out, err, 0, Terminal{false, 70, false}, Terminal{}};
    Result result;
    result.status = RunCommand(arguments, environment);
    result.out = out.str();
    result.err = err.str();
    return result;
  }

  // A record more for the next Write.
  void Add(const store::LogEntry& entry) {
    store::UnnumberedRecord record = *store::EncodeEntry(entry, kLogId);
    record.header.sequence = ++sequence_;
    record.header.durable_sequence = sequence_ - 1;
    store::NumberRecord(record, kLogId);
    records_.push_back(std::move(record.bytes));
  }
  void AddMark() {
    store::UnnumberedRecord record = store::MakeRecord(store::RecordKind::kMark, kLogId, {});
    record.header.sequence = record.header.durable_sequence = sequence_;
    store::NumberRecord(record, kLogId);
    records_.push_back(std::move(record.bytes));
  }
  // A segment with the records that were added.
  void Write() {
    store::SegmentHeader header{.number = ++segments_,
                                .first_sequence = written_ + 1,
                                .previous_number = segments_ - 1,
                                .previous_bytes = previous_bytes_,
                                .log_id = kLogId};
    const std::vector<std::string_view> records(records_.begin(), records_.end());
    ASSERT_TRUE(
        store::CreateSegment(store::PosixFileSystem(), store(), header, records).status().ok());
    previous_bytes_ = std::filesystem::file_size(Segment(segments_));
    written_ = sequence_;
    records_.clear();
  }
  void Flip(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 0x10));
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> records_;
  std::uint64_t sequence_ = 0, written_ = 0, segments_ = 0, previous_bytes_ = 0;
};

template <typename T>
std::string Packed(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

store::Batch BatchOf(std::uint8_t type, BatchForm form, std::size_t bytes_each, std::uint32_t count,
                     std::string_view values) {
  store::Batch batch;
  batch.stream_id = 1;
  batch.recorded_time_us = 1'764'000'000'000'000;
  batch.value_type = type;
  batch.form = static_cast<std::uint8_t>(form);
  batch.value_bytes = static_cast<std::uint8_t>(bytes_each);
  batch.count = count;
  batch.values = values;
  return batch;
}

TEST_F(StoreCommandTest, WithoutAStore) {
  for (const char* command : {"verify", "dump", "repair"}) {
    SCOPED_TRACE(command);
    const Result none = Run({command, folder_ / "absent"});
    EXPECT_EQ(none.status, kRefused);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(none.err,
              "tidemark: there is no store in " + (folder_ / "absent") +
                  ": expected the data folder of a daemon with --durability log or snapshot, which "
                  "has a folder \"store\"\n");
    EXPECT_EQ(Run({command}).status, kUsage);
  }
  EXPECT_EQ(Run({}).status, kUsage);
  EXPECT_EQ(Run({"mend", folder_.path()}).status, kUsage);
  // One in which nothing was written yet.
  const Result empty = Run({"verify", folder_.path()});
  EXPECT_EQ(empty.status, kDone) << empty.out << empty.err;
}

TEST_F(StoreCommandTest, AFolderInUseIsRefused) {
  const auto daemon = store::FolderLock::Take(folder_.path());
  ASSERT_TRUE(daemon.ok());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"verify"}, {"dump"}, {"repair"}, {"repair", "--yes"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(folder_.path());
    const Result result = Run(arguments);
    EXPECT_EQ(result.status, kRefused);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.rfind(
                  "tidemark: the folder " + folder_.path() + " is in use by another process", 0),
              0u)
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(StoreCommandTest, DumpShowsDefinitionsAndValues) {
  server::StreamSettings settings;
  settings.type = server::ValueType::kFloat32;
  settings.quantile_form = server::QuantileKind::kTail;
  settings.sliding.values_max = 1'000;
  settings.sliding.time_max_us = 1'500'000;
  const std::string definition = server::EncodeDefinition("s", settings);
  Add(store::StreamCreated{1, definition});
  server::StreamSettings hierarchy;
  hierarchy.type = server::ValueType::kString;
  hierarchy.payload = server::PayloadType::kWeight;
  hierarchy.hierarchy.separator = '/';
  hierarchy.hierarchy.depth = 3;
  const std::string text_definition = server::EncodeDefinition("t\"", hierarchy);
  Add(store::StreamCreated{2, text_definition});
  const std::string floats = Packed<float>({1.5f, -0.25f});
  Add(BatchOf(2, BatchForm::kPacked, 4, 2, floats));
  const std::string numbers = Packed<double>({0.1});
  store::Batch sequenced = BatchOf(2, BatchForm::kNumbers, 8, 1, numbers);
  sequenced.producer = {{0x1234, 0xabcd}, 7};
  Add(sequenced);
  std::string texts;
  store::AppendTexts(std::vector<std::string_view>{"a/b", ""}, texts);
  store::Batch weighted = BatchOf(7, BatchForm::kTexts, 0, 2, texts);
  const std::string weights = Packed<std::uint64_t>({3, UINT64_MAX});
  weighted.payload_type = 1;
  weighted.payloads = weights;
  Add(weighted);
  const std::string wide = Packed<std::int64_t>({INT64_MIN, -1});
  Add(BatchOf(3, BatchForm::kPacked, 8, 2, wide));
  const std::string addresses = Packed<std::uint32_t>({0x0a000001});
  Add(BatchOf(6, BatchForm::kPacked, 4, 1, addresses));
  const std::string wide_address = std::string(15, '\0') + '\x01';
  Add(BatchOf(8, BatchForm::kPacked, 16, 1, wide_address));
  const std::string values_of_pairs = Packed<std::uint64_t>({9});
  store::Batch pairs = BatchOf(4, BatchForm::kPacked, 8, 1, values_of_pairs);
  const std::string y = Packed<double>({2.5});
  pairs.payload_type = 2;
  pairs.payloads = y;
  Add(pairs);
  Add(store::StreamDeleted{2});
  AddMark();
  Write();
  auto writer = store::SnapshotWriter::Begin(store::PosixFileSystem(), store(), 3, 1);
  ASSERT_TRUE(writer.ok());
  std::string next;
  store::PutU64(next, 5);
  ASSERT_TRUE(writer->Add("next stream", next).ok());
  std::string blob;
  store::PutU32(blob, static_cast<std::uint32_t>(text_definition.size()));
  ASSERT_TRUE(writer->Add("2", blob + text_definition + "image").ok());
  ASSERT_TRUE(writer->Finish().ok());

  const Result with = Run({"dump", folder_.path(), "--values"});
  EXPECT_EQ(with.status, kDone) << with.out << with.err;
  const std::vector<json> lines = with.lines();
  ASSERT_EQ(lines.size(), 3u + 11);
  EXPECT_EQ(lines[0]["kind"], "snapshot");
  EXPECT_EQ(lines[0]["log_position"], 1);
  EXPECT_EQ(lines[0]["streams"], 1);
  EXPECT_EQ(lines[1].dump(), R"({"id":5,"kind":"next_stream","snapshot":3})");
  EXPECT_EQ(lines[2]["kind"], "stream");
  EXPECT_EQ(lines[2]["image_bytes"], 5);
  EXPECT_EQ(lines[2]["definition"]["separator"], "/");
  EXPECT_EQ(lines[3]["kind"], "stream_created");
  EXPECT_EQ(lines[3]["offset"], 64);
  EXPECT_EQ(lines[3]["segment"], 1);
  EXPECT_EQ(lines[3]["sequence"], 1);
  EXPECT_EQ(lines[3]["id"], 1);
  EXPECT_EQ(lines[3]["definition"]["name"], "s");
  EXPECT_EQ(lines[3]["definition"]["type"], "float32");
  EXPECT_EQ(lines[3]["definition"]["quantile_form"], "tail");
  EXPECT_EQ(lines[3]["definition"]["sliding"]["max_values"], 1'000);
  EXPECT_EQ(lines[3]["definition"]["sliding"]["max_time_s"], 1.5);
  EXPECT_EQ(lines[4]["definition"]["name"], "t\"");
  EXPECT_EQ(lines[4]["definition"]["payload"], "weight");
  EXPECT_EQ(lines[4]["definition"]["depth"], 3);
  EXPECT_EQ(lines[5]["kind"], "batch");
  EXPECT_EQ(lines[5]["count"], 2);
  EXPECT_EQ(lines[5]["form"], "packed");
  EXPECT_EQ(lines[5]["time_us"], 1'764'000'000'000'000);
  EXPECT_EQ(lines[5]["values"].dump(), "[1.5,-0.25]");
  EXPECT_EQ(lines[6]["producer"], "0000000000001234000000000000abcd");
  EXPECT_EQ(lines[6]["producer_sequence"], 7);
  EXPECT_EQ(lines[6]["values"].dump(), "[0.1]");
  EXPECT_EQ(lines[7]["values"].dump(), R"(["a/b",""])");
  EXPECT_EQ(lines[7]["payload"], "weight");
  EXPECT_EQ(lines[7]["payloads"].dump(), R"([3,"18446744073709551615"])");
  EXPECT_EQ(lines[8]["values"].dump(), R"(["-9223372036854775808",-1])");
  EXPECT_EQ(lines[9]["values"].dump(), R"(["10.0.0.1"])");
  EXPECT_EQ(lines[10]["values"].dump(), R"(["::1"])");
  EXPECT_EQ(lines[11]["payloads"].dump(), "[2.5]");
  EXPECT_EQ(lines[12]["kind"], "stream_deleted");
  EXPECT_EQ(lines[12]["id"], 2);
  EXPECT_EQ(lines[13]["kind"], "mark");
  EXPECT_EQ(lines[13]["synced"], 10);

  for (const json& line : Run({"dump", folder_.path()}).lines()) {
    EXPECT_FALSE(line.contains("values")) << line;
    EXPECT_FALSE(line.contains("payloads")) << line;
  }
}

TEST_F(StoreCommandTest, VerifyAndRepair) {
  const std::string values = Packed<double>({1, 2, 3});
  const auto batch = [&] { Add(BatchOf(1, BatchForm::kPacked, 8, 3, values)); };
  Add(store::StreamCreated{1, server::EncodeDefinition("s", {})});
  batch();
  Write();
  batch();
  batch();
  batch();
  AddMark();
  Write();
  batch();
  AddMark();
  Write();

  const Result whole = Run({"verify", folder_.path()});
  EXPECT_EQ(whole.status, kDone);
  EXPECT_NE(whole.out.find("records 1 to 2  whole"), std::string::npos) << whole.out;
  EXPECT_NE(whole.out.find("with all records of the log up to 6\n"), std::string::npos)
      << whole.out;
  const Result nothing = Run({"repair", folder_.path(), "--yes"});
  EXPECT_EQ(nothing.status, kDone);
  EXPECT_EQ(nothing.out, "nothing is damaged, and nothing was changed\n");

  // Record 4.
  const std::uint64_t offset = store::kFileHeaderBytes + store::RecordBytes(48 + values.size());
  Flip(Segment(2), offset + 60);
  const std::string fault =
      Segment(2) + ": offset " + std::to_string(offset) + ": record 4 is damaged";
  const std::string lost =
      "records 4 to 6 of the log; of these 2 can still be read (2 batches of 6 values), but follow "
      "a gap";
  const Result damaged = Run({"verify", folder_.path()});
  EXPECT_EQ(damaged.status, kRefused);
  EXPECT_NE(damaged.out.find("damaged: " + fault), std::string::npos) << damaged.out;
  EXPECT_NE(damaged.out.find("lost: " + lost + "\n"), std::string::npos) << damaged.out;
  EXPECT_NE(damaged.out.find("damaged from offset " + std::to_string(offset) + " on\n"),
            std::string::npos)
      << damaged.out;
  const json report = json::parse(Run({"verify", folder_.path(), "--json"}).out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["last_record"], 3);
  EXPECT_EQ(report["lost"].dump(), json({lost}).dump());
  EXPECT_EQ(report["segments"].size(), 3u);
  EXPECT_EQ(report["segments"][1]["whole_bytes"], offset);
  const Result dump = Run({"dump", folder_.path()});
  EXPECT_EQ(dump.status, kRefused);
  EXPECT_EQ(dump.lines().back()["kind"], "fault");

  const auto names = [&] { return *store::PosixFileSystem().List(store()); };
  const std::vector<std::string> before = names();
  const Result asked = Run({"repair", folder_.path()});
  EXPECT_EQ(asked.status, kRefused);
  EXPECT_NE(asked.out.find("nothing was changed; with --yes it is repaired\n"), std::string::npos)
      << asked.out;
  EXPECT_EQ(names(), before);

  const Result repaired = Run({"repair", "--yes", folder_.path()});
  EXPECT_EQ(repaired.status, kDone) << repaired.err;
  EXPECT_NE(repaired.out.find("damaged: " + fault), std::string::npos) << repaired.out;
  EXPECT_NE(repaired.out.find("lost: " + lost + "\n"), std::string::npos) << repaired.out;
  EXPECT_NE(
      repaired.out.find("repaired: " + Segment(3) + ": renamed to " + Segment(3) + ".damaged\n"),
      std::string::npos)
      << repaired.out;
  EXPECT_NE(repaired.out.find("a daemon starts from it now\n"), std::string::npos);
  const Result after = Run({"verify", folder_.path()});
  EXPECT_EQ(after.status, kDone) << after.out;
  EXPECT_NE(after.out.find(store::SegmentName(3) + ".damaged"), std::string::npos) << after.out;
  EXPECT_NE(after.out.find("up to 3\n"), std::string::npos) << after.out;
  EXPECT_NE(after.out.find(", what is behind it counts for nothing\n"), std::string::npos)
      << after.out;
}

TEST_F(StoreCommandTest, AnotherVersionIsNamedAndLeftAlone) {
  Add(store::StreamCreated{1, server::EncodeDefinition("s", {})});
  Write();
  std::string bytes = *store::PosixFileSystem().Read(Segment(1), 0, 1 << 20);
  bytes[8] = 9;
  std::string sum;
  store::PutU64(sum, store::Checksum(std::string_view(bytes).substr(0, 56), 0));
  bytes.replace(56, 8, sum);
  std::ofstream(Segment(1), std::ios::binary) << bytes;
  const Result verify = Run({"verify", folder_.path()});
  EXPECT_EQ(verify.status, kRefused);
  EXPECT_NE(verify.out.find("the file is of version 9; this program reads versions 1 to "),
            std::string::npos)
      << verify.out;
  const Result repair = Run({"repair", folder_.path(), "--yes"});
  EXPECT_EQ(repair.status, kRefused);
  EXPECT_NE(repair.err.find("the file is of version 9"), std::string::npos) << repair.err;
  EXPECT_EQ(store::PosixFileSystem().List(store())->size(), 1u);
}

}  // namespace
}  // namespace tidemark::tool
