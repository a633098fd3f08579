// The choice by measurement, with timings that are made up: one spoilt by another program must not
// decide, and time is not spent on those that cannot win. The real timings: cpu_sorter_test.cc.
#include "gpu/sort/interleaved_rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace tidemark::sort {
namespace {

// The seconds of two candidates for two tasks; some calls are slowed.
class PlayedTimings {
 public:
  double operator()(std::size_t task, std::size_t candidate) {
    const int call = calls++;
    ++calls_of[{task, candidate}];
    return seconds[task][candidate] * (slow.contains(call) ? slow.at(call) : 1);
  }

  double seconds[2][2] = {{1, 1.2}, {3, 1}};
  std::map<int, double> slow;  // number of the call, how many times longer it takes
  std::map<std::pair<std::size_t, std::size_t>, int> calls_of;
  int calls = 0;
};

std::vector<std::vector<double>> Race(
    PlayedTimings& played, RoundRules rules,
    std::function<bool()> time_left = [] { return true; }) {
  return BestOfRounds(2, 2, rules, std::ref(played), time_left);
}

TEST(BestOfRounds, TakesTheSmallestTime) {
  PlayedTimings played;
  const auto best = Race(played, {});
  EXPECT_EQ(best, (std::vector<std::vector<double>>{{1, 1.2}, {3, 1}}));
}

TEST(BestOfRounds, OneSpoiltTimingDoesNotDecide) {
  // Whichever call is spoilt, and be it twenty-fold as beside other programs.
  for (int spoilt = 0; spoilt < 8; ++spoilt) {
    PlayedTimings played;
    played.slow = {{spoilt, 20}};
    const auto best = Race(played, {});
    EXPECT_EQ(best, (std::vector<std::vector<double>>{{1, 1.2}, {3, 1}})) << "call " << spoilt;
  }
}

TEST(BestOfRounds, ADisturbanceAsLongAsARoundDoesNotDecide) {
  for (int first = 0; first < 8; ++first) {
    PlayedTimings played;
    for (int call = first; call < first + 4; ++call) played.slow[call] = call % 2 == 0 ? 20 : 3;
    const auto best = Race(played, {});
    EXPECT_EQ(best, (std::vector<std::vector<double>>{{1, 1.2}, {3, 1}})) << "from " << first;
  }
}

TEST(BestOfRounds, GivesUpTheHopelessAfterTwoTimings) {
  PlayedTimings played;
  Race(played, {.rounds = 5});
  EXPECT_EQ((played.calls_of[{0, 0}]), 5);
  EXPECT_EQ((played.calls_of[{0, 1}]), 5) << "it is near enough to win yet";
  EXPECT_EQ((played.calls_of[{1, 0}]), 2);
  EXPECT_EQ((played.calls_of[{1, 1}]), 5);
}

TEST(BestOfRounds, TimesEveryoneOnceWhateverTheTime) {
  PlayedTimings played;
  const auto best = Race(played, {}, [] { return false; });
  EXPECT_EQ(played.calls, 4);
  EXPECT_EQ(best, (std::vector<std::vector<double>>{{1, 1.2}, {3, 1}}));
}

TEST(BestOfRounds, StopsWhenTheTimeIsOver) {
  PlayedTimings played;
  Race(played, {}, [&] { return played.calls < 6; });
  EXPECT_EQ(played.calls, 6);
}

}  // namespace
}  // namespace tidemark::sort
