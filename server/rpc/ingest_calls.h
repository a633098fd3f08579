// The ingest calls that live now: their limit, and their end at shutdown.
#ifndef TIDEMARK_SERVER_RPC_INGEST_CALLS_H_
#define TIDEMARK_SERVER_RPC_INGEST_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

class IngestCall {
 public:
  virtual ~IngestCall() = default;
  /// Takes in nothing that is not being taken in already, lets acknowledgements leave, and ends.
  /// Thread: any.
  virtual void Stop(const absl::Status& status) = 0;
};

/// Thread: any. Counts them in tidemark_ingest_connections{source="grpc"}, and refusals.
class IngestCalls {
 public:
  IngestCalls(std::uint64_t calls_max, Metrics& metrics)
      : calls_max_(calls_max), metrics_(metrics) {}

  /// Errors: RESOURCE_EXHAUSTED at the limit (may be tried again), UNAVAILABLE after EndAll. The
  /// call is then not kept.
  absl::Status Add(const std::shared_ptr<IngestCall>& call);
  void Remove(const IngestCall* call);
  /// Ends them all, later ones at once.
  void EndAll();
  std::uint64_t size() const;

 private:
  const std::uint64_t calls_max_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::map<const IngestCall*, std::weak_ptr<IngestCall>> open_;  // guarded by mutex_
  bool ended_ = false;                                           // guarded by mutex_
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_INGEST_CALLS_H_
