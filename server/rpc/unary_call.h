// A call with one answer, and what it holds of its peer's limits until that has left.
#ifndef TIDEMARK_SERVER_RPC_UNARY_CALL_H_
#define TIDEMARK_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/rpc/convert.h"
#include "server/window/concat.h"

namespace tidemark::server {

/// gRPC keeps an answer that its peer does not read, up to the end of the call: that is when the
/// shares are given back. Lifetime: its own, until gRPC calls OnDone, which it does after Finish.
/// Thread: one at a time.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  /// Takes a call, and the bytes of its request. Errors: RESOURCE_EXHAUSTED, which may be tried
  /// again.
  absl::Status Take(Caller& caller, std::size_t request_bytes) {
    absl::Status status = caller.Hold(PeerResource::kCalls, 1, call_);
    if (status.ok()) status = caller.Hold(PeerResource::kBytes, request_bytes, bytes_);
    return status.ok() ? status : RetryLater(status);
  }

  /// The same of its answer, before that is given to gRPC.
  absl::Status TakeAnswer(std::size_t answer_bytes) {
    if (bytes_.Resize(bytes_.amount() + answer_bytes)) return absl::OkStatus();
    return RetryLater(absl::ResourceExhaustedError(
        Concat("the answer takes ", answer_bytes,
               " bytes, with which this peer has more on their way than one peer may; read the "
               "answers before it first")));
  }
  /// The same of one that is not refused: it tells what was changed.
  void ForceAnswer(std::size_t answer_bytes) { bytes_.Force(bytes_.amount() + answer_bytes); }

  void OnDone() override { delete this; }

 private:
  ~UnaryCall() override = default;

  PeerShare call_;
  PeerShare bytes_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_UNARY_CALL_H_
