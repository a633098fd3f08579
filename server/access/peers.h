// What one peer may take of the daemon: connections, calls under way, bytes in flight.
//
// A peer is who the caller has shown to be, and an address before and otherwise: many clients of
// one collector share its name, wherever they are, and a stranger cannot become many by opening
// more connections. Who is which: Caller::Peer (guard.h). Limits of the whole daemon are elsewhere,
// and hold besides.
//
// Cost: a share of a peer that is not limited costs nothing; another a lookup under one lock when
// it is taken and when it ends. Memory: a peer is kept while it holds a share, so that there are
// never more than connections and calls.
#ifndef TIDEMARK_SERVER_ACCESS_PEERS_H_
#define TIDEMARK_SERVER_ACCESS_PEERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

enum class PeerResource : std::uint8_t { kConnections, kCalls, kBytes };
inline constexpr std::size_t kPeerResources = 3;
/// "connections", "calls", "bytes": the `reason` of tidemark_peer_refused_total.
std::string_view PeerResourceName(PeerResource what);

/// Of each peer; 0: no limit.
struct PeerLimits {
  std::uint64_t connections = 0;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  /// Callers on this machine who show no name are one peer each address, too, instead of as many as
  /// they are.
  bool loopback_is_one_peer = false;
};

/// The peer that an address stands for: IPv4 the address, IPv6 its first 64 bits, which is what one
/// host has ("2001:db8::/64"). Text that is no address stands for itself.
std::string PeerOfAddress(std::string_view address);

class PeerTable;

/// What somebody holds of a peer's limit until it is destroyed. Thread: one at a time. Lifetime:
/// the table outlives it.
class PeerShare {
 public:
  /// Of nobody: never refused.
  PeerShare() = default;
  ~PeerShare() { Release(); }
  PeerShare(PeerShare&& other) noexcept { *this = std::move(other); }
  PeerShare& operator=(PeerShare&& other) noexcept;
  PeerShare(const PeerShare&) = delete;
  PeerShare& operator=(const PeerShare&) = delete;

  /// Takes more or gives back. False, and nothing has changed: more than the peer may have.
  bool TryResize(std::uint64_t amount);
  /// The same, and a refusal is counted.
  bool Resize(std::uint64_t amount);
  /// Resize that is never refused: of what is needed to go on at all.
  void Force(std::uint64_t amount);
  std::uint64_t amount() const { return amount_; }
  /// Whether it is a share of this peer; "": of nobody.
  bool IsOf(std::string_view peer) const;

 private:
  friend class PeerTable;
  struct Peer;
  void Release();

  std::shared_ptr<Peer> peer_;  // null: of nobody
  PeerResource what_ = PeerResource::kConnections;
  std::string_view protocol_;
  std::uint64_t amount_ = 0;
};

/// Counts refusals in tidemark_peer_refused_total{protocol,reason}, and peers in tidemark_peers.
/// Thread: any. Lifetime: outlives every share; `metrics` outlives it.
class PeerTable {
 public:
  PeerTable(const PeerLimits& limits, Metrics& metrics) : limits_(limits), metrics_(metrics) {}
  PeerTable(const PeerTable&) = delete;
  PeerTable& operator=(const PeerTable&) = delete;

  /// Puts a share of `peer` into `share`, which gives back what it was before; of the same peer it
  /// is left as it is. "": nobody. `protocol` is the label of the count; not copied.
  /// Errors: RESOURCE_EXHAUSTED, in one line for the caller; `share` is then unchanged.
  absl::Status Take(std::string_view peer, PeerResource what, std::uint64_t amount,
                    std::string_view protocol, PeerShare& share);

  const PeerLimits& limits() const { return limits_; }
  /// Those who hold something now.
  std::size_t peers() const;

 private:
  friend class PeerShare;
  std::uint64_t LimitOf(PeerResource what) const;
  std::shared_ptr<PeerShare::Peer> Find(std::string_view peer);
  void Forget(PeerShare::Peer* peer);

  const PeerLimits limits_;
  Metrics& metrics_;
  struct Entry {
    std::weak_ptr<PeerShare::Peer> peer;
    const PeerShare::Peer* is;  // whose entry this is, also when it has expired
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> peers_;  // guarded by mutex_
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_PEERS_H_
