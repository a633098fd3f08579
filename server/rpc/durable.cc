#include "server/rpc/durable.h"

#include <grpcpp/alarm.h>

#include <memory>
#include <mutex>
#include <utility>

#include "server/rpc/alarm_time.h"
#include "server/window/call_back.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// Answered by who comes first, the log or the deadline. Lifetime: keeps itself alive until then, so
// that the log, which may hang for long, keeps nothing of a call that has been answered.
struct Waiting {
  explicit Waiting(PostedCalls::Done done_in) : done(std::move(done_in)) {}

  void Answer(const absl::Status& status) {
    std::shared_ptr<Waiting> last;
    PostedCalls::Done told;
    {
      const std::lock_guard lock(mutex);
      told.swap(done);
      last.swap(self);
    }
    if (told) told(status);
  }

  std::mutex mutex;
  PostedCalls::Done done;         // guarded by mutex; empty once it was told
  std::shared_ptr<Waiting> self;  // guarded by mutex; until then
  grpc::Alarm deadline;
};

}  // namespace

PostedCalls::Wait UntilDurable(Pipeline& pipeline, std::uint64_t sequence, std::string what) {
  if (pipeline.log() == nullptr) return {};
  return [&pipeline, sequence, what = std::move(what)](QueryEngine::Deadline deadline,
                                                       PostedCalls::Done done) {
    const auto waiting = std::make_shared<Waiting>(std::move(done));
    waiting->self = waiting;
    // Weak: an alarm keeps its callback after it fired, and this object keeps the alarm.
    waiting->deadline.Set(
        AlarmTime(deadline - std::chrono::steady_clock::now()),
        [weak = std::weak_ptr<Waiting>(waiting), what](bool fired) {
          const std::shared_ptr<Waiting> self = weak.lock();
          if (!fired || !self) return;
          self->Answer(absl::DeadlineExceededError(
              Concat(what, " is changed, and was not durable when the deadline passed")));
        });
    const std::weak_ptr<Waiting> weak = waiting;
    pipeline.WhenDurable(
        sequence,
        DurableOfAsker{weak, [weak, sequence](std::uint64_t durable, const absl::Status& status) {
                         const std::shared_ptr<Waiting> self = weak.lock();
                         if (self) self->Answer(sequence <= durable ? absl::OkStatus() : status);
                       }});
  };
}

PostedCalls::Wait UntilDurable(Pipeline& pipeline, std::string what) {
  StreamLog* const log = pipeline.log();
  if (log == nullptr) return {};
  return UntilDurable(pipeline, log->last_sequence(), std::move(what));
}

PostedCalls::Outcome RefusedOnceDurable(Pipeline& pipeline, absl::Status status, std::string what) {
  if (!absl::IsAlreadyExists(status) && !absl::IsNotFound(status)) return status;
  return {std::move(status), UntilDurable(pipeline, std::move(what))};
}

}  // namespace tidemark::server
