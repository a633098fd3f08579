// tidemark.v1.IngestService on gRPC's callback API.
#ifndef TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
#define TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "server/access/guard.h"
#include "server/rpc/ingest_calls.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::server {

struct IngestLimits {
  /// Calls at a time; more are refused with RESOURCE_EXHAUSTED and RetryInfo.
  std::uint64_t calls_max = 1000;
  /// Bytes of one batch's values, as BatchReader counts them; larger ones are refused.
  std::uint64_t batch_bytes_max = std::uint64_t{4} << 20;
};

/// Where the sink has a log, acknowledgements, and the answer of Push, wait until it is durable;
/// UNAVAILABLE if its disk fails: the values may then be counted or not. A call that is cancelled,
/// or whose deadline passes, waits neither for the log nor for room: what it brought is kept.
///
/// Backpressure: while the sink is saturated a call reads nothing more, and HTTP/2 flow control
/// makes the sender wait. Thread: gRPC's.
///
/// A message that is larger than a batch may be with its names, or that cannot be parsed, ends the
/// call: its batch id is unknown, so that it cannot be acknowledged.
class IngestServiceImpl final
    : public v1::IngestService::WithRawCallbackMethod_Push<
          v1::IngestService::WithRawCallbackMethod_PushAcknowledged<v1::IngestService::Service>> {
 public:
  using Clock = std::function<RecordedTime()>;
  /// `guard` may be null: no rules.
  IngestServiceImpl(IngestSink& sink, Metrics& metrics, const IngestLimits& limits, Clock clock,
                    const Guard* guard = nullptr)
      : sink_(sink),
        metrics_(metrics),
        limits_(limits),
        clock_(std::move(clock)),
        guard_(guard),
        calls_(limits.calls_max, metrics) {}

  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PushAcknowledged(
      grpc::CallbackServerContext* context) override;

  /// Calls end with UNAVAILABLE: each takes in no further batch, and its acknowledgements leave
  /// first. New ones end at once. Thread: any.
  void EndCalls() { calls_.EndAll(); }
  /// Calls that live.
  std::uint64_t calls() const { return calls_.size(); }

  /// Beside the values of a batch a message holds names, framing, and for each item its length.
  static constexpr std::uint64_t kMessageOverheadBytes = 64 * 1024;

 private:
  IngestSink& sink_;
  Metrics& metrics_;
  const IngestLimits limits_;
  const Clock clock_;
  const Guard* const guard_;
  IngestCalls calls_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
