#include "server/daemon/first_bytes.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <utility>

namespace tidemark::server {
namespace {

namespace posix = boost::asio::posix;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Of TLS: type, version, length.
constexpr char kHandshake = 22;
constexpr char kMajorVersion = 3;
constexpr std::size_t kRecordHead = 5;
constexpr std::size_t kRecordMax = 1 << 14;
// More than a usual ClientHello has. What is waited for lies in the kernel.
constexpr std::size_t kRecordKept = 4096;
// A kernel that is short of memory wakes for less, again and again: so often it is put up with.
constexpr int kWakesMax = 8;

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

struct FirstBytes::Waiting {
  Waiting(const boost::asio::any_io_executor& executor, RecordedTime since_in)
      : socket(executor), since(since_in) {}

  posix::stream_descriptor socket;
  const RecordedTime since;
  std::size_t needed = 1;
  int wakes = 0;
  Place place;
};

FirstBytes::FirstBytes(boost::asio::any_io_executor executor, Opening opening, RecordedTime timeout,
                       Take whole, Take ended)
    : executor_(std::move(executor)),
      opening_(opening),
      timeout_(timeout),
      whole_(std::move(whole)),
      ended_(std::move(ended)) {}

FirstBytes::~FirstBytes() { EndAll(); }

void FirstBytes::Add(int fd, RecordedTime now) {
  if (opening_ == Opening::kNothing) return whole_(fd);
  const auto waiting = std::make_shared<Waiting>(executor_, now);
  boost::system::error_code error;
  if (waiting->socket.assign(fd, error); error) return whole_(fd);
  waiting->place = waiting_.insert(waiting_.end(), waiting);
  WaitFor(waiting);
}

// What comes once it waits wakes it, so that it waits first and looks then.
void FirstBytes::WaitFor(const std::shared_ptr<Waiting>& waiting) {
  waiting->socket.async_wait(posix::stream_descriptor::wait_read,
                             [this, waiting](const boost::system::error_code& /*a look tells*/) {
                               if (!waiting->socket.is_open()) return;  // and this may be gone, too
                               ++waiting->wakes;
                               WaitFor(waiting);
                             });
  const State state = Look(*waiting);
  if (state == State::kMissing && waiting->wakes < kWakesMax) return;
  const int fd = Release(*waiting);
  (state == State::kEnded ? ended_ : whole_)(fd);
}

FirstBytes::State FirstBytes::Look(Waiting& waiting) const {
  const int fd = waiting.socket.native_handle();
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
    if (*needed == waiting.needed) return State::kMissing;
    // More may have come before the mark was set, of which nobody is told.
    WakeFrom(fd, *needed);
    waiting.needed = *needed;
  }
}

int FirstBytes::Release(Waiting& waiting) {
  const int fd = waiting.socket.release();
  if (waiting.needed != 1) WakeFrom(fd, 1);
  const std::shared_ptr<Waiting> kept = std::move(*waiting.place);
  waiting_.erase(waiting.place);
  return fd;
}

void FirstBytes::EndOverdue(RecordedTime now) {
  while (!waiting_.empty() && now - waiting_.front()->since >= timeout_) {
    ended_(Release(*waiting_.front()));
  }
}

void FirstBytes::EndAll() {
  while (!waiting_.empty()) ended_(Release(*waiting_.front()));
}

}  // namespace tidemark::server
