// A log cut off at every offset, with every bit flipped, with segments missing or mixed up: what is
// read is a prefix, or there is a refusal that names the file.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

using testing::FakeDisk;

std::vector<std::string> Paths(FakeDisk& disk) {
  std::vector<std::string> paths;
  const auto names = disk.List(kFolder);
  for (const std::string& name : *names) paths.push_back(kFolder + "/" + name);
  return paths;
}

void ExpectNamed(const ReadBack& read, const std::string& path) {
  EXPECT_EQ(read.reading.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(read.reading.status.message().find(path), std::string::npos) << read.reading.status;
  EXPECT_NE(read.reading.status.message().find("lost"), std::string::npos) << read.reading.status;
}

TEST(LogDamageTest, CutOffAnywhere) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, Cases(4 << 10, 64 << 10));
  const std::vector<std::string> paths = Paths(disk);
  ASSERT_GT(paths.size(), 3u);
  for (const std::string& path : paths) {
    const std::string whole = disk.bytes(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      disk.bytes(path) = whole.substr(0, size);
      const ReadBack read = ReadAll(disk);
      SCOPED_TRACE(::testing::Message() << path << " cut off at " << size);
      EXPECT_LE(read.last, last);
      if (path != paths.back() || size < kFileHeaderBytes) {
        ExpectNamed(read, path);
      } else {
        EXPECT_TRUE(read.reading.status.ok()) << read.reading.status;
        EXPECT_EQ(read.reading.end.last_sequence, read.last);
      }
      if (HasFailure()) return;
    }
    disk.bytes(path) = whole;
  }
  EXPECT_EQ(ReadAll(disk).last, last);
}

TEST(LogDamageTest, EveryBitFlipped) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 8 << 10, SmallLog(2048));
  const std::vector<std::string> paths = Paths(disk);
  // A prime share of the bits, so that each bit of a byte has its turn.
  const auto step = static_cast<std::size_t>(Cases(7, 1));
  std::size_t number = 0;
  for (const std::string& path : paths) {
    std::string& bytes = disk.bytes(path);
    // The mark at the very end says that all before it was synced, and holds nothing itself.
    const std::size_t mark =
        path == paths.back() ? bytes.size() - kRecordHeaderBytes : bytes.size();
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      if (number++ % step != 0) continue;
      const char mask = static_cast<char>(1 << bit % 8);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
      const ReadBack read = ReadAll(disk);
      SCOPED_TRACE(::testing::Message() << path << " bit " << bit % 8 << " of byte " << bit / 8);
      if (bit / 8 < mark) {
        ExpectNamed(read, path);
      } else {
        EXPECT_TRUE(read.reading.status.ok()) << read.reading.status;
        EXPECT_EQ(read.last, last);
      }
      if (HasFailure()) return;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ mask);
    }
  }
  EXPECT_EQ(ReadAll(disk).last, last);
}

// Without the mark the records behind the last sync that one of them tells of may be lost unseen;
// none before it.
TEST(LogDamageTest, FlippedBitsInALogThatWasNotClosed) {
  FakeDisk disk;
  Driver driver(disk, SmallLog(1 << 20));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(driver.Append().ok());
    driver.Step(milliseconds(5));
  }
  const std::uint64_t told = driver.last() - 1;  // by the last record of all
  const std::string path = kFolder + "/" + SegmentName(1);
  std::string& bytes = disk.bytes(path);
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += Cases(5, 1)) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    const ReadBack read = ReadAll(disk);
    SCOPED_TRACE(::testing::Message() << "bit " << bit);
    if (read.reading.status.ok()) {
      EXPECT_GE(read.last, told);
      EXPECT_EQ(read.reading.end.notes.size(), 1u);
    } else {
      ExpectNamed(read, path);
    }
    if (HasFailure()) return;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
}

// Random damage: several bits, pieces moved, pieces overwritten by other pieces.
TEST(LogDamageTest, RandomDamage) {
  FakeDisk disk;
  WriteClosedLog(disk, 8 << 10, SmallLog(2048));
  const std::vector<std::string> paths = Paths(disk);
  for (std::uint64_t seed = 0; seed < Seeds(2'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto damaged = disk.Copy();
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      std::string& bytes = damaged->bytes(paths[random() % paths.size()]);
      const std::string& other = disk.bytes(paths[random() % paths.size()]);
      const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
      switch (random() % 5) {
        case 0:
          if (!bytes.empty()) bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 64 * (random() % 2 == 0 ? 8 : 1));
          break;
        case 2:
          bytes.insert(at / 8 * 8, other.substr(random() % other.size() / 8 * 8, random() % 512));
          break;
        case 3:
          bytes.replace(at / 8 * 8, 64, other.substr(random() % other.size() / 8 * 8, 64));
          break;
        default:
          bytes.resize(at);
          break;
      }
    }
    const ReadBack read = ReadAll(*damaged);
    if (!read.reading.status.ok()) {
      EXPECT_EQ(read.reading.status.code(), absl::StatusCode::kDataLoss) << read.reading.status;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// A log of many records in few files, and up to eight of its bits.
TEST(LogDamageTest, RandomFlips) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 64 << 10, SmallLog(16 << 10));
  const std::vector<std::string> paths = Paths(disk);
  for (std::uint64_t seed = 0; seed < Seeds(500); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<std::pair<char*, char>> undo;
    bool mark_hit = false;  // which alone says that the records of the last sync are durable
    for (std::uint64_t i = 1 + random() % 8; i > 0; --i) {
      const std::string& path = paths[random() % paths.size()];
      std::string& bytes = disk.bytes(path);
      const std::size_t at = random() % bytes.size();
      mark_hit = mark_hit || (path == paths.back() && at >= bytes.size() - kRecordHeaderBytes);
      char& byte = bytes[at];
      undo.emplace_back(&byte, byte);
      byte = static_cast<char>(byte ^ 1 << random() % 8);
    }
    const ReadBack read = ReadAll(disk);
    if (read.reading.status.ok() && mark_hit) {
      EXPECT_TRUE(read.last == last || !read.reading.end.notes.empty());
    } else if (read.reading.status.ok()) {  // bits that were flipped back
      EXPECT_EQ(read.last, last);
    } else {
      EXPECT_EQ(read.reading.status.code(), absl::StatusCode::kDataLoss) << read.reading.status;
      EXPECT_NE(read.reading.status.message().find("lost"), std::string::npos);
    }
    for (auto at = undo.rbegin(); at != undo.rend(); ++at) *at->first = at->second;
    if (HasFailure()) return;
  }
  EXPECT_EQ(ReadAll(disk).last, last);
}

TEST(LogDamageTest, MissingSegmentsAreNoticed) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 8 << 10);
  const std::vector<std::string> paths = Paths(disk);
  for (const std::string& path : paths) {
    const auto less = disk.Copy();
    less->Drop(path);
    const ReadBack read = ReadAll(*less);
    if (path == paths.back()) {  // nothing is left that tells of it
      EXPECT_TRUE(read.reading.status.ok());
      EXPECT_LT(read.last, last);
    } else {
      ExpectNamed(read, path);
    }
  }
}

TEST(LogDamageTest, SegmentsUnderEachOthersNames) {
  FakeDisk disk;
  WriteClosedLog(disk, 8 << 10);
  const std::vector<std::string> paths = Paths(disk);
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
    const auto mixed = disk.Copy();
    std::swap(mixed->bytes(paths[i]), mixed->bytes(paths[i + 1]));
    const ReadBack read = ReadAll(*mixed);
    EXPECT_EQ(read.reading.status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(read.last, 0u);
  }
}

TEST(LogDamageTest, OneSegmentOfAnotherLog) {
  FakeDisk disk;
  WriteClosedLog(disk, 4 << 10);
  const std::string path = Paths(disk)[1];
  std::string& bytes = disk.bytes(path);
  SegmentHeader header = *DecodeSegmentHeader(bytes);
  header.log_id ^= 1;
  bytes.replace(0, kFileHeaderBytes, EncodeSegmentHeader(header));
  ExpectNamed(ReadAll(disk), path);
}

TEST(LogDamageTest, LogThatEndsBeforeTheSnapshot) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 2 << 10);
  EXPECT_TRUE(ReadAll(disk, last).reading.status.ok());
  ExpectNamed(ReadAll(disk, last + 1), kFolder);
  FakeDisk empty;
  EXPECT_TRUE(ReadAll(empty).reading.status.ok());
  ExpectNamed(ReadAll(empty, 1), kFolder);
}

TEST(LogDamageTest, AnotherVersionIsRefusedByName) {
  FakeDisk disk;
  WriteClosedLog(disk, 1 << 10);
  const std::string path = Paths(disk).back();
  std::string& bytes = disk.bytes(path);
  bytes[8] = static_cast<char>(kStoreVersion + 1);
  std::string sum;
  PutU64(sum, Checksum(std::string_view(bytes).substr(0, kFileHeaderBytes - 8), 0));
  bytes.replace(kFileHeaderBytes - 8, 8, sum);
  const ReadBack read = ReadAll(disk);
  EXPECT_EQ(read.reading.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(read.reading.status.message().find("version " + std::to_string(kStoreVersion + 1)),
            std::string::npos);
  EXPECT_NE(read.reading.status.message().find(path), std::string::npos);
}

}  // namespace
}  // namespace tidemark::store
