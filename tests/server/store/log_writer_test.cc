// Group commit: when it writes and syncs, what it refuses, how segments begin and end. Faults of
// the disk are in store_fault_test.
#include "server/store/log_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "server/store/log_thread.h"
#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::store {
namespace {

using testing::DiskOp;
using testing::FakeDisk;

TEST(LogWriterTest, SyncsForManyAtOnceAndNotTooOften) {
  FakeDisk disk;
  Driver driver(disk, SmallLog(1 << 20));
  EXPECT_EQ(driver.Step(), LogWriter::Time::max());
  EXPECT_EQ(disk.operations(), 0u);  // no file before there is a record
  ASSERT_TRUE(driver.Append().ok());
  EXPECT_EQ(driver.wakes(), 1u);
  driver.Step();  // the first is synced at once
  EXPECT_EQ(driver.confirmed(), 1u);
  const std::uint64_t syncs = disk.operations(DiskOp::kSync);
  EXPECT_EQ(syncs, 2u);  // of the header and the record
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(driver.Append().ok());
  EXPECT_EQ(driver.wakes(), 2u);
  const auto due = driver.Step(milliseconds(1));
  EXPECT_EQ(due, driver.now() + milliseconds(4));
  EXPECT_EQ(disk.operations(DiskOp::kSync), syncs);
  EXPECT_EQ(driver.confirmed(), 1u);
  driver.Step(milliseconds(4));
  EXPECT_EQ(disk.operations(DiskOp::kSync), syncs + 1);
  EXPECT_EQ(driver.confirmed(), 4u);
}

TEST(LogWriterTest, WritesMuchWithoutWaitingForTheSync) {
  FakeDisk disk;
  Driver driver(disk, SmallLog(1 << 20));
  ASSERT_TRUE(driver.Append().ok());
  driver.Step();
  const std::uint64_t writes = disk.operations(DiskOp::kWrite);
  while (driver.log().Stats().pending_bytes < 512) ASSERT_TRUE(driver.Append().ok());
  EXPECT_EQ(driver.wakes(), 3u);  // one for the first record, one for 512 bytes
  driver.Step(milliseconds(1));
  EXPECT_GT(disk.operations(DiskOp::kWrite), writes);
  EXPECT_EQ(driver.confirmed(), 1u);
  driver.Step(milliseconds(4));
  EXPECT_EQ(driver.confirmed(), driver.last());
}

TEST(LogWriterTest, PendingBytesAreBounded) {
  FakeDisk disk;
  Driver driver(disk, SmallLog());
  absl::Status status;
  while (status.ok()) status = driver.Append();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_LE(driver.log().Stats().pending_bytes, 4096u);
  EXPECT_TRUE(driver.log().Stats().status.ok());
  driver.Step();
  EXPECT_EQ(driver.log().Stats().pending_bytes, 0u);
  // One that is larger than all that may be pending is taken by itself.
  EXPECT_TRUE(driver.log().Append(StreamCreated{1, std::string(8192, 'x')}, nullptr).ok());
  EXPECT_EQ(driver.log().Append(StreamDeleted{1}, nullptr).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(LogWriterTest, AMarkFollowsWhenItIsQuiet) {
  FakeDisk disk;
  Driver driver(disk, SmallLog());
  ASSERT_TRUE(driver.Append().ok());
  const auto due = driver.Step();
  EXPECT_EQ(due, driver.now() + milliseconds(5));
  EXPECT_EQ(ReadAll(disk).reading.end.tail.size(), 1u);
  const auto size = disk.used();
  EXPECT_EQ(driver.Step(milliseconds(5)), LogWriter::Time::max());
  EXPECT_EQ(disk.used(), size + kRecordHeaderBytes);
  EXPECT_TRUE(ReadAll(disk).reading.end.tail.empty());
  driver.Step(milliseconds(50));
  EXPECT_EQ(disk.used(), size + kRecordHeaderBytes);
}

TEST(LogWriterTest, SegmentsEndAtTheirSizeAndAreReleased) {
  FakeDisk disk;
  Driver driver(disk, SmallLog(1024));
  while (driver.log().Stats().segments < 6) {
    ASSERT_TRUE(driver.Append().ok());
    driver.Step(milliseconds(5));
  }
  const std::vector<std::string> names = *disk.List(kFolder);
  for (const std::string& name : names) {
    EXPECT_LE(disk.bytes(kFolder + "/" + name).size(), 1024u) << name;
  }
  const ReadBack all = ReadAll(disk);
  const std::uint64_t released = all.reading.end.segments[3].first_sequence;
  driver.log().ReleaseThrough(released);
  driver.Step(milliseconds(5));
  const ReadBack rest = ReadAll(disk, released);
  EXPECT_TRUE(rest.reading.status.ok());
  EXPECT_EQ(rest.last, driver.last());
  EXPECT_EQ(rest.reading.end.segments.front().first_sequence, released);
  // What was released is refused by name, not passed over.
  EXPECT_EQ(ReadAll(disk).reading.status.code(), absl::StatusCode::kDataLoss);
}

TEST(LogWriterTest, AnOlderSnapshotsSegmentsStay) {
  FakeDisk disk;
  const std::uint64_t last = WriteClosedLog(disk, 4 << 10);
  // Opened from the newest snapshot, which needs the last segment alone.
  const ReadBack read = ReadAll(disk, last);
  EXPECT_GT(read.reading.end.segments.size(), 3u);
  EXPECT_TRUE(read.reading.end.abandoned.empty());
  Driver driver(disk, SmallLog(), read.reading.end);
  ASSERT_TRUE(driver.Append().ok());
  driver.Step();
  ASSERT_TRUE(driver.log().Close().ok());
  EXPECT_EQ(ReadAll(disk).last, last + 1);
}

TEST(LogWriterTest, OpenedAgainAndAgain) {
  FakeDisk disk;
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) last = WriteClosedLog(disk, 300);
  EXPECT_EQ(ReadAll(disk).last, last);
}

TEST(LogWriterTest, ClosedLogsTakeNothing) {
  FakeDisk disk;
  Driver driver(disk, SmallLog());
  ASSERT_TRUE(driver.Append().ok());
  ASSERT_TRUE(driver.log().Close().ok());
  EXPECT_EQ(driver.confirmed(), 1u);
  EXPECT_EQ(driver.Append().code(), absl::StatusCode::kFailedPrecondition);
}

// Many threads, real files: each thread's records are in its own order, all are there once.
TEST(LogThreadTest, ManyThreadsOnTheMachinesDisk) {
  const test::TemporaryFolder folder;
  constexpr std::uint64_t kThreads = 4;
  const auto each = static_cast<std::uint64_t>(Cases(500, 20'000));
  std::atomic<std::uint64_t> durable{0};
  {
    LogThread thread(PosixFileSystem(),
                     {.folder = folder.path(),
                      .segment_bytes_max = 64 << 10,
                      .sync_interval = microseconds(500)},
                     {}, kLogId);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < each; ++i) {
          Batch batch;
          batch.stream_id = t;
          batch.producer.sequence = i;
          const auto appended = thread.log().Append(batch, [&](const absl::Status& status) {
            if (status.ok()) durable.fetch_add(1);
          });
          ASSERT_TRUE(appended.ok()) << appended.status();
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(thread.Stop().ok());
  }
  EXPECT_EQ(durable.load(), kThreads * each);
  std::vector<std::uint64_t> next(kThreads, 0);
  const auto end =
      ReadLog(PosixFileSystem(), folder.path(), 0, [&](std::uint64_t, const LogEntry& entry) {
        const auto& batch = std::get<Batch>(entry);
        EXPECT_EQ(batch.producer.sequence, next.at(batch.stream_id)++);
        return absl::OkStatus();
      });
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->last_sequence, kThreads * each);
  EXPECT_TRUE(end->tail.empty());
}

}  // namespace
}  // namespace tidemark::store
