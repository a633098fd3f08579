// tidemark.v1.SubscriptionService: continuous queries that are kept under names.
#ifndef TIDEMARK_SERVER_RPC_SUBSCRIPTION_SERVICE_H_
#define TIDEMARK_SERVER_RPC_SUBSCRIPTION_SERVICE_H_

#include <string_view>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"
#include "server/rpc/posted_calls.h"
#include "tidemark/v1/subscriptions.grpc.pb.h"

namespace tidemark::server {

/// What the subscription of this name asks for, if the caller may ask it. Errors: NOT_FOUND,
/// PERMISSION_DENIED or UNAUTHENTICATED, which do not name the stream.
absl::Status FindWatch(Pipeline& pipeline, Caller& caller, std::string_view name,
                       v1::WatchRequest& watch);

/// Thread: any. Outlives every call.
class SubscriptionServiceImpl final
    : public v1::SubscriptionService::WithRawCallbackMethod_CreateSubscription<
          v1::SubscriptionService::WithRawCallbackMethod_DeleteSubscription<
              v1::SubscriptionService::WithRawCallbackMethod_ListSubscriptions<
                  v1::SubscriptionService::Service>>> {
 public:
  SubscriptionServiceImpl(const QueryEngine& engine, Pipeline& pipeline, PostedCalls& calls)
      : engine_(engine), pipeline_(pipeline), calls_(calls) {}

  grpc::ServerUnaryReactor* CreateSubscription(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteSubscription(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListSubscriptions(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) override;

 private:
  PostedCalls::Outcome Create(const v1::CreateSubscriptionRequest& request,
                              QueryEngine::Deadline deadline,
                              grpc::ByteBuffer& response_bytes) const;
  absl::Status List(Caller& caller, const v1::ListSubscriptionsRequest& request,
                    v1::ListSubscriptionsResponse& response) const;

  const QueryEngine& engine_;
  Pipeline& pipeline_;
  PostedCalls& calls_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_SUBSCRIPTION_SERVICE_H_
