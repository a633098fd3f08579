// Where an ingest server listens, and its limits.
#ifndef TIDEMARK_SERVER_INGEST_LISTEN_OPTIONS_H_
#define TIDEMARK_SERVER_INGEST_LISTEN_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tidemark::server {

class Guard;
class TlsHolder;

struct ListenOptions {
  std::string host = "127.0.0.1";
  /// 0: a free one; port() of the server says which.
  std::uint16_t port = 0;
  /// Connections beyond are told so and closed.
  std::size_t connections_max = 1024;
  /// One read: large enough for many frames.
  std::size_t read_buffer_bytes = std::size_t{512} << 10;
  /// Answers that wait to be sent to one peer; beyond it its batches are not read.
  std::size_t outbound_bytes_max = std::size_t{256} << 10;
  /// A connection that sends nothing for so long is closed, and one that sends neither a whole
  /// frame or line nor 16 KiB of one; 0: never.
  std::chrono::microseconds idle_timeout{0};
  /// Null: no TLS, no rules. Both outlive the server.
  const TlsHolder* tls = nullptr;
  const Guard* guard = nullptr;
  /// From accepting a connection to the end of its TLS handshake; over framed TCP with rules, until
  /// the peer has shown who it is.
  std::chrono::milliseconds handshake_timeout{10'000};
};

/// "127.0.0.1:7071", "[::1]:7071".
inline std::string FormatAddress(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_LISTEN_OPTIONS_H_
