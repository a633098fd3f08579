// StatsD and DogStatsD over UDP and TCP on one port. What lines mean: statsd_parser.h,
// statsd_batcher.h, docs/protocol.md.
//
// TCP: lines end in '\n'; a saturated sink stops the reading. UDP: datagrams of one or more lines;
// what cannot be kept is counted in tidemark_ingest_dropped_total, in datagrams: `saturated` if the
// sink was full, `kernel_buffer` if the kernel had no room, as it says with each datagram and is
// asked every second. Nothing is ever answered; refused lines are counted, and one a second is
// logged.
#ifndef TIDEMARK_SERVER_INGEST_STATSD_SERVER_H_
#define TIDEMARK_SERVER_INGEST_STATSD_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/ingest/clocks.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/listen_options.h"
#include "server/ingest/statsd_batcher.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"

namespace boost::asio {
class io_context;
}

namespace tidemark::server {

struct StatsdServerOptions {
  /// Host and port of both; the limits are those of TCP.
  ListenOptions listen;
  bool tcp = true;
  bool udp = true;
  StatsdLimits limits;
  /// The kernel's buffer for datagrams that wait to be read. With SO_RCVBUFFORCE, as root, it is
  /// had in full; else the kernel cuts it to net.core.rmem_max.
  std::size_t udp_buffer_bytes = std::size_t{32} << 20;
  /// Gauges whose last value is kept for relative changes, in the whole daemon.
  std::size_t gauges_max = 65'536;
};

/// Thread: Start, Stop and the destructor from one thread, which is none of the io_context's.
/// Lifetime: io, sink and metrics outlive it.
class StatsdServer {
 public:
  StatsdServer(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics,
               StatsdServerOptions options, Clocks clocks, LogFn log);
  /// Stop(0).
  ~StatsdServer();

  /// Listens. With port 0 both get the same free one. Errors as StreamServer::Start; logs a warning
  /// if the kernel gave a smaller buffer than asked for.
  absl::Status Start();
  std::uint16_t port() const;
  /// UDP reads what the kernel holds, then closes. TCP as StreamServer::Stop, but what the kernel
  /// holds of each connection is taken in as well, as nobody would tell the sender that it was not;
  /// lines that arrive later, or that the sink has no room for by the deadline, are counted as
  /// refused, `shutting_down`.
  void Stop(std::chrono::milliseconds deadline);
  /// See StreamServer::Sweep and UdpReceiver::Sweep.
  void Sweep();
  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_STATSD_SERVER_H_
