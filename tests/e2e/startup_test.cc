// How tidemarkd refuses to start: exit status 2 for wrong settings, 1 for what the machine does not
// give, each with one line that names the thing. Every setting: tests/server/config.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

Completed Start(const std::vector<std::string>& flags,
                const std::map<std::string, std::string>& environment = {}) {
  return RunProgram(
      {.program = TIDEMARKD_PROGRAM, .arguments = DaemonFlags(flags), .environment = environment});
}

// What is said last on standard error; the log may come before.
std::string LastLine(const std::string& text) {
  if (text.empty()) return "";
  const std::size_t begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin == std::string::npos ? 0 : begin + 1);
}

// Wrong settings: nothing else is printed.
void ExpectWrongSettings(const Completed& run, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.status, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const std::string& part : parts) {
    EXPECT_NE(run.err.find(part), std::string::npos) << "\"" << part << "\" is not in " << run.err;
  }
}

TEST(Startup, TypoInTheFile) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("t.toml", "[limits]\nmax_streams = 10\nmax_conections = 5\n");
  ExpectWrongSettings(Start({"--config", path}),
                      {path + ":3", "max_conections", "max_connections"});
  ExpectWrongSettings(Start({"--config", path, "--check-config"}), {path + ":3"});
  const std::string broken = folder.Write("b.toml", "[limits\n");
  ExpectWrongSettings(Start({"--config", broken}), {broken + ":1"});
  const std::string type = folder.Write("v.toml", "[limits]\nmax_streams = \"many\"\n");
  ExpectWrongSettings(Start({"--config", type}), {type + ":2", "limits.max_streams", "many"});
  ExpectWrongSettings(Start({"--config", folder / "absent.toml"}), {folder / "absent.toml"});
}

TEST(Startup, WrongFlagsAndEnvironment) {
  ExpectWrongSettings(Start({"--max-streems", "5"}), {"--max-streems", "--max-streams"});
  ExpectWrongSettings(Start({"--sorter", "gl-bitonik"}), {"--sorter", "gl-bitonik", "gl-bitonic"});
  ExpectWrongSettings(Start({"--grpc", "nonsense"}), {"--grpc", "nonsense"});
  ExpectWrongSettings(Start({}, {{"TIDEMARK_MAX_STREAMS", "-4"}}), {"TIDEMARK_MAX_STREAMS", "-4"});
  ExpectWrongSettings(Start({"surplus"}), {"surplus"});
}

TEST(Startup, UnwritableDataFolder) {
  const TemporaryFolder folder;
  ExpectWrongSettings(Start({"--data-dir", folder / "absent"}), {folder / "absent"});
  const std::string file = folder.Write("file", "");
  ExpectWrongSettings(Start({"--data-dir", file}), {file, "folder"});
  // /proc takes files from nobody, not even from root.
  ExpectWrongSettings(Start({"--data-dir", "/proc"}), {"/proc"});
}

TEST(Startup, CheckConfigPrintsWhatIsInForce) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.toml", "[limits]\nmax_streams = 10\n");
  const Completed run =
      Start({"--config", path, "--check-config"}, {{"TIDEMARK_LOG_LEVEL", "warn"}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_NE(run.out.find("max_streams = 10\n"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("level = \"warn\"\n"), std::string::npos) << run.out;
  // What it prints is itself a configuration that says the same.
  const std::string again = folder.Write("again.toml", run.out);
  const Completed second = RunProgram(
      {.program = TIDEMARKD_PROGRAM, .arguments = {"--config", again, "--check-config"}});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, run.out);
}

TEST(Startup, TheExampleConfigurationIsGood) {
  const Completed run =
      RunProgram({.program = TIDEMARKD_PROGRAM,
                  .arguments = {"--config", TIDEMARK_SOURCE_FOLDER "/deploy/tidemark.toml",
                                "--check-config"}});
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST(Startup, VersionAndHelp) {
  for (const char* flag : {"--version", "--help"}) {
    const Completed run = RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = {flag}});
    EXPECT_EQ(run.status, 0);
    EXPECT_TRUE(run.out.starts_with("tidemarkd")) << run.out;
    EXPECT_EQ(run.err, "");
  }
}

// Holds a port so that nobody else can listen on it.
class Occupied {
 public:
  explicit Occupied(int kind) : fd_(socket(AF_INET, kind | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto generic = std::bit_cast<sockaddr>(address);
    socklen_t size = sizeof generic;
    EXPECT_EQ(bind(fd_, &generic, size), 0);
    if (kind == SOCK_STREAM) {
      EXPECT_EQ(listen(fd_, 1), 0);
    }
    getsockname(fd_, &generic, &size);
    port_ = ntohs(std::bit_cast<sockaddr_in>(generic).sin_port);
  }
  ~Occupied() { close(fd_); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

void ExpectInUse(const std::string& flag, int kind) {
  SCOPED_TRACE(flag);
  const Occupied occupied(kind);
  const TemporaryFolder folder;
  const std::string ports = folder.Write("ports", "{\"grpc\":1}\n");  // of an earlier run
  const Completed run =
      Start({flag, occupied.address(), "--ports-file", ports, "--log-level", "error"});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  const std::string line = LastLine(run.err);
  EXPECT_TRUE(line.starts_with("tidemarkd: ")) << line;
  EXPECT_NE(line.find(occupied.address()), std::string::npos) << line;
  EXPECT_NE(line.find("in use"), std::string::npos) << line;
  EXPECT_FALSE(std::filesystem::exists(ports)) << "a ports file without a daemon";
}

TEST(Startup, PortsInUse) {
  for (const char* flag : {"--grpc", "--tcp", "--http", "--statsd"}) ExpectInUse(flag, SOCK_STREAM);
  ExpectInUse("--statsd", SOCK_DGRAM);
}

TEST(Startup, OneDaemonDoesNotTakeThePortsOfAnother) {
  TestDaemon first;
  for (const char* name : {"grpc", "tcp", "http", "statsd"}) {
    SCOPED_TRACE(name);
    const Completed second =
        Start({std::string("--") + name, first.address(name), "--log-level", "error"});
    EXPECT_EQ(second.status, 1);
    EXPECT_NE(second.err.find(first.address(name)), std::string::npos) << second.err;
  }
  EXPECT_EQ(first.client().Info().streams, 0u);
}

TEST(Startup, AddressThatIsNotOfThisMachine) {
  // TEST-NET-1 belongs to nobody.
  const Completed run =
      Start({"--tcp", "192.0.2.1:7071", "--allow-insecure", "--log-level", "error"});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("192.0.2.1:7071"), std::string::npos) << run.err;
}

TEST(Startup, PortsFileIsThereUntilTheDaemonStops) {
  TestDaemon daemon;
  EXPECT_TRUE(std::filesystem::exists(daemon.ports_file()));
  daemon.Stop();
  EXPECT_FALSE(std::filesystem::exists(daemon.ports_file())) << "ports that nobody listens on";
}

TEST(Startup, PortsFileThatCannotBeWritten) {
  const Completed run = Start({"--ports-file", "/proc/ports", "--log-level", "error"});
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(LastLine(run.err).find("/proc/ports"), std::string::npos) << run.err;
}

TEST(Startup, ProtocolsCanBeLeftOut) {
  TestDaemon daemon({"--tcp", "off", "--statsd", "off"});
  EXPECT_EQ(daemon.client().Info().endpoints.size(), 2u);
}

}  // namespace
}  // namespace tidemark::test
