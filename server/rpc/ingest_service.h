// tidemark.v1.IngestService on gRPC's callback API.
#ifndef TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
#define TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_

#include <functional>

#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::server {

/// Backpressure: while the sink is saturated a call reads nothing more, and HTTP/2 flow control
/// makes the sender wait. Thread: gRPC's.
class IngestServiceImpl final : public v1::IngestService::CallbackService {
 public:
  using Clock = std::function<RecordedTime()>;
  IngestServiceImpl(IngestSink& sink, Metrics& metrics, Clock clock)
      : sink_(sink), metrics_(metrics), clock_(std::move(clock)) {}

  grpc::ServerReadReactor<v1::PushRequest>* Push(grpc::CallbackServerContext* context,
                                                 v1::PushResponse* response) override;
  grpc::ServerBidiReactor<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse>*
  PushAcknowledged(grpc::CallbackServerContext* context) override;

 private:
  IngestSink& sink_;
  Metrics& metrics_;
  const Clock clock_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_INGEST_SERVICE_H_
