#include "server/rpc/query_service.h"

#include <chrono>
#include <utility>

#include "server/rpc/convert.h"
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

template <class Compute>
grpc::ServerUnaryReactor* QueryServiceImpl::Run(grpc::CallbackServerContext* context,
                                                std::string_view method, Compute compute) {
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
  const bool posted = executor_.Post([this, context, finish, begun, method, compute] {
    if (context->IsCancelled()) {
      finish(absl::CancelledError("the call was cancelled before it was answered"));
      return;
    }
    const absl::Status status = compute(DeadlineOf(*context));
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
                                                      const v1::QuantilesRequest* request,
                                                      v1::QuantilesResponse* response) {
  return Run(context, "quantiles", [=, this](QueryEngine::Deadline deadline) {
    return Answer(engine_, *request, deadline, *response);
  });
}

grpc::ServerUnaryReactor* QueryServiceImpl::Ranks(grpc::CallbackServerContext* context,
                                                  const v1::RanksRequest* request,
                                                  v1::RanksResponse* response) {
  return Run(context, "ranks", [=, this](QueryEngine::Deadline deadline) {
    return Answer(engine_, *request, deadline, *response);
  });
}

grpc::ServerUnaryReactor* QueryServiceImpl::Histogram(grpc::CallbackServerContext* context,
                                                      const v1::HistogramRequest* request,
                                                      v1::HistogramResponse* response) {
  return Run(context, "histogram", [=, this](QueryEngine::Deadline deadline) {
    return Answer(engine_, *request, deadline, *response);
  });
}

grpc::ServerUnaryReactor* QueryServiceImpl::HeavyHitters(grpc::CallbackServerContext* context,
                                                         const v1::HeavyHittersRequest* request,
                                                         v1::HeavyHittersResponse* response) {
  return Run(context, "heavy_hitters", [=, this](QueryEngine::Deadline deadline) {
    return Answer(engine_, *request, deadline, *response);
  });
}

grpc::ServerUnaryReactor* QueryServiceImpl::Counts(grpc::CallbackServerContext* context,
                                                   const v1::CountsRequest* request,
                                                   v1::CountsResponse* response) {
  return Run(context, "counts", [=, this](QueryEngine::Deadline deadline) {
    return Answer(engine_, *request, deadline, *response);
  });
}

void QueryServiceImpl::EndSubscriptions() {
  open_subscriptions_.EndAll(absl::UnavailableError("the server is shutting down"));
}

grpc::ServerWriteReactor<v1::WatchResponse>* QueryServiceImpl::Watch(
    grpc::CallbackServerContext* /*context*/, const v1::WatchRequest* request) {
  WatchReactor::Environment environment{engine_, executor_,      metrics_,
                                        clock_,  subscriptions_, open_subscriptions_};
  if (subscriptions_.fetch_add(1) >= subscriptions_max_) {
    return WatchReactor::Refuse(
        environment, absl::ResourceExhaustedError(
                         Concat("the limit of ", subscriptions_max_, " subscriptions is reached")));
  }
  return WatchReactor::Begin(environment, *request);
}

}  // namespace tidemark::server
