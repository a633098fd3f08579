// "HOST:PORT", the form in which every address of the daemon is written.
#ifndef TIDEMARK_SERVER_CONFIG_HOST_PORT_H_
#define TIDEMARK_SERVER_CONFIG_HOST_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tidemark::server {

/// A host (name, IPv4 or IPv6 address without brackets) and a port; port 0 asks for a free one.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  /// "127.0.0.1:7070", "[::1]:7070": what gRPC, a browser and ParseHostPort take.
  std::string ToString() const;

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// Reads "127.0.0.1:7070", "localhost:0" or "[::1]:7070". The host is not looked up.
/// Errors: INVALID_ARGUMENT, one line that repeats the text and says what was expected.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_CONFIG_HOST_PORT_H_
