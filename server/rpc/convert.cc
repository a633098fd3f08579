#include "server/rpc/convert.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "retry_details.pb.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// How long a sender should wait before it tries again.
constexpr int kRetrySeconds = 1;
constexpr char kRetryType[] = "type.googleapis.com/google.rpc.RetryInfo";

std::string RetryDetails(const absl::Status& status) {
  rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(kRetrySeconds);
  rpc::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  google::protobuf::Any* any = details.add_details();
  any->set_type_url(kRetryType);
  any->set_value(retry.SerializeAsString());
  return details.SerializeAsString();
}

template <class Response, class Answer>
void SetCoverage(const std::string& stream, const Answer& answer, Response& out) {
  out.set_stream(stream);
  out.set_n(answer.coverage.n);
  out.set_epsilon(answer.coverage.epsilon);
}

template <class Response>
void AddItems(const ItemsAnswer& answer, Response& out) {
  for (const ItemRow& row : answer.rows) {
    v1::ItemCount* item = out.add_items();
    *item->mutable_value() = ToProto(row.value);
    item->set_count_low(row.count_low);
    item->set_count_high(row.count_high);
  }
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::string message(status.message());
  if (absl::IsUnavailable(status) || status.GetPayload(kRetryType)) {
    return grpc::Status(code, message, RetryDetails(status));
  }
  return grpc::Status(code, message);
}

absl::Status RetryLater(absl::Status status) {
  status.SetPayload(kRetryType, absl::Cord());
  return status;
}

absl::StatusOr<std::optional<ValueType>> FromProto(v1::ValueType type) {
  if (type == v1::VALUE_TYPE_UNSPECIFIED) return std::optional<ValueType>();
  const auto known = ValueTypeFromNumber(static_cast<std::uint32_t>(type));
  if (!known) {
    return absl::InvalidArgumentError(
        Concat("value type ", static_cast<int>(type), " is unknown; expected 1 to 7"));
  }
  return known;
}

v1::Value ToProto(const Value& value) {
  v1::Value message;
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, double>) {
          message.set_float64(held);
        } else if constexpr (std::is_same_v<Held, float>) {
          message.set_float32(held);
        } else if constexpr (std::is_same_v<Held, std::int64_t>) {
          message.set_int64(held);
        } else if constexpr (std::is_same_v<Held, std::uint64_t>) {
          message.set_uint64(held);
        } else if constexpr (std::is_same_v<Held, std::uint32_t>) {
          message.set_uint32(held);
        } else if constexpr (std::is_same_v<Held, Ipv4>) {
          message.set_ipv4(held.address);
        } else {
          message.set_string(held);
        }
      },
      value);
  return message;
}

absl::StatusOr<Value> FromProto(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFloat64:
      return Value(value.float64());
    case v1::Value::kFloat32:
      return Value(value.float32());
    case v1::Value::kInt64:
      return Value(std::int64_t{value.int64()});
    case v1::Value::kUint64:
      return Value(std::uint64_t{value.uint64()});
    case v1::Value::kUint32:
      return Value(value.uint32());
    case v1::Value::kIpv4:
      return Value(Ipv4{value.ipv4()});
    case v1::Value::kString:
      return Value(value.string());
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a value is unset; expected one of float64 to string");
}

absl::StatusOr<StreamSettings> FromProto(const v1::StreamConfig& config,
                                         const StreamSettings& defaults) {
  StreamSettings settings = defaults;
  const absl::StatusOr<std::optional<ValueType>> type = FromProto(config.type());
  if (!type.ok()) return type.status();
  if (*type) settings.type = **type;
  if (config.payload() < v1::PAYLOAD_TYPE_UNSPECIFIED || config.payload() > v1::PAYLOAD_TYPE_Y) {
    return absl::InvalidArgumentError(Concat("payload type ", static_cast<int>(config.payload()),
                                             " is unknown; expected 0 to 2"));
  }
  settings.payload = static_cast<PayloadType>(config.payload());
  // 0 stands for the default; anything else, NaN too, is checked by the registry.
  if (config.quantile_epsilon() != 0) settings.quantile_epsilon = config.quantile_epsilon();
  if (config.frequency_epsilon() != 0) settings.frequency_epsilon = config.frequency_epsilon();
  return settings;
}

void ToProto(const Stream& stream, v1::Stream& message) {
  const StreamStats stats = stream.Stats();
  const StreamSettings& settings = stream.settings();
  message.set_name(stream.name());
  message.mutable_config()->set_type(static_cast<v1::ValueType>(settings.type));
  message.mutable_config()->set_quantile_epsilon(settings.quantile_epsilon);
  message.mutable_config()->set_frequency_epsilon(settings.frequency_epsilon);
  message.mutable_config()->set_payload(static_cast<v1::PayloadType>(settings.payload));
  message.set_count(stats.count);
  message.set_refused(stats.refused);
  message.set_pending(stats.pending);
  message.set_window_capacity(stats.window_capacity);
  message.set_window_fill(stats.window_fill);
  message.set_quantile_bytes(stats.quantile_bytes);
  message.set_frequency_bytes(stats.frequency_bytes);
  message.set_window_bytes(stats.window_bytes);
  message.set_dictionary_bytes(stats.dictionary_bytes);
  message.set_windows_summarized(stats.windows_summarized);
  message.set_exact(stats.exact);
}

void ToProto(const std::string& stream, const QuantilesAnswer& answer, v1::QuantilesResponse& out) {
  SetCoverage(stream, answer, out);
  for (const QuantileRow& row : answer.rows) {
    v1::QuantileAnswer* one = out.add_answers();
    one->set_phi(row.phi);
    *one->mutable_value() = ToProto(row.value);
    one->set_rank_low(row.rank_low);
    one->set_rank_high(row.rank_high);
  }
}

void ToProto(const std::string& stream, const RanksAnswer& answer, v1::RanksResponse& out) {
  SetCoverage(stream, answer, out);
  for (const RankRow& row : answer.rows) {
    v1::RankAnswer* one = out.add_answers();
    *one->mutable_value() = ToProto(row.value);
    one->set_rank_low(row.rank_low);
    one->set_rank_high(row.rank_high);
  }
}

void ToProto(const std::string& stream, const HistogramAnswer& answer, v1::HistogramResponse& out) {
  SetCoverage(stream, answer, out);
  for (const BucketRow& row : answer.rows) {
    v1::HistogramBucket* one = out.add_buckets();
    if (row.low) *one->mutable_low() = ToProto(*row.low);
    if (row.high) *one->mutable_high() = ToProto(*row.high);
    one->set_count_low(row.count_low);
    one->set_count_high(row.count_high);
  }
}

void ToProto(const std::string& stream, const ItemsAnswer& answer, v1::HeavyHittersResponse& out) {
  SetCoverage(stream, answer, out);
  out.set_support(answer.support);
  AddItems(answer, out);
}

void ToProto(const std::string& stream, const ItemsAnswer& answer, v1::CountsResponse& out) {
  SetCoverage(stream, answer, out);
  AddItems(answer, out);
}

}  // namespace tidemark::server
