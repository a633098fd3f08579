// The wall clock jumps by an hour and by ten years, either way, under load: nothing is lost, no
// window holds less than nothing, subscriptions and new queries are answered, and the daemon stays
// ready.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
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
using std::chrono::seconds;

constexpr int kRoundsOfAFolder = 25;
constexpr seconds kHour{3'600};
constexpr seconds kTenYears{10 * 365 * 86'400};

// Counts the answers of one subscription, over every daemon that it finds.
class Subscriber {
 public:
  explicit Subscriber(std::string address)
      : address_(std::move(address)), thread_([this] { Run(); }) {}
  ~Subscriber() {
    ends_ = true;
    thread_.join();
  }
  std::uint64_t answers() const { return answers_; }

 private:
  void Run() {
    client::Client client({.server = address_});
    while (!ends_) {
      try {
        client::Watch watch =
            client.WatchQuantiles("shared", {0.5}, {.interval = milliseconds(20)});
        while (!ends_ && watch.Next()) ++answers_;
      } catch (const client::Error&) {
        std::this_thread::sleep_for(milliseconds(20));  // the daemon is down
      }
    }
  }

  const std::string address_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> answers_{0};
  std::thread thread_;
};

// Of the last second, and of the last values.
void ExpectWindows(client::Client& client) {
  for (const milliseconds width : {milliseconds(1), milliseconds(1'000), milliseconds(2'000)}) {
    const client::QuantilesAnswer answer =
        client.Quantiles("timed", {0, 0.5, 1}, {.last_time = width});
    const std::uint64_t n = client.DescribeStream("timed").count;
    EXPECT_LE(answer.n, n) << "a window of less than nothing";
    EXPECT_LE(answer.n_uncertain, answer.n);
    for (const client::QuantileAnswer& each : answer.answers) {
      EXPECT_LE(each.rank_low, each.rank_high);
      EXPECT_LE(each.rank_high, answer.n);
    }
  }
  const client::HeavyHittersAnswer last =
      client.HeavyHitters("texts", 0.1, 0, {.last_values = 1'000});
  EXPECT_LE(last.n, 1'000u);
}

TEST(Clock, JumpsUnderLoad) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::array<seconds, 5> kShifts{seconds(0), kHour, -kHour, kTenYears, -kTenYears};
  const int rounds = Rounds(10, 200);
  Judged all;
  int killed = 0;
  for (int round = 0; round < rounds && !HasFailure();) {
    FaultRun run(seed + static_cast<std::uint64_t>(round), {.preload = true});
    run.StartWriters({.pause = std::chrono::microseconds(2'000)});
    Subscriber subscriber(run.daemon().grpc_address());
    seconds shift(0);
    for (int i = 0; i < kRoundsOfAFolder && round < rounds && !HasFailure(); ++i, ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      run.AwaitProgress();
      const seconds before = shift;
      while (shift == before) shift = kShifts[random() % kShifts.size()];
      run.control().ShiftClock(shift);
      run.AwaitProgress();
      EXPECT_EQ(run.daemon()->Get("/-/ready").code, 200);
      ExpectWindows(run.daemon()->client());
      // One may have been on its way.
      const std::uint64_t answers = subscriber.answers() + 1;
      EXPECT_TRUE(test::WaitUntil([&] { return subscriber.answers() > answers; }, seconds(20)))
          << "a subscription is silent after a jump from " << before.count() << " s to "
          << shift.count() << " s";
      std::this_thread::sleep_for(milliseconds(random() % 100));
      if (random() % 8 == 0) {  // and of a start by another clock
        run.daemon().Kill();
        run.daemon().Start();
        run.daemon().AwaitGrpc();
        ++killed;
      }
    }
    run.EndAndJudge(all);
    TellProgress("clock", round, rounds);
  }
  std::printf("clock: %d jumps, %d kills between, %llu batches, %llu values, seed %llu\n", rounds,
              killed, static_cast<unsigned long long>(all.batches),
              static_cast<unsigned long long>(all.values), static_cast<unsigned long long>(seed));
}

// A stop takes no longer, and ends as it should, though the clock is set back meanwhile.
TEST(Clock, SetBackWhileItStops) {
  if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
  for (const seconds shift : {-kTenYears, kTenYears}) {
    FaultRun run(Seed(), {.preload = true});
    Subscriber subscriber(run.daemon().grpc_address());
    EXPECT_TRUE(test::WaitUntil([&] { return subscriber.answers() > 0; }));
    run.control().ShiftClock(shift);
    const auto begun = std::chrono::steady_clock::now();
    run.daemon().Stop();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(10));
  }
}

}  // namespace
}  // namespace tidemark::fault
