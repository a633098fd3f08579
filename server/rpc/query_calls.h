// One request message in, one response message out: shared by one-shot and continuous queries.
#ifndef TIDEMARK_SERVER_RPC_QUERY_CALLS_H_
#define TIDEMARK_SERVER_RPC_QUERY_CALLS_H_

#include "absl/status/status.h"
#include "server/query/query_engine.h"
#include "tidemark/v1/query.pb.h"

namespace tidemark::server {

/// INVALID_ARGUMENT for more than QueryEngine::kArgumentsMax arguments, as the engine says: so many
/// are not to wait, each of which may take 25 times its bytes once it is parsed.
absl::Status CheckArguments(const v1::QuantilesRequest& request);
absl::Status CheckArguments(const v1::RanksRequest& request);
absl::Status CheckArguments(const v1::HistogramRequest& request);
absl::Status CheckArguments(const v1::CountsRequest& request);
absl::Status CheckArguments(const v1::SumsRequest& request);
/// Of a request that has one of each.
inline absl::Status CheckArguments(const google::protobuf::Message& /*request*/) {
  return absl::OkStatus();
}

absl::Status Answer(const QueryEngine& engine, const v1::QuantilesRequest& request,
                    QueryEngine::Deadline deadline, v1::QuantilesResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::RanksRequest& request,
                    QueryEngine::Deadline deadline, v1::RanksResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::HistogramRequest& request,
                    QueryEngine::Deadline deadline, v1::HistogramResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::HeavyHittersRequest& request,
                    QueryEngine::Deadline deadline, v1::HeavyHittersResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::CountsRequest& request,
                    QueryEngine::Deadline deadline, v1::CountsResponse& response);

absl::Status Answer(const QueryEngine& engine, const v1::HierarchicalHeavyHittersRequest& request,
                    QueryEngine::Deadline deadline, v1::HierarchicalHeavyHittersResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::SumsRequest& request,
                    QueryEngine::Deadline deadline, v1::SumsResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::SpreadRequest& request,
                    QueryEngine::Deadline deadline, v1::SpreadResponse& response);
absl::Status Answer(const QueryEngine& engine, const v1::CompareRequest& request,
                    QueryEngine::Deadline deadline, v1::CompareResponse& response);

/// Whether a continuous answer moved by more than `min_change`: a value of a quantile, or an item's
/// share of n (a prefix's: of its discounted count), or a bound of a sum; and whenever a row came,
/// went, or cannot be compared.
bool Moved(const v1::QuantilesResponse& before, const v1::QuantilesResponse& now,
           double min_change);
bool Moved(const v1::HeavyHittersResponse& before, const v1::HeavyHittersResponse& now,
           double min_change);
bool Moved(const v1::HierarchicalHeavyHittersResponse& before,
           const v1::HierarchicalHeavyHittersResponse& now, double min_change);
bool Moved(const v1::SumsResponse& before, const v1::SumsResponse& now, double min_change);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_QUERY_CALLS_H_
