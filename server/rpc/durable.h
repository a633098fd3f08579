// Calls that are answered when what they changed is durable.
#ifndef TIDEMARK_SERVER_RPC_DURABLE_H_
#define TIDEMARK_SERVER_RPC_DURABLE_H_

#include <cstdint>
#include <string>

#include "server/pipeline/pipeline.h"
#include "server/rpc/posted_calls.h"

namespace tidemark::server {

/// Until the log is durable up to the record `sequence`; not at all without a log. No thread waits:
/// the log's goes on with the call, or gRPC's at the deadline. Errors: UNAVAILABLE if the disk
/// fails, DEADLINE_EXCEEDED, which names `what`. What was changed stays so in both cases, and is
/// durable when the disk recovers. Lifetime: the pipeline outlives it.
PostedCalls::Wait UntilDurable(Pipeline& pipeline, std::uint64_t sequence, std::string what);
/// Up to the last record that there is now.
PostedCalls::Wait UntilDurable(Pipeline& pipeline, std::string what);

/// For a change that was refused. ALREADY_EXISTS and NOT_FOUND speak of an earlier change, perhaps
/// the same caller's, who was told nothing of it and asks again: they wait until that is durable,
/// or a loss of power undoes what the caller relies on.
PostedCalls::Outcome RefusedOnceDurable(Pipeline& pipeline, absl::Status status, std::string what);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_DURABLE_H_
