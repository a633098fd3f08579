#include "client/convert.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "client/error.h"

namespace tidemark::client {
namespace {

Losses FromProto(const v1::Losses& losses) {
  return {losses.refused_whole(), losses.dropped_datagrams()};
}

template <typename Response>
void SetHeader(const Response& response, AnswerHeader* out) {
  out->stream = response.stream();
  out->n = response.n();
  out->epsilon = response.epsilon();
  out->n_uncertain = response.n_uncertain();
  out->refused = response.refused();
  out->losses = FromProto(response.losses());
}

ItemCount FromProto(const v1::ItemCount& item) {
  return {client::FromProto(item.value()), item.count_low(), item.count_high()};
}

}  // namespace

const std::string& RequireUtf8(std::string_view what, const std::string& text) {
  if (IsUtf8(text)) return text;
  // As much as a message of one line has room for.
  constexpr std::size_t kShown = 64;
  std::string shown;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      shown += c;
    } else {
      std::array<char, 5> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(byte));
      shown += escape.data();
    }
  }
  if (text.size() > kShown) shown += "...";
  throw Error(Code::kInvalidArgument, std::string(what) + " \"" + shown + "\" is not UTF-8");
}

namespace {

// Bytes that are no address, which no daemon sends, leave zeros.
Ipv6 Ipv6FromProto(const std::string& bytes) {
  Ipv6 address;
  std::copy_n(bytes.begin(), std::min(bytes.size(), address.bytes.size()), address.bytes.begin());
  return address;
}

}  // namespace

Value FromProto(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFloat64:
      return {value.float64()};
    case v1::Value::kFloat32:
      return {value.float32()};
    case v1::Value::kInt64:
      return {std::int64_t{value.int64()}};
    case v1::Value::kUint64:
      return {std::uint64_t{value.uint64()}};
    case v1::Value::kUint32:
      return {std::uint32_t{value.uint32()}};
    case v1::Value::kIpv4:
      return {Ipv4{value.ipv4()}};
    case v1::Value::kString:
      return {value.string()};
    case v1::Value::kIpv6:
      return {Ipv6FromProto(value.ipv6())};
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return {std::string("?")};
}

void ToProto(const Value& value, v1::Value* out) {
  struct Setter {
    v1::Value* out;
    void operator()(double v) const { out->set_float64(v); }
    void operator()(float v) const { out->set_float32(v); }
    void operator()(std::int64_t v) const { out->set_int64(v); }
    void operator()(std::uint64_t v) const { out->set_uint64(v); }
    void operator()(std::uint32_t v) const { out->set_uint32(v); }
    void operator()(Ipv4 v) const { out->set_ipv4(v.address); }
    void operator()(const Ipv6& v) const { out->set_ipv6(v.bytes.data(), v.bytes.size()); }
    void operator()(const std::string& v) const { out->set_string(RequireUtf8("item", v)); }
  };
  std::visit(Setter{out}, value.kind);
}

void ToProto(const StreamConfig& config, v1::StreamConfig* out) {
  out->set_type(static_cast<v1::ValueType>(config.type));
  out->set_quantile_epsilon(config.quantile_epsilon);
  out->set_frequency_epsilon(config.frequency_epsilon);
  out->set_payload(static_cast<v1::PayloadType>(config.payload));
  out->set_quantile_form(static_cast<v1::QuantileForm>(config.quantile_form));
  out->set_tail_epsilon(config.tail_epsilon);
  out->set_no_frequencies(config.no_frequencies);
  if (config.sums) out->set_sums(*config.sums);
  for (const std::uint32_t length : config.prefix_lengths) {
    out->mutable_hierarchy()->add_prefix_lengths(length);
  }
  if (!config.separator.empty()) {
    out->mutable_hierarchy()->set_separator(RequireUtf8("separator", config.separator));
    out->mutable_hierarchy()->set_depth(config.depth);
    out->mutable_hierarchy()->set_root_last(config.root_last);
  }
  if (config.sliding.any()) {
    v1::SlidingConfig* sliding = out->mutable_sliding();
    sliding->set_max_values(config.sliding.max_values);
    if (config.sliding.max_time.count() != 0) {
      ToProto(config.sliding.max_time, sliding->mutable_max_time());
    }
    sliding->set_epsilon(config.sliding.epsilon);
  }
}

void ToProto(const std::vector<Value>& values, google::protobuf::RepeatedPtrField<v1::Value>* out) {
  out->Reserve(static_cast<int>(values.size()));
  for (const Value& value : values) ToProto(value, out->Add());
}

StreamInfo FromProto(const v1::Stream& stream) {
  StreamInfo info;
  info.name = stream.name();
  info.config.type = static_cast<ValueType>(stream.config().type());
  info.config.quantile_epsilon = stream.config().quantile_epsilon();
  info.config.frequency_epsilon = stream.config().frequency_epsilon();
  info.config.payload = static_cast<PayloadType>(stream.config().payload());
  info.config.quantile_form = static_cast<QuantileForm>(stream.config().quantile_form());
  info.config.tail_epsilon = stream.config().tail_epsilon();
  info.config.no_frequencies = stream.config().no_frequencies();
  info.config.sums = stream.config().sums();
  info.config.prefix_lengths.assign(stream.config().hierarchy().prefix_lengths().begin(),
                                    stream.config().hierarchy().prefix_lengths().end());
  info.config.separator = stream.config().hierarchy().separator();
  info.config.depth = stream.config().hierarchy().depth();
  info.config.root_last = stream.config().hierarchy().root_last();
  const v1::SlidingConfig& sliding = stream.config().sliding();
  info.config.sliding = {sliding.max_values(),
                         std::chrono::seconds(sliding.max_time().seconds()) +
                             std::chrono::microseconds(sliding.max_time().nanos() / 1000),
                         sliding.epsilon()};
  info.count = stream.count();
  info.refused = stream.refused();
  info.losses = FromProto(stream.losses());
  info.pending = stream.pending();
  info.window_capacity = stream.window_capacity();
  info.window_fill = stream.window_fill();
  info.quantile_bytes = stream.quantile_bytes();
  info.frequency_bytes = stream.frequency_bytes();
  info.sliding_bytes = stream.sliding_bytes();
  info.sum_bytes = stream.sum_bytes();
  info.window_bytes = stream.window_bytes();
  info.dictionary_bytes = stream.dictionary_bytes();
  info.windows_summarized = stream.windows_summarized();
  info.exact = stream.exact();
  return info;
}

QuantilesAnswer FromProto(const v1::QuantilesResponse& response) {
  QuantilesAnswer out;
  SetHeader(response, &out);
  for (const auto& a : response.answers()) {
    out.answers.push_back({a.phi(), FromProto(a.value()), a.rank_low(), a.rank_high()});
  }
  return out;
}

RanksAnswer FromProto(const v1::RanksResponse& response) {
  RanksAnswer out;
  SetHeader(response, &out);
  for (const auto& a : response.answers()) {
    out.answers.push_back({FromProto(a.value()), a.rank_low(), a.rank_high()});
  }
  return out;
}

HistogramAnswer FromProto(const v1::HistogramResponse& response) {
  HistogramAnswer out;
  SetHeader(response, &out);
  for (const auto& b : response.buckets()) {
    HistogramBucket bucket;
    if (b.has_low()) bucket.low = FromProto(b.low());
    if (b.has_high()) bucket.high = FromProto(b.high());
    bucket.count_low = b.count_low();
    bucket.count_high = b.count_high();
    out.buckets.push_back(std::move(bucket));
  }
  return out;
}

HeavyHittersAnswer FromProto(const v1::HeavyHittersResponse& response) {
  HeavyHittersAnswer out;
  SetHeader(response, &out);
  out.support = response.support();
  for (const auto& item : response.items()) out.items.push_back(FromProto(item));
  return out;
}

CountsAnswer FromProto(const v1::CountsResponse& response) {
  CountsAnswer out;
  SetHeader(response, &out);
  for (const auto& item : response.items()) out.items.push_back(FromProto(item));
  return out;
}

HierarchicalHeavyHittersAnswer FromProto(const v1::HierarchicalHeavyHittersResponse& response) {
  HierarchicalHeavyHittersAnswer out;
  SetHeader(response, &out);
  out.support = response.support();
  for (const auto& p : response.prefixes()) {
    std::optional<std::string> text;
    if (p.address().kind_case() == v1::Value::kString) text = p.address().string();
    Address address = Ipv4{p.address().ipv4()};
    if (p.address().kind_case() == v1::Value::kIpv6) address = Ipv6FromProto(p.address().ipv6());
    out.prefixes.push_back({address, std::move(text), p.length(), p.count_low(), p.count_high(),
                            p.discounted_low(), p.discounted_high()});
  }
  return out;
}

SumRange FromProto(const v1::SumRange& range) {
  switch (range.range_case()) {
    case v1::SumRange::kBetween:
      return BetweenValues{client::FromProto(range.between().low()),
                           client::FromProto(range.between().high())};
    case v1::SumRange::kAtMostPhi:
      return AtMostShare{range.at_most_phi()};
    case v1::SumRange::kBetweenPhi:
      return BetweenShares{range.between_phi().low(), range.between_phi().high()};
    case v1::SumRange::kAtMost:
    case v1::SumRange::RANGE_NOT_SET:
      break;
  }
  return AtMostValue{client::FromProto(range.at_most())};
}

void ToProto(const SumRange& range, v1::SumRange* out) {
  if (const auto* value = std::get_if<AtMostValue>(&range)) {
    ToProto(value->value, out->mutable_at_most());
  } else if (const auto* values = std::get_if<BetweenValues>(&range)) {
    ToProto(values->low, out->mutable_between()->mutable_low());
    ToProto(values->high, out->mutable_between()->mutable_high());
  } else if (const auto* share = std::get_if<AtMostShare>(&range)) {
    out->set_at_most_phi(share->phi);
  } else if (const auto* shares = std::get_if<BetweenShares>(&range)) {
    out->mutable_between_phi()->set_low(shares->low);
    out->mutable_between_phi()->set_high(shares->high);
  }
}

SumsAnswer FromProto(const v1::SumsResponse& response) {
  SumsAnswer out;
  out.stream = response.stream();
  out.n = response.n();
  out.epsilon = response.epsilon();
  out.refused = response.refused();
  out.losses = FromProto(response.losses());
  for (const auto& a : response.answers()) {
    SumAnswer sum{
        FromProto(a.range()), a.count_low(), a.count_high(), a.sum_low(), a.sum_high(), {}, {}};
    if (a.has_average_low()) sum.average_low = a.average_low();
    if (a.has_average_high()) sum.average_high = a.average_high();
    out.answers.push_back(std::move(sum));
  }
  return out;
}

CompareAnswer FromProto(const v1::CompareResponse& response) {
  CompareAnswer out;
  out.n_a = response.n_a();
  out.n_b = response.n_b();
  out.epsilon_a = response.epsilon_a();
  out.epsilon_b = response.epsilon_b();
  out.n_uncertain_a = response.n_uncertain_a();
  out.n_uncertain_b = response.n_uncertain_b();
  out.refused_a = response.refused_a();
  out.refused_b = response.refused_b();
  out.losses_a = FromProto(response.losses_a());
  out.losses_b = FromProto(response.losses_b());
  out.distance_low = response.distance_low();
  out.distance_high = response.distance_high();
  out.value = FromProto(response.value());
  out.share_a_low = response.share_a_low();
  out.share_a_high = response.share_a_high();
  out.share_b_low = response.share_b_low();
  out.share_b_high = response.share_b_high();
  if (response.moved() != v1::CompareResponse::MOVED_CANNOT_TELL) {
    out.moved = response.moved() == v1::CompareResponse::MOVED_YES;
  }
  out.chance_distance = response.chance_distance();
  return out;
}

SpreadAnswer FromProto(const v1::SpreadResponse& response) {
  SpreadAnswer out;
  SetHeader(response, &out);
  out.low_phi = response.low_phi();
  out.high_phi = response.high_phi();
  const auto interval = [](const v1::ValueInterval& from) {
    return std::pair(FromProto(from.low()), FromProto(from.high()));
  };
  out.low_quantile = interval(response.low_quantile());
  out.high_quantile = interval(response.high_quantile());
  out.range_low = response.range_low();
  out.range_high = response.range_high();
  out.trim = response.trim();
  out.trimmed_count = response.trimmed_count();
  out.trimmed_mean_low = response.trimmed_mean_low();
  out.trimmed_mean_high = response.trimmed_mean_high();
  out.distinct_low = response.distinct_low();
  out.distinct_high = response.distinct_high();
  return out;
}

WatchAnswer FromProto(const v1::WatchResponse& response) {
  WatchAnswer out;
  switch (response.answer_case()) {
    case v1::WatchResponse::kHeavyHitters:
      out.answer = FromProto(response.heavy_hitters());
      break;
    case v1::WatchResponse::kHierarchicalHeavyHitters:
      out.answer = FromProto(response.hierarchical_heavy_hitters());
      break;
    case v1::WatchResponse::kSums:
      out.answer = FromProto(response.sums());
      break;
    case v1::WatchResponse::kQuantiles:
    case v1::WatchResponse::ANSWER_NOT_SET:
      out.answer = FromProto(response.quantiles());
      break;
  }
  out.skipped = response.skipped();
  out.time = std::chrono::system_clock::time_point(std::chrono::microseconds(response.time_us()));
  return out;
}

ServerInfo FromProto(const v1::GetInfoResponse& response) {
  ServerInfo out;
  out.version = response.version();
  const v1::SorterInfo& sorter = response.sorter();
  out.sorter.requested = sorter.requested();
  out.sorter.active = sorter.active();
  out.sorter.reason = sorter.reason();
  const v1::GlInfo& gl = sorter.gl();
  out.sorter.gl = {gl.available(), gl.error(),   gl.vendor(),
                   gl.renderer(),  gl.version(), gl.software()};
  for (const auto& m : sorter.measurements()) {
    out.sorter.measurements.push_back(
        {m.key_bits(), m.window(), m.sorter(), m.algorithm(), m.keys_per_second(), m.chosen()});
  }
  out.sorter.measured_at =
      std::chrono::system_clock::time_point(std::chrono::microseconds(sorter.measured_at_us()));
  out.sorter.cached = sorter.cached();
  for (const auto& o : sorter.observed()) {
    out.sorter.observed.push_back(
        {o.sorter(), o.key_bits(), o.window(), o.keys_per_second(), o.requests()});
  }
  for (const auto& r : sorter.routes()) {
    out.sorter.routes.push_back({r.sorter(), r.reason(), r.requests()});
  }
  for (const auto& e : response.endpoints()) out.endpoints.push_back({e.name(), e.address()});
  const v1::Limits& limits = response.limits();
  out.limits = {limits.max_streams(),    limits.max_name_bytes(),    limits.max_batch_bytes(),
                limits.max_item_bytes(), limits.max_subscriptions(), limits.max_connections()};
  out.streams = response.streams();
  out.values = response.values();
  out.uptime = std::chrono::microseconds(response.uptime_us());
  return out;
}

void ToProto(const Scope& scope, v1::Scope* out) {
  if (scope.last_values != 0) out->set_last_values(scope.last_values);
  if (scope.last_time.count() != 0) ToProto(scope.last_time, out->mutable_last_time());
}

void ToProto(std::chrono::microseconds time, google::protobuf::Duration* out) {
  out->set_seconds(time.count() / 1'000'000);
  out->set_nanos(static_cast<std::int32_t>(time.count() % 1'000'000 * 1'000));
}

}  // namespace tidemark::client
