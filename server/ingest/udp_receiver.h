// Datagrams of StatsD lines, many to a system call.
#ifndef TIDEMARK_SERVER_INGEST_UDP_RECEIVER_H_
#define TIDEMARK_SERVER_INGEST_UDP_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/ingest/clocks.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/statsd_batcher.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"

namespace boost::asio {
class io_context;
}

namespace tidemark::server {

/// One UDP socket, read on the io_context's threads, one at a time.
/// Thread and lifetime: as StatsdServer.
class UdpReceiver {
 public:
  UdpReceiver(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics, GaugeTable& gauges,
              const StatsdLimits& limits, const Clocks& clocks, LimitedLog& log,
              const Guard* guard = nullptr);
  /// Stop.
  ~UdpReceiver();

  /// Binds and begins to read. Errors as StreamServer::Start.
  absl::Status Start(const std::string& host, std::uint16_t port, std::size_t buffer_bytes);
  std::uint16_t port() const;
  /// What the kernel really gave.
  std::size_t buffer_bytes() const;
  /// Asks the kernel how many datagrams it has dropped: the kernel itself says so only with one
  /// that arrives later. Lets go of names if a stream was deleted, for a name keeps its stream's
  /// memory, and of all memory when nothing has come for ten seconds by the steady clock. Called
  /// every second by its own timer. From any thread.
  void Sweep();
  /// Reads what the kernel holds and closes. May be called again.
  void Stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_UDP_RECEIVER_H_
