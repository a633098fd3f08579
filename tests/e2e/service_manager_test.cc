// What the real daemon tells a service manager (sd_notify), which is here a socket of the test's.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

// Listens at an address as in NOTIFY_SOCKET.
class ManagerSocket {
 public:
  explicit ManagerSocket(const std::string& address)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (address.size() >= sizeof name.sun_path) throw std::runtime_error("the address is too long");
    std::memcpy(name.sun_path, address.data(), address.size());
    if (address.front() == '@') name.sun_path[0] = '\0';
    const std::size_t size = offsetof(sockaddr_un, sun_path) + address.size();
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&name), static_cast<socklen_t>(size)) != 0) {
      throw std::runtime_error("cannot bind " + address + ": " + std::strerror(errno));
    }
  }
  ~ManagerSocket() { close(fd_); }
  ManagerSocket(const ManagerSocket&) = delete;
  ManagerSocket& operator=(const ManagerSocket&) = delete;

  // The next message; "" if none comes.
  std::string Next(std::chrono::milliseconds patience = kPatience) {
    pollfd one{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&one, 1, static_cast<int>(patience.count())) != 1) return "";
    std::array<char, 1024> text{};
    const ssize_t size = recv(fd_, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(size < 0 ? 0 : size)};
  }

 private:
  const int fd_;
};

void ExpectWholeLife(const std::string& address) {
  SCOPED_TRACE(address);
  ManagerSocket manager(address);
  TestDaemon daemon({}, {{"NOTIFY_SOCKET", address}});
  EXPECT_EQ(manager.Next(), "READY=1");
  EXPECT_EQ(daemon.Get("/-/ready").code, 200);

  daemon.process().Signal(SIGHUP);
  EXPECT_TRUE(manager.Next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_EQ(manager.Next(), "READY=1");

  daemon.Stop();
  EXPECT_EQ(manager.Next(), "STOPPING=1");
  EXPECT_EQ(manager.Next(std::chrono::milliseconds(0)), "") << "a message too many";
}

TEST(ServiceManager, IsToldReadyReloadingStopping) {
  const TemporaryFolder folder;
  ExpectWholeLife(folder / "notify");
  ExpectWholeLife("@tidemark-test-" + std::to_string(getpid()));
}

// A last snapshot takes as long as the disk does, which the manager's own limit does not know.
TEST(ServiceManager, IsAskedForTimeBeforeTheLastSnapshot) {
  const TemporaryFolder folder, data;
  ManagerSocket manager(folder / "notify");
  TestDaemon daemon({"--data-dir", data.path(), "--durability", "snapshot"},
                    {{"NOTIFY_SOCKET", folder / "notify"}});
  EXPECT_EQ(manager.Next(), "READY=1");
  daemon.Stop();
  EXPECT_EQ(manager.Next(), "STOPPING=1");
  EXPECT_EQ(manager.Next(), "EXTEND_TIMEOUT_USEC=600000000");
}

TEST(ServiceManager, ADaemonThatCannotStartNeverSaysReady) {
  const TemporaryFolder folder;
  ManagerSocket manager(folder / "notify");
  const TestDaemon first;
  const Completed second = RunProgram({.program = TIDEMARKD_PROGRAM,
                                       .arguments = DaemonFlags({"--http", first.address("http")}),
                                       .environment = {{"NOTIFY_SOCKET", folder / "notify"}}});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(manager.Next(std::chrono::milliseconds(0)), "");
}

// The manager's watchdog: told again and again while the daemon works, and not while it is stopped.
TEST(ServiceManager, IsToldThatItIsAlive) {
  const TemporaryFolder folder;
  ManagerSocket manager(folder / "notify");
  TestDaemon daemon({}, {{"NOTIFY_SOCKET", folder / "notify"}, {"WATCHDOG_USEC", "200000"}});
  EXPECT_EQ(manager.Next(), "READY=1");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(manager.Next(), "WATCHDOG=1");
  client::Pusher pusher = daemon.client().Push("s");
  pusher.Write(std::vector<double>(1'000'000, 1.5));
  EXPECT_EQ(pusher.Finish().accepted, 1'000'000u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(manager.Next(), "WATCHDOG=1");
  daemon.process().Signal(SIGSTOP);
  while (!manager.Next(std::chrono::milliseconds(300)).empty()) continue;  // until none comes
  daemon.process().Signal(SIGCONT);
  EXPECT_EQ(manager.Next(), "WATCHDOG=1");
  daemon.Stop();
  std::string last;
  for (std::string next = manager.Next(std::chrono::milliseconds(0)); !next.empty();
       next = manager.Next(std::chrono::milliseconds(0))) {
    last = next;
  }
  EXPECT_EQ(last, "STOPPING=1") << "none while it drains";
}

// Ready means that everything is there again: what the log holds, before the manager is told.
TEST(ServiceManager, IsToldReadyBehindTheRecovery) {
  const TemporaryFolder folder, data;
  const std::vector<std::string> flags = {"--data-dir", data.path(), "--durability", "log"};
  {
    TestDaemon daemon(flags);
    client::Pusher pusher = daemon.client().Push("s");
    pusher.Write(std::vector<double>(500'000, 1.5));
    EXPECT_EQ(pusher.Finish().accepted, 500'000u);
    daemon.Kill();
  }
  ManagerSocket manager(folder / "notify");
  {
    TestDaemon daemon(flags, {{"NOTIFY_SOCKET", folder / "notify"}});
    EXPECT_EQ(manager.Next(), "READY=1");
    const auto log = daemon.Log();
    const auto at = [&](const char* message) {
      return std::find_if(log.begin(), log.end(),
                          [&](const auto& line) { return line["message"] == message; });
    };
    ASSERT_NE(at("streams loaded"), log.end());
    EXPECT_EQ((*at("streams loaded"))["values"], 500'000);
    EXPECT_LT(at("streams loaded"), at("ready"));
    EXPECT_EQ(daemon.client().DescribeStream("s").count, 500'000u);
    daemon.Stop();
    EXPECT_EQ(manager.Next(), "STOPPING=1");
  }
  // Damaged: never ready. The last segment: the first has been taken over if nothing said that it
  // is synced.
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(data / "store")) {
    if (entry.path().filename().string().starts_with("log-")) {
      last = std::max(last, entry.path().string());
    }
  }
  std::fstream file(last, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300);
  file.put('\x5a');
  file.close();
  const Completed start = RunProgram({.program = TIDEMARKD_PROGRAM,
                                      .arguments = DaemonFlags(flags),
                                      .environment = {{"NOTIFY_SOCKET", folder / "notify"}}});
  EXPECT_EQ(start.status, 1);
  EXPECT_EQ(manager.Next(std::chrono::milliseconds(0)), "");
}

// A manager that went away, or an address that makes no sense, is one line in the log.
TEST(ServiceManager, OneThatCannotBeToldStopsNothing) {
  for (const std::string& address :
       {std::string("/absent/notify"), std::string("vsock:2:1234"), std::string(200, '/')}) {
    SCOPED_TRACE(address);
    TestDaemon daemon({}, {{"NOTIFY_SOCKET", address}});
    EXPECT_EQ(daemon.Get("/-/ready").code, 200);
    daemon.Stop();
    int told = 0;
    for (const nlohmann::json& line : daemon.Log()) {
      if (line["message"] != "cannot tell the service manager") continue;
      EXPECT_EQ(line["level"], "warn");
      ++told;
    }
    EXPECT_EQ(told, 2) << "READY and STOPPING";
  }
}

}  // namespace
}  // namespace tidemark::test
