#include "server/access/opening.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tidemark::server {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Of TLS: type, version, length.
constexpr char kHandshake = 22;
constexpr char kMajorVersion = 3;
constexpr std::size_t kRecordHead = 5;
constexpr std::size_t kRecordMax = 1 << 14;
// More than a usual ClientHello has. What is waited for lies in the kernel.
constexpr std::size_t kRecordKept = 4096;
// A kernel that is short of memory wakes for less, again and again: so often it is put up with.
constexpr int kMissingMax = 8;

// A low-water mark of 1 is the usual one.
void WakeFrom(int fd, std::size_t bytes) {
  const int mark = static_cast<int>(bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
}

}  // namespace

bool PeerSendsNoMore(int fd) {
  pollfd socket{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return poll(&socket, 1, 0) > 0;
}

std::optional<std::size_t> OpeningBytes(Opening opening, std::string_view begun) {
  switch (opening) {
    case Opening::kNothing:
      return 0;
    case Opening::kHttp2:
      if (!kPreface.starts_with(begun.substr(0, kPreface.size()))) return std::nullopt;
      // What is none is seen by its first byte.
      return begun.empty() ? 1 : kPreface.size();
    case Opening::kTls: {
      if (begun.size() < kRecordHead) return kRecordHead;
      const std::size_t length = static_cast<unsigned char>(begun[3]) * std::size_t{256} +
                                 static_cast<unsigned char>(begun[4]);
      if (begun[0] != kHandshake || begun[1] != kMajorVersion || length == 0 ||
          length > kRecordMax) {
        return std::nullopt;
      }
      return std::min(kRecordHead + length, kRecordKept);
    }
  }
  return std::nullopt;
}

OpeningLook::State OpeningLook::Look(int fd) {
  State state = LookOnce(fd);
  if (state == State::kMissing && missing_++ == kMissingMax) state = State::kWhole;
  if (state != State::kMissing) Reset(fd);
  return state;
}

OpeningLook::State OpeningLook::LookOnce(int fd) {
  while (true) {
    const bool last = PeerSendsNoMore(fd);  // what is there then is all
    // Counted before they are looked at, so that none counts that nobody has looked at.
    int there = 0;
    if (ioctl(fd, FIONREAD, &there) != 0) there = 0;
    std::array<char, kPreface.size()> begun{};
    const ssize_t got = recv(fd, begun.data(), begun.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return State::kEnded;
    const std::size_t seen = got < 0 ? 0 : static_cast<std::size_t>(got);
    const auto needed = OpeningBytes(opening_, {begun.data(), seen});
    if (!needed) return State::kEnded;
    if (*needed <= static_cast<std::size_t>(there)) return State::kWhole;
    if (last || got == 0) return State::kEnded;
    if (*needed == needed_) return State::kMissing;
    // More may have come before the mark was set, of which nobody is told.
    WakeFrom(fd, *needed);
    needed_ = *needed;
  }
}

void OpeningLook::Reset(int fd) {
  if (needed_ == 1) return;
  WakeFrom(fd, 1);
  needed_ = 1;
}

}  // namespace tidemark::server
