// Calls that are answered when what they changed is durable.
#ifndef TIDEMARK_SERVER_RPC_DURABLE_H_
#define TIDEMARK_SERVER_RPC_DURABLE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"

namespace tidemark::server {

/// Waits, on a thread of the executor, until the log is durable up to the record `sequence`; OK at
/// once without a log. Errors: UNAVAILABLE if the disk fails, DEADLINE_EXCEEDED, which names
/// `what`. What was changed stays so in both cases, and is durable when the disk recovers.
absl::Status AwaitDurable(Pipeline& pipeline, std::uint64_t sequence,
                          QueryEngine::Deadline deadline, std::string_view what);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_DURABLE_H_
