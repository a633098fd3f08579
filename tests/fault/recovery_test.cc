// A start whose disk gives nothing back yet: until all that is stored has been read the daemon says
// that it is not ready, and nothing but HTTP listens; then it is ready and has it all.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/fault/fault_control.h"
#include "tests/support/raw_socket.h"

namespace tidemark::fault {
namespace {

constexpr std::uint64_t kValues = 100'000;

class RecoveryTest : public testing::TestWithParam<std::string> {
 protected:
  // A store, as a daemon leaves it, and a process that starts from it while its disk waits.
  void SetUp() override {
    if (FaultControl::Unusable() != nullptr) GTEST_SKIP() << FaultControl::Unusable();
    {
      test::TestDaemon daemon(flags_);
      client::Pusher pusher = daemon.client().Push("s");
      pusher.Write(std::vector<double>(kValues, 2.5));
      ASSERT_EQ(pusher.Finish().accepted, kValues);
      if (GetParam() == "log") {
        daemon.Kill();
      } else {
        daemon.Stop();
      }
    }
    control_.emplace(data_.path(), archive_.path());
    control_->HoldReads(true);
    std::vector<std::string> flags = flags_;
    for (const auto& [name, port] : ports_) {
      flags.insert(flags.end(), {"--" + name, "127.0.0.1:" + std::to_string(port)});
    }
    flags.insert(flags.end(), {"--ports-file", PortsFile()});
    daemon_.emplace(test::Launch{.program = TIDEMARKD_PROGRAM,
                                 .arguments = test::DaemonFlags(flags),
                                 .environment = control_->Environment()});
  }

  test::HttpReply Get(const std::string& path) const { return test::Http(ports_.at("http"), path); }
  std::string PortsFile() const { return archive_ / "ports.json"; }
  void ExpectNotReady() {
    const test::HttpReply ready = Get("/-/ready");
    EXPECT_EQ(ready.code, 503);
    EXPECT_EQ(ready.body, "not ready: starting\n");
  }

  const test::TemporaryFolder data_;
  const test::TemporaryFolder archive_;
  const std::vector<std::string> flags_ = {"--data-dir", data_.path(), "--durability", GetParam()};
  const std::map<std::string, std::uint16_t> ports_ = {{"grpc", test::LastingPort()},
                                                       {"tcp", test::LastingPort()},
                                                       {"http", test::LastingPort()},
                                                       {"statsd", test::LastingPort()}};
  std::optional<FaultControl> control_;
  std::optional<test::Process> daemon_;
};

TEST_P(RecoveryTest, ItIsReadyWhenAllIsReadAndNotBefore) {
  ASSERT_TRUE(test::WaitUntil([&] {
    return control_->held_reads() > 0 && Get("/-/healthy").code == 200;
  })) << daemon_->err();
  // It does not come to be by itself.
  for (int i = 0; i < 20; ++i) ExpectNotReady();
  EXPECT_EQ(Get("/-/healthy").code, 200);
  EXPECT_EQ(Get("/metrics").code, 200);
  EXPECT_FALSE(std::filesystem::exists(PortsFile()));
  for (const char* closed : {"grpc", "tcp", "statsd"}) {
    EXPECT_FALSE(test::RawSocket(ports_.at(closed)).connected()) << closed;
  }

  control_->HoldReads(false);
  // From the first time on that it says so everything is there.
  ASSERT_TRUE(test::WaitUntil([&] { return Get("/-/ready").code == 200; })) << daemon_->err();
  client::Client client({.server = "127.0.0.1:" + std::to_string(ports_.at("grpc"))});
  EXPECT_EQ(client.DescribeStream("s").count, kValues);
  EXPECT_TRUE(test::RawSocket(ports_.at("tcp")).connected());
  EXPECT_TRUE(test::WaitUntil([&] { return std::filesystem::exists(PortsFile()); }));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
}

// SIGTERM waits until then, and is no loss.
TEST_P(RecoveryTest, AStopMeanwhileWaits) {
  ASSERT_TRUE(test::WaitUntil([&] {
    return control_->held_reads() > 0 && Get("/-/healthy").code == 200;
  })) << daemon_->err();
  daemon_->Signal(SIGTERM);
  for (int i = 0; i < 20; ++i) {
    ExpectNotReady();
    ASSERT_TRUE(daemon_->running());
  }
  control_->HoldReads(false);
  EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
  test::TestDaemon again(flags_);
  EXPECT_EQ(again.client().DescribeStream("s").count, kValues);
}

INSTANTIATE_TEST_SUITE_P(EitherMode, RecoveryTest, testing::Values("log", "snapshot"),
                         [](const auto& mode) { return mode.param; });

}  // namespace
}  // namespace tidemark::fault
