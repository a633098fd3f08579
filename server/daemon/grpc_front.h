// The gRPC server: services, limits, health, reflection.
#ifndef TIDEMARK_SERVER_DAEMON_GRPC_FRONT_H_
#define TIDEMARK_SERVER_DAEMON_GRPC_FRONT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/access/tls_material.h"
#include "server/config/config.h"
#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"

namespace tidemark::v1 {
class GetInfoResponse;
}

namespace tidemark::server {

/// Thread: Start and Stop from one thread.
class GrpcFront {
 public:
  /// All outlive it; `tls` may be null: no TLS. `clock` gives microseconds since 1970; `fill_info`
  /// completes GetInfo.
  GrpcFront(const Config& config, Pipeline& pipeline, Metrics& metrics, const Guard& guard,
            const TlsHolder* tls, std::function<std::int64_t()> clock,
            std::function<void(v1::GetInfoResponse&)> fill_info);
  ~GrpcFront();

  /// Listens on config.listen.grpc, which must be set, as GrpcAcceptor does; its errors.
  absl::Status Start();
  std::uint16_t port() const;
  /// What grpc.health.v1 answers.
  void SetServing(bool serving);
  /// Pushes take in no further batch and end with UNAVAILABLE once their acknowledgements have
  /// left; new ones at once. Does not wait.
  void EndPushes();
  /// Accepts no connection any more; EndPushes, and ends subscriptions with UNAVAILABLE; calls
  /// under way at the deadline at the latest. Idle connections do not hold it up.
  void Stop(std::chrono::milliseconds deadline);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_GRPC_FRONT_H_
