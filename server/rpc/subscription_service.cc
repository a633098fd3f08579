#include "server/rpc/subscription_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "server/rpc/access_rules.h"
#include "server/rpc/convert.h"
#include "server/rpc/durable.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/watch_request.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

constexpr std::uint32_t kPageMax = 1000;
// A page ends early at so many bytes.
constexpr std::size_t kPageBytesMax = QueryEngine::kAnswerBytesMax / 4;

absl::Status ReadWatch(const Subscription& kept, v1::WatchRequest& watch) {
  if (watch.ParseFromString(kept.request)) return absl::OkStatus();
  return absl::DataLossError(
      Concat("subscription \"", Printable(kept.name), "\" holds no tidemark.v1.WatchRequest"));
}

}  // namespace

absl::Status FindWatch(Pipeline& pipeline, Caller& caller, std::string_view name,
                       v1::WatchRequest& watch) {
  const absl::StatusOr<Subscription> kept = pipeline.streams().FindSubscription(name);
  if (!kept.ok()) return kept.status();
  if (absl::Status status = ReadWatch(*kept, watch); !status.ok()) return status;
  absl::Status allowed = MayAsk(caller, watch);
  if (allowed.ok()) return allowed;
  // Without the name of the stream, which the caller may not see.
  return absl::Status(allowed.code(), Concat("subscription \"", Printable(name),
                                             "\" is of a stream that needs role query, which the "
                                             "caller has not"));
}

PostedCalls::Outcome SubscriptionServiceImpl::Create(const v1::CreateSubscriptionRequest& request,
                                                     QueryEngine::Deadline deadline,
                                                     grpc::ByteBuffer& response_bytes) const {
  const v1::WatchRequest& watch = request.watch();
  if (absl::Status status = CheckWatchRequest(watch).status(); !status.ok()) return status;
  // What a Watch would be refused for is refused now. One that is only slow to answer is looked at
  // again there, too.
  v1::WatchResponse unused;
  absl::Status answered = AnswerWatch(engine_, watch, deadline, unused);
  if (!answered.ok()) return answered;
  const absl::StatusOr<std::uint64_t> sequence = pipeline_.streams().Subscribe(
      {request.name(), WatchedStream(watch), watch.SerializeAsString()});
  const std::string what = Concat("subscription \"", Printable(request.name()), "\"");
  if (!sequence.ok()) return RefusedOnceDurable(pipeline_, sequence.status(), what);
  v1::CreateSubscriptionResponse response;
  response.mutable_subscription()->set_name(request.name());
  *response.mutable_subscription()->mutable_watch() = watch;
  return {SerializeMessage(response, QueryEngine::kAnswerBytesMax, response_bytes),
          // All of the log: of one that was there already, the record is an earlier call's.
          UntilDurable(pipeline_, what)};
}

absl::Status SubscriptionServiceImpl::List(Caller& caller,
                                           const v1::ListSubscriptionsRequest& request,
                                           v1::ListSubscriptionsResponse& response) const {
  const std::uint32_t asked = request.page_size();
  const std::size_t page = asked == 0 ? kPageMax : std::min(asked, kPageMax);
  std::string after = request.page_token();
  std::string last_seen;
  std::size_t bytes = 0;
  while (true) {
    const std::vector<Subscription> some =
        pipeline_.streams().ListSubscriptions(after, request.prefix(), kPageMax);
    if (some.empty()) return absl::OkStatus();
    for (const Subscription& kept : some) {
      after = kept.name;
      if (caller.guarded() && !(caller.Sees(kept.name) && caller.Sees(kept.stream))) continue;
      // There is one more than the page: its token is the last name that was shown.
      if (bytes > kPageBytesMax ||
          static_cast<std::size_t>(response.subscriptions_size()) == page) {
        response.set_next_page_token(last_seen);
        return absl::OkStatus();
      }
      v1::Subscription& one = *response.add_subscriptions();
      one.set_name(kept.name);
      if (absl::Status status = ReadWatch(kept, *one.mutable_watch()); !status.ok()) return status;
      bytes += one.ByteSizeLong();
      last_seen = kept.name;
    }
  }
}

grpc::ServerUnaryReactor* SubscriptionServiceImpl::CreateSubscription(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request_bytes,
    grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::CreateSubscriptionRequest>();
  Caller caller = CallerOf(calls_.guard(), *context);
  const absl::Status parsed = ParseAllowed(caller, *request_bytes, *request);
  return calls_.Run({context, caller, HeldBytes(*request_bytes, *request), *response_bytes,
                     "create_subscription"},
                    parsed, false, [this, request, response_bytes](QueryEngine::Deadline deadline) {
                      return Create(*request, deadline, *response_bytes);
                    });
}

grpc::ServerUnaryReactor* SubscriptionServiceImpl::DeleteSubscription(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request_bytes,
    grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::DeleteSubscriptionRequest>();
  const auto caller = std::make_shared<Caller>(CallerOf(calls_.guard(), *context));
  const absl::Status parsed = ParseAllowed(*caller, *request_bytes, *request);
  return calls_.Run(
      {context, *caller, HeldBytes(*request_bytes, *request), *response_bytes,
       "delete_subscription"},
      parsed, false,
      [this, request, caller, response_bytes](QueryEngine::Deadline) -> PostedCalls::Outcome {
        v1::WatchRequest watch;
        const std::string what = Concat("subscription \"", Printable(request->name()), "\"");
        const absl::Status status = FindWatch(pipeline_, *caller, request->name(), watch);
        if (!status.ok()) return RefusedOnceDurable(pipeline_, status, what);
        // The name may be another stream's by now, of which the caller was not judged.
        const absl::StatusOr<std::uint64_t> sequence =
            pipeline_.streams().Unsubscribe(request->name(), WatchedStream(watch));
        if (!sequence.ok()) return RefusedOnceDurable(pipeline_, sequence.status(), what);
        return {SerializeMessage(v1::DeleteSubscriptionResponse(), QueryEngine::kAnswerBytesMax,
                                 *response_bytes),
                UntilDurable(pipeline_, *sequence, what)};
      });
}

grpc::ServerUnaryReactor* SubscriptionServiceImpl::ListSubscriptions(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request_bytes,
    grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::ListSubscriptionsRequest>();
  const auto caller = std::make_shared<Caller>(CallerOf(calls_.guard(), *context));
  const absl::Status parsed = ParseAllowed(*caller, *request_bytes, *request);
  return calls_.Run({context, *caller, HeldBytes(*request_bytes, *request), *response_bytes,
                     "list_subscriptions"},
                    parsed, false,
                    [this, request, caller, response_bytes](QueryEngine::Deadline) -> absl::Status {
                      v1::ListSubscriptionsResponse response;
                      absl::Status status = List(*caller, *request, response);
                      if (!status.ok()) return status;
                      return SerializeMessage(response, QueryEngine::kAnswerBytesMax,
                                              *response_bytes);
                    });
}

}  // namespace tidemark::server
