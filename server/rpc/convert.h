// Between the messages of tidemark.v1 and the types of the stages behind.
#ifndef TIDEMARK_SERVER_RPC_CONVERT_H_
#define TIDEMARK_SERVER_RPC_CONVERT_H_

#include <grpcpp/support/status.h>

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/query_engine.h"
#include "server/query/value.h"
#include "server/window/stream.h"
#include "tidemark/v1/query.pb.h"
#include "tidemark/v1/streams.pb.h"

namespace tidemark::server {

/// The same code and message. UNAVAILABLE, and whatever RetryLater marked, carries
/// google.rpc.RetryInfo (one second) in its details: a sender may try again.
grpc::Status ToGrpc(const absl::Status& status);

/// For limits that others reach together: what is refused now may be served later.
absl::Status RetryLater(absl::Status status);

/// INVALID_ARGUMENT for a number that names no type; nullopt for VALUE_TYPE_UNSPECIFIED.
absl::StatusOr<std::optional<ValueType>> FromProto(v1::ValueType type);

v1::Value ToProto(const Value& value);
/// INVALID_ARGUMENT if the value is unset.
absl::StatusOr<Value> FromProto(const v1::Value& value);
template <class Repeated>
absl::StatusOr<std::vector<Value>> FromProtos(const Repeated& values) {
  std::vector<Value> converted;
  converted.reserve(static_cast<std::size_t>(values.size()));
  for (const v1::Value& value : values) {
    absl::StatusOr<Value> one = FromProto(value);
    if (!one.ok()) return one.status();
    converted.push_back(*std::move(one));
  }
  return converted;
}

/// A duration of at least a microsecond. `what` names it in the message.
absl::StatusOr<std::int64_t> ToMicroseconds(const google::protobuf::Duration& time,
                                            std::string_view what);

/// Settings asked for, the unset ones from `defaults`.
absl::StatusOr<StreamSettings> FromProto(const v1::StreamConfig& config,
                                         const StreamSettings& defaults);
void ToProto(const StreamSettings& settings, v1::StreamConfig& config);
void ToProto(const Stream& stream, v1::Stream& message);

void ToProto(const std::string& stream, const QuantilesAnswer& answer, v1::QuantilesResponse& out);
void ToProto(const std::string& stream, const RanksAnswer& answer, v1::RanksResponse& out);
void ToProto(const std::string& stream, const HistogramAnswer& answer, v1::HistogramResponse& out);
void ToProto(const std::string& stream, const ItemsAnswer& answer, v1::HeavyHittersResponse& out);
void ToProto(const std::string& stream, const ItemsAnswer& answer, v1::CountsResponse& out);
void ToProto(const std::string& stream, const PrefixesAnswer& answer,
             v1::HierarchicalHeavyHittersResponse& out);
/// All but the ranges, which are those of the request.
void ToProto(const std::string& stream, const SumsAnswer& answer, v1::SumsResponse& out);
void ToProto(const CompareAnswer& answer, v1::CompareResponse& out);
void ToProto(const std::string& stream, const SpreadAnswer& answer, v1::SpreadResponse& out);

/// INVALID_ARGUMENT if the range or a value of it is unset.
absl::StatusOr<PairRange> FromProto(const v1::SumRange& range);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_CONVERT_H_
