// tidemark.v1.QueryService: one-shot and continuous queries.
#ifndef TIDEMARK_SERVER_RPC_QUERY_SERVICE_H_
#define TIDEMARK_SERVER_RPC_QUERY_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"
#include "server/rpc/executor.h"
#include "server/rpc/posted_calls.h"
#include "server/rpc/watch_reactor.h"
#include "server/telemetry/metrics.h"
#include "tidemark/v1/query.grpc.pb.h"

namespace tidemark::server {

/// Every call of the service as bytes.
using RawOrderService = v1::QueryService::WithRawCallbackMethod_Quantiles<
    v1::QueryService::WithRawCallbackMethod_Ranks<v1::QueryService::WithRawCallbackMethod_Histogram<
        v1::QueryService::WithRawCallbackMethod_Compare<
            v1::QueryService::WithRawCallbackMethod_Spread<
                v1::QueryService::WithRawCallbackMethod_Sums<v1::QueryService::Service>>>>>>;
using RawQueryService = v1::QueryService::WithRawCallbackMethod_HeavyHitters<
    v1::QueryService::WithRawCallbackMethod_Counts<
        v1::QueryService::WithRawCallbackMethod_HierarchicalHeavyHitters<
            v1::QueryService::WithRawCallbackMethod_Watch<RawOrderService>>>>;

/// Answers are computed on the executor (posted_calls.h), brief ones where they are read if they
/// need neither wait nor sort more than kAtOnceKeys keys. An answer takes at most
/// QueryEngine::kAnswerBytesMax, or is RESOURCE_EXHAUSTED.
class QueryServiceImpl final : public RawQueryService {
 public:
  /// `clock` gives microseconds since 1970, for the time stamped on continuous answers. `executor`
  /// is that of `calls`; `pipeline` has the subscriptions that a Watch may name.
  QueryServiceImpl(const QueryEngine& engine, Pipeline& pipeline, PostedCalls& calls,
                   Executor& executor, Metrics& metrics, std::uint64_t subscriptions_max,
                   std::function<std::int64_t()> clock)
      : engine_(engine),
        pipeline_(pipeline),
        calls_(calls),
        executor_(executor),
        metrics_(metrics),
        subscriptions_max_(subscriptions_max),
        clock_(std::move(clock)) {}

  grpc::ServerUnaryReactor* Quantiles(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Ranks(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Histogram(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* HeavyHitters(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Counts(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* HierarchicalHeavyHitters(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Sums(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Compare(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Spread(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

  /// Ends every subscription with UNAVAILABLE, later ones at once.
  void EndSubscriptions();

 private:
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, std::string_view method,
                                const grpc::ByteBuffer& request_bytes,
                                grpc::ByteBuffer& response_bytes);
  template <class Response, class Request>
  absl::Status Reply(const Request& request, QueryEngine::Deadline deadline,
                     grpc::ByteBuffer& response_bytes) const;

  absl::Status ReadWatch(Caller& caller, const grpc::ByteBuffer& bytes,
                         v1::WatchRequest& request) const;

  const QueryEngine& engine_;
  Pipeline& pipeline_;
  PostedCalls& calls_;
  Executor& executor_;
  Metrics& metrics_;
  const std::uint64_t subscriptions_max_;
  const std::function<std::int64_t()> clock_;
  std::atomic<std::uint64_t> subscriptions_{0};
  OpenSubscriptions open_subscriptions_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_QUERY_SERVICE_H_
