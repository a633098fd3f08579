#include "server/rpc/ingest_calls.h"

#include <utility>
#include <vector>

#include "server/rpc/convert.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

absl::Status IngestCalls::Add(const std::shared_ptr<IngestCall>& call) {
  const std::lock_guard lock(mutex_);
  if (ended_) {
    metrics_.Refused(Source::kGrpc, "shutting_down").Increment();
    return ShuttingDown();
  }
  if (open_.size() >= calls_max_) {
    metrics_.source(Source::kGrpc).connections_refused.Increment();
    return RetryLater(absl::ResourceExhaustedError(
        Concat("the limit of ", calls_max_, " ingest calls at a time is reached")));
  }
  open_.emplace(call.get(), call);
  metrics_.source(Source::kGrpc).connections.Increment();
  return absl::OkStatus();
}

void IngestCalls::Remove(const IngestCall* call) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(call) > 0) metrics_.source(Source::kGrpc).connections.Decrement();
}

void IngestCalls::EndAll() {
  std::vector<std::shared_ptr<IngestCall>> open;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const auto& [key, call] : open_) {
      if (auto one = call.lock()) open.push_back(std::move(one));
    }
  }
  // Without the lock: a call that ends removes itself.
  for (const auto& one : open) one->Stop(ShuttingDown());
}

std::uint64_t IngestCalls::size() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

}  // namespace tidemark::server
