// The daemon under a filter that ends it at what a container's default profile does not allow
// (seccomp_launcher.cc): it starts, takes values in, answers, stores, and ends.
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"

namespace tidemark::test {
namespace {

class SeccompTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef TIDEMARK_SANITIZED
    GTEST_SKIP() << "sanitizers make calls of their own";
#endif
  }

  static Completed Launch(const std::vector<std::string>& arguments) {
    return RunProgram({.program = TIDEMARK_SECCOMP_LAUNCHER, .arguments = arguments});
  }

  // A life of a daemon, from its start to SIGTERM, twice on one folder. `flags`: its sorter;
  // `value_count`: many windows.
  void LivesAndEnds(const std::vector<std::string>& flags, const std::string& sorter,
                    std::size_t value_count) {
    const TemporaryFolder data;
    std::vector<std::string> all = {
        "--data-dir", data.path(), "--durability", "log", "--snapshot-interval-s", "1"};
    all.insert(all.end(), flags.begin(), flags.end());
    const std::vector<double> values(value_count, 2.5);
    const auto sorter_without = TestDaemon(flags).client().Info().sorter;
    if (sorter_without.active != sorter) {
      GTEST_SKIP() << "no " << sorter << " on this machine: " << sorter_without.reason;
    }
    for (std::uint64_t start = 1; start <= 2; ++start) {
      TestDaemon daemon(all, {}, TIDEMARK_SECCOMP_LAUNCHER);
      const std::string status =
          ReadFile("/proc/" + std::to_string(daemon.process().pid()) + "/status");
      EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos) << "it has no filter";
      EXPECT_EQ(daemon.client().Info().sorter.active, sorter);
      // First: while windows wait to be sorted datagrams are dropped.
      SendUdp(daemon.port("statsd"), "udp:1|ms\n");
      RawSocket lines(daemon.port("statsd"));
      lines.Send("lines:1|ms\n");
      const auto count = [&](const std::string& stream) -> std::uint64_t {
        const auto found = daemon.client().ListStreams(stream);
        return found.empty() ? 0 : found.at(0).count;
      };
      EXPECT_TRUE(WaitUntil([&] { return count("udp") == start && count("lines") == start; }));
      client::Pusher grpc = daemon.client().Push("grpc");
      grpc.Write(values);
      EXPECT_EQ(grpc.Finish().accepted, value_count);
      const auto tcp = daemon.Producer();
      const auto opened = tcp->Open("tcp", wire::WireType::kFloat64);
      ASSERT_TRUE(opened.ok()) << opened.status();
      ASSERT_TRUE(tcp->SendBatch(*opened, values).ok());
      ASSERT_TRUE(tcp->Flush().ok());
      for (const char* stream : {"grpc", "tcp"}) {
        EXPECT_EQ(daemon.client().Quantiles(stream, {0.5, 0.99}).n, start * value_count);
        EXPECT_EQ(daemon.client().HeavyHitters(stream, 0.5).items.size(), 1u);
      }
      client::Watch watch = daemon.client().WatchQuantiles("grpc", {0.5});
      EXPECT_TRUE(watch.Next().has_value());
      watch.Cancel();
      EXPECT_EQ(daemon.Get("/-/ready").code, 200);
      EXPECT_TRUE(
          WaitUntil([&] { return daemon.Metric("tidemark_snapshots_total{result=\"ok\"}") >= 1; }));
      daemon.process().Signal(SIGHUP);
      EXPECT_TRUE(WaitUntil([&] {
        return daemon.process().err().find("configuration reloaded") != std::string::npos;
      }));
      daemon.Stop();  // by SIGTERM, with status 0
    }
  }
};

TEST_F(SeccompTest, TheFilterEndsWhatIsDenied) {
  EXPECT_EQ(Launch({"--try", "getpid"}).status, 0) << Launch({"--try", "getpid"}).err;
  EXPECT_EQ(Launch({"--try", "clone3"}).status, 0);
  std::istringstream names(Launch({"--list"}).out);
  int denied = 0;
  for (std::string name; std::getline(names, name); ++denied) {
    EXPECT_EQ(Launch({"--try", name}).status, 128 + SIGSYS) << name;
  }
  EXPECT_GE(denied, 40);
  const std::string unshare = FindProgram("unshare");
  if (!unshare.empty()) {
    EXPECT_EQ(Launch({unshare, "--mount", "true"}).status, 128 + SIGSYS);
  }
}

TEST_F(SeccompTest, TheDaemonLivesUnderIt) { LivesAndEnds({"--sorter", "cpu"}, "cpu", 200'000); }

TEST_F(SeccompTest, TheDaemonLivesUnderItWithSoftwareGl) {
  LivesAndEnds({"--sorter", "gl-bitonic", "--window-max", "1024"}, "gl-bitonic", 10'000);
}

// The command, too.
TEST_F(SeccompTest, TheCommandLivesUnderIt) {
  TestDaemon daemon({}, {}, TIDEMARK_SECCOMP_LAUNCHER);
  const auto tidemark = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TIDEMARK_PROGRAM, "--server", daemon.address("grpc")});
    return RunProgram({.program = TIDEMARK_SECCOMP_LAUNCHER,
                       .arguments = std::move(arguments),
                       .input = "1\n2\n3\n"});
  };
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"push", "s"}, {"quantile", "s", "0.5"}, {"info"}}) {
    const Completed run = tidemark(arguments);
    EXPECT_EQ(run.status, 0) << arguments[0] << ": " << run.err;
  }
}

}  // namespace
}  // namespace tidemark::test
