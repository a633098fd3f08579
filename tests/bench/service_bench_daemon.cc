#include "tests/bench/service_bench_daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tidemark::bench {
namespace {

// Measuring the sorters at start takes 0.6 s on an idle machine.
constexpr std::chrono::seconds kStartLimit{30};

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int ConnectLoopback(int type, std::uint16_t port) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    close(fd);
    errno = why;
    Fail("connect to 127.0.0.1:" + std::to_string(port));
  }
  if (type == SOCK_STREAM) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return fd;
}

void SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      Fail("send");
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

Daemon::Daemon(const std::string& program, const std::vector<std::string>& arguments) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "tidemark-service-bench-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) Fail("mkdtemp");
  folder_ = pattern;

  std::vector<std::string> command = {
      program,       "--grpc",   "127.0.0.1:0", "--tcp",        "127.0.0.1:0",          "--http",
      "127.0.0.1:0", "--statsd", "127.0.0.1:0", "--ports-file", folder_ + "/ports.json"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int log = open((folder_ + "/log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (log < 0) Fail("open the daemon's log");

  pid_ = fork();
  if (pid_ < 0) Fail("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // it does not outlive a benchmark that is killed
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(log);
  try {
    WaitUntilReady();
  } catch (...) {
    Stop();
    throw;
  }
}

Daemon::~Daemon() { Stop(); }

void Daemon::WaitUntilReady() {
  const auto end = std::chrono::steady_clock::now() + kStartLimit;
  while (true) {
    const std::string text = ReadFile(folder_ + "/ports.json");
    if (!text.empty()) {
      const auto ports = nlohmann::json::parse(text);
      grpc_ = ports.at("grpc");
      tcp_ = ports.at("tcp");
      http_ = ports.at("http");
      statsd_ = ports.at("statsd");
      return;
    }
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error("tidemarkd ended at once: " + ReadFile(folder_ + "/log"));
    }
    if (std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("tidemarkd is not ready: " + ReadFile(folder_ + "/log"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Daemon::Stop() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Daemon::Metrics() const {
  const int fd = ConnectLoopback(SOCK_STREAM, http_);
  SendAll(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string text;
  std::array<char, 65'536> part;
  ssize_t got = 0;
  while ((got = recv(fd, part.data(), part.size(), 0)) > 0) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(fd);
  if (!text.starts_with("HTTP/1.1 200")) {
    throw std::runtime_error("/metrics answered " + text.substr(0, text.find('\r')));
  }
  return text;
}

double Daemon::Metric(std::string_view prefix) const { return SumOfSamples(Metrics(), prefix); }

double SumOfSamples(const std::string& exposition, std::string_view prefix) {
  std::istringstream lines(exposition);
  std::string line;
  double sum = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with(prefix)) sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

double Daemon::ResidentBytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) * 1024;
  }
  throw std::runtime_error("no VmRSS of the daemon");
}

std::size_t Daemon::Descriptors() const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

double Daemon::CpuSeconds() const {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid_) + "/stat");
  // Fields 14 and 15, user and system ticks; the second field is in parentheses and may hold
  // anything.
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace tidemark::bench
