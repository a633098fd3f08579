#include "client/convert.h"

#include <array>
#include <cstdio>

#include "client/error.h"

namespace tidemark::client {
namespace {

template <typename Response>
void SetHeader(const Response& response, AnswerHeader* out) {
  out->stream = response.stream();
  out->n = response.n();
  out->epsilon = response.epsilon();
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
    void operator()(const std::string& v) const { out->set_string(RequireUtf8("item", v)); }
  };
  std::visit(Setter{out}, value.kind);
}

void ToProto(const StreamConfig& config, v1::StreamConfig* out) {
  out->set_type(static_cast<v1::ValueType>(config.type));
  out->set_quantile_epsilon(config.quantile_epsilon);
  out->set_frequency_epsilon(config.frequency_epsilon);
  out->set_payload(static_cast<v1::PayloadType>(config.payload));
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
  info.count = stream.count();
  info.refused = stream.refused();
  info.pending = stream.pending();
  info.window_capacity = stream.window_capacity();
  info.window_fill = stream.window_fill();
  info.quantile_bytes = stream.quantile_bytes();
  info.frequency_bytes = stream.frequency_bytes();
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

WatchAnswer FromProto(const v1::WatchResponse& response) {
  WatchAnswer out;
  if (response.has_heavy_hitters()) {
    out.answer = FromProto(response.heavy_hitters());
  } else {
    out.answer = FromProto(response.quantiles());
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
  for (const auto& e : response.endpoints()) out.endpoints.push_back({e.name(), e.address()});
  const v1::Limits& limits = response.limits();
  out.limits = {limits.max_streams(),    limits.max_name_bytes(),    limits.max_batch_bytes(),
                limits.max_item_bytes(), limits.max_subscriptions(), limits.max_connections()};
  out.streams = response.streams();
  out.values = response.values();
  out.uptime = std::chrono::microseconds(response.uptime_us());
  return out;
}

void ToProto(std::chrono::microseconds time, google::protobuf::Duration* out) {
  out->set_seconds(time.count() / 1'000'000);
  out->set_nanos(static_cast<std::int32_t>(time.count() % 1'000'000 * 1'000));
}

}  // namespace tidemark::client
