// The rules in force, and callers held to them: what every protocol asks.
//
// A reload replaces the rules as a whole. Who is connected is judged anew by the next question: a
// caller that the new rules do not know is refused then, and so is one whose token has expired
// meanwhile.
#ifndef TIDEMARK_SERVER_ACCESS_GUARD_H_
#define TIDEMARK_SERVER_ACCESS_GUARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/access/peers.h"
#include "server/access/policy.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// Thread: any.
class Guard {
 public:
  /// `clock`: microseconds since 1970; called from any thread. Without rules, as it begins,
  /// everybody may do everything. `metrics` outlives it.
  Guard(Metrics& metrics, std::function<std::int64_t()> clock)
      : metrics_(metrics), clock_(std::move(clock)) {}

  /// From now on these; null: no rules.
  void Set(std::shared_ptr<const Policy> policy);
  std::shared_ptr<const Policy> policy() const;
  /// Bounds what one peer may take; null, as it begins: nothing does. Before the first caller.
  /// `peers` outlives every caller.
  void HoldTo(PeerTable* peers) { peers_ = peers; }
  PeerTable* peers() const { return peers_; }
  /// Changes with every Set.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::int64_t Now() const { return clock_(); }
  /// Counts a refusal in tidemark_access_refused_total{protocol,reason}.
  void Count(std::string_view protocol, Denial denial) const;

 private:
  Metrics& metrics_;
  const std::function<std::int64_t()> clock_;
  PeerTable* peers_ = nullptr;
  std::atomic<std::uint64_t> generation_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const Policy> policy_;  // guarded by mutex_
};

/// Somebody on a connection or in a call. A refusal is UNAUTHENTICATED where it is not known who
/// they are, PERMISSION_DENIED where it is, and counted.
/// Thread: one at a time. Lifetime: the guard outlives it.
class Caller {
 public:
  /// `guard` may be null: no rules. `protocol` is the label of the count: grpc, tcp, http,
  /// statsd_tcp, statsd_udp; not copied.
  Caller(const Guard* guard, std::string_view protocol, Credentials credentials);

  absl::Status MayOver(Role role, std::string_view stream);
  absl::Status MayOverAny(Role role);
  absl::Status MayOverAll(Role role);
  absl::Status MayAnything();
  bool Sees(std::string_view stream);

  /// As whom the caller is counted: who the rules say it is, or without rules the first name of its
  /// client certificate; else, and where that is anonymous or unknown, the peer of its address. "":
  /// as nobody, since it is on this machine, where one address is many callers.
  std::string Peer();
  /// Puts a share of the peer's limit into `share`, or leaves it, if it is one already; what
  /// `share` was of another peer is given back. Errors: RESOURCE_EXHAUSTED, counted; `share` is
  /// unchanged.
  absl::Status Hold(PeerResource what, std::uint64_t amount, PeerShare& share);

  /// Grows, from 1, whenever what was allowed before may be refused now: other rules, or an expired
  /// token. Who keeps an answer keeps the version from before the question, and asks again when it
  /// is another. Cost: an atomic load, and of a token that expires the clock.
  std::uint64_t Version() {
    Follow();
    return version_;
  }
  /// Whether there are rules.
  bool guarded() {
    Follow();
    return policy_ != nullptr;
  }
  /// Shows a token; what was shown as one before is forgotten.
  void Show(const TokenHash& token);

 private:
  void Follow();
  void Refresh();
  absl::Status Judge(const Decision& decision) const;

  const Guard* guard_;
  std::string_view protocol_;
  Credentials credentials_;
  std::shared_ptr<const Policy> policy_;  // null: no rules
  Policy::Identity identity_;
  std::uint64_t generation_ = 0;
  std::uint64_t version_ = 0;
  bool expired_ = false;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_GUARD_H_
