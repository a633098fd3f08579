#include "server/ingest/udp_receiver.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <utility>
#include <vector>

#include "server/ingest/resolve.h"

namespace tidemark::server {
namespace {

namespace asio = boost::asio;
using asio::ip::udp;
using boost::system::error_code;

// Datagrams of one system call.
constexpr std::size_t kDatagrams = 64;
// The largest datagram is 65,507 bytes: none is ever cut. The odd rest keeps the beginnings of the
// buffers, which is all that a datagram of 1,432 bytes touches, apart in the caches: at a stride of
// exactly 64 KiB they would all fall into the same sets.
constexpr std::size_t kStrideBytes = 65'536 + 1'472;
static_assert(kStrideBytes % 64 == 0, "buffers begin at cache lines");
// System calls before other handlers of the thread get their turn.
constexpr int kCallsPerTurn = 16;
// System calls that Stop spends on what the kernel holds: 262,144 datagrams, more than 32 MiB can
// hold.
constexpr int kCallsAtStop = 4096;
// Drops after the last datagram of a burst are counted so long after it at most.
constexpr std::chrono::seconds kSweepInterval{1};
// Names are forgotten when nothing has come for so long, as those of a quiet connection.
constexpr RecordedTime kForgetMicros = 10'000'000;
// Room for the one control message that is asked for, SO_RXQ_OVFL.
constexpr std::size_t kControlBytes = 64;
static_assert(CMSG_SPACE(sizeof(std::uint32_t)) <= kControlBytes);

}  // namespace

struct UdpReceiver::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& io_in, IngestSink& sink_in, Metrics& metrics, GaugeTable& gauges,
       const StatsdLimits& limits, const Clocks& clocks_in, LimitedLog& log, const Guard* guard_in)
      : io(io_in),
        guard(guard_in),
        sink(sink_in),
        clocks(clocks_in),
        bytes(metrics.source(Source::kStatsdUdp).bytes),
        dropped_by_kernel(metrics.Dropped(Source::kStatsdUdp, "kernel_buffer")),
        dropped_saturated(metrics.Dropped(Source::kStatsdUdp, "saturated")),
        dropped_truncated(metrics.Dropped(Source::kStatsdUdp, "truncated")),
        batcher(sink_in, metrics, Source::kStatsdUdp, gauges, limits, log),
        strand(asio::make_strand(io_in)),
        socket(strand),
        sweep_timer(strand),
        last_arrival(clocks_in.steady()) {}

  absl::Status Open(const std::string& host, std::uint16_t port, std::size_t wanted_bytes) {
    const absl::StatusOr<asio::ip::address> address = ResolveHost(io, host, port);
    if (!address.ok()) return address.status();
    // Who sends a datagram cannot be known: all of them are anonymous, and on this machine only if
    // others cannot reach the socket.
    caller = Caller(guard, SourceName(Source::kStatsdUdp),
                    {.token = {}, .certificate_names = {}, .loopback = address->is_loopback()});
    batcher.ActFor(&caller);
    const udp::endpoint endpoint(*address, port);
    error_code error;
    socket.open(endpoint.protocol(), error);
    if (!error) socket.bind(endpoint, error);
    if (!error) socket.non_blocking(true, error);
    if (error) {
      error_code ignored;
      socket.close(ignored);
      return CannotListen(host, port, error);
    }
    bound_port = socket.local_endpoint(error).port();
    const int fd = socket.native_handle();
    const int size = static_cast<int>(wanted_bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0) {
      setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    int given = 0;
    socklen_t length = sizeof given;
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length);
    given_bytes = static_cast<std::size_t>(given) / 2;  // the kernel reports twice what was asked
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    Prepare();
    return absl::OkStatus();
  }

  void Prepare() {
    memory = std::make_unique_for_overwrite<char[]>(kDatagrams * kStrideBytes);
    messages.resize(kDatagrams);
    parts.resize(kDatagrams);
    controls.resize(kDatagrams);
    for (std::size_t i = 0; i < kDatagrams; ++i) {
      parts[i] = {memory.get() + i * kStrideBytes, kStrideBytes};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_control = controls[i].data();
    }
  }

  void Wait() {
    socket.async_wait(asio::socket_base::wait_read,
                      [self = shared_from_this()](const error_code& error) {
                        if (error || !self->socket.is_open()) return;
                        self->Turn();
                      });
  }

  void Turn() {
    if (!socket.is_open()) return;
    for (int call = 0; call < kCallsPerTurn; ++call) {
      if (!ReadOnce()) {
        Wait();
        return;
      }
    }
    asio::post(strand, [self = shared_from_this()] { self->Turn(); });
  }

  // One recvmmsg; false when there was nothing more to read.
  bool ReadOnce() {
    for (auto& message : messages) message.msg_hdr.msg_controllen = kControlBytes;
    const int got =
        recvmmsg(socket.native_handle(), messages.data(), kDatagrams, MSG_DONTWAIT, nullptr);
    if (got <= 0) return false;
    const bool saturated = sink.saturated();
    const RecordedTime time = clocks.recorded();
    last_arrival = clocks.steady();
    std::size_t read = 0;
    for (int i = 0; i < got; ++i) {
      const mmsghdr& message = messages[static_cast<std::size_t>(i)];
      read += message.msg_len;
      if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0) dropped_truncated.Increment();
      if (!saturated) {
        batcher.Add({memory.get() + static_cast<std::size_t>(i) * kStrideBytes, message.msg_len},
                    time);
      }
    }
    CountKernelDrops(messages[static_cast<std::size_t>(got) - 1].msg_hdr);
    bytes.Increment(static_cast<double>(read));
    if (saturated) {
      dropped_saturated.Increment(got);
    } else {
      batcher.Flush(time);
    }
    return static_cast<std::size_t>(got) == kDatagrams;
  }

  void ArmSweep() {
    sweep_timer.expires_after(kSweepInterval);
    sweep_timer.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (cancelled || !self->socket.is_open()) return;
      self->Sweep();
      self->ArmSweep();
    });
  }

  void Sweep() {
    AskForKernelDrops();
    if (clocks.steady() - last_arrival >= kForgetMicros) {
      batcher.Forget();
    } else {
      batcher.ForgetDeleted();
    }
  }

  // A datagram carries the counter as it was when that datagram was queued.
  void CountKernelDrops(const msghdr& header) {
    msghdr copy = header;
    for (cmsghdr* c = CMSG_FIRSTHDR(&copy); c != nullptr; c = CMSG_NXTHDR(&copy, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL) continue;
      std::uint32_t total = 0;
      std::memcpy(&total, CMSG_DATA(c), sizeof total);
      CountKernelDropsUpTo(total);
    }
  }

  void AskForKernelDrops() {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t length = sizeof info;
    // Linux 4.12 and later; before, only datagrams say so.
    if (getsockopt(socket.native_handle(), SOL_SOCKET, SO_MEMINFO, info.data(), &length) == 0 &&
        length > SK_MEMINFO_DROPS * sizeof(std::uint32_t)) {
      CountKernelDropsUpTo(info[SK_MEMINFO_DROPS]);
    }
  }

  // The kernel's counter is that of the socket's whole life, modulo 2^32. Datagrams that waited for
  // long carry older values than what was asked for: only a later one counts.
  void CountKernelDropsUpTo(std::uint32_t total) {
    const std::uint32_t more = total - kernel_drops;
    if (more == 0 || more >= std::uint32_t{1} << 31) return;
    kernel_drops = total;
    dropped_by_kernel.Increment(more);
  }

  asio::io_context& io;
  const Guard* const guard;
  IngestSink& sink;
  const Clocks& clocks;
  prometheus::Counter& bytes;
  prometheus::Counter& dropped_by_kernel;
  prometheus::Counter& dropped_saturated;
  prometheus::Counter& dropped_truncated;
  std::uint16_t bound_port = 0;
  std::size_t given_bytes = 0;

  // Of the strand.
  Caller caller{nullptr, "statsd_udp", {}};
  StatsdBatcher batcher;
  asio::strand<asio::io_context::executor_type> strand;
  udp::socket socket;
  asio::steady_timer sweep_timer;
  RecordedTime last_arrival;  // of a datagram, by the steady clock
  std::unique_ptr<char[]> memory;
  std::vector<mmsghdr> messages;
  std::vector<iovec> parts;
  struct alignas(cmsghdr) Control : std::array<char, kControlBytes> {};
  std::vector<Control> controls;
  std::uint32_t kernel_drops = 0;
};

UdpReceiver::UdpReceiver(asio::io_context& io, IngestSink& sink, Metrics& metrics,
                         GaugeTable& gauges, const StatsdLimits& limits, const Clocks& clocks,
                         LimitedLog& log, const Guard* guard)
    : impl_(std::make_shared<Impl>(io, sink, metrics, gauges, limits, clocks, log, guard)) {}

UdpReceiver::~UdpReceiver() { Stop(); }

absl::Status UdpReceiver::Start(const std::string& host, std::uint16_t port,
                                std::size_t buffer_bytes) {
  if (absl::Status status = impl_->Open(host, port, buffer_bytes); !status.ok()) return status;
  asio::post(impl_->strand, [impl = impl_] {
    impl->Wait();
    impl->ArmSweep();
  });
  return absl::OkStatus();
}

std::uint16_t UdpReceiver::port() const { return impl_->bound_port; }
std::size_t UdpReceiver::buffer_bytes() const { return impl_->given_bytes; }

void UdpReceiver::Sweep() {
  asio::post(impl_->strand, [impl = impl_] {
    if (impl->socket.is_open()) impl->Sweep();
  });
}

void UdpReceiver::Stop() {
  if (std::exchange(impl_->bound_port, std::uint16_t{0}) == 0) return;
  std::promise<void> closed;
  asio::post(impl_->strand, [impl = impl_, &closed] {
    for (int call = 0; call < kCallsAtStop && impl->ReadOnce(); ++call) {
    }
    impl->AskForKernelDrops();
    error_code ignored;
    impl->socket.close(ignored);
    impl->sweep_timer.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

}  // namespace tidemark::server
