// TLS on a blocking socket of a framed TCP producer. Not installed.
#ifndef TIDEMARK_CLIENT_TLS_STREAM_H_
#define TIDEMARK_CLIENT_TLS_STREAM_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tidemark::client {

/// PEM files; empty: the system's authorities, no certificate.
struct TlsStreamOptions {
  std::string ca;
  std::string cert;
  std::string key;
};

/// Thread: one. Lifetime: the socket outlives it.
class TlsStream {
 public:
  /// Shakes hands, and checks that the peer's certificate is of `host`, a name or an address.
  /// Errors: INVALID_ARGUMENT for files that cannot be used, UNAVAILABLE for a handshake that
  /// fails.
  static absl::StatusOr<std::unique_ptr<TlsStream>> Connect(int socket, const std::string& host,
                                                            const TlsStreamOptions& options);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// Writes all, waiting as long as it takes.
  absl::Status Write(std::span<const std::byte> bytes);
  /// As recv: how many bytes came, 0 at the end, -1 with errno. Without `wait` EAGAIN if nothing
  /// has begun to come.
  ssize_t Read(std::span<std::byte> room, bool wait);

 private:
  struct Parts;
  explicit TlsStream(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_TLS_STREAM_H_
