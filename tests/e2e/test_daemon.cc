#include "tests/e2e/test_daemon.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

#include "tests/support/raw_socket.h"

namespace tidemark::test {
namespace {

Launch LaunchOf(std::vector<std::string> flags, const std::string& ports_file,
                const std::map<std::string, std::string>& environment,
                const std::string& launcher) {
  flags.insert(flags.end(), {"--ports-file", ports_file});
  if (!launcher.empty()) flags.insert(flags.begin(), TIDEMARKD_PROGRAM);
  return {.program = launcher.empty() ? TIDEMARKD_PROGRAM : launcher,
          .arguments = std::move(flags),
          .environment = environment};
}

// name{a="b",c="d"} as its name and its labels, each whole.
std::pair<std::string, std::set<std::string>> ParseSample(std::string_view text) {
  const std::size_t brace = text.find('{');
  std::pair<std::string, std::set<std::string>> sample;
  sample.first = text.substr(0, brace);
  if (brace == std::string_view::npos) return sample;
  // Label values of this daemon hold no quote and no comma but for `reason` texts of the sorter,
  // which no test looks up.
  std::istringstream labels{std::string(text.substr(brace + 1, text.rfind('}') - brace - 1))};
  for (std::string label; std::getline(labels, label, ',');) sample.second.insert(label);
  return sample;
}

}  // namespace

HttpReply Http(std::uint16_t port, const std::string& path, const std::string& method,
               const std::string& token) {
  RawSocket socket(port);
  if (!socket.connected()) return {};
  socket.Send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
              (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") +
              "Content-Length: 0\r\n\r\n");
  const std::string reply = socket.ReceiveAll();
  const std::size_t body = reply.find("\r\n\r\n");
  if (reply.size() < 12 || body == std::string::npos) return {};
  return {std::atoi(reply.c_str() + 9), reply.substr(body + 4)};
}

std::uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto generic = std::bit_cast<sockaddr>(address);
  socklen_t size = sizeof generic;
  const bool bound = bind(fd, &generic, size) == 0 && getsockname(fd, &generic, &size) == 0;
  close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(std::bit_cast<sockaddr_in>(generic).sin_port);
}

std::uint16_t LastingPort() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<std::uint16_t>(12'000 + random() % 20'000);
    if (!RawSocket(port).connected()) return port;
  }
}

std::vector<std::string> DaemonFlags(const std::vector<std::string>& more) {
  std::vector<std::string> flags = more;
  for (const auto& [flag, value] :
       std::initializer_list<std::pair<std::string, std::string>>{{"--grpc", "127.0.0.1:0"},
                                                                  {"--tcp", "127.0.0.1:0"},
                                                                  {"--http", "127.0.0.1:0"},
                                                                  {"--statsd", "127.0.0.1:0"},
                                                                  {"--measure-budget-ms", "10"}}) {
    if (std::find(more.begin(), more.end(), flag) == more.end()) {
      flags.insert(flags.end(), {flag, value});
    }
  }
  return flags;
}

TestDaemon::TestDaemon(const std::vector<std::string>& flags,
                       const std::map<std::string, std::string>& environment,
                       const std::string& launcher)
    : process_(LaunchOf(DaemonFlags(flags), ports_file(), environment, launcher)) {
  std::string ports;
  WaitUntil([&] {
    ports = ReadFile(ports_file());
    return !ports.empty() || !process_.running();
  });
  if (ports.empty()) {
    throw std::runtime_error(
        "tidemarkd is not ready; exit status " +
        std::to_string(process_.Wait(std::chrono::milliseconds(0)).value_or(-1)) +
        "; it said: " + process_.err());
  }
  ports_ = nlohmann::json::parse(ports);
  client_ = std::make_unique<client::Client>(client::ClientOptions{
      .server = address("grpc"),
      .deadline = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience)});
}

TestDaemon::~TestDaemon() {
  if (!stopped_) Stop();
  if (testing::Test::HasFailure()) std::cerr << "The daemon's log:\n" << process_.err();
}

void TestDaemon::Stop(int expected) {
  stopped_ = true;
  process_.Signal(SIGTERM);
  const std::optional<int> status = process_.Wait();
  EXPECT_TRUE(status.has_value()) << "tidemarkd still runs long after SIGTERM";
  if (!status) return;
  EXPECT_EQ(*status, expected) << "tidemarkd ended with another status";
  EXPECT_TRUE(process_.NothingLeft()) << "tidemarkd left a process behind";
}

void TestDaemon::Kill() {
  stopped_ = true;
  process_.Signal(SIGKILL);
  EXPECT_EQ(process_.Wait(), 128 + SIGKILL);
}

std::unique_ptr<client::TcpProducer> TestDaemon::Producer(
    client::TcpProducerOptions options) const {
  auto producer = client::TcpProducer::Connect("127.0.0.1", port("tcp"), options);
  if (!producer.ok()) throw std::runtime_error(producer.status().ToString());
  return *std::move(producer);
}

double TestDaemon::Metric(std::string_view sample) const {
  return MetricIn(Get("/metrics").body, sample);
}

double MetricIn(const std::string& exposition, std::string_view sample) {
  const auto [name, labels] = ParseSample(sample);
  std::istringstream lines(exposition);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t space = line.rfind(' ');
    const auto [found, found_labels] = ParseSample(std::string_view(line).substr(0, space));
    if (found != name) continue;
    bool all = true;
    for (const std::string& label : labels) all = all && found_labels.contains(label);
    double value = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    if (all) sum += value;
  }
  return sum;
}

std::vector<nlohmann::json> TestDaemon::Log() const {
  std::vector<nlohmann::json> log;
  std::istringstream lines(process_.err());
  for (std::string line; std::getline(lines, line);) log.push_back(nlohmann::json::parse(line));
  return log;
}

std::uint64_t TestDaemon::StatusBytes(std::string_view field) const {
  std::istringstream status(ReadFile("/proc/" + std::to_string(process_.pid()) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field)) continue;
    return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
  }
  return 0;
}

Completed RunTidemark(const TestDaemon& daemon, std::vector<std::string> arguments,
                      const std::optional<std::string>& input) {
  arguments.insert(arguments.begin(), {"--server", daemon.address("grpc")});
  return RunProgram(
      {.program = TIDEMARK_PROGRAM, .arguments = std::move(arguments), .input = input});
}

std::string Numbered(std::string prefix, std::uint64_t number) {
  // Appended to: GCC 12 warns wrongly of `"s" + std::to_string(number)`.
  prefix += std::to_string(number);
  return prefix;
}

void SendUdp(std::uint16_t port, const std::string& datagram) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto generic = std::bit_cast<sockaddr>(address);
  const ssize_t sent = sendto(fd, datagram.data(), datagram.size(), 0, &generic, sizeof generic);
  close(fd);
  if (sent != static_cast<ssize_t>(datagram.size())) throw std::runtime_error("datagram not sent");
}

void LoseDatagrams(TestDaemon& daemon) {
  daemon.process().Signal(SIGSTOP);
  for (int i = 0; i < kLostAtMost; ++i) SendUdp(daemon.port("statsd"), std::string(60'000, 'x'));
  daemon.process().Signal(SIGCONT);
}

}  // namespace tidemark::test
