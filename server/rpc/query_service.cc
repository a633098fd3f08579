#include "server/rpc/query_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "server/rpc/convert.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_calls.h"
#include "server/rpc/watch_reactor.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// A call without a deadline of its own waits no longer than this.
constexpr auto kLongestCall = std::chrono::seconds(30);

QueryEngine::Deadline DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto left = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::min<std::chrono::system_clock::duration>(
          context.deadline() - std::chrono::system_clock::now(), kLongestCall));
  return std::chrono::steady_clock::now() + left;
}

}  // namespace

template <class Request, class Response>
grpc::ServerUnaryReactor* QueryServiceImpl::Run(grpc::CallbackServerContext* context,
                                                std::string_view method,
                                                const grpc::ByteBuffer& request_bytes,
                                                grpc::ByteBuffer& response_bytes) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto finish = [this, reactor, method](const absl::Status& status) {
    if (!status.ok()) {
      metrics_.QueryErrors(method, absl::StatusCodeToString(status.code())).Increment();
    }
    reactor->Finish(ToGrpc(status));
    running_.fetch_sub(1);
  };
  running_.fetch_add(1);
  const auto begun = std::chrono::steady_clock::now();
  const auto request = std::make_shared<Request>();
  if (const absl::Status status = ParseRequest(request_bytes, *request); !status.ok()) {
    finish(status);
    return reactor;
  }
  const bool posted =
      executor_.Post([this, context, finish, begun, method, request, &response_bytes] {
        if (context->IsCancelled()) {
          finish(absl::CancelledError("the call was cancelled before it was answered"));
          return;
        }
        const QueryEngine::Deadline deadline = DeadlineOf(*context);
        if (deadline <= std::chrono::steady_clock::now()) {
          finish(absl::DeadlineExceededError("the deadline passed before the call was begun"));
          return;
        }
        Response response;
        absl::Status status = Answer(engine_, *request, deadline, response);
        if (status.ok()) {
          status = SerializeMessage(response, QueryEngine::kAnswerBytesMax, response_bytes);
        }
        const auto spent = std::chrono::steady_clock::now() - begun;
        metrics_.QuerySeconds(method).Observe(std::chrono::duration<double>(spent).count());
        finish(status);
      });
  if (!posted) {
    finish(absl::UnavailableError("too many queries are waiting to be answered; try again"));
  }
  return reactor;
}

grpc::ServerUnaryReactor* QueryServiceImpl::Quantiles(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Run<v1::QuantilesRequest, v1::QuantilesResponse>(context, "quantiles", *request,
                                                          *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Ranks(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return Run<v1::RanksRequest, v1::RanksResponse>(context, "ranks", *request, *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Histogram(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Run<v1::HistogramRequest, v1::HistogramResponse>(context, "histogram", *request,
                                                          *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::HeavyHitters(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return Run<v1::HeavyHittersRequest, v1::HeavyHittersResponse>(context, "heavy_hitters", *request,
                                                                *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Counts(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return Run<v1::CountsRequest, v1::CountsResponse>(context, "counts", *request, *response);
}

void QueryServiceImpl::EndSubscriptions() {
  open_subscriptions_.EndAll(absl::UnavailableError("the server is shutting down"));
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* QueryServiceImpl::Watch(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* request_bytes) {
  WatchReactor::Environment environment{engine_, executor_,      metrics_,
                                        clock_,  subscriptions_, open_subscriptions_};
  if (subscriptions_.fetch_add(1) >= subscriptions_max_) {
    return WatchReactor::Refuse(
        environment, RetryLater(absl::ResourceExhaustedError(Concat(
                         "the limit of ", subscriptions_max_, " subscriptions is reached"))));
  }
  v1::WatchRequest request;
  if (const absl::Status status = ParseRequest(*request_bytes, request); !status.ok()) {
    return WatchReactor::Refuse(environment, status);
  }
  return WatchReactor::Begin(environment, request);
}

}  // namespace tidemark::server
