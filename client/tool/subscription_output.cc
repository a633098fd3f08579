// Subscriptions as text and as JSON.
#include <chrono>

#include "client/tool/json.h"
#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

using client::ItemsQuery;
using client::PrefixesQuery;
using client::QuantilesQuery;
using client::SumsQuery;

double Seconds(std::chrono::microseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string Asks(const QuantilesQuery& query) {
  std::string text = "quantiles";
  for (const double phi : query.phi) text.append(" ").append(ShowNumber(phi));
  return text;
}
std::string Asks(const ItemsQuery& query) {
  std::string text = "top " + ShowNumber(query.support);
  if (query.limit != 0) text += ", at most " + std::to_string(query.limit);
  return query.by_weight ? text + ", by weight" : text;
}
std::string Asks(const PrefixesQuery& query) {
  return "top " + ShowNumber(query.support) + ", hierarchical";
}
std::string Asks(const SumsQuery& query) {
  return "sums of " + std::to_string(query.ranges.size()) + " ranges";
}

void AddAsked(const QuantilesQuery& query, Json& out) {
  out["asks"] = "quantiles";
  Json& phi = out["phi"] = Json::array();
  for (const double one : query.phi) phi.push_back(ToJson(one));
}
void AddAsked(const ItemsQuery& query, Json& out) {
  out["asks"] = "top";
  out["support"] = ToJson(query.support);
  out["limit"] = query.limit;
  out["by_weight"] = query.by_weight;
}
void AddAsked(const PrefixesQuery& query, Json& out) {
  out["asks"] = "top_hierarchical";
  out["support"] = ToJson(query.support);
}
void AddAsked(const SumsQuery& query, Json& out) {
  out["asks"] = "sums";
  out["ranges"] = query.ranges.size();
}

std::string Options(const client::WatchOptions& options) {
  std::string text = "every " + ShowSeconds(Seconds(options.interval));
  if (options.min_change) text += ", if it moved by more than " + ShowNumber(*options.min_change);
  if (options.scope.last_values != 0) {
    text += ", of the last " + std::to_string(options.scope.last_values);
  }
  if (options.scope.last_time.count() != 0) {
    text += ", of the last " + ShowSeconds(Seconds(options.scope.last_time));
  }
  return text;
}

}  // namespace

std::string ToText(const std::vector<client::Subscription>& subscriptions) {
  if (subscriptions.empty()) return "no subscriptions\n";
  Table table({"subscription", "stream", "asks", "when"}, {false, false, false, false});
  for (const client::Subscription& one : subscriptions) {
    table.Add({Printable(one.name), Printable(one.query.stream),
               std::visit([](const auto& query) { return Asks(query); }, one.query.asks),
               Options(one.query.options)});
  }
  return table.ToString();
}

std::string ToText(const client::Subscription& subscription) {
  return ToText(std::vector<client::Subscription>{subscription});
}

Json ToJson(const client::Subscription& subscription) {
  const client::WatchQuery& query = subscription.query;
  Json out = {{"name", subscription.name}, {"stream", query.stream}};
  std::visit([&](const auto& asks) { AddAsked(asks, out); }, query.asks);
  out["interval_us"] = query.options.interval.count();
  if (query.options.min_change) out["min_change"] = ToJson(*query.options.min_change);
  if (query.options.scope.last_values != 0) {
    out["last_values"] = IntegerToJson(query.options.scope.last_values);
  }
  if (query.options.scope.last_time.count() != 0) {
    out["last_time_us"] = query.options.scope.last_time.count();
  }
  return out;
}

Json ToJson(const std::vector<client::Subscription>& subscriptions) {
  Json out;
  Json& list = out["subscriptions"] = Json::array();
  for (const client::Subscription& one : subscriptions) list.push_back(ToJson(one));
  return out;
}

}  // namespace tidemark::tool
