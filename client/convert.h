// Between protobuf messages and the plain structures of answers.h. Not installed.
#ifndef TIDEMARK_CLIENT_CONVERT_H_
#define TIDEMARK_CLIENT_CONVERT_H_

#include <string>
#include <string_view>
#include <vector>

#include "client/answers.h"
#include "client/client.h"
#include "tidemark/v1/info.pb.h"
#include "tidemark/v1/query.pb.h"
#include "tidemark/v1/streams.pb.h"
#include "tidemark/v1/subscriptions.pb.h"

namespace tidemark::client {

/// `text`. Throws kInvalidArgument if it is not UTF-8, which protobuf could not carry: `what` names
/// it, and the message is printable.
const std::string& RequireUtf8(std::string_view what, const std::string& text);

/// A value without a kind (of a newer daemon) becomes the string "?", so that it is seen.
Value FromProto(const v1::Value& value);
/// Throws kInvalidArgument for a string that is not UTF-8.
void ToProto(const Value& value, v1::Value* out);
void ToProto(const StreamConfig& config, v1::StreamConfig* out);
void ToProto(const std::vector<Value>& values, google::protobuf::RepeatedPtrField<v1::Value>* out);

StreamInfo FromProto(const v1::Stream& stream);
QuantilesAnswer FromProto(const v1::QuantilesResponse& response);
RanksAnswer FromProto(const v1::RanksResponse& response);
HistogramAnswer FromProto(const v1::HistogramResponse& response);
HeavyHittersAnswer FromProto(const v1::HeavyHittersResponse& response);
CountsAnswer FromProto(const v1::CountsResponse& response);
HierarchicalHeavyHittersAnswer FromProto(const v1::HierarchicalHeavyHittersResponse& response);
SumsAnswer FromProto(const v1::SumsResponse& response);
CompareAnswer FromProto(const v1::CompareResponse& response);
SpreadAnswer FromProto(const v1::SpreadResponse& response);
SumRange FromProto(const v1::SumRange& range);
void ToProto(const SumRange& range, v1::SumRange* out);
/// Throws kInvalidArgument for a name that is not UTF-8, and for sums of a part of the history.
void ToProto(const WatchQuery& query, v1::WatchRequest* out);
/// One without a query (of a newer daemon) has quantiles, of none.
WatchQuery FromProto(const v1::WatchRequest& request);
Subscription FromProto(const v1::Subscription& subscription);
WatchAnswer FromProto(const v1::WatchResponse& response);
ServerInfo FromProto(const v1::GetInfoResponse& response);

void ToProto(std::chrono::microseconds time, google::protobuf::Duration* out);

void ToProto(const Scope& scope, v1::Scope* out);

/// Sets the request's scope, unless it is the whole history.
template <typename Request>
void SetScope(const Scope& scope, Request* request) {
  if (!scope.whole()) ToProto(scope, request->mutable_scope());
}

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CONVERT_H_
