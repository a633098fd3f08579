#include "server/rpc/query_service.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "server/rpc/access_rules.h"
#include "server/rpc/convert.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_calls.h"
#include "server/rpc/subscription_service.h"
#include "server/rpc/watch_reactor.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// Requests whose answer takes microseconds, once its view is there.
constexpr int kBriefArguments = 16;
bool Brief(const v1::QuantilesRequest& request) { return request.phi_size() <= kBriefArguments; }
bool Brief(const v1::RanksRequest& request) { return request.values_size() <= kBriefArguments; }
bool Brief(const google::protobuf::Message& /*request*/) { return false; }

}  // namespace

template <class Response, class Request>
absl::Status QueryServiceImpl::Reply(const Request& request, QueryEngine::Deadline deadline,
                                     grpc::ByteBuffer& response_bytes) const {
  Response response;
  if (absl::Status status = Answer(engine_, request, deadline, response); !status.ok()) {
    return status;
  }
  return SerializeMessage(response, QueryEngine::kAnswerBytesMax, response_bytes);
}

template <class Request, class Response>
grpc::ServerUnaryReactor* QueryServiceImpl::Run(grpc::CallbackServerContext* context,
                                                std::string_view method,
                                                const grpc::ByteBuffer& request_bytes,
                                                grpc::ByteBuffer& response_bytes) {
  const auto request = std::make_shared<Request>();
  Caller caller = CallerOf(calls_.guard(), *context);
  absl::Status parsed = ParseAllowed(caller, request_bytes, *request);
  if (parsed.ok()) parsed = CheckArguments(*request);
  return calls_.Run({context, caller, HeldBytes(request_bytes, *request), response_bytes, method},
                    parsed, parsed.ok() && Brief(*request),
                    [this, request, &response_bytes](QueryEngine::Deadline deadline) {
                      return Reply<Response>(*request, deadline, response_bytes);
                    });
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

grpc::ServerUnaryReactor* QueryServiceImpl::HierarchicalHeavyHitters(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run<v1::HierarchicalHeavyHittersRequest, v1::HierarchicalHeavyHittersResponse>(
      context, "hierarchical_heavy_hitters", *request, *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Sums(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return Run<v1::SumsRequest, v1::SumsResponse>(context, "sums", *request, *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Spread(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return Run<v1::SpreadRequest, v1::SpreadResponse>(context, "spread", *request, *response);
}

grpc::ServerUnaryReactor* QueryServiceImpl::Compare(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* response) {
  return Run<v1::CompareRequest, v1::CompareResponse>(context, "compare", *request, *response);
}

void QueryServiceImpl::EndSubscriptions() {
  open_subscriptions_.EndAll(absl::UnavailableError("the server is shutting down"));
}

// What is asked, by a query of its own or by a subscription's name.
absl::Status QueryServiceImpl::ReadWatch(Caller& caller, const grpc::ByteBuffer& bytes,
                                         v1::WatchRequest& request) const {
  if (absl::Status status = ParseAllowed(caller, bytes, request); !status.ok()) return status;
  if (request.query_case() != v1::WatchRequest::kSubscription) return absl::OkStatus();
  if (request.has_interval() || request.has_min_change()) {
    return absl::InvalidArgumentError(
        "a subscription has an interval and min_change of its own; expected its name alone");
  }
  const std::string name = request.subscription();
  return FindWatch(pipeline_, caller, name, request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* QueryServiceImpl::Watch(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request_bytes) {
  WatchReactor::Environment environment{engine_, executor_,      metrics_,
                                        clock_,  subscriptions_, open_subscriptions_};
  v1::WatchRequest request;
  Caller caller = CallerOf(calls_.guard(), *context);
  if (const absl::Status status = ReadWatch(caller, *request_bytes, request); !status.ok()) {
    return WatchReactor::Refuse(environment, status);
  }
  PeerShare place;
  if (const absl::Status status = caller.Hold(PeerResource::kCalls, 1, place); !status.ok()) {
    return WatchReactor::Refuse(environment, RetryLater(status));
  }
  // Behind the question who asks: those who may not take nobody's place.
  if (subscriptions_.fetch_add(1) >= subscriptions_max_) {
    subscriptions_.fetch_sub(1);
    return WatchReactor::Refuse(
        environment, RetryLater(absl::ResourceExhaustedError(Concat(
                         "the limit of ", subscriptions_max_, " subscriptions is reached"))));
  }
  return WatchReactor::Begin(environment, request, std::move(caller), std::move(place));
}

}  // namespace tidemark::server
