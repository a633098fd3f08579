#include "server/rpc/watch_request.h"

#include "server/rpc/message_bytes.h"
#include "server/rpc/query_calls.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

constexpr auto kShortestInterval = std::chrono::milliseconds(10);
constexpr auto kDefaultInterval = std::chrono::seconds(1);
// Beyond a day an interval only risks overflow.
constexpr std::int64_t kLongestSeconds = 86'400;

}  // namespace

absl::StatusOr<std::chrono::microseconds> CheckWatchRequest(const v1::WatchRequest& request) {
  if (request.query_case() == v1::WatchRequest::QUERY_NOT_SET) {
    return absl::InvalidArgumentError(
        "a subscription needs quantiles, heavy_hitters, hierarchical_heavy_hitters or sums");
  }
  if (request.query_case() == v1::WatchRequest::kSubscription) {
    return absl::InvalidArgumentError("a subscription is of a query, not of another subscription");
  }
  for (const absl::Status& status :
       {CheckArguments(request.quantiles()), CheckArguments(request.sums())}) {
    if (!status.ok()) return status;
  }
  std::chrono::microseconds interval = kDefaultInterval;
  if (request.has_interval()) {
    const auto& asked = request.interval();
    if (asked.seconds() < 0 || asked.seconds() > kLongestSeconds || asked.nanos() < 0) {
      return absl::InvalidArgumentError(Concat("interval ", asked.seconds(),
                                               " s is out of range; expected 0.01 to ",
                                               kLongestSeconds, " s"));
    }
    interval =
        std::chrono::seconds(asked.seconds()) + std::chrono::microseconds(asked.nanos() / 1000);
    if (interval < kShortestInterval) {
      return absl::InvalidArgumentError(
          Concat("interval ", interval.count(), " us is too short; expected at least 10 ms"));
    }
  }
  if (request.has_min_change() && !(request.min_change() >= 0)) {
    return absl::InvalidArgumentError(
        Concat("min_change ", request.min_change(), " is not a number of 0 or more"));
  }
  return interval;
}

const std::string& WatchedStream(const v1::WatchRequest& request) {
  switch (request.query_case()) {
    case v1::WatchRequest::kHeavyHitters:
      return request.heavy_hitters().stream();
    case v1::WatchRequest::kHierarchicalHeavyHitters:
      return request.hierarchical_heavy_hitters().stream();
    case v1::WatchRequest::kSums:
      return request.sums().stream();
    default:
      return request.quantiles().stream();
  }
}

absl::Status AnswerWatch(const QueryEngine& engine, const v1::WatchRequest& request,
                         QueryEngine::Deadline deadline, v1::WatchResponse& response) {
  absl::Status status;
  switch (request.query_case()) {
    case v1::WatchRequest::kQuantiles:
      status = Answer(engine, request.quantiles(), deadline, *response.mutable_quantiles());
      break;
    case v1::WatchRequest::kHeavyHitters:
      status = Answer(engine, request.heavy_hitters(), deadline, *response.mutable_heavy_hitters());
      break;
    case v1::WatchRequest::kHierarchicalHeavyHitters:
      status = Answer(engine, request.hierarchical_heavy_hitters(), deadline,
                      *response.mutable_hierarchical_heavy_hitters());
      break;
    case v1::WatchRequest::kSums:
      status = Answer(engine, request.sums(), deadline, *response.mutable_sums());
      break;
    case v1::WatchRequest::kSubscription:
    case v1::WatchRequest::QUERY_NOT_SET:
      break;  // refused before
  }
  return status.ok() ? CheckAnswerBytes(response, kWatchBytesMax) : status;
}

}  // namespace tidemark::server
