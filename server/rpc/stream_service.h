// tidemark.v1.StreamService and InfoService: short calls, answered on gRPC's own threads, but
// for ListStreams, which may look at every stream.
#ifndef TIDEMARK_SERVER_RPC_STREAM_SERVICE_H_
#define TIDEMARK_SERVER_RPC_STREAM_SERVICE_H_

#include <functional>
#include <string>
#include <string_view>

#include "server/access/guard.h"
#include "server/pipeline/pipeline.h"
#include "server/rpc/posted_calls.h"
#include "tidemark/v1/info.grpc.pb.h"
#include "tidemark/v1/streams.grpc.pb.h"

namespace tidemark::server {

class StreamServiceImpl final : public v1::StreamService::WithRawCallbackMethod_CreateStream<
                                    v1::StreamService::WithRawCallbackMethod_ListStreams<
                                        v1::StreamService::WithRawCallbackMethod_DescribeStream<
                                            v1::StreamService::WithRawCallbackMethod_DeleteStream<
                                                v1::StreamService::Service>>>> {
 public:
  StreamServiceImpl(Pipeline& pipeline, PostedCalls& calls) : pipeline_(pipeline), calls_(calls) {}

  grpc::ServerUnaryReactor* CreateStream(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListStreams(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DescribeStream(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteStream(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;

 private:
  enum class Where { kHere, kOnExecutor };
  /// `answer(caller, request, deadline, response)` gives an outcome, of which the response is then
  /// written.
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, std::string_view method,
                                Where where, const grpc::ByteBuffer& request_bytes,
                                grpc::ByteBuffer& response_bytes, const auto& answer);

  Pipeline& pipeline_;
  PostedCalls& calls_;
};

class InfoServiceImpl final : public v1::InfoService::CallbackService {
 public:
  /// `fill` writes everything but the sorter: version, endpoints, limits, uptime.
  InfoServiceImpl(Pipeline& pipeline, std::function<void(v1::GetInfoResponse&)> fill,
                  const Guard* guard = nullptr)
      : pipeline_(pipeline), fill_(std::move(fill)), guard_(guard) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const v1::GetInfoRequest* request,
                                    v1::GetInfoResponse* response) override;

 private:
  Pipeline& pipeline_;
  const std::function<void(v1::GetInfoResponse&)> fill_;
  const Guard* const guard_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_STREAM_SERVICE_H_
