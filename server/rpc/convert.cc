#include "server/rpc/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "retry_details.pb.h"
#include "server/window/concat.h"
#include "summaries/key_codec.h"

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

/// Beside what was refused one by one.
bool HasMore(const StreamLosses& losses) {
  return losses.refused_whole != 0 || losses.dropped_datagrams != 0;
}

void ToProto(const StreamLosses& losses, v1::Losses& out) {
  out.set_refused_whole(losses.refused_whole);
  out.set_dropped_datagrams(losses.dropped_datagrams);
}

template <class Response, class Answer>
void SetCoverage(const std::string& stream, const Answer& answer, Response& out) {
  out.set_stream(stream);
  out.set_n(answer.coverage.n);
  out.set_n_uncertain(answer.coverage.uncertain);
  out.set_refused(answer.coverage.losses.refused);
  if (HasMore(answer.coverage.losses)) ToProto(answer.coverage.losses, *out.mutable_losses());
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
        Concat("value type ", static_cast<int>(type), " is unknown; expected 1 to 8"));
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
        } else if constexpr (std::is_same_v<Held, Ipv6>) {
          const Ipv6Bytes address = DecodeIpv6(held.address);
          message.set_ipv6(address.bytes.data(), address.bytes.size());
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
    case v1::Value::kIpv6: {
      Ipv6Bytes address;
      if (value.ipv6().size() != address.bytes.size()) {
        return absl::InvalidArgumentError(Concat("an address of ipv6 has ", value.ipv6().size(),
                                                 " bytes; expected ", address.bytes.size()));
      }
      std::copy(value.ipv6().begin(), value.ipv6().end(), address.bytes.begin());
      return Value(Ipv6{EncodeKey(address)});
    }
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a value is unset; expected one of float64 to ipv6");
}

absl::StatusOr<std::int64_t> ToMicroseconds(const google::protobuf::Duration& time,
                                            std::string_view what) {
  constexpr std::int64_t kSecond = 1'000'000;
  constexpr std::int64_t kSecondsMax = 315'576'000'000;  // the range of Duration
  if (time.seconds() < 0 || time.seconds() > kSecondsMax || time.nanos() < 0 ||
      time.nanos() > 999'999'999) {
    return absl::InvalidArgumentError(Concat(what, " of ", time.seconds(), " s and ", time.nanos(),
                                             " ns is out of range; expected a duration of 0 to ",
                                             kSecondsMax, " s"));
  }
  const std::int64_t us = time.seconds() * kSecond + time.nanos() / 1000;
  if (us == 0) {
    return absl::InvalidArgumentError(Concat(what, " is below a microsecond; expected more"));
  }
  return us;
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
  if (config.quantile_form() != v1::QUANTILE_FORM_UNSPECIFIED) {
    if (config.quantile_form() < v1::QUANTILE_FORM_HISTOGRAM ||
        config.quantile_form() > v1::QUANTILE_FORM_TAIL) {
      return absl::InvalidArgumentError(Concat("quantile form ",
                                               static_cast<int>(config.quantile_form()),
                                               " is unknown; expected 1 to 3"));
    }
    settings.quantile_form = static_cast<QuantileKind>(config.quantile_form());
  }
  if (config.tail_epsilon() != 0) settings.tail_epsilon = config.tail_epsilon();
  // A default without frequencies is meant for what has ranks: strings have counts and nothing
  // else.
  if (!HasRanks(settings.type)) settings.frequencies = true;
  if (config.no_frequencies()) settings.frequencies = false;
  settings.sums =
      config.has_sums() ? config.sums() : settings.sums && CanSumValues(settings.element());
  if (config.has_sliding()) {
    const v1::SlidingConfig& sliding = config.sliding();
    settings.sliding.values_max = sliding.max_values();
    if (sliding.has_max_time()) {
      const absl::StatusOr<std::int64_t> time = ToMicroseconds(sliding.max_time(), "max_time");
      if (!time.ok()) return time.status();
      settings.sliding.time_max_us = *time;
    }
    if (sliding.epsilon() != 0) settings.sliding.epsilon = sliding.epsilon();
    if (!settings.sliding.any()) {
      return absl::InvalidArgumentError(
          "a sliding window has neither max_values nor max_time; expected one or both");
    }
  }
  for (const std::uint32_t length : config.hierarchy().prefix_lengths()) {
    settings.hierarchy.prefix_lengths.push_back(
        static_cast<int>(std::min<std::uint32_t>(length, std::numeric_limits<int>::max())));
  }
  const v1::HierarchyConfig& hierarchy = config.hierarchy();
  if (!hierarchy.separator().empty()) {
    if (hierarchy.separator().size() > 1) {
      return absl::InvalidArgumentError(
          "the separator of a hierarchy is one visible character of ASCII, such as . or /");
    }
    constexpr std::uint32_t kDefaultDepth = 8;
    settings.hierarchy.separator = hierarchy.separator().front();
    settings.hierarchy.depth = static_cast<int>(
        std::min<std::uint32_t>(hierarchy.depth() == 0 ? kDefaultDepth : hierarchy.depth(),
                                std::numeric_limits<int>::max()));
    settings.hierarchy.root_last = hierarchy.root_last();
  }
  if (config.has_hierarchy() && !settings.hierarchy.any()) {
    return absl::InvalidArgumentError(
        "a hierarchy has neither prefix_lengths nor a separator; expected, of addresses, ascending "
        "lengths, such as 8, 16, 24, 32; of strings, a separator, such as . or /");
  }
  // 0 stands for the default; anything else, NaN too, is checked by the registry.
  if (config.quantile_epsilon() != 0) settings.quantile_epsilon = config.quantile_epsilon();
  if (config.frequency_epsilon() != 0) settings.frequency_epsilon = config.frequency_epsilon();
  return settings;
}

void ToProto(const StreamSettings& settings, v1::StreamConfig& config) {
  config.set_type(static_cast<v1::ValueType>(settings.type));
  config.set_quantile_epsilon(settings.quantile_epsilon);
  config.set_frequency_epsilon(settings.frequency_epsilon);
  config.set_quantile_form(static_cast<v1::QuantileForm>(settings.quantile_form));
  if (settings.quantile_form == QuantileKind::kTail) {
    config.set_tail_epsilon(settings.tail_epsilon);
  }
  config.set_no_frequencies(!settings.frequencies);
  if (settings.sums) config.set_sums(true);
  for (const int length : settings.hierarchy.prefix_lengths) {
    config.mutable_hierarchy()->add_prefix_lengths(static_cast<std::uint32_t>(length));
  }
  if (settings.hierarchy.depth > 0) {
    v1::HierarchyConfig* hierarchy = config.mutable_hierarchy();
    hierarchy->set_separator(std::string(1, settings.hierarchy.separator));
    hierarchy->set_depth(static_cast<std::uint32_t>(settings.hierarchy.depth));
    hierarchy->set_root_last(settings.hierarchy.root_last);
  }
  if (settings.sliding.any()) {
    v1::SlidingConfig* sliding = config.mutable_sliding();
    sliding->set_max_values(settings.sliding.values_max);
    if (settings.sliding.time_max_us != 0) {
      constexpr std::int64_t kSecond = 1'000'000;
      sliding->mutable_max_time()->set_seconds(settings.sliding.time_max_us / kSecond);
      sliding->mutable_max_time()->set_nanos(
          static_cast<std::int32_t>(settings.sliding.time_max_us % kSecond * 1000));
    }
    sliding->set_epsilon(settings.sliding.epsilon);
  }
  config.set_payload(static_cast<v1::PayloadType>(settings.payload));
}

void ToProto(const Stream& stream, v1::Stream& message) {
  const StreamStats stats = stream.Stats();
  message.set_name(stream.name());
  ToProto(stream.settings(), *message.mutable_config());
  message.set_count(stats.count);
  message.set_refused(stats.refused);
  if (const StreamLosses losses = stream.Losses(); HasMore(losses)) {
    ToProto(losses, *message.mutable_losses());
  }
  message.set_pending(stats.pending);
  message.set_window_capacity(stats.window_capacity);
  message.set_window_fill(stats.window_fill);
  message.set_quantile_bytes(stats.quantile_bytes);
  message.set_frequency_bytes(stats.frequency_bytes);
  message.set_window_bytes(stats.window_bytes);
  message.set_dictionary_bytes(stats.dictionary_bytes);
  message.set_windows_summarized(stats.windows_summarized);
  message.set_exact(stats.exact);
  message.set_sliding_bytes(stats.sliding_bytes);
  message.set_sum_bytes(stats.sum_bytes);
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

void ToProto(const std::string& stream, const PrefixesAnswer& answer,
             v1::HierarchicalHeavyHittersResponse& out) {
  SetCoverage(stream, answer, out);
  out.set_support(answer.support);
  for (const PrefixRow& row : answer.rows) {
    v1::PrefixCount* prefix = out.add_prefixes();
    *prefix->mutable_address() = ToProto(row.prefix);
    prefix->set_length(static_cast<std::uint32_t>(row.length));
    prefix->set_count_low(row.count_low);
    prefix->set_count_high(row.count_high);
    prefix->set_discounted_low(row.discounted_low);
    prefix->set_discounted_high(row.discounted_high);
  }
}

void ToProto(const std::string& stream, const SumsAnswer& answer, v1::SumsResponse& out) {
  out.set_stream(stream);
  out.set_n(answer.coverage.n);
  out.set_epsilon(answer.coverage.epsilon);
  out.set_refused(answer.coverage.losses.refused);
  if (HasMore(answer.coverage.losses)) ToProto(answer.coverage.losses, *out.mutable_losses());
  for (const SumRow& row : answer.rows) {
    v1::SumAnswer* sum = out.add_answers();
    sum->set_count_low(row.count_low);
    sum->set_count_high(row.count_high);
    sum->set_sum_low(row.sum_low);
    sum->set_sum_high(row.sum_high);
    if (row.average) {
      sum->set_average_low(row.average->first);
      sum->set_average_high(row.average->second);
    }
  }
}

void ToProto(const std::string& stream, const SpreadAnswer& answer, v1::SpreadResponse& out) {
  SetCoverage(stream, answer, out);
  out.set_low_phi(answer.question.low_phi);
  out.set_high_phi(answer.question.high_phi);
  const auto set = [](const std::pair<Value, Value>& from, v1::ValueInterval& to) {
    *to.mutable_low() = ToProto(from.first);
    *to.mutable_high() = ToProto(from.second);
  };
  set(answer.low_quantile, *out.mutable_low_quantile());
  set(answer.high_quantile, *out.mutable_high_quantile());
  out.set_range_low(answer.range_low);
  out.set_range_high(answer.range_high);
  out.set_trim(answer.question.trim);
  out.set_trimmed_count(answer.trimmed_count);
  out.set_trimmed_mean_low(answer.mean_low);
  out.set_trimmed_mean_high(answer.mean_high);
  out.set_distinct_low(answer.distinct_low);
  out.set_distinct_high(answer.distinct_high);
}

void ToProto(const CompareAnswer& answer, v1::CompareResponse& out) {
  out.set_n_a(answer.a.n);
  out.set_n_b(answer.b.n);
  out.set_epsilon_a(answer.a.epsilon);
  out.set_epsilon_b(answer.b.epsilon);
  out.set_distance_low(answer.distance_low);
  out.set_distance_high(answer.distance_high);
  *out.mutable_value() = ToProto(answer.value);
  out.set_share_a_low(answer.share_a_low);
  out.set_share_a_high(answer.share_a_high);
  out.set_share_b_low(answer.share_b_low);
  out.set_share_b_high(answer.share_b_high);
  if (answer.moved) {
    out.set_moved(*answer.moved ? v1::CompareResponse::MOVED_YES : v1::CompareResponse::MOVED_NO);
  }
  out.set_chance_distance(answer.chance_distance);
  out.set_n_uncertain_a(answer.a.uncertain);
  out.set_n_uncertain_b(answer.b.uncertain);
  out.set_refused_a(answer.a.losses.refused);
  out.set_refused_b(answer.b.losses.refused);
  if (HasMore(answer.a.losses)) ToProto(answer.a.losses, *out.mutable_losses_a());
  if (HasMore(answer.b.losses)) ToProto(answer.b.losses, *out.mutable_losses_b());
}

absl::StatusOr<PairRange> FromProto(const v1::SumRange& range) {
  switch (range.range_case()) {
    case v1::SumRange::kAtMost: {
      absl::StatusOr<Value> value = FromProto(range.at_most());
      if (!value.ok()) return value.status();
      return PairRange(AtMostValue{*std::move(value)});
    }
    case v1::SumRange::kBetween: {
      absl::StatusOr<Value> low = FromProto(range.between().low());
      if (!low.ok()) return low.status();
      absl::StatusOr<Value> high = FromProto(range.between().high());
      if (!high.ok()) return high.status();
      return PairRange(BetweenValues{*std::move(low), *std::move(high)});
    }
    case v1::SumRange::kAtMostPhi:
      return PairRange(AtMostShare{range.at_most_phi()});
    case v1::SumRange::kBetweenPhi:
      return PairRange(BetweenShares{range.between_phi().low(), range.between_phi().high()});
    case v1::SumRange::RANGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "a range is unset; expected at_most, between, at_most_phi or between_phi");
}

}  // namespace tidemark::server
