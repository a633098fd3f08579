#include "client/tool/json.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tidemark::tool {
namespace {

// Every integer below this is a double.
constexpr std::uint64_t kExactIntegers = std::uint64_t{1} << 53;

// Those that there are.
void AddLosses(const client::Losses& losses, const std::string& suffix, Json& out) {
  if (losses.refused_whole != 0) {
    out["refused_whole" + suffix] = IntegerToJson(losses.refused_whole);
  }
  if (losses.dropped_datagrams != 0) {
    out["dropped_datagrams" + suffix] = IntegerToJson(losses.dropped_datagrams);
  }
}

Json Header(const client::AnswerHeader& header) {
  Json out = {{"stream", header.stream},
              {"n", IntegerToJson(header.n)},
              {"epsilon", ToJson(header.epsilon)}};
  if (header.n_uncertain != 0) out["n_uncertain"] = IntegerToJson(header.n_uncertain);
  if (header.refused != 0) out["refused"] = IntegerToJson(header.refused);
  AddLosses(header.losses, "", out);
  return out;
}

Json ItemsToJson(const std::vector<client::ItemCount>& items) {
  Json out = Json::array();
  for (const auto& item : items) {
    out.push_back({{"value", ToJson(item.value)},
                   {"count_low", IntegerToJson(item.count_low)},
                   {"count_high", IntegerToJson(item.count_high)}});
  }
  return out;
}

}  // namespace

Json IntegerToJson(std::uint64_t value) {
  if (value < kExactIntegers) return value;
  return std::to_string(value);
}

Json ToJson(double value) {
  if (std::isfinite(value)) return value;
  std::string text;
  client::AppendText(value, &text);
  return text;
}

Json ToJson(const client::Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, double>) {
          return ToJson(v);
        } else if constexpr (std::is_same_v<T, float>) {
          // The double that the float's shortest text stands for, so that 0.1f prints as 0.1.
          std::string text;
          client::AppendText(v, &text);
          double wide = std::numeric_limits<double>::quiet_NaN();
          client::ParseText(text, &wide);
          return ToJson(wide);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          if (v >= 0) return IntegerToJson(static_cast<std::uint64_t>(v));
          if (v > -static_cast<std::int64_t>(kExactIntegers)) return v;
          return std::to_string(v);
        } else if constexpr (std::is_integral_v<T>) {
          return IntegerToJson(v);
        } else if constexpr (std::is_same_v<T, client::Ipv4> || std::is_same_v<T, client::Ipv6>) {
          std::string text;
          client::AppendText(v, &text);
          return text;
        } else {
          return v;
        }
      },
      value.kind);
}

Json ToJson(const client::QuantilesAnswer& answer) {
  Json out = Header(answer);
  Json& answers = out["answers"] = Json::array();
  for (const auto& a : answer.answers) {
    answers.push_back({{"phi", ToJson(a.phi)},
                       {"value", ToJson(a.value)},
                       {"rank_low", IntegerToJson(a.rank_low)},
                       {"rank_high", IntegerToJson(a.rank_high)}});
  }
  return out;
}

Json ToJson(const client::RanksAnswer& answer) {
  Json out = Header(answer);
  Json& answers = out["answers"] = Json::array();
  for (const auto& a : answer.answers) {
    answers.push_back({{"value", ToJson(a.value)},
                       {"rank_low", IntegerToJson(a.rank_low)},
                       {"rank_high", IntegerToJson(a.rank_high)}});
  }
  return out;
}

Json ToJson(const client::HistogramAnswer& answer) {
  Json out = Header(answer);
  Json& buckets = out["buckets"] = Json::array();
  for (const auto& b : answer.buckets) {
    Json bucket = Json::object();
    if (b.low) bucket["low"] = ToJson(*b.low);
    if (b.high) bucket["high"] = ToJson(*b.high);
    bucket["count_low"] = IntegerToJson(b.count_low);
    bucket["count_high"] = IntegerToJson(b.count_high);
    buckets.push_back(std::move(bucket));
  }
  return out;
}

Json ToJson(const client::HeavyHittersAnswer& answer) {
  Json out = Header(answer);
  out["support"] = ToJson(answer.support);
  out["items"] = ItemsToJson(answer.items);
  return out;
}

Json ToJson(const client::CountsAnswer& answer) {
  Json out = Header(answer);
  out["items"] = ItemsToJson(answer.items);
  return out;
}

Json ToJson(const client::HierarchicalHeavyHittersAnswer& answer) {
  Json out = Header(answer);
  out["support"] = ToJson(answer.support);
  Json& prefixes = out["prefixes"] = Json::array();
  for (const auto& p : answer.prefixes) {
    prefixes.push_back({{"prefix", p.text ? *p.text : client::FormatPrefix(p.address, p.length)},
                        {"count_low", IntegerToJson(p.count_low)},
                        {"count_high", IntegerToJson(p.count_high)},
                        {"discounted_low", IntegerToJson(p.discounted_low)},
                        {"discounted_high", IntegerToJson(p.discounted_high)}});
    if (p.text) prefixes.back()["components"] = p.length;
  }
  return out;
}

namespace {

Json RangeToJson(const client::SumRange& range) {
  if (const auto* value = std::get_if<client::AtMostValue>(&range)) {
    return {{"at_most", ToJson(value->value)}};
  }
  if (const auto* values = std::get_if<client::BetweenValues>(&range)) {
    return {{"low", ToJson(values->low)}, {"high", ToJson(values->high)}};
  }
  if (const auto* share = std::get_if<client::AtMostShare>(&range)) {
    return {{"at_most_phi", ToJson(share->phi)}};
  }
  const auto& shares = std::get<client::BetweenShares>(range);
  return {{"low_phi", ToJson(shares.low)}, {"high_phi", ToJson(shares.high)}};
}

}  // namespace

Json ToJson(const client::SumsAnswer& answer) {
  Json out = Header(answer);
  Json& answers = out["answers"] = Json::array();
  for (const auto& a : answer.answers) {
    Json one = RangeToJson(a.range);
    one["count_low"] = IntegerToJson(a.count_low);
    one["count_high"] = IntegerToJson(a.count_high);
    one["sum_low"] = ToJson(a.sum_low);
    one["sum_high"] = ToJson(a.sum_high);
    if (a.average_low) one["average_low"] = ToJson(*a.average_low);
    if (a.average_high) one["average_high"] = ToJson(*a.average_high);
    answers.push_back(std::move(one));
  }
  return out;
}

Json ToJson(const client::CompareAnswer& answer) {
  Json out = {{"n_a", IntegerToJson(answer.n_a)},
              {"n_b", IntegerToJson(answer.n_b)},
              {"epsilon_a", ToJson(answer.epsilon_a)},
              {"epsilon_b", ToJson(answer.epsilon_b)},
              {"distance_low", ToJson(answer.distance_low)},
              {"distance_high", ToJson(answer.distance_high)},
              {"value", ToJson(answer.value)},
              {"share_a_low", ToJson(answer.share_a_low)},
              {"share_a_high", ToJson(answer.share_a_high)},
              {"share_b_low", ToJson(answer.share_b_low)},
              {"share_b_high", ToJson(answer.share_b_high)},
              {"moved", answer.moved ? Json(*answer.moved) : Json("cannot tell")},
              {"chance_distance", ToJson(answer.chance_distance)}};
  if (answer.n_uncertain_a != 0) out["n_uncertain_a"] = IntegerToJson(answer.n_uncertain_a);
  if (answer.n_uncertain_b != 0) out["n_uncertain_b"] = IntegerToJson(answer.n_uncertain_b);
  if (answer.refused_a != 0) out["refused_a"] = IntegerToJson(answer.refused_a);
  if (answer.refused_b != 0) out["refused_b"] = IntegerToJson(answer.refused_b);
  AddLosses(answer.losses_a, "_a", out);
  AddLosses(answer.losses_b, "_b", out);
  return out;
}

Json ToJson(const client::SpreadAnswer& answer) {
  Json out = {{"stream", answer.stream},
              {"n", IntegerToJson(answer.n)},
              {"epsilon", ToJson(answer.epsilon)},
              {"low_phi", ToJson(answer.low_phi)},
              {"high_phi", ToJson(answer.high_phi)},
              {"low_quantile_low", ToJson(answer.low_quantile.first)},
              {"low_quantile_high", ToJson(answer.low_quantile.second)},
              {"high_quantile_low", ToJson(answer.high_quantile.first)},
              {"high_quantile_high", ToJson(answer.high_quantile.second)},
              {"range_low", ToJson(answer.range_low)},
              {"range_high", ToJson(answer.range_high)},
              {"trim", ToJson(answer.trim)},
              {"trimmed_count", IntegerToJson(answer.trimmed_count)},
              {"trimmed_mean_low", ToJson(answer.trimmed_mean_low)},
              {"trimmed_mean_high", ToJson(answer.trimmed_mean_high)},
              {"distinct_low", IntegerToJson(answer.distinct_low)},
              {"distinct_high", IntegerToJson(answer.distinct_high)}};
  if (answer.n_uncertain != 0) out["n_uncertain"] = IntegerToJson(answer.n_uncertain);
  if (answer.refused != 0) out["refused"] = IntegerToJson(answer.refused);
  AddLosses(answer.losses, "", out);
  return out;
}

Json ToJson(const client::WatchAnswer& answer) {
  Json out = std::visit([](const auto& a) { return ToJson(a); }, answer.answer);
  out["skipped"] = IntegerToJson(answer.skipped);
  out["time_us"] = IntegerToJson(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(answer.time.time_since_epoch())
          .count()));
  return out;
}

Json ToJson(const std::vector<client::StreamInfo>& streams) {
  Json out;
  Json& list = out["streams"] = Json::array();
  for (const auto& s : streams) {
    list.push_back({{"name", s.name},
                    {"type", client::TypeName(s.config.type)},
                    {"epsilon", ToJson(s.config.epsilon())},
                    {"n", IntegerToJson(s.count)}});
  }
  return out;
}

Json ToJson(const client::StreamInfo& stream) {
  const client::StreamConfig& config = stream.config;
  Json out = {{"name", stream.name},
              {"type", client::TypeName(stream.config.type)},
              {"epsilon", ToJson(stream.config.epsilon())},
              {"n", IntegerToJson(stream.count)},
              {"frequency_epsilon", ToJson(stream.config.frequency_epsilon)},
              {"refused", IntegerToJson(stream.refused)},
              {"refused_whole", IntegerToJson(stream.losses.refused_whole)},
              {"dropped_datagrams", IntegerToJson(stream.losses.dropped_datagrams)},
              {"exact", stream.exact},
              {"pending", IntegerToJson(stream.pending)},
              {"window_capacity", IntegerToJson(stream.window_capacity)},
              {"window_fill", IntegerToJson(stream.window_fill)},
              {"windows_summarized", IntegerToJson(stream.windows_summarized)},
              {"quantile_bytes", IntegerToJson(stream.quantile_bytes)},
              {"frequency_bytes", IntegerToJson(stream.frequency_bytes)},
              {"window_bytes", IntegerToJson(stream.window_bytes)},
              {"dictionary_bytes", IntegerToJson(stream.dictionary_bytes)},
              {"frequencies", !config.no_frequencies}};
  if (config.HasRanks()) {
    out["quantile_form"] = client::FormName(config.quantile_form);
  }
  if (config.HasRanks() && config.quantile_form == client::QuantileForm::kTail) {
    out["tail_epsilon"] = ToJson(config.tail_epsilon);
  }
  if (!config.prefix_lengths.empty()) out["prefix_lengths"] = config.prefix_lengths;
  if (!config.separator.empty()) {
    out["separator"] = config.separator;
    out["depth"] = config.depth;
    out["root_last"] = config.root_last;
  }
  if (config.payload != client::PayloadType::kNone) {
    out["payload"] = config.payload == client::PayloadType::kWeight ? "weight" : "y";
  }
  if (config.sums.value_or(false)) out["sums"] = true;
  if (config.HasSums()) out["sum_bytes"] = IntegerToJson(stream.sum_bytes);
  if (config.sliding.any()) {
    out["sliding_bytes"] = IntegerToJson(stream.sliding_bytes);
    out["sliding"] = {{"max_values", IntegerToJson(config.sliding.max_values)},
                      {"max_time_s", static_cast<double>(config.sliding.max_time.count()) / 1e6},
                      {"epsilon", ToJson(config.sliding.epsilon)}};
  }
  return out;
}

Json ToJson(const client::ServerInfo& info) {
  Json measurements = Json::array();
  for (const auto& m : info.sorter.measurements) {
    measurements.push_back({{"key_bits", m.key_bits},
                            {"window", IntegerToJson(m.window)},
                            {"sorter", m.sorter},
                            {"algorithm", m.algorithm},
                            {"keys_per_second", ToJson(m.keys_per_second)},
                            {"chosen", m.chosen}});
  }
  Json observed = Json::array();
  for (const auto& o : info.sorter.observed) {
    observed.push_back({{"sorter", o.sorter},
                        {"key_bits", o.key_bits},
                        {"window", IntegerToJson(o.window)},
                        {"keys_per_second", ToJson(o.keys_per_second)},
                        {"requests", IntegerToJson(o.requests)}});
  }
  Json routes = Json::array();
  for (const auto& r : info.sorter.routes) {
    routes.push_back(
        {{"sorter", r.sorter}, {"reason", r.reason}, {"requests", IntegerToJson(r.requests)}});
  }
  const auto measured_at_us = std::chrono::duration_cast<std::chrono::microseconds>(
      info.sorter.measured_at.time_since_epoch());
  Json endpoints = Json::object();
  for (const auto& e : info.endpoints) endpoints[e.name] = e.address;
  const auto& gl = info.sorter.gl;
  const auto& limits = info.limits;
  return {{"version", info.version},
          {"sorter",
           {{"requested", info.sorter.requested},
            {"active", info.sorter.active},
            {"reason", info.sorter.reason},
            {"cached", info.sorter.cached},
            {"measured_at_us", measured_at_us.count()},
            {"measurements", std::move(measurements)},
            {"observed", std::move(observed)},
            {"routes", std::move(routes)}}},
          {"gl",
           {{"available", gl.available},
            {"error", gl.error},
            {"vendor", gl.vendor},
            {"renderer", gl.renderer},
            {"version", gl.version},
            {"software", gl.software}}},
          {"endpoints", std::move(endpoints)},
          {"limits",
           {{"max_streams", IntegerToJson(limits.max_streams)},
            {"max_name_bytes", IntegerToJson(limits.max_name_bytes)},
            {"max_batch_bytes", IntegerToJson(limits.max_batch_bytes)},
            {"max_item_bytes", IntegerToJson(limits.max_item_bytes)},
            {"max_subscriptions", IntegerToJson(limits.max_subscriptions)},
            {"max_connections", IntegerToJson(limits.max_connections)}}},
          {"streams", IntegerToJson(info.streams)},
          {"values", IntegerToJson(info.values)},
          {"uptime_us", IntegerToJson(static_cast<std::uint64_t>(info.uptime.count()))}};
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tidemark::tool
