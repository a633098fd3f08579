// What [limits] says of one peer.
#ifndef TIDEMARK_SERVER_DAEMON_PEER_LIMITS_H_
#define TIDEMARK_SERVER_DAEMON_PEER_LIMITS_H_

#include <algorithm>
#include <cstdint>

#include "server/access/peers.h"
#include "server/config/config.h"

namespace tidemark::server {

inline PeerLimits PeerLimitsOf(const Config::Limits& limits) {
  const std::uint64_t half = std::max<std::uint64_t>(1, limits.max_connections / 2);
  const auto or_half = [half](std::uint64_t limit) { return limit == 0 ? half : limit; };
  return {.connections = or_half(limits.max_connections_per_peer),
          .calls = or_half(limits.max_calls_per_peer),
          .bytes = limits.max_bytes_per_peer,
          .loopback_is_one_peer = limits.loopback_is_one_peer};
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_PEER_LIMITS_H_
