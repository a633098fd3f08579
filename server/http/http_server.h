// Serves the routes over HTTP/1.1, within limits on connections, sizes and time.
#ifndef TIDEMARK_SERVER_HTTP_HTTP_SERVER_H_
#define TIDEMARK_SERVER_HTTP_HTTP_SERVER_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/access/tls_material.h"
#include "server/config/host_port.h"
#include "server/http/routes.h"

namespace tidemark::server {

struct HttpOptions {
  /// Port 0 takes a free one.
  HostPort address = {"127.0.0.1", 0};
  /// Beyond this a connection is answered with 503 and closed; with 429 where its peer has all that
  /// one may have (server/access/peers.h, by `guard`).
  std::size_t max_connections = 1000;
  /// A whole request must have come, or its answer have gone, within this time; an idle kept-alive
  /// connection is closed after it.
  std::chrono::milliseconds timeout{30'000};
  /// Of the request line and headers. A larger one is answered with 431; trailers, and extensions
  /// of a chunk, that are longer by more than 1 KiB with 400.
  std::size_t max_header_bytes = 8 * 1024;
  /// No route reads a body, so small ones are only read past. A larger one is answered with 413.
  std::size_t max_body_bytes = 4 * 1024;
  /// Null: no TLS, no rules. Both outlive the server.
  const TlsHolder* tls = nullptr;
  const Guard* guard = nullptr;
  /// Of a TLS handshake.
  std::chrono::milliseconds handshake_timeout{10'000};
};

/// Threads: one, which Start begins and Stop ends; every callback runs on it. Memory is bounded by
/// max_connections x (2 x max_header_bytes + 1 KiB, + max_body_bytes, + what the fields of header
/// and trailers take parsed, at most some 20 times their bytes, + one answer).
/// Thread: Start, Stop and the destructor from one thread; not from a callback.
class HttpServer {
 public:
  HttpServer(HttpOptions options, HttpCallbacks callbacks);
  /// Stops.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Binds, listens, and begins to serve. REQUIRES: not started. Errors: UNAVAILABLE, in one line:
  /// `cannot listen on 127.0.0.1:7072: address already in use`.
  absl::Status Start();

  /// Closes the listening socket and every connection; returns when no callback runs any more.
  /// Without effect if not started.
  void Stop();

  /// The address in use, its port never 0. REQUIRES: started.
  HostPort address() const;

 private:
  struct Running;

  const HttpOptions options_;
  const HttpCallbacks callbacks_;
  std::unique_ptr<Running> running_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_HTTP_HTTP_SERVER_H_
