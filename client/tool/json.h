// Answers as JSON. The field names and their order are a contract that scripts rely on; more fields
// may come at the end.
//
// Numbers: integers below 2^53 in size are JSON numbers, larger ones strings (a JSON reader that
// keeps doubles would change them). Floating point is the shortest decimal that reads back as the
// same value of its own type; infinities are the strings "inf" and "-inf". Addresses and items are
// strings.
#ifndef TIDEMARK_CLIENT_TOOL_JSON_H_
#define TIDEMARK_CLIENT_TOOL_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/answers.h"
#include "client/client.h"

namespace tidemark::tool {

using Json = nlohmann::ordered_json;

Json IntegerToJson(std::uint64_t value);
Json ToJson(double value);
Json ToJson(const client::Value& value);
Json ToJson(const client::QuantilesAnswer& answer);
Json ToJson(const client::RanksAnswer& answer);
/// A bucket has no "low" or "high" where it is unbounded.
Json ToJson(const client::HistogramAnswer& answer);
Json ToJson(const client::HeavyHittersAnswer& answer);
Json ToJson(const client::CountsAnswer& answer);
Json ToJson(const client::HierarchicalHeavyHittersAnswer& answer);
Json ToJson(const client::SumsAnswer& answer);
Json ToJson(const client::CompareAnswer& answer);
Json ToJson(const client::SpreadAnswer& answer);
/// The answer itself, then "skipped" and "time_us".
Json ToJson(const client::WatchAnswer& answer);
/// The short form of `streams`: name, type, epsilon, n.
Json ToJson(const std::vector<client::StreamInfo>& streams);
/// Everything, beginning with the fields of the short form.
Json ToJson(const client::StreamInfo& stream);
/// {"subscriptions": [...]}
Json ToJson(const std::vector<client::Subscription>& subscriptions);
/// Name, stream, what is asked ("quantiles", "top", "top_hierarchical" or "sums"), with what.
Json ToJson(const client::Subscription& subscription);
Json ToJson(const client::ServerInfo& info);

/// One line, without its end. Bytes that are not UTF-8 become U+FFFD.
std::string Dump(const Json& json);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_JSON_H_
