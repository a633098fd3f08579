#include "server/rpc/query_calls.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert.h"

namespace tidemark::server {
namespace {

absl::Status CheckScope(const v1::Scope& scope) {
  if (scope.last_values() == 0 && !scope.has_last_time()) return absl::OkStatus();
  return absl::UnimplementedError(
      "sliding windows are not available yet: ask without last_values and last_time for the whole "
      "history");
}

template <class Result, class Response>
absl::Status Fill(const std::string& stream, const absl::StatusOr<Result>& answer,
                  Response& response) {
  if (!answer.ok()) return answer.status();
  ToProto(stream, *answer, response);
  return absl::OkStatus();
}

// A value as a number, for "how far did it move"; NaN where there is no such number.
double AsNumber(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFloat64:
      return value.float64();
    case v1::Value::kFloat32:
      return static_cast<double>(value.float32());
    case v1::Value::kInt64:
      return static_cast<double>(value.int64());
    case v1::Value::kUint64:
      return static_cast<double>(value.uint64());
    case v1::Value::kUint32:
      return static_cast<double>(value.uint32());
    case v1::Value::kIpv4:
      return static_cast<double>(value.ipv4());
    default:
      return std::nan("");
  }
}

std::map<std::string, double> Shares(const v1::HeavyHittersResponse& answer) {
  std::map<std::string, double> shares;
  for (const v1::ItemCount& item : answer.items()) {
    shares[item.value().SerializeAsString()] =
        static_cast<double>(item.count_low()) / static_cast<double>(answer.n());
  }
  return shares;
}

}  // namespace

absl::Status Answer(const QueryEngine& engine, const v1::QuantilesRequest& request,
                    QueryEngine::Deadline deadline, v1::QuantilesResponse& response) {
  if (absl::Status status = CheckScope(request.scope()); !status.ok()) return status;
  const std::vector<double> phis(request.phi().begin(), request.phi().end());
  return Fill(request.stream(), engine.Quantiles(request.stream(), phis, deadline), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::RanksRequest& request,
                    QueryEngine::Deadline deadline, v1::RanksResponse& response) {
  if (absl::Status status = CheckScope(request.scope()); !status.ok()) return status;
  const absl::StatusOr<std::vector<Value>> values = FromProtos(request.values());
  if (!values.ok()) return values.status();
  return Fill(request.stream(), engine.Ranks(request.stream(), *values, deadline), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::HistogramRequest& request,
                    QueryEngine::Deadline deadline, v1::HistogramResponse& response) {
  if (absl::Status status = CheckScope(request.scope()); !status.ok()) return status;
  switch (request.buckets_case()) {
    case v1::HistogramRequest::kEquiDepth:
      return Fill(request.stream(),
                  engine.EquiDepthHistogram(request.stream(), request.equi_depth(), deadline),
                  response);
    case v1::HistogramRequest::kBounds: {
      const absl::StatusOr<std::vector<Value>> bounds = FromProtos(request.bounds().values());
      if (!bounds.ok()) return bounds.status();
      return Fill(request.stream(), engine.BoundedHistogram(request.stream(), *bounds, deadline),
                  response);
    }
    case v1::HistogramRequest::BUCKETS_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a histogram needs equi_depth or bounds");
}

absl::Status Answer(const QueryEngine& engine, const v1::HeavyHittersRequest& request,
                    QueryEngine::Deadline deadline, v1::HeavyHittersResponse& response) {
  if (absl::Status status = CheckScope(request.scope()); !status.ok()) return status;
  return Fill(request.stream(),
              engine.HeavyHitters(request.stream(), request.support(), request.limit(), deadline),
              response);
}

absl::Status Answer(const QueryEngine& engine, const v1::CountsRequest& request,
                    QueryEngine::Deadline deadline, v1::CountsResponse& response) {
  if (absl::Status status = CheckScope(request.scope()); !status.ok()) return status;
  const absl::StatusOr<std::vector<Value>> items = FromProtos(request.items());
  if (!items.ok()) return items.status();
  return Fill(request.stream(), engine.Counts(request.stream(), *items, deadline), response);
}

bool Moved(const v1::QuantilesResponse& before, const v1::QuantilesResponse& now,
           double min_change) {
  if (before.answers_size() != now.answers_size()) return true;
  for (int i = 0; i < now.answers_size(); ++i) {
    const double from = AsNumber(before.answers(i).value());
    const double to = AsNumber(now.answers(i).value());
    if (from == to) continue;  // equal infinities too, whose difference is NaN
    const double moved = std::abs(to - from);
    if (!(moved <= min_change)) return true;
  }
  return false;
}

bool Moved(const v1::HeavyHittersResponse& before, const v1::HeavyHittersResponse& now,
           double min_change) {
  const std::map<std::string, double> from = Shares(before);
  const std::map<std::string, double> to = Shares(now);
  if (from.size() != to.size()) return true;
  for (const auto& [item, share] : to) {
    const auto at = from.find(item);
    if (at == from.end() || std::abs(at->second - share) > min_change) return true;
  }
  return false;
}

}  // namespace tidemark::server
