// The disk is full under load, and has room again: batches are refused loudly and nothing is lost,
// queries go on, a daemon that is killed and started meanwhile is ready, and all resumes by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "tests/fault/disk_trouble.h"
#include "tests/fault/fault_run.h"
#include "tests/fault/rounds.h"
#include "tests/fault/small_disk.h"

namespace tidemark::fault {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kDiskBytes = std::uint64_t{48} << 20;
constexpr int kRoundsOfAFolder = 25;

struct Counts {
  Judged all;
  int killed = 0;
};

// Rounds on one disk. `fill` and `free` are what makes it full.
void RunRounds(int rounds, std::uint64_t seed, const RunOptions& options, std::mt19937_64& random,
               const auto& fill, const auto& free, Counts& counts) {
  FaultRun run(seed, options);
  run.StartWriters({.pause = std::chrono::microseconds(2'000)});
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    run.AwaitProgress();
    std::this_thread::sleep_for(milliseconds(random() % 100));
    fill(run);
    ExpectRefusedLoudly(run, "No space left on device", [&] { fill(run); });
    const bool kill = random() % 4 == 0;
    if (kill) {
      run.daemon().Kill();
      run.daemon().Start();
      EXPECT_EQ(run.daemon()->Get("/-/ready").code, 200);
      ++counts.killed;
    }
    std::this_thread::sleep_for(milliseconds(random() % 200));
    free(run);
    run.AwaitProgress();
  }
  free(run);
  run.EndAndJudge(counts.all);
}

TEST(FullDisk, AndFreedUnderLoad) {
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int rounds = Rounds(5, 200);
  Counts counts;
  bool on_tmpfs = true;
  for (int done = 0; done < rounds && !HasFailure(); done += kRoundsOfAFolder) {
    const int now = std::min(kRoundsOfAFolder, rounds - done);
    const std::uint64_t folder_seed = seed + static_cast<std::uint64_t>(done);
    TellProgress("full disk", done, rounds);
    const SmallDisk disk(kDiskBytes);
    if (disk.error().empty()) {
      RunRounds(
          now, folder_seed, {.data_folder = disk.data_folder()}, random,
          [&](FaultRun&) { disk.Fill(); }, [&](FaultRun&) { disk.Free(); }, counts);
      continue;
    }
    if (FaultControl::Unusable() != nullptr) {
      GTEST_SKIP() << disk.error() << "; and " << FaultControl::Unusable();
    }
    std::cout << disk.error() << ": the preloaded library refuses writes instead\n";
    on_tmpfs = false;
    RunRounds(
        now, folder_seed, {.preload = true}, random,
        [](FaultRun& run) { run.control().LimitDisk(1); },
        [](FaultRun& run) { run.control().LimitDisk(0); }, counts);
  }
  std::printf(
      "full disk: %d rounds on %s, %d killed while full, %llu batches, %llu values, seed %llu\n",
      rounds, on_tmpfs ? "a tmpfs" : "a disk that is said to be full", counts.killed,
      static_cast<unsigned long long>(counts.all.batches),
      static_cast<unsigned long long>(counts.all.values), static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace tidemark::fault
