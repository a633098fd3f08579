// What the TCP protocols of ingest share: listening, the limits of connections, idle connections,
// stop.
#ifndef TIDEMARK_SERVER_INGEST_STREAM_SERVER_H_
#define TIDEMARK_SERVER_INGEST_STREAM_SERVER_H_

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/ingest/clocks.h"
#include "server/ingest/connection.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/listen_options.h"

namespace tidemark::server {

/// The bytes that tell a peer why its connection is not served; may give none.
using RefusalFn = std::function<std::string(const std::string& why)>;
/// Makes the connection of a protocol.
using ConnectionFactory =
    std::function<std::shared_ptr<Connection>(boost::asio::ip::tcp::socket, ConnectionContext&)>;

/// Thread: Start, BeginStop, Stop and the destructor from one thread, which is none of the
/// io_context's; the rest from any. Lifetime: io, sink and metrics outlive it.
class StreamServer {
 public:
  /// `refusal`: what a connection beyond a limit is told before it is closed.
  StreamServer(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics, Source source,
               ListenOptions options, Clocks clocks, LogFn log, ConnectionFactory factory,
               RefusalFn refusal);
  /// Stop(0).
  ~StreamServer();
  StreamServer(const StreamServer&) = delete;
  StreamServer& operator=(const StreamServer&) = delete;

  /// Listens. Errors: INVALID_ARGUMENT for a host that cannot be resolved, UNAVAILABLE if the port
  /// cannot be had: "cannot listen on 127.0.0.1:7071: address already in use".
  absl::Status Start();
  /// The port in use; 0 before Start.
  std::uint16_t port() const;

  /// Accepts no more, and has every connection take in what it has read (see Connection) and flush
  /// its answers. Does not wait for them. May be called again.
  /// REQUIRES: the io_context is still being run.
  void BeginStop();
  /// BeginStop, then waits at most `deadline` for the connections and closes the rest. When it
  /// returns nothing touches the sink any more. May be called again.
  /// REQUIRES: the io_context is still being run.
  void Stop(std::chrono::milliseconds deadline);

  /// Closes connections that have been idle for too long, by the steady clock, and those that wait
  /// for the sink and whose peer has reset them; frees the buffers of quiet ones.
  /// Called by the server's own timer; public for tests that pass in their own time.
  void Sweep();

  /// Connections now, those being closed included.
  std::size_t connections() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_STREAM_SERVER_H_
