// Verify, dump, repair: after a repair a store verifies, what it held before the damage is there,
// and a log goes on behind it.
#include "server/store/store_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/store/segment_file.h"
#include "server/store/store_dump.h"
#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

using testing::FakeDisk;

void WriteSnapshot(FileSystem& disk, std::uint64_t number, std::uint64_t position,
                   std::uint64_t reaches = 0) {
  auto writer = SnapshotWriter::Begin(disk, kFolder, number, position);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Add("until", std::to_string(position)).ok());
  ASSERT_TRUE(writer->Finish(reaches).ok());
}

TEST(StoreCheckTest, AStoreWithoutFaults) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 4 << 10);
  WriteSnapshot(disk, 1, last - 3);
  const auto report = VerifyStore(disk, kFolder);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->records, 3u);
  EXPECT_EQ(report->last_sequence, last);
  EXPECT_EQ(report->log_position, last - 3);
  EXPECT_EQ(report->snapshots.size(), 1u);
  const auto before = disk.List(kFolder);
  const auto repair = RepairStore(disk, kFolder);
  ASSERT_TRUE(repair.ok());
  EXPECT_TRUE(repair->actions.empty());
  EXPECT_EQ(*disk.List(kFolder), *before);
}

// What a repair writes can be read also where no more numbers are left.
TEST(StoreCheckTest, AtTheGreatestNumbers) {
  FakeDisk disk;
  WriteSnapshot(disk, 1, kNumberMax - 1);
  const auto damaged = VerifyStore(disk, kFolder);
  ASSERT_TRUE(damaged.ok());
  EXPECT_FALSE(damaged->ok()) << "there is no log";
  ASSERT_TRUE(RepairStore(disk, kFolder).ok());
  const auto repaired = VerifyStore(disk, kFolder);
  ASSERT_TRUE(repaired.ok());
  EXPECT_TRUE(repaired->ok()) << repaired->faults[0];
  EXPECT_EQ(repaired->log_position, kNumberMax - 1);
  WriteSnapshot(disk, 2, kNumberMax);
  const auto forged = VerifyStore(disk, kFolder);
  ASSERT_TRUE(forged.ok());
  EXPECT_FALSE(forged->ok());
  EXPECT_EQ(forged->log_position, kNumberMax - 1);
  EXPECT_EQ(CreateSegment(disk, kFolder,
                          {.number = 9, .first_sequence = kNumberMax + 1, .log_id = kLogId}, {})
                .status()
                .code(),
            absl::StatusCode::kOutOfRange);
}

TEST(StoreCheckTest, SaysOfEachFileWhatIsWhole) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 4 << 10);
  const auto whole = VerifyStore(disk, kFolder);
  ASSERT_TRUE(whole.ok());
  ASSERT_GE(whole->segments.size(), 4u);
  EXPECT_EQ(whole->segments.front().check.first_sequence, 1u);
  EXPECT_EQ(whole->segments.back().check.last_sequence, last);
  for (const SegmentReport& segment : whole->segments) {
    EXPECT_EQ(segment.use, SegmentUse::kLog);
    EXPECT_EQ(segment.check.whole_bytes, segment.check.file_bytes);
  }
  // The second one, in its second record.
  const SegmentCheck second = whole->segments[1].check;
  const std::string path = kFolder + "/" + SegmentName(second.number);
  const auto header = DecodeRecordHeader(disk.bytes(path).substr(kFileHeaderBytes), kLogId);
  ASSERT_TRUE(header);
  const std::uint64_t offset = kFileHeaderBytes + RecordBytes(header->body_bytes);
  disk.bytes(path)[offset + 20] ^= 1;
  const auto damaged = VerifyStore(disk, kFolder);
  ASSERT_TRUE(damaged.ok());
  ASSERT_EQ(damaged->faults.size(), 1u);
  const std::uint64_t kept = second.first_sequence;
  EXPECT_NE(damaged->faults[0].find(path + ": offset " + std::to_string(offset)), std::string::npos)
      << damaged->faults[0];
  EXPECT_EQ(damaged->last_sequence, kept);
  ASSERT_EQ(damaged->lost.size(), 1u);
  const std::string lost = "records " + std::to_string(kept + 1) + " to " + std::to_string(last) +
                           " of the log; of these " + std::to_string(last - kept - 1) +
                           " can still be read";
  EXPECT_EQ(damaged->lost[0].rfind(lost, 0), 0u) << damaged->lost[0];
  EXPECT_FALSE(damaged->actions.empty());
  EXPECT_EQ(damaged->segments.size(), whole->segments.size());
  EXPECT_EQ(damaged->segments[1].check.whole_bytes, offset);
  EXPECT_TRUE(absl::IsDataLoss(damaged->segments[1].check.status));
  // Behind the damage, and whole by themselves.
  EXPECT_EQ(damaged->segments.back().use, SegmentUse::kLog);
  EXPECT_TRUE(damaged->segments.back().check.status.ok());
  // Looking changed nothing; the repair does what was said.
  const auto repair = RepairStore(disk, kFolder);
  ASSERT_TRUE(repair.ok());
  EXPECT_EQ(repair->actions, damaged->actions);
  EXPECT_EQ(repair->lost, damaged->lost);
}

TEST(StoreCheckTest, DamageThatASnapshotCoversIsNoted) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 4 << 10);
  WriteSnapshot(disk, 1, last);
  disk.bytes(kFolder + "/" + SegmentName(1))[70] ^= 1;
  auto report = VerifyStore(disk, kFolder);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok());
  EXPECT_EQ(report->segments.front().use, SegmentUse::kOlder);
  EXPECT_FALSE(report->segments.front().check.status.ok());
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes.back().find("not needed"), std::string::npos) << report->notes.back();
  // Until that snapshot is damaged, too.
  disk.bytes(kFolder + "/" + SnapshotName(1))[70] ^= 1;
  report = VerifyStore(disk, kFolder);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->faults.size(), 2u);
}

TEST(StoreCheckTest, ADamagedSnapshotLosesNothingWhereTheLogGoesBack) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 4 << 10);
  WriteSnapshot(disk, 1, last - 5);
  WriteSnapshot(disk, 2, last - 2);
  disk.bytes(kFolder + "/" + SnapshotName(2))[70] ^= 1;
  const auto report = VerifyStore(disk, kFolder);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->lost.size(), 1u);
  EXPECT_EQ(report->lost[0].rfind("nothing: snapshot 1 ", 0), 0u) << report->lost[0];
  EXPECT_EQ(report->last_sequence, last);
}

struct Collected final : StoreVisitor {
  void Snapshot(const SnapshotInfo& snapshot) override {
    lines.push_back("snapshot " + std::to_string(snapshot.header.number));
  }
  void Blob(const SnapshotInfo&, std::string_view name, std::string_view blob) override {
    lines.push_back("blob " + std::string(name) + " " + std::string(blob));
  }
  void Record(std::uint64_t, std::uint64_t offset, const RecordHeader& header,
              std::string_view body, bool behind_damage) override {
    EXPECT_GE(offset, kFileHeaderBytes);
    EXPECT_EQ(header.body_bytes, body.size());
    if (header.kind == RecordKind::kMark) {
      ++marks;
    } else {
      lines.push_back((behind_damage ? "behind damage: record " : "record ") +
                      std::to_string(header.sequence));
    }
  }
  void Note(std::string_view note) override { lines.emplace_back(note); }
  void Fault(std::string_view fault) override { lines.emplace_back(fault); }
  std::vector<std::string> lines;
  int marks = 0;
};

TEST(StoreCheckTest, DumpTellsEverything) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 2 << 10);
  WriteSnapshot(disk, 1, last - 7);
  Collected whole;
  ASSERT_TRUE(DumpStore(disk, kFolder, whole).ok());
  ASSERT_EQ(whole.lines.size(), 2u + last);
  EXPECT_EQ(whole.lines[0], "snapshot 1");
  EXPECT_EQ(whole.lines[1], "blob until " + std::to_string(last - 7));
  EXPECT_EQ(whole.lines[2], "record 1");
  EXPECT_EQ(whole.lines.back(), "record " + std::to_string(last));
  EXPECT_GE(whole.marks, 1);
  const std::string path = kFolder + "/" + disk.List(kFolder)->at(0);
  disk.bytes(kFolder + "/" + SnapshotName(1))[70] ^= 1;
  disk.bytes(path)[70] ^= 1;
  Collected damaged;
  ASSERT_TRUE(DumpStore(disk, kFolder, damaged).ok());
  ASSERT_GE(damaged.lines.size(), 2u);
  EXPECT_NE(damaged.lines[damaged.lines.size() - 2].find("offset 64"), std::string::npos);
  EXPECT_NE(damaged.lines.back().find("offset 64: record 1 is damaged"), std::string::npos)
      << damaged.lines.back();
}

// Whatever is damaged: the repaired store verifies, holds the prefix that could be read before, and
// at least all before the first byte that was damaged; a log goes on in it; what was set aside is
// there.
// Whether a file of some name has these bytes.
bool Holds(FakeDisk& disk, const std::string& bytes) {
  const std::vector<std::string> names = disk.List(kFolder).value();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return disk.bytes(kFolder + "/" + name) == bytes;
  });
}

TEST(StoreCheckTest, RepairedStoresWork) {
  for (std::uint64_t seed = 0; seed < Seeds(1'500, 50'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FakeDisk disk;
    const std::uint64_t last = WriteClosedLog(disk, 3 << 10, SmallLog(512 << random() % 3));
    const auto snapshot = [&](std::uint64_t number) {
      const std::uint64_t position = random() % (last + 1);
      WriteSnapshot(disk, number, position, position + random() % (last + 1 - position));
    };
    if (random() % 2 == 0) snapshot(1);
    if (random() % 2 == 0) snapshot(2);
    const std::vector<std::string> names = *disk.List(kFolder);
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      const std::string path = kFolder + "/" + names[random() % names.size()];
      if (!disk.Size(path).ok()) continue;
      std::string& bytes = disk.bytes(path);
      switch (random() % 4) {
        case 0:
          disk.Drop(path);
          break;
        case 1:
          bytes.resize(random() % bytes.size());
          break;
        default:
          bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
          break;
      }
      if (disk.Size(path).ok() && bytes.empty()) disk.Drop(path);
    }
    const auto before = VerifyStore(disk, kFolder);
    ASSERT_TRUE(before.ok()) << before.status();
    const std::size_t files = disk.List(kFolder)->size();
    std::vector<std::string> damaged;  // the bytes of what a fault names
    const std::vector<std::string> present = disk.List(kFolder).value();
    for (const std::string& name : present) {
      const std::string path = kFolder + "/" + name;
      for (const std::string& fault : before->faults) {
        if (fault.starts_with(path + ":")) damaged.push_back(disk.bytes(path));
      }
    }
    const auto repair = RepairStore(disk, kFolder);
    ASSERT_TRUE(repair.ok()) << repair.status();
    EXPECT_EQ(repair->actions, before->actions);
    EXPECT_EQ(repair->actions.empty(), before->ok());
    EXPECT_EQ(repair->lost, before->lost);
    EXPECT_EQ(repair->lost.empty(), before->ok());
    EXPECT_GE(disk.List(kFolder)->size(), files);
    const auto after = VerifyStore(disk, kFolder);
    ASSERT_TRUE(after.ok());
    EXPECT_TRUE(after->ok()) << after->faults.front();
    EXPECT_EQ(after->log_position, before->log_position);
    EXPECT_GE(after->last_sequence, before->last_sequence);
    SnapshotCover cover = after->log_position;
    for (const SnapshotInfo& info : after->snapshots) {
      if (info.header.log_position == cover.all) {
        cover.reaches = info.header.log_reaches;
        break;
      }
    }
    const ReadBack read = ReadAll(disk, cover);
    ASSERT_TRUE(read.reading.status.ok()) << read.reading.status;
    EXPECT_GE(read.reading.end.last_sequence, cover.reaches) << "numbers are given out again";
    Driver driver(disk, SmallLog(), read.reading.end);
    ASSERT_TRUE(driver.Append().ok());
    driver.Step();
    ASSERT_TRUE(driver.log().Close().ok());
    EXPECT_EQ(ReadAll(disk, cover).last, read.reading.end.last_sequence + 1);
    for (const std::string& bytes : damaged) {
      EXPECT_TRUE(Holds(disk, bytes)) << "what was damaged is gone: " << before->faults.front();
    }
    if (HasFailure()) return;
  }
}

// Of the only segment the first record, so that nothing is known of what is behind it.
TEST(StoreCheckTest, ADamagedFirstRecordKeepsWhatIsBehindIt) {
  FakeDisk disk;
  WriteClosedLog(disk, 3 << 10, SmallLog(1 << 20));
  std::string& bytes = disk.bytes(kFolder + "/" + SegmentName(1));
  bytes[kFileHeaderBytes + kRecordHeaderBytes] ^= 1;
  const std::string damaged = bytes;
  ASSERT_TRUE(RepairStore(disk, kFolder).ok());
  const ReadBack read = ReadAll(disk);
  ASSERT_TRUE(read.reading.status.ok()) << read.reading.status;
  EXPECT_EQ(read.last, 0u);
  Driver driver(disk, SmallLog(), read.reading.end);
  ASSERT_TRUE(driver.Append().ok());
  driver.Step();
  ASSERT_TRUE(driver.log().Close().ok());
  EXPECT_TRUE(Holds(disk, damaged));
}

// Damage of what the snapshot covers loses nothing, wherever in the log's last file it is.
TEST(StoreCheckTest, DamageBeforeTheSnapshotLosesNothing) {
  for (const std::uint64_t from_last : {0u, 1u, 2u, 9u, 17u}) {
    FakeDisk whole;
    const std::uint64_t last = WriteClosedLog(whole, 4 << 10, SmallLog(1 << 20));
    ASSERT_GT(last, from_last + 1);
    const std::uint64_t position = last - from_last;
    WriteSnapshot(whole, 1, position, position);
    const std::string path = kFolder + "/" + SegmentName(1);
    std::uint64_t offset = kFileHeaderBytes;
    for (std::uint64_t record = 1; record <= position; ++record) {
      SCOPED_TRACE(::testing::Message() << "snapshot at " << position << ", record " << record);
      const auto header =
          DecodeRecordHeader(std::string_view(whole.bytes(path)).substr(offset), kLogId);
      ASSERT_TRUE(header);
      const auto disk = whole.Copy();
      disk->bytes(path)[offset + 3] ^= 4;
      const ReadBack read = ReadAll(*disk, position);
      EXPECT_TRUE(read.reading.status.ok()) << read.reading.status;
      EXPECT_EQ(read.last, last);
      const auto report = VerifyStore(*disk, kFolder);
      ASSERT_TRUE(report.ok());
      EXPECT_TRUE(report->ok());
      ASSERT_FALSE(report->notes.empty());
      EXPECT_NE(report->notes[0].find("the snapshot covers it"), std::string::npos);
      Driver again(*disk, SmallLog(), read.reading.end);
      ASSERT_TRUE(again.Append().ok());
      ASSERT_TRUE(again.log().Close().ok());
      EXPECT_EQ(ReadAll(*disk, position).last, last + 1);
      // The snapshot before it needs what is damaged, and says so.
      EXPECT_TRUE(absl::IsDataLoss(ReadAll(*disk, record - 1).reading.status));
      offset += RecordBytes(header->body_bytes);
    }
  }
}

TEST(StoreCheckTest, AnEarlierRepairsFilesStay) {
  FakeDisk disk;
  for (const char* aside : {".damaged", ".2.damaged", ".3.damaged"}) {
    WriteSnapshot(disk, 1, 0);
    disk.bytes(kFolder + "/" + SnapshotName(1))[70] ^= 1;
    ASSERT_TRUE(RepairStore(disk, kFolder).ok());
    EXPECT_TRUE(disk.Size(kFolder + "/" + SnapshotName(1) + aside).ok()) << aside;
  }
  EXPECT_EQ(disk.List(kFolder)->size(), 3u);
}

TEST(StoreCheckTest, AnotherVersionIsLeftAlone) {
  FakeDisk disk;
  WriteSnapshot(disk, 1, 0);
  std::string& bytes = disk.bytes(kFolder + "/" + SnapshotName(1));
  bytes[8] = 9;
  std::string sum;
  PutU64(sum, Checksum(std::string_view(bytes).substr(0, kFileHeaderBytes - 8), 0));
  bytes.replace(kFileHeaderBytes - 8, 8, sum);
  const auto report = VerifyStore(disk, kFolder);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_NE(report->faults[0].find("version 9"), std::string::npos) << report->faults[0];
  EXPECT_TRUE(report->lost.empty());
  EXPECT_EQ(RepairStore(disk, kFolder).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(disk.List(kFolder)->size(), 1u);
}

}  // namespace
}  // namespace tidemark::store
