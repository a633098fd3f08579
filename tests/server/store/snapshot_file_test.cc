// Snapshots: whole or not at all, whatever the disk does; damage is named; the one before is used.
#include "server/store/snapshot_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

using testing::DiskOp;
using testing::FakeDisk;
using Blobs = std::vector<std::pair<std::string, std::string>>;

Blobs BlobsOf(std::uint64_t seed, std::size_t bytes) {
  std::mt19937_64 random(seed);
  Blobs blobs;
  for (std::size_t used = 0; used < bytes; used += blobs.back().second.size() + 60) {
    std::string blob(random() % 400, '\0');
    for (char& byte : blob) byte = static_cast<char>(random());
    blobs.emplace_back("stream " + std::to_string(random() % 1000), std::move(blob));
  }
  return blobs;
}

absl::Status WriteBlobs(FileSystem& disk, std::uint64_t number, const Blobs& blobs) {
  auto writer = SnapshotWriter::Begin(disk, kFolder, number, number * 10);
  if (!writer.ok()) return writer.status();
  for (const auto& [name, blob] : blobs) {
    if (absl::Status status = writer->Add(name, blob); !status.ok()) return status;
  }
  return writer->Finish();
}

absl::StatusOr<Blobs> ReadBlobs(FileSystem& disk, std::uint64_t number) {
  Blobs blobs;
  const auto header =
      ReadSnapshot(disk, kFolder, number, [&](std::string_view name, std::string_view blob) {
        blobs.emplace_back(name, blob);
        return absl::OkStatus();
      });
  if (!header.ok()) return header.status();
  EXPECT_EQ(*header, (SnapshotHeader{number, number * 10, number * 10}));
  return blobs;
}

std::string PathOf(std::uint64_t number) { return kFolder + "/" + SnapshotName(number); }

TEST(SnapshotFileTest, BlobsComeBack) {
  FakeDisk disk;
  EXPECT_FALSE(NewestSnapshot(disk, kFolder)->header.has_value());
  ASSERT_TRUE(WriteBlobs(disk, 1, {}).ok());
  EXPECT_TRUE(ReadBlobs(disk, 1)->empty());
  Blobs blobs = BlobsOf(2, 4000);
  blobs.emplace_back("", "");
  ASSERT_TRUE(WriteBlobs(disk, 2, blobs).ok());
  EXPECT_EQ(*ReadBlobs(disk, 2), blobs);
  const auto chosen = NewestSnapshot(disk, kFolder);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->header->number, 2u);
  EXPECT_EQ(chosen->header->log_position, 20u);
  ASSERT_TRUE(RemoveSnapshotsBefore(disk, kFolder, 2).ok());
  EXPECT_EQ(*disk.List(kFolder), std::vector<std::string>{SnapshotName(2)});
}

TEST(SnapshotFileTest, BlobsOfMoreThanOneRecord) {
  FakeDisk disk;
  const Blobs blobs = {{"large", std::string((std::size_t{32} << 20) + 3, 'x')}, {"small", "y"}};
  ASSERT_TRUE(WriteBlobs(disk, 1, blobs).ok());
  const auto read = ReadBlobs(disk, 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == blobs);
}

TEST(SnapshotFileTest, CutOffAnywhere) {
  FakeDisk disk;
  ASSERT_TRUE(
      WriteBlobs(disk, 1, BlobsOf(1, static_cast<std::size_t>(Cases(4 << 10, 64 << 10)))).ok());
  const std::string whole = disk.bytes(PathOf(1));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    disk.bytes(PathOf(1)) = whole.substr(0, size);
    const absl::Status status = ReadBlobs(disk, 1).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "at " << size;
    ASSERT_NE(status.message().find(PathOf(1)), std::string::npos) << status;
    ASSERT_NE(status.message().find("offset"), std::string::npos) << status;
  }
  disk.bytes(PathOf(1)) = whole + '\0';
  EXPECT_EQ(ReadBlobs(disk, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SnapshotFileTest, EveryBitFlipped) {
  FakeDisk disk;
  ASSERT_TRUE(WriteBlobs(disk, 1, BlobsOf(1, 8 << 10)).ok());
  std::string& bytes = disk.bytes(PathOf(1));
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += static_cast<std::size_t>(Cases(7, 1))) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    const absl::Status status = ReadBlobs(disk, 1).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "bit " << bit;
    ASSERT_NE(status.message().find(PathOf(1)), std::string::npos) << status;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
}

TEST(SnapshotFileTest, RandomFlips) {
  FakeDisk disk;
  const Blobs blobs = BlobsOf(1, 64 << 10);
  ASSERT_TRUE(WriteBlobs(disk, 1, blobs).ok());
  const std::string whole = disk.bytes(PathOf(1));
  std::string& bytes = disk.bytes(PathOf(1));
  for (std::uint64_t seed = 0; seed < Seeds(500); ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::size_t> flipped;
    for (std::uint64_t i = 1 + random() % 8; i > 0; --i) {
      flipped.push_back(random() % bytes.size());
      bytes[flipped.back()] = static_cast<char>(bytes[flipped.back()] ^ 1 << random() % 8);
    }
    const bool damaged = bytes != whole;
    const auto read = ReadBlobs(disk, 1);
    if (damaged) {
      ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << "seed " << seed;
      ASSERT_NE(read.status().message().find(PathOf(1)), std::string::npos) << read.status();
    } else {
      ASSERT_TRUE(read.ok() && *read == blobs) << "seed " << seed;
    }
    for (const std::size_t at : flipped) bytes[at] = whole[at];
  }
}

TEST(SnapshotFileTest, TheOneBeforeIsUsed) {
  FakeDisk disk;
  ASSERT_TRUE(WriteBlobs(disk, 1, BlobsOf(1, 500)).ok());
  ASSERT_TRUE(WriteBlobs(disk, 2, BlobsOf(2, 500)).ok());
  disk.bytes(PathOf(2))[100] ^= 1;
  auto chosen = NewestSnapshot(disk, kFolder);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->header->number, 1u);
  EXPECT_EQ(chosen->highest_number, 2u);
  ASSERT_EQ(chosen->notes.size(), 1u);
  EXPECT_NE(chosen->notes[0].find(PathOf(2) + ": offset 64: "), std::string::npos)
      << chosen->notes[0];
  disk.bytes(PathOf(1))[0] ^= 1;
  EXPECT_EQ(NewestSnapshot(disk, kFolder).status().code(), absl::StatusCode::kDataLoss);
  // One under another's name is none.
  ASSERT_TRUE(WriteBlobs(disk, 3, BlobsOf(3, 500)).ok());
  disk.bytes(PathOf(2)) = disk.bytes(PathOf(3));
  EXPECT_EQ(ReadBlobs(disk, 2).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SnapshotFileTest, EveryOperationFails) {
  const Blobs old = BlobsOf(1, 500);
  const Blobs next = BlobsOf(2, 900);
  for (const DiskOp op :
       {DiskOp::kCreate, DiskOp::kWrite, DiskOp::kSync, DiskOp::kRename, DiskOp::kSyncFolder}) {
    FakeDisk disk;
    ASSERT_TRUE(WriteBlobs(disk, 1, old).ok());
    disk.FailAt(op, 1, ENOSPC);
    EXPECT_EQ(WriteBlobs(disk, 2, next).code(), absl::StatusCode::kResourceExhausted);
    if (op != DiskOp::kSyncFolder) {
      EXPECT_EQ(disk.List(kFolder)->size(), 1u);
      EXPECT_EQ(NewestSnapshot(disk, kFolder)->header->number, 1u);
    }
    EXPECT_EQ(*ReadBlobs(disk, 1), old);
    EXPECT_TRUE(WriteBlobs(disk, 3, next).ok());
    EXPECT_EQ(*ReadBlobs(disk, 3), next);
  }
}

TEST(SnapshotFileTest, TheMachineStopsInEveryOperation) {
  const Blobs old = BlobsOf(1, 500);
  const Blobs next = BlobsOf(2, 2000);
  for (std::uint64_t k = 1; k <= 6; ++k) {
    for (std::uint64_t seed = 0; seed < Seeds(200, 10'000); ++seed) {
      SCOPED_TRACE(::testing::Message() << "operation " << k << ", seed " << seed);
      std::mt19937_64 random(seed);
      FakeDisk disk;
      ASSERT_TRUE(WriteBlobs(disk, 1, old).ok());
      disk.StopAt(k);
      const bool finished = WriteBlobs(disk, 2, next).ok();
      disk.Crash(random);
      const auto chosen = NewestSnapshot(disk, kFolder);
      ASSERT_TRUE(chosen.ok()) << chosen.status();
      ASSERT_TRUE(chosen->header.has_value());
      EXPECT_TRUE(chosen->notes.empty());
      const std::uint64_t number = chosen->header->number;
      EXPECT_GE(number, finished ? 2u : 1u);
      EXPECT_EQ(*ReadBlobs(disk, number), number == 1 ? old : next);
      // The next writer is not in the way of what was left.
      EXPECT_TRUE(WriteBlobs(disk, number + 1, next).ok());
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tidemark::store
