#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "server/telemetry/log.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// What is wrong, or an empty string.
std::string Send(const std::string& address, const std::string& message) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.front() != '/' && address.front() != '@') return "neither a path from / nor @name";
  // A path keeps its terminating zero; an abstract name has none, and its length says where it
  // ends.
  const bool abstract = address.front() == '@';
  if (address.size() + (abstract ? 0 : 1) > sizeof to.sun_path) return "the address is too long";
  std::memcpy(to.sun_path, address.data(), address.size());
  if (abstract) to.sun_path[0] = '\0';
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + (abstract ? 0 : 1));
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  const ssize_t sent = sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&to), size);
  const int error = errno;
  close(fd);
  return sent == static_cast<ssize_t>(message.size()) ? "" : std::strerror(error);
}

std::optional<std::int64_t> PositiveNumber(const char* text) {
  const std::string_view view(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::chrono::microseconds> WatchdogInterval(const char* usec, const char* pid,
                                                          pid_t self) {
  if (usec == nullptr || *usec == '\0') return std::nullopt;
  if (pid != nullptr && *pid != '\0' && PositiveNumber(pid) != std::int64_t{self}) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> limit = PositiveNumber(usec);
  constexpr std::int64_t kPings = 4;
  if (!limit || *limit < kPings) {
    Log(LogLevel::kWarn, "the service manager's watchdog is not told anything",
        {{"WATCHDOG_USEC", usec}, {"expected", "a whole number of microseconds"}});
    return std::nullopt;
  }
  return std::chrono::microseconds(*limit / kPings);
}

void ServiceManager::Reloading() const {
  // The time lets a Type=notify-reload manager tell this reload from an earlier one.
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr long kNsPerUs = 1000;
  constexpr long kUsPerSecond = 1'000'000;
  Tell(Concat("RELOADING=1\nMONOTONIC_USEC=", now.tv_sec * kUsPerSecond + now.tv_nsec / kNsPerUs));
}

void ServiceManager::Extend(std::chrono::seconds time) const {
  Tell(Concat("EXTEND_TIMEOUT_USEC=", std::chrono::microseconds(time).count()));
}

void ServiceManager::Tell(const std::string& message) const {
  if (address_.empty()) return;
  if (const std::string error = Send(address_, message); !error.empty()) {
    Log(LogLevel::kWarn, "cannot tell the service manager",
        {{"NOTIFY_SOCKET", address_}, {"state", message}, {"error", error}});
  }
}

}  // namespace tidemark::server
