// kill -9 at random moments under load over framed TCP and gRPC: nothing that was acknowledged is
// lost, nothing is counted twice, and the state is to the byte that of one uninterrupted run.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "tests/fault/fault_run.h"
#include "tests/fault/rounds.h"

namespace tidemark::fault {
namespace {

using std::chrono::milliseconds;

constexpr int kRoundsOfAFolder = 25;

TEST(Kill, AtRandomMomentsUnderLoad) {
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int rounds = Rounds(8, 1'000);
  const auto begun = std::chrono::steady_clock::now();
  Judged all;
  std::uint64_t folders = 0;
  int round = 0;
  for (; round < rounds && !testing::Test::HasFailure(); ++folders) {
    FaultRun run(seed + folders,
                 {.flags = {"--sync-interval-us", random() % 2 == 0 ? "0" : "2000"}});
    run.StartWriters();
    for (int i = 0; i < kRoundsOfAFolder && round < rounds && !testing::Test::HasFailure();
         ++i, ++round) {
      // Each writer got something through since the start, so that each is in the midst of it; a
      // third of the rounds see a snapshot, which comes after a second.
      run.AwaitProgress();
      const bool long_enough_for_a_snapshot = random() % 3 == 0;
      std::this_thread::sleep_for(
          milliseconds(long_enough_for_a_snapshot ? 700 + random() % 500 : random() % 200));
      run.daemon().Kill();
      run.daemon().Start();
    }
    run.EndAndJudge(all);
    TellProgress("kill", round, rounds);
  }
  std::printf(
      "kill: %d rounds, %llu folders, %llu batches, %llu values, %llu sent again, seed %llu, "
      "%.0f s\n",
      round, static_cast<unsigned long long>(folders), static_cast<unsigned long long>(all.batches),
      static_cast<unsigned long long>(all.values), static_cast<unsigned long long>(all.retries),
      static_cast<unsigned long long>(seed),
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
}

}  // namespace
}  // namespace tidemark::fault
