// tidemark.v1.SummaryService: streams leave, come in, and are merged.
#ifndef TIDEMARK_SERVER_RPC_SUMMARY_SERVICE_H_
#define TIDEMARK_SERVER_RPC_SUMMARY_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"
#include "server/rpc/posted_calls.h"
#include "tidemark/v1/summary.grpc.pb.h"

namespace tidemark::server {

/// Largest export: a histogram of 64-bit keys at the smallest epsilon, half of it.
inline constexpr std::size_t kExportBytesMax = std::size_t{256} << 20;

/// All imports that wait to be made, together: read twice, they take a few times as much.
inline constexpr std::size_t kImportsHeldMax = std::size_t{128} << 20;

/// An import is bounded by what gRPC takes in for one message: four times limits.max_batch_bytes.
class SummaryServiceImpl final : public v1::SummaryService::WithRawCallbackMethod_ExportStream<
                                     v1::SummaryService::WithRawCallbackMethod_ImportStream<
                                         v1::SummaryService::WithRawCallbackMethod_MergeStreams<
                                             v1::SummaryService::Service>>> {
 public:
  SummaryServiceImpl(const QueryEngine& engine, Pipeline& pipeline, PostedCalls& calls)
      : engine_(engine), pipeline_(pipeline), calls_(calls) {}

  grpc::ServerUnaryReactor* ExportStream(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ImportStream(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* MergeStreams(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;

 private:
  std::shared_ptr<void> Hold(std::size_t bytes);

  std::atomic<std::size_t> held_{0};
  const QueryEngine& engine_;
  Pipeline& pipeline_;
  PostedCalls& calls_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_SUMMARY_SERVICE_H_
