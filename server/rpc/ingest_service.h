// tidemark.v1.IngestService on gRPC's callback API.
#ifndef TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
#define TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::server {

/// Backpressure: while the sink is saturated a call reads nothing more, and HTTP/2 flow control
/// makes the sender wait. Thread: gRPC's.
///
/// Messages are parsed here and not by gRPC, which would take one that it cannot parse for the end
/// of the call, so that its values were lost without a word.
class IngestServiceImpl final
    : public v1::IngestService::WithRawCallbackMethod_Push<
          v1::IngestService::WithRawCallbackMethod_PushAcknowledged<v1::IngestService::Service>> {
 public:
  using Clock = std::function<RecordedTime()>;
  /// Calls beyond `calls_max` at a time are refused with RESOURCE_EXHAUSTED.
  IngestServiceImpl(IngestSink& sink, Metrics& metrics, std::uint64_t calls_max, Clock clock)
      : sink_(sink), metrics_(metrics), calls_max_(calls_max), clock_(std::move(clock)) {}

  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PushAcknowledged(
      grpc::CallbackServerContext* context) override;

  /// New calls end at once with UNAVAILABLE from now on. Thread: any.
  void RefuseCalls() { refusing_ = true; }
  /// Calls that live.
  std::uint64_t calls() const { return calls_; }

 private:
  /// Why a new call is refused; OK if it is not.
  absl::Status Admit();

  IngestSink& sink_;
  Metrics& metrics_;
  const std::uint64_t calls_max_;
  const Clock clock_;
  std::atomic<bool> refusing_{false};
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
