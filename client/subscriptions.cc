// Client: continuous queries that the daemon keeps under names.
#include "client/connection.h"
#include "client/convert.h"

namespace tidemark::client {

Subscription Client::Subscribe(const std::string& name, const WatchQuery& query) {
  v1::CreateSubscriptionRequest request;
  request.set_name(RequireUtf8("subscription name", name));
  ToProto(query, request.mutable_watch());
  return FromProto(Call(*connection_, *connection_->subscriptions,
                        &v1::SubscriptionService::Stub::CreateSubscription, request)
                       .subscription());
}

void Client::Unsubscribe(const std::string& name) {
  v1::DeleteSubscriptionRequest request;
  request.set_name(RequireUtf8("subscription name", name));
  Call(*connection_, *connection_->subscriptions,
       &v1::SubscriptionService::Stub::DeleteSubscription, request);
}

std::vector<Subscription> Client::ListSubscriptions(const std::string& prefix) {
  std::vector<Subscription> out;
  v1::ListSubscriptionsRequest request;
  request.set_prefix(RequireUtf8("prefix", prefix));
  do {
    const v1::ListSubscriptionsResponse page =
        Call(*connection_, *connection_->subscriptions,
             &v1::SubscriptionService::Stub::ListSubscriptions, request);
    for (const auto& one : page.subscriptions()) out.push_back(FromProto(one));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return out;
}

}  // namespace tidemark::client
