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
  const auto observe_and_finish = [this, finish, begun, method](const absl::Status& status) {
    const auto spent = std::chrono::steady_clock::now() - begun;
    metrics_.QuerySeconds(method).Observe(std::chrono::duration<double>(spent).count());
    finish(status);
  };
  const auto request = std::make_shared<Request>();
  if (const absl::Status status = ParseRequest(request_bytes, *request); !status.ok()) {
    finish(status);
    return reactor;
  }
  // What takes microseconds is answered here, on gRPC's own thread: under full ingest waking
  // another thread up takes longer than the answer.
  if (Brief(*request)) {
    const absl::Status status = Reply<Response>(*request, QueryEngine::kAtOnce, response_bytes);
    if (!absl::IsDeadlineExceeded(status)) {
      observe_and_finish(status);
      return reactor;
    }
  }
  const bool posted =
      executor_.Post([this, context, finish, observe_and_finish, request, &response_bytes] {
        if (context->IsCancelled()) {
          finish(absl::CancelledError("the call was cancelled before it was answered"));
          return;
        }
        const QueryEngine::Deadline deadline = DeadlineOf(*context);
        if (deadline <= std::chrono::steady_clock::now()) {
          finish(absl::DeadlineExceededError("the deadline passed before the call was begun"));
          return;
        }
        observe_and_finish(Reply<Response>(*request, deadline, response_bytes));
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

grpc::ServerUnaryReactor* QueryServiceImpl::Compare(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* response) {
  return Run<v1::CompareRequest, v1::CompareResponse>(context, "compare", *request, *response);
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
