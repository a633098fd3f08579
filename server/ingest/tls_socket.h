// TLS on the socket of a connection: OpenSSL on the descriptor itself, which never blocks.
//
// Not asio::ssl::stream: a connection reads when the kernel has something and stops at any time
// (connection.h), which that class, built of whole asynchronous operations, does not offer.
#ifndef TIDEMARK_SERVER_INGEST_TLS_SOCKET_H_
#define TIDEMARK_SERVER_INGEST_TLS_SOCKET_H_

#include <openssl/types.h>

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/access/tls_material.h"

namespace tidemark::server {

/// Thread: one at a time. Lifetime: the descriptor, which must not block, outlives it.
class TlsSocket {
 public:
  TlsSocket(std::shared_ptr<const TlsMaterial> material, int descriptor);

  enum class Step { kDone, kWaitRead, kWaitWrite, kFailed };
  /// Goes as far as it can; on kFailed error() says why.
  Step Handshake();
  /// As a socket's read_some that does not block: fills `room` as far as it can. would_block: there
  /// is nothing; eof: the peer has ended, in TLS or without a word.
  std::size_t Read(std::span<std::byte> room, boost::system::error_code& error);
  /// Writes what it can of `bytes` and counts it in `written`.
  Step Write(std::span<const std::byte> bytes, std::size_t& written);
  /// What Read gives next is here already, bytes or the end: waiting for the socket would wait for
  /// others. Of half a record: false.
  bool HasMore() const;
  /// Read goes on when the socket takes bytes, not when it has some: TLS owes the peer an answer.
  bool ReadWaitsToWrite() const { return read_waits_to_write_; }
  /// Of what TLS carries at a time.
  static constexpr std::size_t kRecordBytesMax = std::size_t{16} << 10;
  /// Tells the peer that nothing comes any more.
  void Shutdown();

  /// Of the client's certificate; nullopt: it showed none. REQUIRES: Handshake was done.
  std::optional<std::vector<std::string>> PeerNames() const;
  const std::string& error() const { return error_; }

 private:
  Step Judge(int result);

  struct Free {
    void operator()(SSL* ssl) const;
  };
  const std::shared_ptr<const TlsMaterial> material_;
  std::unique_ptr<SSL, Free> ssl_;
  std::string error_;
  std::optional<boost::system::error_code> end_;  // what Read says from now on
  bool read_waits_to_write_ = false;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_TLS_SOCKET_H_
