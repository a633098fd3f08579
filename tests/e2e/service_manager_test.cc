// What the real daemon tells a service manager (sd_notify), which is here a socket of the test's.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

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
