#include "client/demo/sources.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>

namespace tidemark::demo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecondNs = 1'000'000'000;

[[noreturn]] void Throw(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool IsNumber(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int BoundSocket(sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Throw("socket");
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  const timeval timeout = {0, 100'000};
  if (bind(fd, reinterpret_cast<const sockaddr*>(address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(address), &size) != 0 ||
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0) {
    close(fd);
    Throw("bind to 127.0.0.1");
  }
  return fd;
}

}  // namespace

std::uint64_t ClockNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec * kSecondNs + now.tv_nsec);
}

void AppendClockGaps(std::size_t count, std::chrono::nanoseconds most,
                     std::vector<std::uint32_t>* gaps) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t start = ClockNs();
  const std::uint64_t end = start + static_cast<std::uint64_t>(most.count());
  std::uint64_t before = start;
  for (std::size_t i = 0; i < count && before < end; ++i) {
    const std::uint64_t now = ClockNs();
    gaps->push_back(static_cast<std::uint32_t>(std::min(now - before, kLargest)));
    before = now;
  }
}

double WakeDelayNs(std::chrono::nanoseconds pause) {
  const std::uint64_t due = ClockNs() + static_cast<std::uint64_t>(pause.count());
  const timespec until = {static_cast<time_t>(due / kSecondNs), static_cast<long>(due % kSecondNs)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  return static_cast<double>(ClockNs() - due);
}

Loopback::Loopback() {
  sockaddr_in first, second;
  first_ = BoundSocket(&first);
  try {
    second_ = BoundSocket(&second);
  } catch (...) {
    close(first_);
    throw;
  }
  if (connect(first_, reinterpret_cast<const sockaddr*>(&second), sizeof(second)) != 0 ||
      connect(second_, reinterpret_cast<const sockaddr*>(&first), sizeof(first)) != 0) {
    close(first_);
    close(second_);
    Throw("connect over 127.0.0.1");
  }
}

Loopback::~Loopback() {
  close(first_);
  close(second_);
}

bool Loopback::Pass(int from, int to) {
  if (send(from, &sequence_, sizeof(sequence_), 0) != sizeof(sequence_)) return false;
  // A datagram of an earlier round that was given up may still come: it is not this one.
  for (std::uint64_t got = 0; got != sequence_;) {
    if (recv(to, &got, sizeof(got), 0) != sizeof(got)) return false;
  }
  return true;
}

std::optional<float> Loopback::RoundTripNs() {
  ++sequence_;
  const std::uint64_t start = ClockNs();
  if (!Pass(first_, second_) || !Pass(second_, first_)) return std::nullopt;
  return static_cast<float>(ClockNs() - start);
}

std::optional<std::string> ParseThreadState(const std::string& stat) {
  // "pid (name) state ...": the name may hold anything, parentheses and spaces too.
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open ||
      close + 2 >= stat.size()) {
    return std::nullopt;
  }
  std::string name = stat.substr(open + 1, close - open - 1);
  if (!client::IsUtf8(name)) name.assign(1, '?');
  name += ' ';
  name += stat[close + 2];
  return name;
}

std::vector<std::string> ThreadStates() {
  std::vector<std::string> states;
  std::error_code ignored;  // processes end while they are looked at
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    if (!IsNumber(process.path().filename().string())) continue;
    std::error_code error;
    fs::directory_iterator threads(process.path() / "task", error);
    while (!error && threads != fs::directory_iterator()) {
      std::ifstream file(threads->path() / "stat");
      std::string stat;
      if (std::getline(file, stat)) {
        if (auto state = ParseThreadState(stat)) states.push_back(std::move(*state));
      }
      threads.increment(error);
    }
  }
  return states;
}

std::optional<client::Ipv4> ParseTcpPeer(const std::string& line) {
  // "  sl: local:port remote:port ...", addresses as hexadecimal numbers in the machine's order.
  std::size_t at = line.find(':');
  for (int field = 0; field < 2; ++field) {
    at = line.find_first_not_of(' ', line.find(' ', at));
    if (at == std::string::npos) return std::nullopt;
  }
  std::string_view address = std::string_view(line).substr(at);
  address = address.substr(0, address.find(':'));
  // /proc/net/tcp6: an IPv4 peer of an IPv6 socket is ::ffff:a.b.c.d.
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  if (address.size() == 32 && address.starts_with(kMapped)) address.remove_prefix(kMapped.size());
  if (address.size() != 8) return std::nullopt;
  std::uint32_t number = 0;
  const char* const last = address.data() + address.size();
  const auto [end, error] = std::from_chars(address.data(), last, number, 16);
  if (error != std::errc{} || end != last || number == 0) return std::nullopt;
  return client::Ipv4{ntohl(number)};
}

std::vector<client::Ipv4> TcpPeers() {
  std::vector<client::Ipv4> peers;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      if (const auto peer = ParseTcpPeer(line)) peers.push_back(*peer);
    }
  }
  return peers;
}

}  // namespace tidemark::demo
