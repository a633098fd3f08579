#include "server/rpc/query_calls.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/convert.h"

namespace tidemark::server {
namespace {

// What is asked, of the whole history or of the most recent values.
absl::StatusOr<Ask> AskOf(const v1::Scope& scope, QueryEngine::Deadline deadline) {
  SlidingWidth width;
  if (scope.last_values() != 0 && scope.has_last_time()) {
    return absl::InvalidArgumentError(
        "a scope has last_values and last_time; expected one of them");
  }
  width.values = scope.last_values();
  if (scope.has_last_time()) {
    const absl::StatusOr<std::int64_t> time = ToMicroseconds(scope.last_time(), "last_time");
    if (!time.ok()) return time.status();
    width.time_us = *time;
    width.now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  }
  return Ask(deadline, width);
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

absl::Status CheckArgumentCount(int count, std::string_view what) {
  return QueryEngine::CheckArguments(static_cast<std::size_t>(count), what);
}

}  // namespace

absl::Status CheckArguments(const v1::QuantilesRequest& request) {
  return CheckArgumentCount(request.phi_size(), "phi");
}
absl::Status CheckArguments(const v1::RanksRequest& request) {
  return CheckArgumentCount(request.values_size(), "values");
}
absl::Status CheckArguments(const v1::HistogramRequest& request) {
  return CheckArgumentCount(request.bounds().values_size(), "bounds");
}
absl::Status CheckArguments(const v1::CountsRequest& request) {
  return CheckArgumentCount(request.items_size(), "items");
}
absl::Status CheckArguments(const v1::SumsRequest& request) {
  return CheckArgumentCount(request.ranges_size(), "ranges");
}

absl::Status Answer(const QueryEngine& engine, const v1::QuantilesRequest& request,
                    QueryEngine::Deadline deadline, v1::QuantilesResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  const std::vector<double> phis(request.phi().begin(), request.phi().end());
  return Fill(request.stream(), engine.Quantiles(request.stream(), phis, *ask), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::RanksRequest& request,
                    QueryEngine::Deadline deadline, v1::RanksResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  const absl::StatusOr<std::vector<Value>> values = FromProtos(request.values());
  if (!values.ok()) return values.status();
  return Fill(request.stream(), engine.Ranks(request.stream(), *values, *ask), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::HistogramRequest& request,
                    QueryEngine::Deadline deadline, v1::HistogramResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  switch (request.buckets_case()) {
    case v1::HistogramRequest::kEquiDepth:
      return Fill(request.stream(),
                  engine.EquiDepthHistogram(request.stream(), request.equi_depth(), *ask),
                  response);
    case v1::HistogramRequest::kBounds: {
      const absl::StatusOr<std::vector<Value>> bounds = FromProtos(request.bounds().values());
      if (!bounds.ok()) return bounds.status();
      return Fill(request.stream(), engine.BoundedHistogram(request.stream(), *bounds, *ask),
                  response);
    }
    case v1::HistogramRequest::BUCKETS_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a histogram needs equi_depth or bounds");
}

absl::Status Answer(const QueryEngine& engine, const v1::HeavyHittersRequest& request,
                    QueryEngine::Deadline deadline, v1::HeavyHittersResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  return Fill(request.stream(),
              engine.HeavyHitters(request.stream(), request.support(), request.limit(), *ask,
                                  request.by_weight()),
              response);
}

absl::Status Answer(const QueryEngine& engine, const v1::CountsRequest& request,
                    QueryEngine::Deadline deadline, v1::CountsResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  const absl::StatusOr<std::vector<Value>> items = FromProtos(request.items());
  if (!items.ok()) return items.status();
  return Fill(request.stream(), engine.Counts(request.stream(), *items, *ask, request.by_weight()),
              response);
}

absl::Status Answer(const QueryEngine& engine, const v1::HierarchicalHeavyHittersRequest& request,
                    QueryEngine::Deadline deadline,
                    v1::HierarchicalHeavyHittersResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  return Fill(request.stream(),
              engine.HierarchicalHeavyHitters(request.stream(), request.support(), *ask), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::SumsRequest& request,
                    QueryEngine::Deadline deadline, v1::SumsResponse& response) {
  std::vector<PairRange> ranges;
  for (const v1::SumRange& range : request.ranges()) {
    absl::StatusOr<PairRange> converted = FromProto(range);
    if (!converted.ok()) return converted.status();
    ranges.push_back(*std::move(converted));
  }
  const absl::StatusOr<SumsAnswer> answer = engine.Sums(request.stream(), ranges, deadline);
  if (!answer.ok()) return answer.status();
  ToProto(request.stream(), *answer, response);
  for (int i = 0; i < response.answers_size(); ++i) {
    *response.mutable_answers(i)->mutable_range() = request.ranges(i);
  }
  return absl::OkStatus();
}

absl::Status Answer(const QueryEngine& engine, const v1::SpreadRequest& request,
                    QueryEngine::Deadline deadline, v1::SpreadResponse& response) {
  const absl::StatusOr<Ask> ask = AskOf(request.scope(), deadline);
  if (!ask.ok()) return ask.status();
  SpreadQuestion question;
  if (request.has_low_phi()) question.low_phi = request.low_phi();
  if (request.has_high_phi()) question.high_phi = request.high_phi();
  question.trim = request.trim();
  return Fill(request.stream(), engine.Spread(request.stream(), question, *ask), response);
}

absl::Status Answer(const QueryEngine& engine, const v1::CompareRequest& request,
                    QueryEngine::Deadline deadline, v1::CompareResponse& response) {
  const absl::StatusOr<Ask> ask_a = AskOf(request.scope_a(), deadline);
  if (!ask_a.ok()) return ask_a.status();
  const absl::StatusOr<Ask> ask_b = AskOf(request.scope_b(), deadline);
  if (!ask_b.ok()) return ask_b.status();
  const absl::StatusOr<CompareAnswer> answer =
      engine.Compare(request.stream_a(), *ask_a, request.stream_b(), *ask_b, request.threshold());
  if (!answer.ok()) return answer.status();
  ToProto(*answer, response);
  return absl::OkStatus();
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

bool Moved(const v1::HierarchicalHeavyHittersResponse& before,
           const v1::HierarchicalHeavyHittersResponse& now, double min_change) {
  const auto shares = [](const v1::HierarchicalHeavyHittersResponse& answer) {
    std::map<std::pair<std::string, std::uint32_t>, double> found;
    for (const v1::PrefixCount& prefix : answer.prefixes()) {
      found[{prefix.address().SerializeAsString(), prefix.length()}] =
          static_cast<double>(prefix.discounted_low()) / static_cast<double>(answer.n());
    }
    return found;
  };
  const auto from = shares(before), to = shares(now);
  if (from.size() != to.size()) return true;
  return std::any_of(to.begin(), to.end(), [&](const auto& prefix) {
    const auto at = from.find(prefix.first);
    return at == from.end() || std::abs(at->second - prefix.second) > min_change;
  });
}

bool Moved(const v1::SumsResponse& before, const v1::SumsResponse& now, double min_change) {
  if (before.answers_size() != now.answers_size()) return true;
  for (int i = 0; i < now.answers_size(); ++i) {
    const double low = std::abs(now.answers(i).sum_low() - before.answers(i).sum_low());
    const double high = std::abs(now.answers(i).sum_high() - before.answers(i).sum_high());
    if (!(low <= min_change && high <= min_change)) return true;
  }
  return false;
}

}  // namespace tidemark::server
