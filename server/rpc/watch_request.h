// What a Watch asks for: the same for one that is open and for one that is kept under a name.
#ifndef TIDEMARK_SERVER_RPC_WATCH_REQUEST_H_
#define TIDEMARK_SERVER_RPC_WATCH_REQUEST_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/query_engine.h"
#include "tidemark/v1/query.pb.h"

namespace tidemark::server {

/// Of one answer, as it is sent. A subscription keeps up to three, and there may be a thousand:
/// less than a one-shot query may have, and still room for 10,000 quantiles of 45 bytes.
inline constexpr std::size_t kWatchBytesMax = std::size_t{512} << 10;

/// The time between two looks. Errors: INVALID_ARGUMENT for what no stream can be asked: no query,
/// a subscription's name, an interval or min_change out of range.
absl::StatusOr<std::chrono::microseconds> CheckWatchRequest(const v1::WatchRequest& request);

/// The stream that it asks. REQUIRES: CheckWatchRequest is OK.
const std::string& WatchedStream(const v1::WatchRequest& request);

/// One answer. REQUIRES: CheckWatchRequest is OK. Errors: the query's, RESOURCE_EXHAUSTED above
/// kWatchBytesMax.
absl::Status AnswerWatch(const QueryEngine& engine, const v1::WatchRequest& request,
                         QueryEngine::Deadline deadline, v1::WatchResponse& response);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_WATCH_REQUEST_H_
