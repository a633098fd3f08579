// kill -9 before, in the middle of and after every call on the way to the disk: at each point as
// often as asked, at a call that chance chooses, under load.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fault/fault_run.h"
#include "tests/fault/rounds.h"

namespace tidemark::fault {
namespace {

struct Place {
  Point point;
  Deed deed;
};

std::string NameOf(const Place& place) {
  const char* const when = place.deed == Deed::kKillBefore   ? "before "
                           : place.deed == Deed::kKillMiddle ? "in the middle of "
                                                             : "after ";
  return when + std::string(kPointNames[static_cast<std::size_t>(place.point)]);
}

std::vector<Place> Places() {
  std::vector<Place> places;
  for (std::uint32_t point = 0; point < kPoints; ++point) {
    places.push_back({static_cast<Point>(point), Deed::kKillBefore});
    places.push_back({static_cast<Point>(point), Deed::kKillAfter});
  }
  places.push_back({Point::kLogWrite, Deed::kKillMiddle});
  places.push_back({Point::kSnapshotWrite, Deed::kKillMiddle});
  return places;
}

// Kills the daemon there once, and starts it again. How often it was started.
int KillAt(FaultRun& run, const Place& place, std::mt19937_64& random) {
  FaultControl& control = run.control();
  // Those that are frequent at some call of the next ones, the others at the next.
  const bool frequent = place.point <= Point::kLogSync && place.point != Point::kLogCreate;
  const bool of_a_start = place.point == Point::kFolderMake;
  const bool after_a_failure = place.point == Point::kLogShorten;
  // Not every failed sync is of a segment that is shortened then: it may be a new one.
  constexpr int kTries = 20;
  bool killed = false;
  for (int i = 0; i < kTries && !killed; ++i) {
    control.Reset();
    control.Arm(place.point, place.deed, 1 + (frequent ? random() % 20 : 0));
    if (after_a_failure) control.Arm(Point::kLogSync, Deed::kFail, 1 + random() % 20, 1, EIO, 1);
    if (of_a_start) {
      run.daemon().Kill();
      killed = true;
    } else {
      killed = run.daemon().AwaitKill(after_a_failure ? std::chrono::seconds(1) : test::kPatience);
      if (!after_a_failure) break;
    }
  }
  EXPECT_TRUE(killed) << "was not killed";
  if (!killed) return 0;
  const int starts = run.daemon().StartAgainAndAgain();
  // It may have come between two tries.
  EXPECT_TRUE(after_a_failure || control.done() > 0);
  control.Disarm();
  return starts;
}

TEST(Points, KilledAtEachUnderLoad) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int times = Rounds(1, 20);
  std::vector<Place> places = Places();
  Judged all;
  int kills = 0;
  for (int time = 0; time < times && !HasFailure(); ++time) {
    std::shuffle(places.begin(), places.end(), random);
    FaultRun run(seed + static_cast<std::uint64_t>(time),
                 {.flags = {"--sync-interval-us", time % 2 == 0 ? "0" : "2000"}, .preload = true});
    // Slow ones: a snapshot takes its time, and a start all that was sent since the last.
    run.StartWriters({.pause = std::chrono::microseconds(Extended() ? 500 : 2'000)});
    for (const Place& place : places) {
      SCOPED_TRACE(NameOf(place));
      const int starts = KillAt(run, place, random);
      if (HasFailure()) break;
      kills += std::max(1, place.point == Point::kFolderMake ? starts - 1 : 1);
      run.AwaitProgress();
    }
    run.EndAndJudge(all);
    TellProgress("points", time + 1, times);
  }
  std::printf("points: %zu places, %d times each, %d kills, %llu batches, %llu values, seed %llu\n",
              places.size(), times, kills, static_cast<unsigned long long>(all.batches),
              static_cast<unsigned long long>(all.values), static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace tidemark::fault
