// The disk of the real daemon fails: the k-th call of each kind, for every k that a short run
// makes; all of them for a while; read-only; and slowly. Nothing is acknowledged after a failed
// sync (what it was to save is gone), queries go on, and the daemon resumes by itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/disk_trouble.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/rounds.h"
#include "tests/fault/small_disk.h"

namespace tidemark::fault {
namespace {

using std::chrono::milliseconds;

// A short run whose k-th call at a point fails, once. False if it makes no such call.
bool RunWithFailure(Point point, std::uint64_t k, int error, Judged& all) {
  // Snapshots come after a second: those who fail at them wait for the calls.
  const bool of_snapshots = point >= Point::kSnapshotCreate && point <= Point::kSnapshotRemove;
  FaultRun run(Seed() + k, {.flags = {"--sync-interval-us", "0"}, .preload = true, .start = false});
  run.control().Arm(point, Deed::kFail, k, 1, error);
  try {
    run.daemon().Start();
  } catch (const std::runtime_error& why) {
    // Of its own will and with the reason, and then it starts.
    EXPECT_NE(std::string(why.what()).find("exit status 1;"), std::string::npos) << why.what();
    EXPECT_NE(std::string(why.what()).find("(errno "), std::string::npos) << why.what();
    EXPECT_EQ(run.control().done(), 1u) << why.what();
    if (testing::Test::HasFailure()) return false;
    run.daemon().Start();
  }
  run.daemon().CreateStreams();
  run.StartWriters({.batches_max = 20, .window_batches = 8});
  run.writers().Finish();
  if (of_snapshots) {
    test::WaitUntil(
        [&] {
          return run.control().done() > 0 ||
                 run.daemon()->Metric("tidemark_snapshots_total{result=\"ok\"}") >= 1;
        },
        milliseconds(5'000));
  }
  const bool failed = run.control().done() > 0;
  if (failed && of_snapshots) {
    // What failed is said; the next one comes.
    EXPECT_TRUE(test::WaitUntil(
        [&] { return run.daemon()->Metric("tidemark_snapshots_total{result=\"ok\"}") >= 1; }));
  }
  run.EndAndJudge(all);
  return failed;
}

TEST(FailingDisk, TheKthCallOfEachKind) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  std::mt19937_64 random(Seed());
  Judged all;
  std::uint64_t runs = 0;
  std::string calls;
  for (const Point point :
       {Point::kLogCreate, Point::kLogWrite, Point::kLogCut, Point::kLogSync, Point::kLogRename,
        Point::kFolderMake, Point::kFolderSync, Point::kSnapshotCreate, Point::kSnapshotWrite,
        Point::kSnapshotCut, Point::kSnapshotSync, Point::kSnapshotRename}) {
    const std::string_view name = kPointNames[static_cast<std::size_t>(point)];
    std::uint64_t last = 0;
    // Every k; in the test run one, of those of which there are many any of the first ten.
    const bool many =
        point == Point::kLogWrite || point == Point::kLogCut || point == Point::kLogSync;
    const int most = Rounds(1, 1'000'000);
    for (std::uint64_t k = Extended() || !many ? 1 : 1 + random() % 10;
         last < static_cast<std::uint64_t>(most) && !HasFailure(); ++k) {
      SCOPED_TRACE(fmt::format("{}, the {}th", name, k));
      if (!RunWithFailure(point, k, k % 2 == 0 ? ENOSPC : EIO, all)) break;
      last = k;
      ++runs;
    }
    if (HasFailure()) return;
    calls += fmt::format(" {} {},", name, last);
  }
  std::printf("failing disk: %llu runs, the last k that failed:%s %llu batches\n",
              static_cast<unsigned long long>(runs), calls.c_str(),
              static_cast<unsigned long long>(all.batches));
}

TEST(FailingDisk, ForAWhileUnderLoad) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<Point> points{Point::kLogWrite, Point::kLogSync, Point::kLogCut};
  const int rounds = Rounds(6, 200);
  constexpr int kRoundsOfAFolder = 25;
  Judged all;
  int killed = 0;
  for (int round = 0; round < rounds && !HasFailure();) {
    FaultRun run(seed + static_cast<std::uint64_t>(round), {.preload = true});
    run.StartWriters({.pause = std::chrono::microseconds(1'000)});
    for (int i = 0; i < kRoundsOfAFolder && round < rounds && !HasFailure(); ++i, ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      run.AwaitProgress();
      const int error = random() % 2 == 0 ? EIO : ENOSPC;
      run.control().ArmNow(points[random() % points.size()], Deed::kFail, error);
      // What comes next must not be written either: a new segment.
      run.control().ArmNow(Point::kLogCreate, Deed::kFail, error, 1);
      ExpectRefusedLoudly(run, error == EIO ? "Input/output error" : "No space left");
      std::this_thread::sleep_for(milliseconds(random() % 200));
      const bool kill = random() % 3 == 0;
      if (kill) run.daemon().Kill();
      run.control().Disarm();
      if (kill) {
        run.daemon().Start();
        ++killed;
      }
    }
    run.AwaitProgress();
    run.EndAndJudge(all);
    TellProgress("failing disk for a while", round, rounds);
  }
  std::printf("failing disk for a while: %d rounds, %d killed meanwhile, %llu batches, seed %llu\n",
              rounds, killed, static_cast<unsigned long long>(all.batches),
              static_cast<unsigned long long>(seed));
}

// A start on a folder that cannot be written ends by itself, says why, and changes nothing.
void ExpectNoStart(FaultRun& run) {
  try {
    run.daemon().Start();
    ADD_FAILURE() << "it started on a disk that is read-only";
  } catch (const std::runtime_error& why) {
    const std::string said = why.what();
    EXPECT_NE(said.find("exit status 2;"), std::string::npos) << said;
    EXPECT_NE(said.find(run.daemon().data_folder()), std::string::npos) << said;
    EXPECT_NE(said.find("Read-only file system"), std::string::npos) << said;
  }
}

// As a kernel does that finds its file system damaged: from one call to the next, with all files
// open.
TEST(FailingDisk, ReadOnlyUnderLoad) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int rounds = Rounds(4, 200);
  Judged all;
  int killed = 0;
  FaultRun run(seed, {.preload = true});
  run.StartWriters({.pause = std::chrono::microseconds(1'000)});
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    run.AwaitProgress();
    std::this_thread::sleep_for(milliseconds(random() % 100));
    run.control().MakeReadOnly(true);
    ExpectRefusedLoudly(run, "Read-only file system");
    std::this_thread::sleep_for(milliseconds(random() % 200));
    const bool kill = round % 2 == 1;
    if (kill) {
      run.daemon().Kill();
      ExpectNoStart(run);
      ++killed;
    }
    run.control().MakeReadOnly(false);
    if (kill) run.daemon().Start();
    TellProgress("read-only disk", round, rounds);
  }
  run.AwaitProgress();
  run.EndAndJudge(all);
  std::printf("read-only disk: %d rounds, %d killed meanwhile, %llu batches, seed %llu\n", rounds,
              killed, static_cast<unsigned long long>(all.batches),
              static_cast<unsigned long long>(seed));
}

// A real one. It takes a daemon that is gone: nobody is allowed to make a disk read-only on which
// files are open for writing.
TEST(FailingDisk, MountedReadOnlyBetweenTwoStarts) {
  const SmallDisk disk(std::uint64_t{48} << 20);
  if (!disk.error().empty()) GTEST_SKIP() << disk.error();
  const std::uint64_t seed = Seed();
  const int rounds = Rounds(2, 50);
  Judged all;
  FaultRun run(seed, {.data_folder = disk.data_folder()});
  run.StartWriters({.pause = std::chrono::microseconds(2'000)});
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    run.AwaitProgress();
    run.daemon().Kill();
    ASSERT_EQ(disk.Remount(true), "");
    ExpectNoStart(run);
    ASSERT_EQ(disk.Remount(false), "");
    run.daemon().Start();
  }
  run.AwaitProgress();
  run.EndAndJudge(all);
}

// A disk that takes long loses nothing, and holds up no query.
TEST(FailingDisk, SlowUnderLoad) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  std::mt19937_64 random(Seed());
  const int rounds = Rounds(2, 50);
  Judged all;
  FaultRun run(Seed(), {.preload = true});
  run.StartWriters({.pause = std::chrono::microseconds(1'000)});
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    run.AwaitProgress();
    const milliseconds slow(50 + random() % 500);
    run.control().SlowBy(slow);
    run.control().ArmNow(random() % 2 == 0 ? Point::kLogSync : Point::kLogWrite, Deed::kSlow);
    EXPECT_TRUE(test::WaitUntil([&] { return run.control().done() > 0; }));
    run.daemon().AwaitGrpc();
    for (int i = 0; i < 5; ++i) {
      EXPECT_GT(run.daemon()->client().Quantiles("shared", {0.5}).n, 0u);
    }
    run.AwaitProgress();
    run.control().Reset();
  }
  run.EndAndJudge(all);
}

}  // namespace
}  // namespace tidemark::fault
