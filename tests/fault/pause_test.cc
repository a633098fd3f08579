// SIGSTOP and SIGCONT of the daemon and of producers, under load, and a kill of a daemon that is
// stopped: nothing is lost and nothing is counted twice.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/fault/fault_run.h"
#include "tests/fault/rounds.h"

namespace tidemark::fault {
namespace {

using std::chrono::milliseconds;

constexpr int kRoundsOfAFolder = 50;
constexpr std::uint64_t kLines = 50'000;
constexpr char kPushed[] = "pushed";

// `tidemark push` of the numbers 1 to kLines, again and again.
class Pushes {
 public:
  explicit Pushes(std::string address) : address_(std::move(address)) {
    std::string lines;
    for (std::uint64_t i = 1; i <= kLines; ++i) lines += std::to_string(i) + "\n";
    path_ = folder_.Write("numbers", lines);
    Begin();
  }
  void BeginAgainIfOver() {
    if (!process_->running()) EndOne();
    if (!process_) Begin();
  }
  void Signal(int number) { process_->Signal(number); }
  // How many values were pushed.
  std::uint64_t End() {
    EndOne();
    return done_ * kLines;
  }

 private:
  void Begin() {
    process_ = std::make_unique<test::Process>(
        test::Launch{.program = TIDEMARK_PROGRAM,
                     .arguments = {"--server", address_, "push", "--type", "uint64", "--retry",
                                   "120s", kPushed, path_}});
  }
  void EndOne() {
    EXPECT_EQ(process_->Wait(), 0) << process_->err();
    process_.reset();
    ++done_;
  }

  const std::string address_;
  test::TemporaryFolder folder_;
  std::string path_;
  std::unique_ptr<test::Process> process_;
  std::uint64_t done_ = 0;
};

TEST(Pause, OfTheDaemonAndOfProducersUnderLoad) {
  const std::uint64_t seed = Seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const int rounds = Rounds(10, 200);
  Judged all;
  std::uint64_t pushed_in_all = 0;
  int killed = 0;
  for (int round = 0; round < rounds && !HasFailure();) {
    FaultRun run(seed + static_cast<std::uint64_t>(round));
    run.StartWriters({.pause = std::chrono::microseconds(2'000)});
    Pushes pushes(run.daemon().grpc_address());
    for (int i = 0; i < kRoundsOfAFolder && round < rounds && !HasFailure(); ++i, ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      run.AwaitProgress();
      pushes.BeginAgainIfOver();
      const milliseconds pause(1 + random() % (random() % 8 == 0 ? 2'000 : 200));
      const std::uint64_t whom = random() % 3;  // the daemon, the producer, or both
      if (whom != 1) run.daemon()->process().Signal(SIGSTOP);
      if (whom != 0) pushes.Signal(SIGSTOP);
      std::this_thread::sleep_for(pause);
      if (whom != 1 && random() % 6 == 0) {
        run.daemon().Kill();
        run.daemon().Start();
        ++killed;
      } else if (whom != 1) {
        run.daemon()->process().Signal(SIGCONT);
      }
      if (whom != 0) pushes.Signal(SIGCONT);
      run.AwaitProgress();
      EXPECT_EQ(run.daemon()->Get("/-/ready").code, 200);
    }
    const std::uint64_t pushed = pushes.End();
    run.daemon().AwaitGrpc();
    EXPECT_EQ(run.daemon()->client().DescribeStream(kPushed).count, pushed);
    pushed_in_all += pushed;
    run.EndAndJudge(all);
    TellProgress("pause", round, rounds);
  }
  std::printf(
      "pause: %d rounds, %d killed while stopped, %llu batches, %llu values, and %llu of "
      "tidemark push, seed %llu\n",
      rounds, killed, static_cast<unsigned long long>(all.batches),
      static_cast<unsigned long long>(all.values), static_cast<unsigned long long>(pushed_in_all),
      static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace tidemark::fault
