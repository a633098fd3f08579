// gRPC's connections, accepted here: bounded, and handed to gRPC one by one.
//
// gRPC 1.51 shows calls and no connections, and bounds none. Left to accept by itself it also never
// accepts again once the process had no descriptor left (docs/decisions).
//
// A connection keeps its place until gRPC has closed its descriptor, however it ended. gRPC says
// nothing then. But a number that leads to no file, or to another one, shows it: every connection
// is looked at so, each second, and before another one is refused. It has its place from the
// moment it is accepted, while its first bytes are waited for (first_bytes.h) and its turn
// (pace.h), too: gRPC's threads would make all handshakes that have come before they answer
// anybody.
#ifndef TIDEMARK_SERVER_DAEMON_GRPC_ACCEPTOR_H_
#define TIDEMARK_SERVER_DAEMON_GRPC_ACCEPTOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/daemon/first_bytes.h"
#include "server/ingest/clocks.h"
#include "server/ingest/ingest_log.h"

namespace boost::asio {
class io_context;
}

namespace tidemark::server {

class Guard;
class Metrics;

struct GrpcAcceptorOptions {
  std::string host = "127.0.0.1";
  /// 0: a free one; port() says which.
  std::uint16_t port = 0;
  /// Connections beyond are closed at once.
  std::size_t connections_max = 1000;
  /// Whose limits of peers hold; null: none. Outlives the acceptor.
  const Guard* guard = nullptr;
  /// A connection whose peer has acknowledged nothing for so long ends (TCP_USER_TIMEOUT).
  std::chrono::milliseconds unacknowledged_max{20'000};
  /// What a connection begins with before it is handed over, and within how long (and the time
  /// between two looks, see below); else it is closed, and counted in
  /// tidemark_grpc_connections_unopened_total, of TLS also, unless it is Stop that closes it, in
  /// tidemark_tls_handshakes_failed_total{protocol="grpc"}.
  Opening opening = Opening::kNothing;
  std::chrono::milliseconds opening_timeout{10'000};
  /// So many are handed over a second, in the order in which their first bytes were whole; the
  /// others wait for their turn, and are counted in tidemark_grpc_handshakes_delayed_total. 0: all
  /// at once.
  std::uint32_t handed_over_per_second = 0;
};

/// Counts those that it refuses in tidemark_ingest_connections_refused_total{source="grpc"}, at the
/// limit of a peer in tidemark_peer_refused_total{protocol="grpc",reason="connections"}; the level
/// is tidemark_grpc_connections. A peer is the address alone: who calls shows itself to calls.
///
/// Cost: to look takes a system call of 0.2 to 0.8 µs for each of n connections; it is done every
/// max(1 s, n * 200 µs), and before a refusal at most every max(10 ms, n * 50 µs). So long a place
/// may stay taken that is free.
/// Thread: Listen, Start, Stop and the destructor from one thread, which is none of the
/// io_context's; the rest from any. Lifetime: io and metrics outlive it.
class GrpcAcceptor {
 public:
  /// Takes a connection's descriptor, which does not block and is closed by exec, for its own.
  using HandOver = std::function<void(int listener, int connection)>;

  /// `steady`: microseconds, never steps.
  GrpcAcceptor(boost::asio::io_context& io, GrpcAcceptorOptions options, Metrics& metrics,
               ClockFn steady, LogFn log);
  /// Stop().
  ~GrpcAcceptor();
  GrpcAcceptor(const GrpcAcceptor&) = delete;
  GrpcAcceptor& operator=(const GrpcAcceptor&) = delete;

  /// Connections wait from now on. Errors: INVALID_ARGUMENT for a host that cannot be resolved,
  /// UNAVAILABLE if the port cannot be had: "cannot listen on 127.0.0.1:7070: address already in
  /// use".
  absl::Status Listen();
  /// The port in use; 0 before Listen.
  std::uint16_t port() const;
  /// Hands over those that wait and that come, on a thread of the io_context. REQUIRES: Listen.
  void Start(HandOver hand_over);

  /// Accepts no more; when it returns nothing is handed over any more. Those that had not been are
  /// closed; what gRPC has stays open. May be called again. REQUIRES: the io_context is still being
  /// run.
  void Stop();

  /// Looks at all connections, and gives back the places of those that are closed.
  void Look();

  /// Those that had not been closed at the last look.
  std::size_t connections() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_GRPC_ACCEPTOR_H_
