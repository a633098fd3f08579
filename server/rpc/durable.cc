#include "server/rpc/durable.h"

#include <future>
#include <memory>

#include "server/window/concat.h"

namespace tidemark::server {

absl::Status AwaitDurable(Pipeline& pipeline, std::uint64_t sequence,
                          QueryEngine::Deadline deadline, std::string_view what) {
  const auto answer = std::make_shared<std::promise<absl::Status>>();
  pipeline.WhenDurable(sequence,
                       [answer, sequence](std::uint64_t durable, const absl::Status& status) {
                         answer->set_value(sequence <= durable ? absl::OkStatus() : status);
                       });
  std::future<absl::Status> told = answer->get_future();
  if (told.wait_until(deadline) == std::future_status::ready) return told.get();
  return absl::DeadlineExceededError(
      Concat(what, " is changed, and was not durable when the deadline passed"));
}

}  // namespace tidemark::server
