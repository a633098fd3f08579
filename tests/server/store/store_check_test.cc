// verify, dump, repair: after a repair a store verifies, what it held before the damage is there,
// and a log goes on behind it.
#include "server/store/store_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

using testing::FakeDisk;

void WriteSnapshot(FileSystem& disk, std::uint64_t number, std::uint64_t position) {
  auto writer = SnapshotWriter::Begin(disk, kFolder, number, position);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Add("until", std::to_string(position)).ok());
  ASSERT_TRUE(writer->Finish().ok());
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

TEST(StoreCheckTest, DumpHasALineForEach) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 2 << 10);
  WriteSnapshot(disk, 1, last - 7);
  std::vector<std::string> lines;
  ASSERT_TRUE(
      DumpStore(disk, kFolder, [&](std::string_view line) { lines.emplace_back(line); }).ok());
  ASSERT_EQ(lines.size(), 2u + 7);
  EXPECT_EQ(lines[0].rfind("snapshot 1: 1 blobs, ", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1],
            "  blob \"until\": " + std::to_string(std::to_string(last - 7).size()) + " bytes");
  EXPECT_EQ(lines[2].rfind("record " + std::to_string(last - 6) + ": ", 0), 0u) << lines[2];
  const std::string path = kFolder + "/" + disk.List(kFolder)->at(0);
  disk.bytes(kFolder + "/" + SnapshotName(1))[70] ^= 1;
  disk.bytes(path)[70] ^= 1;
  lines.clear();
  ASSERT_TRUE(
      DumpStore(disk, kFolder, [&](std::string_view line) { lines.emplace_back(line); }).ok());
  EXPECT_NE(lines.front().find("offset 64"), std::string::npos) << lines.front();
  EXPECT_NE(lines.back().find("offset 64: record 1 is damaged"), std::string::npos) << lines.back();
}

// Whatever is damaged: the repaired store verifies, holds the prefix that could be read before, and
// at least all before the first byte that was damaged; a log goes on in it; what was set aside is
// there.
TEST(StoreCheckTest, RepairedStoresWork) {
  for (std::uint64_t seed = 0; seed < Seeds(1'500, 50'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FakeDisk disk;
    const std::uint64_t last = WriteClosedLog(disk, 3 << 10, SmallLog(512 << random() % 3));
    if (random() % 2 == 0) WriteSnapshot(disk, 1, random() % last);
    if (random() % 2 == 0) WriteSnapshot(disk, 2, random() % (last + 1));
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
    const auto repair = RepairStore(disk, kFolder);
    ASSERT_TRUE(repair.ok()) << repair.status();
    EXPECT_EQ(repair->actions.empty(), before->ok());
    EXPECT_GE(disk.List(kFolder)->size(), files);
    const auto after = VerifyStore(disk, kFolder);
    ASSERT_TRUE(after.ok());
    EXPECT_TRUE(after->ok()) << after->faults.front();
    EXPECT_EQ(after->log_position, before->log_position);
    EXPECT_GE(after->last_sequence, before->last_sequence);
    const ReadBack read = ReadAll(disk, after->log_position);
    Driver driver(disk, SmallLog(), read.reading.end);
    ASSERT_TRUE(driver.Append().ok());
    driver.Step();
    ASSERT_TRUE(driver.log().Close().ok());
    EXPECT_EQ(ReadAll(disk, after->log_position).last, read.last + 1);
    if (HasFailure()) return;
  }
}

TEST(StoreCheckTest, AnotherVersionIsLeftAlone) {
  FakeDisk disk;
  WriteSnapshot(disk, 1, 0);
  std::string& bytes = disk.bytes(kFolder + "/" + SnapshotName(1));
  bytes[8] = 9;
  std::string sum;
  PutU64(sum, Checksum(std::string_view(bytes).substr(0, kFileHeaderBytes - 8), 0));
  bytes.replace(kFileHeaderBytes - 8, 8, sum);
  EXPECT_EQ(RepairStore(disk, kFolder).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(disk.List(kFolder)->size(), 1u);
}

}  // namespace
}  // namespace tidemark::store
