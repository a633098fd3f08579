// Every operation of the disk failing, and the machine stopping in every one: what was confirmed is
// read back, once and in order; nothing is confirmed after a failed sync; the log resumes by
// itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/store/snapshot_file.h"
#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

using testing::DiskOp;
using testing::FakeDisk;

// A day in the life of a log: appends, syncs, quiet, rotation, removal. What is refused is not
// tried again. Returns what was released.
std::uint64_t Live(Driver& driver, int appends) {
  std::uint64_t released = 0;
  for (int i = 0; i < appends; ++i) {
    static_cast<void>(driver.Append());
    switch (i % 6) {
      case 0:
      case 3:
        driver.Step(milliseconds(1));
        break;
      case 5:
        driver.Step(milliseconds(5));
        if (i % 4 == 1) driver.Step(milliseconds(5));  // quiet: a mark
        break;
      default:
        break;
    }
    if (i == appends / 2) {
      released = driver.confirmed() / 2;
      driver.log().ReleaseThrough(released);
    }
  }
  return released;
}

constexpr int kAppends = 60;

// `released`: those that may be gone.
void ExpectEverythingUpTo(FakeDisk& disk, std::uint64_t confirmed, std::uint64_t appended,
                          std::uint64_t released = 0) {
  const ReadBack read = ReadAll(disk, released);
  EXPECT_TRUE(read.reading.status.ok()) << read.reading.status;
  EXPECT_GE(read.last, confirmed);
  EXPECT_LE(read.last, appended);
}

TEST(StoreFaultTest, EveryOperationFailsOnce) {
  FakeDisk healthy;
  {
    Driver driver(healthy, SmallLog());
    Live(driver, kAppends);
    EXPECT_TRUE(driver.log().Close().ok());
  }
  for (const DiskOp op : {DiskOp::kCreate, DiskOp::kWrite, DiskOp::kSync, DiskOp::kRemove,
                          DiskOp::kTruncate, DiskOp::kRename, DiskOp::kSyncFolder}) {
    for (std::uint64_t k = 1; k <= healthy.operations(op); ++k) {
      SCOPED_TRACE(::testing::Message()
                   << "operation " << static_cast<int>(op) << ", the " << k << "th");
      FakeDisk disk;
      disk.FailAt(op, k, k % 2 == 0 ? EIO : ENOSPC);
      Driver driver(disk, SmallLog());
      const std::uint64_t released = Live(driver, kAppends);
      EXPECT_LE(driver.confirmed(), driver.last());
      if (op != DiskOp::kRemove) {
        EXPECT_GE(driver.log().Stats().failures, driver.log().Stats().status.ok() ? 0u : 1u);
      }
      // It has recovered, or does now; then nothing is missing that was taken.
      for (int i = 0; i < 3; ++i) driver.Step(milliseconds(100));
      EXPECT_TRUE(driver.log().Stats().status.ok()) << driver.log().Stats().status;
      EXPECT_TRUE(driver.Append().ok());
      const absl::Status closed = driver.log().Close();
      if (!closed.ok()) continue;  // the fault came in Close
      EXPECT_EQ(driver.log().Stats().durable_sequence, driver.last());
      ExpectEverythingUpTo(disk, driver.last(), driver.last(), released);
      if (HasFailure()) return;
    }
  }
}

TEST(StoreFaultTest, EveryOperationFailsOnceThenPowerIsLost) {
  for (std::uint64_t seed = 0; seed < Seeds(300, 20'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FakeDisk disk;
    const DiskOp ops[] = {DiskOp::kCreate, DiskOp::kWrite, DiskOp::kSync, DiskOp::kSyncFolder};
    disk.FailAt(ops[random() % 4], 1 + random() % 40, EIO);
    Driver driver(disk, SmallLog(random() % 2 == 0 ? 1024 : 4096));
    for (int i = 0; i < kAppends; ++i) {
      static_cast<void>(driver.Append());
      if (random() % 3 == 0) driver.Step(milliseconds(random() % 60));
    }
    disk.Crash(random);
    ExpectEverythingUpTo(disk, driver.confirmed(), driver.last());
    if (HasFailure()) return;
  }
}

TEST(StoreFaultTest, TheMachineStopsInEveryOperation) {
  std::uint64_t operations = 0;
  {
    FakeDisk healthy;
    Driver driver(healthy, SmallLog());
    Live(driver, kAppends);
    EXPECT_TRUE(driver.log().Close().ok());
    operations = healthy.operations();
  }
  ASSERT_GT(operations, 80u);
  for (std::uint64_t k = 1; k <= operations; ++k) {
    for (std::uint64_t seed = 0; seed < Seeds(10, 1'000); ++seed) {
      SCOPED_TRACE(::testing::Message() << "operation " << k << ", seed " << seed);
      std::mt19937_64 random(seed * 1'000'003 + k);
      FakeDisk disk;
      disk.StopAt(k);
      std::uint64_t confirmed = 0;
      std::uint64_t appended = 0;
      std::uint64_t released = 0;
      {
        Driver driver(disk, SmallLog());
        released = Live(driver, kAppends);
        static_cast<void>(driver.log().Close());
        confirmed = driver.confirmed();
        appended = driver.last();
      }
      disk.Crash(random);
      ExpectEverythingUpTo(disk, confirmed, appended, released);
      if (HasFailure()) return;
    }
  }
}

// Several lives in one folder, each with faults, each ended by a loss of power or by killing the
// process; snapshots in between; the log behind them released. The oracle is EntryOf and the number
// of the last record confirmed.
TEST(StoreFaultTest, ManyLives) {
  for (std::uint64_t seed = 0; seed < Seeds(400, 100'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FakeDisk disk;
    std::uint64_t confirmed = 0;
    std::uint64_t covered = 0;  // by the newest snapshot whose Finish was OK
    for (int life = 0; life < 6; ++life) {
      auto chosen = NewestSnapshot(disk, kFolder);
      ASSERT_TRUE(chosen.ok()) << chosen.status();
      const std::uint64_t position = chosen->header ? chosen->header->log_position : 0;
      ASSERT_GE(position, covered);
      const ReadBack read = ReadAll(disk, position);
      ASSERT_TRUE(read.reading.status.ok()) << read.reading.status;
      ASSERT_GE(read.last, confirmed);
      Driver driver(disk, SmallLog(512 << random() % 4), read.reading.end);
      std::uint64_t snapshot = chosen->highest_number;
      if (random() % 3 == 0) disk.StopAt(1 + random() % 100);
      for (std::uint64_t i = random() % 80; i > 0; --i) {
        switch (random() % 12) {
          case 0:
            disk.FailAt(static_cast<DiskOp>(random() % testing::kDiskOps), 1 + random() % 5,
                        random() % 2 == 0 ? EIO : ENOSPC);
            break;
          case 1:
            disk.set_capacity(random() % 2 == 0 ? UINT64_MAX : disk.used() + random() % 2000);
            break;
          case 2: {
            // What is known to be durable, in this life or from the snapshot before.
            const std::uint64_t until = std::max(driver.log().Stats().durable_sequence, covered);
            auto writer = SnapshotWriter::Begin(disk, kFolder, ++snapshot, until);
            if (!writer.ok() || !writer->Add("until", std::to_string(until)).ok()) break;
            if (!writer->Finish().ok()) break;
            covered = until;
            if (random() % 2 == 0) {
              static_cast<void>(RemoveSnapshotsBefore(disk, kFolder, snapshot));
            }
            driver.log().ReleaseThrough(until);
            break;
          }
          case 3:
          case 4:
          case 5:
            driver.Step(milliseconds(random() % 8));
            break;
          case 6:
            driver.Step(milliseconds(100));
            break;
          default:
            static_cast<void>(driver.Append());
            break;
        }
      }
      if (random() % 4 == 0) static_cast<void>(driver.log().Close());
      confirmed = std::max(confirmed, driver.confirmed());
      if (random() % 3 == 0) {
        disk.Heal();  // killed: the kernel still has all
      } else {
        disk.Crash(random);
      }
      if (HasFailure()) return;
    }
  }
}

TEST(StoreFaultTest, FullDiskRefusesAndResumes) {
  for (std::uint64_t seed = 0; seed < Seeds(200, 5'000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    FakeDisk disk;
    Driver driver(disk, SmallLog(4096));
    disk.set_capacity(random() % 8192);
    int refused = 0;
    for (int i = 0; i < 400 && refused < 5; ++i) {
      const absl::Status status = driver.Append();
      if (!status.ok()) {
        ++refused;
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
        if (!driver.log().Stats().status.ok()) {
          EXPECT_NE(status.message().find("No space left"), std::string::npos) << status;
        }
      }
      driver.Step(milliseconds(5));
    }
    ASSERT_EQ(refused, 5);
    // While it is full, tries come to nothing and leave nothing behind but one file or two.
    for (int i = 0; i < 5; ++i) driver.Step(milliseconds(100));
    const auto full = driver.log().Stats();
    EXPECT_LE(disk.List(kFolder)->size(), full.segments + 2);
    disk.set_capacity(UINT64_MAX);
    driver.Step(milliseconds(100));
    EXPECT_TRUE(driver.log().Stats().status.ok()) << driver.log().Stats().status;
    EXPECT_EQ(driver.log().Stats().durable_sequence, driver.last());
    EXPECT_TRUE(driver.Append().ok());
    driver.Step(milliseconds(5));
    EXPECT_EQ(driver.confirmed(), driver.last());
    disk.Crash(random);
    ExpectEverythingUpTo(disk, driver.last(), driver.last());
    if (HasFailure()) return;
  }
}

// Records wait for room, and there would be room: segments that a snapshot holds.
TEST(StoreFaultTest, AFullDiskMakesRoomOfWhatIsReleased) {
  FakeDisk disk;
  Driver driver(disk, SmallLog(1024));
  while (driver.log().Stats().segments < 6) {
    ASSERT_TRUE(driver.Append().ok());
    driver.Step(milliseconds(5));
  }
  disk.set_capacity(disk.used());
  ASSERT_TRUE(driver.Append().ok());
  driver.Step(milliseconds(5));
  ASSERT_FALSE(driver.log().Stats().status.ok());
  driver.log().ReleaseThrough(driver.log().Stats().durable_sequence);
  driver.Step(milliseconds(100));
  EXPECT_TRUE(driver.log().Stats().status.ok()) << driver.log().Stats().status;
  EXPECT_EQ(driver.log().Stats().durable_sequence, driver.last());
}

TEST(StoreFaultTest, NothingIsConfirmedAfterAFailedSync) {
  FakeDisk disk;
  Driver driver(disk, SmallLog());
  ASSERT_TRUE(driver.Append().ok());
  driver.Step();
  ASSERT_EQ(driver.confirmed(), 1u);
  ASSERT_TRUE(driver.Append().ok());
  disk.FailAt(DiskOp::kSync, 1);
  const LogWriter::Time retry = driver.Step(milliseconds(5));
  EXPECT_EQ(retry, driver.now() + milliseconds(100));
  EXPECT_EQ(driver.confirmed(), 1u);
  EXPECT_EQ(driver.refused(), 1u);
  const absl::Status status = driver.Append();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("fdatasync /store/log-00000000000000000001"), std::string::npos)
      << status;
  driver.Step(milliseconds(99));
  EXPECT_FALSE(driver.log().Stats().status.ok());
  driver.Step(milliseconds(1));
  EXPECT_TRUE(driver.log().Stats().status.ok());
  // The record that was told to be in doubt is durable, in a new segment.
  EXPECT_EQ(driver.log().Stats().durable_sequence, 2u);
  std::mt19937_64 random(1);
  disk.Crash(random);
  EXPECT_EQ(ReadAll(disk).last, 2u);
  EXPECT_EQ(disk.List(kFolder)->size(), 2u);
}

// Whoever is told that the log takes records again is not refused.
TEST(StoreFaultTest, ProgressIsToldWhenRecordsAreTaken) {
  for (const bool closed : {false, true}) {
    FakeDisk disk;
    Driver* told = nullptr;
    std::vector<std::pair<std::uint64_t, bool>> progress;
    LogOptions options = SmallLog();
    options.progress = [&](std::uint64_t durable, const absl::Status& status) {
      progress.emplace_back(durable, status.ok());
      if (!closed && status.ok() && progress.size() > 1) {
        EXPECT_TRUE(told->Append().ok());
      }
    };
    Driver driver(disk, options);
    told = &driver;
    ASSERT_TRUE(driver.Append().ok());
    driver.Step();
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(driver.Append().ok());  // two segments at least
    disk.FailAt(DiskOp::kSync, 1);
    driver.Step(milliseconds(5));
    EXPECT_FALSE(driver.log().Stats().status.ok());
    if (closed) {
      EXPECT_TRUE(driver.log().Close().ok());
    } else {
      driver.Step(milliseconds(100));
    }
    using Progress = std::vector<std::pair<std::uint64_t, bool>>;
    EXPECT_EQ(progress, (Progress{{1, true}, {1, false}, {13, true}}));
    EXPECT_EQ(driver.last(), closed ? 13u : 14u);
  }
}

}  // namespace
}  // namespace tidemark::store
