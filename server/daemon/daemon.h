// The whole service in one object: every stage, wired.
//
//   ingest (framed TCP, StatsD, gRPC) ──► pipeline ──► summaries
//                                             ▲
//   gRPC queries, subscriptions ── query engine      HTTP: metrics, health
//
// Start order: sorter, pipeline, HTTP, the log's replay, then the other sockets; ready last.
// Shutdown is the reverse: not ready, no new connections, what was read is taken in, subscriptions
// end, windows are summarized.
#ifndef TIDEMARK_SERVER_DAEMON_DAEMON_H_
#define TIDEMARK_SERVER_DAEMON_DAEMON_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace tidemark::server {

/// Reads the configuration anew, for a reload.
using ConfigSource = std::function<absl::StatusOr<Config>()>;

/// Thread: Start, Shutdown and the destructor from one thread; Reload and Tick from any.
class Daemon {
 public:
  /// Brings everything up. Errors: UNAVAILABLE for an address that cannot be listened on (naming
  /// it), and what the stages say.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Config& config, ConfigSource source);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  struct Endpoint {
    std::string name;  ///< grpc, tcp, http, statsd
    std::string host;
    std::uint16_t port = 0;
  };
  /// Those that are served, with the ports in use.
  const std::vector<Endpoint>& endpoints() const;

  /// Log level and format, defaults of new streams, rules, tokens and certificates change at once;
  /// other settings that differ are logged as needing a restart. On any error all stays as it was.
  absl::Status Reload();

  /// Gives memory of idle streams back, and deletes those that were idle for limits.stream_ttl_s.
  /// Called every kTick.
  static constexpr std::chrono::seconds kTick{5};
  void Tick();

  /// What has not moved since the call before, for a watchdog; empty if all has
  /// (progress_check.h). Thread: one.
  std::string Stalled();

  /// Drains within the configured deadline. `saving` is called before a last snapshot, if there is
  /// one: it takes as long as the disk does. May be called once.
  /// Errors: not everything that was taken in is in the log or the snapshot, which is also logged.
  absl::Status Shutdown(const std::function<void()>& saving = {});

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Writes {"grpc":7070,...} to `path`, whole or not at all.
absl::Status WritePortsFile(const std::string& path,
                            const std::vector<Daemon::Endpoint>& endpoints);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_DAEMON_H_
