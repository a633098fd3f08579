// Continuous queries to protobuf and back.
#include "client/connection.h"
#include "client/convert.h"

namespace tidemark::client {
namespace {

void Fill(const QuantilesQuery& asks, const WatchQuery& query, v1::WatchRequest* out) {
  out->mutable_quantiles()->set_stream(query.stream);
  out->mutable_quantiles()->mutable_phi()->Add(asks.phi.begin(), asks.phi.end());
  SetScope(query.options.scope, out->mutable_quantiles());
}

void Fill(const ItemsQuery& asks, const WatchQuery& query, v1::WatchRequest* out) {
  out->mutable_heavy_hitters()->set_stream(query.stream);
  out->mutable_heavy_hitters()->set_support(asks.support);
  out->mutable_heavy_hitters()->set_limit(asks.limit);
  out->mutable_heavy_hitters()->set_by_weight(asks.by_weight);
  SetScope(query.options.scope, out->mutable_heavy_hitters());
}

void Fill(const PrefixesQuery& asks, const WatchQuery& query, v1::WatchRequest* out) {
  out->mutable_hierarchical_heavy_hitters()->set_stream(query.stream);
  out->mutable_hierarchical_heavy_hitters()->set_support(asks.support);
  SetScope(query.options.scope, out->mutable_hierarchical_heavy_hitters());
}

void Fill(const SumsQuery& asks, const WatchQuery& query, v1::WatchRequest* out) {
  if (!query.options.scope.whole()) {
    throw Error(Code::kInvalidArgument, "sums are over the whole history alone");
  }
  out->mutable_sums()->set_stream(query.stream);
  for (const SumRange& range : asks.ranges) ToProto(range, out->mutable_sums()->add_ranges());
}

std::chrono::microseconds FromProto(const google::protobuf::Duration& time) {
  return std::chrono::seconds(time.seconds()) + std::chrono::microseconds(time.nanos() / 1000);
}

Scope FromProto(const v1::Scope& scope) {
  return {scope.last_values(), FromProto(scope.last_time())};
}

}  // namespace

void ToProto(const WatchQuery& query, v1::WatchRequest* out) {
  RequireUtf8("stream name", query.stream);
  std::visit([&](const auto& asks) { Fill(asks, query, out); }, query.asks);
  ToProto(query.options.interval, out->mutable_interval());
  if (query.options.min_change) out->set_min_change(*query.options.min_change);
}

WatchQuery FromProto(const v1::WatchRequest& request) {
  WatchQuery query;
  switch (request.query_case()) {
    case v1::WatchRequest::kHeavyHitters: {
      const auto& asked = request.heavy_hitters();
      query.stream = asked.stream();
      query.asks = ItemsQuery{asked.support(), asked.limit(), asked.by_weight()};
      query.options.scope = FromProto(asked.scope());
      break;
    }
    case v1::WatchRequest::kHierarchicalHeavyHitters: {
      const auto& asked = request.hierarchical_heavy_hitters();
      query.stream = asked.stream();
      query.asks = PrefixesQuery{asked.support()};
      query.options.scope = FromProto(asked.scope());
      break;
    }
    case v1::WatchRequest::kSums: {
      SumsQuery sums;
      for (const auto& range : request.sums().ranges()) sums.ranges.push_back(FromProto(range));
      query.stream = request.sums().stream();
      query.asks = std::move(sums);
      break;
    }
    case v1::WatchRequest::kQuantiles:
    case v1::WatchRequest::kSubscription:
    case v1::WatchRequest::QUERY_NOT_SET: {
      const auto& asked = request.quantiles();
      query.stream = asked.stream();
      query.asks = QuantilesQuery{{asked.phi().begin(), asked.phi().end()}};
      query.options.scope = FromProto(asked.scope());
      break;
    }
  }
  if (request.has_interval()) query.options.interval = FromProto(request.interval());
  if (request.has_min_change()) query.options.min_change = request.min_change();
  return query;
}

Subscription FromProto(const v1::Subscription& subscription) {
  return {subscription.name(), FromProto(subscription.watch())};
}

}  // namespace tidemark::client
