#include "server/daemon/grpc_acceptor.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "server/access/guard.h"
#include "server/access/loopback.h"
#include "server/daemon/pace.h"
#include "server/ingest/resolve.h"
#include "server/telemetry/metrics.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// The pause after accept failed, which is nearly always for want of descriptors.
constexpr std::chrono::milliseconds kAcceptRetry{100};
// Before the thread's other handlers get their turn.
constexpr int kAcceptsPerTurn = 16;
// From one look to the next, and to one before somebody is refused. Where there are many
// connections it is so long for each, so that looking takes at most a few hundredths of a core.
constexpr std::chrono::microseconds kLookInterval{1'000'000};
constexpr std::chrono::microseconds kLookIntervalEach{200};
constexpr RecordedTime kLookAgainMicros = 10'000;
constexpr RecordedTime kLookAgainEachMicros = 50;

// Which file a descriptor leads to. A socket's inode is its own, and numbered anew each time.
struct FileIdentity {
  dev_t device;
  ino_t inode;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

std::optional<FileIdentity> IdentityOf(int fd) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

// Errors of one connection that has gone before it was accepted, as accept(2) lists them.
bool IsOfOneConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Kept alive by its own handlers, so that one that runs late finds it.
struct GrpcAcceptor::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& io_in, GrpcAcceptorOptions options_in, Metrics& metrics_in,
       ClockFn steady_in, LogFn log_in)
      : io(io_in),
        options(std::move(options_in)),
        metrics(metrics_in),
        steady(std::move(steady_in)),
        strand(asio::make_strand(io_in)),
        acceptor(strand),
        retry_timer(strand),
        look_timer(strand),
        pace(options.handed_over_per_second),
        pace_timer(strand),
        accept_log(std::move(log_in)),
        first_bytes(
            strand, options.opening,
            std::chrono::duration_cast<std::chrono::microseconds>(options.opening_timeout).count(),
            [this](int fd) { OnWhole(fd); }, [this](int fd) { EndUnopened(fd); }) {}

  absl::Status Listen() {
    const auto inherited = [this](error_code& error) {
      acceptor.non_blocking(true, error);
      if (!error) acceptor.set_option(tcp::no_delay(true), error);
      const auto timeout = static_cast<unsigned>(options.unacknowledged_max.count());
      if (!error && setsockopt(acceptor.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout,
                               sizeof timeout) != 0) {
        error = {errno, boost::system::system_category()};
      }
    };
    const absl::StatusOr<std::uint16_t> bound =
        ListenOn(io, options.host, options.port, acceptor, inherited);
    if (!bound.ok()) return bound.status();
    port = *bound;
    return absl::OkStatus();
  }

  void Wait() {
    acceptor.async_wait(asio::socket_base::wait_read,
                        [self = shared_from_this()](const error_code& error) {
                          if (!self->acceptor.is_open()) return;
                          if (error) {
                            self->WaitAfter(ErrorText(error));
                          } else {
                            self->AcceptSome();
                          }
                        });
  }

  void WaitAfter(const std::string& error) {
    Report("cannot accept: " + error);
    retry_timer.expires_after(kAcceptRetry);
    retry_timer.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled && self->acceptor.is_open()) self->AcceptSome();
    });
  }

  void AcceptSome() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      tcp::endpoint peer;
      auto size = static_cast<socklen_t>(peer.capacity());
      const int fd =
          accept4(acceptor.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        peer.resize(size);
        OnAccepted(fd, peer.address().to_string());
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (!IsOfOneConnection(errno)) {
        WaitAfter(ErrorText({errno, boost::system::system_category()}));
        return;
      }
    }
    Wait();
  }

  void OnAccepted(int fd, std::string address) {
    if (const absl::Status place = TakePlace(fd, std::move(address)); place.ok()) {
      first_bytes.Add(fd, steady());
    } else {
      close(fd);
      Report("refused a connection: " + std::string(place.message()));
    }
  }

  void OnWhole(int fd) {
    if (in_turn.empty()) {
      const RecordedTime wait = pace.Take(steady());
      if (wait == 0) return hand_over(acceptor.native_handle(), fd);
      WaitForTurn(wait);
    }
    in_turn.push_back(fd);
    metrics.grpc_handshakes_delayed().Increment();
  }

  void WaitForTurn(RecordedTime wait) {
    pace_timer.expires_after(std::chrono::microseconds(wait));
    pace_timer.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (!cancelled && self->acceptor.is_open()) self->HandOverInTurn();
    });
  }

  void HandOverInTurn() {
    for (; !in_turn.empty(); in_turn.pop_front()) {
      if (PeerSendsNoMore(in_turn.front())) {  // it has gone meanwhile
        EndUnopened(in_turn.front());
        continue;
      }
      if (const RecordedTime wait = pace.Take(steady()); wait > 0) return WaitForTurn(wait);
      hand_over(acceptor.native_handle(), in_turn.front());
    }
  }

  void EndAllInTurn() {
    for (const int fd : std::exchange(in_turn, {})) EndUnopened(fd);
  }

  // Counted first: whoever sees it closed sees it counted.
  void EndUnopened(int fd) {
    metrics.grpc_unopened().Increment();
    const bool stopped = !acceptor.is_open();  // the peer has failed in nothing
    if (options.opening == Opening::kTls && !stopped) metrics.TlsFailed("grpc").Increment();
    {
      const std::lock_guard lock(mutex);
      held.erase(fd);
      metrics.grpc_connections().Set(static_cast<double>(held.size()));
    }
    close(fd);
  }

  // A place, or why there is none.
  absl::Status TakePlace(int fd, std::string address) {
    const std::lock_guard lock(mutex);
    if (held.erase(fd) != 0) {  // of one that has gone: the number is this one's now
      metrics.grpc_connections().Set(static_cast<double>(held.size()));
    }
    Caller caller(options.guard, "grpc", CredentialsAt(std::move(address)));
    // Of nothing yet: a refusal is counted, and is not to be before somebody has looked.
    PeerShare share;
    if (absl::Status none = caller.Hold(PeerResource::kConnections, 0, share); !none.ok()) {
      return none;
    }
    if (!share.TryResize(1) || held.size() >= options.connections_max) LookIfDue();
    if (!share.Resize(1)) {
      return absl::ResourceExhaustedError("its peer has as many as one peer may have");
    }
    if (held.size() >= options.connections_max) {
      metrics.source(Source::kGrpc).connections_refused.Increment();
      return absl::ResourceExhaustedError(
          Concat("gRPC has ", options.connections_max, " connections, which is the limit"));
    }
    held.emplace(fd, Held{IdentityOf(fd), std::move(share)});
    metrics.grpc_connections().Set(static_cast<double>(held.size()));
    return absl::OkStatus();
  }

  void LookIfDue() {
    const auto interval =
        std::max(kLookAgainMicros, kLookAgainEachMicros * static_cast<RecordedTime>(held.size()));
    if (!looked || steady() - *looked >= interval) LookLocked();
  }

  void LookLocked() {
    looked = steady();
    std::erase_if(held, [](const auto& one) {
      const auto now = IdentityOf(one.first);
      return !now || now != one.second.is;
    });
    metrics.grpc_connections().Set(static_cast<double>(held.size()));
  }

  void Look() {
    const std::lock_guard lock(mutex);
    LookLocked();
  }

  std::size_t connections() const {
    const std::lock_guard lock(mutex);
    return held.size();
  }

  void ArmLook() {
    look_timer.expires_after(
        std::max(kLookInterval, kLookIntervalEach * static_cast<std::int64_t>(connections())));
    look_timer.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (cancelled || !self->acceptor.is_open()) return;
      self->first_bytes.EndOverdue(self->steady());
      self->Look();
      self->ArmLook();
    });
  }

  void Report(std::string message) {
    if (accept_log.Admit(steady())) accept_log.Write(IngestLogLevel::kWarning, std::move(message));
  }

  struct Held {
    std::optional<FileIdentity> is;
    PeerShare share;
  };

  asio::io_context& io;
  const GrpcAcceptorOptions options;
  Metrics& metrics;
  const ClockFn steady;
  std::uint16_t port = 0;

  // Of the strand.
  asio::strand<asio::io_context::executor_type> strand;
  tcp::acceptor acceptor;
  asio::steady_timer retry_timer;
  asio::steady_timer look_timer;
  Pace pace;
  asio::steady_timer pace_timer;
  std::deque<int> in_turn;  // whose first bytes are whole
  LimitedLog accept_log;
  HandOver hand_over;

  mutable std::mutex mutex;
  std::unordered_map<int, Held> held;  // by descriptor
  std::optional<RecordedTime> looked;
  bool stopping = false;

  FirstBytes first_bytes;  // of the strand; ends with what it gives up
};

GrpcAcceptor::GrpcAcceptor(asio::io_context& io, GrpcAcceptorOptions options, Metrics& metrics,
                           ClockFn steady, LogFn log)
    : impl_(std::make_shared<Impl>(io, std::move(options), metrics, std::move(steady),
                                   std::move(log))) {}

GrpcAcceptor::~GrpcAcceptor() { Stop(); }

absl::Status GrpcAcceptor::Listen() { return impl_->Listen(); }

std::uint16_t GrpcAcceptor::port() const { return impl_->port; }

void GrpcAcceptor::Start(HandOver hand_over) {
  asio::dispatch(impl_->strand, [impl = impl_, hand_over = std::move(hand_over)]() mutable {
    impl->hand_over = std::move(hand_over);
    impl->Wait();
    impl->ArmLook();
  });
}

void GrpcAcceptor::Stop() {
  {
    const std::lock_guard lock(impl_->mutex);
    if (std::exchange(impl_->stopping, true)) return;
  }
  if (impl_->port == 0) return;  // never listened
  // Once this has run on the strand no handler accepts any more.
  std::promise<void> closed;
  asio::post(impl_->strand, [impl = impl_, &closed] {
    error_code ignored;
    impl->acceptor.close(ignored);
    impl->first_bytes.EndAll();
    impl->EndAllInTurn();
    impl->pace_timer.cancel();
    impl->retry_timer.cancel();
    impl->look_timer.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

void GrpcAcceptor::Look() { impl_->Look(); }

std::size_t GrpcAcceptor::connections() const { return impl_->connections(); }

}  // namespace tidemark::server
