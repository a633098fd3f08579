// Calls with one answer that is computed on the executor, counted and timed.
#ifndef TIDEMARK_SERVER_RPC_POSTED_CALLS_H_
#define TIDEMARK_SERVER_RPC_POSTED_CALLS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/query/query_engine.h"
#include "server/rpc/executor.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// A full executor answers UNAVAILABLE with RetryInfo. A call's deadline is honoured: work for a
/// call that is over is not begun, and is told when to stop waiting.
/// Thread: any. Outlives every call.
class PostedCalls {
 public:
  using Done = std::function<void(const absl::Status&)>;
  /// Holds an answer up without a thread: calls `done` once, from any thread, at the deadline at
  /// the latest.
  using Wait = std::function<void(QueryEngine::Deadline deadline, Done done)>;
  struct Outcome {
    // A status is an outcome that waits for nothing.
    Outcome(absl::Status status_in, Wait wait_in = {})  // NOLINT(google-explicit-constructor)
        : status(std::move(status_in)), wait(std::move(wait_in)) {}
    absl::Status status;
    Wait wait;  ///< if not empty: the call ends with its error, or else with `status`
  };
  /// Writes the response, or says why there is none.
  using Reply = std::function<Outcome(QueryEngine::Deadline deadline)>;

  /// `guard` may be null: no rules.
  PostedCalls(Executor& executor, Metrics& metrics, const Guard* guard = nullptr)
      : executor_(executor), metrics_(metrics), guard_(guard) {}

  /// What holds the calls to the rules; null: nothing.
  const Guard* guard() const { return guard_; }

  struct Call {
    grpc::CallbackServerContext* context;
    Caller& caller;
    std::size_t request_bytes;   ///< see HeldBytes
    grpc::ByteBuffer& response;  ///< gRPC's, which `reply` writes
    std::string_view method;     ///< of the metrics; not copied
  };
  /// Holds the call, and the bytes of its request and of its answer, against what its peer may have
  /// until the answer has left (unary_call.h). Ends the call with `parsed` if that is an error, and
  /// else with what `reply` gives; only an answer that waits is told whatever its bytes are.
  /// `brief`: tries at once first, on this thread, with QueryEngine::kAtOnce: under full ingest
  /// waking another thread up takes longer than an answer of microseconds.
  grpc::ServerUnaryReactor* Run(const Call& call, const absl::Status& parsed, bool brief,
                                Reply reply);

  /// Calls that have not been answered yet.
  std::uint64_t running() const { return running_; }

 private:
  Executor& executor_;
  Metrics& metrics_;
  const Guard* const guard_;
  std::atomic<std::uint64_t> running_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_POSTED_CALLS_H_
