// Framed TCP: length-prefixed binary batches, each acknowledged. Bytes: wire/frame.h,
// docs/protocol.md.
//
// Every OPEN gets one OPENED or ERROR, every BATCH one ACK or ERROR, in the order in which they
// were sent. An ACK says that the values are part of the stream's n and, where the sink has a log,
// that they are durable; if the log's disk fails, ERROR UNAVAILABLE, and the values may be counted
// or not. Packed values go to the sink straight from the read buffer; the answers of one read leave
// in one write. Errors that leave framing intact are answered and the connection goes on; broken
// framing is answered with a fatal ERROR that names the byte, and the connection is closed.
#ifndef TIDEMARK_SERVER_INGEST_TCP_SERVER_H_
#define TIDEMARK_SERVER_INGEST_TCP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/ingest/clocks.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/listen_options.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "wire/frame.h"

namespace boost::asio {
class io_context;
}

namespace tidemark::server {

struct TcpServerOptions {
  ListenOptions listen;
  /// Larger frames end the connection.
  std::size_t frame_bytes_max = wire::kFrameBytesMaxDefault;
  /// Streams that one connection has open at a time; more are refused. They count against the bytes
  /// of its peer.
  std::size_t handles_max = 65'536;
};

/// Thread: Start, BeginStop, Stop and the destructor from one thread, which is none of the
/// io_context's. Lifetime: io, sink and metrics outlive it.
class TcpServer {
 public:
  /// The clocks are asked once for each read; `log` may be empty.
  TcpServer(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics,
            TcpServerOptions options, Clocks clocks, LogFn log);
  /// Stop(0).
  ~TcpServer();

  /// Listens. Errors as StreamServer::Start.
  absl::Status Start();
  std::uint16_t port() const;
  /// As those of StreamServer. Peers are told with a fatal ERROR UNAVAILABLE.
  void BeginStop();
  void Stop(std::chrono::milliseconds deadline);
  /// See StreamServer::Sweep.
  void Sweep();
  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_TCP_SERVER_H_
