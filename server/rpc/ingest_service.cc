#include "server/rpc/ingest_service.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/rpc/access_rules.h"
#include "server/rpc/batch_reader.h"
#include "server/rpc/convert.h"
#include "server/rpc/message_bytes.h"
#include "server/window/call_back.h"
#include "server/window/concat.h"
#include "server/window/refusal.h"

namespace tidemark::server {
namespace {

// Acknowledgements that may wait for a slow reader; beyond it nothing more is read.
constexpr std::size_t kAcknowledgementsMax = 256;
// A parsed message that takes more is not kept for the next one.
constexpr std::size_t kParsedBytesKept = std::size_t{1} << 20;
// Counts and short texts of this process's own making.
constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

// A call that ends at once.
template <class Reactor>
class Refused final : public Reactor {
 public:
  explicit Refused(const absl::Status& status) { this->Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

absl::Status Cancelled() { return absl::CancelledError("the call was cancelled"); }

struct Environment {
  const grpc::CallbackServerContext& context;
  IngestSink& sink;
  Metrics& metrics;
  const IngestLimits& limits;
  const IngestServiceImpl::Clock& clock;
  IngestCalls& calls;
  Caller caller;
};

// The reading side of both calls: one message at a time, none while the sink is saturated.
//
// Lifetime: keeps itself alive until OnDone, which gRPC calls after Finish; whoever resumes it
// later finds it gone. Thread: gRPC's callbacks, Stop and Resume come from any; mutex_ orders them.
// Only the thread that set kBusy touches what TakeIn uses.
template <class Reactor, class Request>
class ReadingReactor : public Reactor, public IngestCall {
 public:
  // Adds a new reactor to the calls and begins to read, or refuses the call.
  template <class Derived, class... Arguments>
  static Reactor* Begin(const Environment& environment, PeerShare place, Arguments... arguments) {
    const auto reactor = std::make_shared<Derived>(environment, arguments...);
    reactor->place_ = std::move(place);
    if (const absl::Status status = environment.calls.Add(reactor); !status.ok()) {
      return new Refused<Reactor>(status);
    }
    reactor->self_ = reactor;
    reactor->weak_ = reactor;
    reactor->Resume();
    return reactor.get();
  }

  void Stop(const absl::Status& status) final {
    const std::lock_guard lock(mutex_);
    if (reads_ == Reads::kBusy) {
      stopped_ = status;  // after the batch that is being taken in
    } else if (reads_ != Reads::kOver) {
      End(status);
    }
  }

  void OnReadDone(bool ok) final {
    {
      const std::lock_guard lock(mutex_);
      // What came after Stop is not taken in, and so not acknowledged.
      if (reads_ == Reads::kOver) return;
      reads_ = Reads::kBusy;
    }
    const absl::Status status = ok ? TakeMessage() : absl::OkStatus();
    {
      const std::lock_guard lock(mutex_);
      if (!ok || !status.ok()) {
        End(status);
        return;
      }
      if (!stopped_ && MustWait()) {
        metrics().source(Source::kGrpc).paused.Increment();
        reads_ = Reads::kWaiting;
        return;
      }
    }
    ReadOn();
  }

  // Once, at a cancel or the caller's deadline. What is being read or taken in goes on to its end;
  // nothing else does, nor does the call wait for anybody: it is a call of its peer until it ends.
  void OnCancel() final {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (reads_ == Reads::kWaiting) {
      End(Cancelled());
    } else if (reads_ == Reads::kOver) {
      FinishIfAnswered();
    } else if (!stopped_) {
      stopped_ = Cancelled();
    }
  }

  void OnDone() final {
    // Cancelled, cut, or with a message that gRPC itself finds too large: it does not say which.
    if (environment_.context.IsCancelled()) metrics().Refused(Source::kGrpc, "cut").Increment();
    environment_.calls.Remove(this);
    self_.reset();
  }

 protected:
  explicit ReadingReactor(const Environment& environment)
      : environment_(environment),
        reader_(environment.sink, environment.metrics, environment.limits.batch_bytes_max,
                environment.caller) {}

  // Takes the batch in. A status that is not OK ends the call.
  virtual absl::Status TakeIn(const Request& request) = 0;
  // Sees to it that OnLog is called when the log is durable up to `sequence`, or fails. One
  // question at a time, however many batches wait.
  void WaitForLog(std::uint64_t sequence) {
    if (sequence == 0) return;
    {
      const std::lock_guard lock(mutex_);
      log_wanted_ = std::max(log_wanted_, sequence);
      if (log_asked_) return;
      log_asked_ = true;
    }
    AskLog(sequence);
  }

  // mutex_ held, in all below. All up to `durable` is; status not OK: what is behind is in doubt.
  virtual void OnLog(std::uint64_t durable, const absl::Status& status) = 0;
  // Whether nothing may be read until ReadOnAfterWait.
  virtual bool MustWait() { return false; }
  // Nothing is read any more: the call ends with `status`, at once or when its answers have left.
  virtual void ReadsAreOver(const absl::Status& status) = 0;
  // Finishes the call, once, if its reads are over and nobody waits for an answer that is due.
  virtual void FinishIfAnswered() = 0;

  // Nobody waits for answers any more.
  bool cancelled() const { return cancelled_; }

  bool waiting() const { return reads_ == Reads::kWaiting; }
  void StopWaiting() { reads_ = Reads::kBusy; }

  // Without mutex_, kBusy.
  void ReadOn() {
    if (!sink().saturated()) {
      Resume();
      return;
    }
    metrics().source(Source::kGrpc).paused.Increment();
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) {
        End(*stopped_);
        return;
      }
      reads_ = Reads::kWaiting;
    }
    sink().WhenReady(OfAsker<>{weak_, [weak = weak_] {
                                 if (const auto self = weak.lock()) self->Resume();
                               }});
  }

  IngestSink& sink() { return environment_.sink; }
  Metrics& metrics() { return environment_.metrics; }

  const Environment environment_;
  BatchReader reader_;
  std::mutex mutex_;

 private:
  enum class Reads {
    kBusy,     // a batch is being taken in
    kReading,  // gRPC reads
    kWaiting,  // for room in the sink or for a slow reader of acknowledgements
    kOver,
  };

  absl::Status TakeMessage() {
    const std::uint64_t most =
        environment_.limits.batch_bytes_max + IngestServiceImpl::kMessageOverheadBytes;
    if (bytes_.Length() <= most) {
      absl::Status status = ParseMessage(bytes_, request_);
      // A call that waits holds nothing of what it has taken in, but a little for the next message:
      // small items take up to 25 times their bytes once they are parsed.
      bytes_.Clear();
      if (status.ok()) {
        status = TakeIn(request_);
      } else {
        // Without its batch id such a message cannot be acknowledged: those before it are, and then
        // the call ends.
        metrics().Refused(Source::kGrpc, ReasonOf(status, Attempt::kBatch)).Increment();
      }
      if (request_.SpaceUsedLong() > kParsedBytesKept) Request().Swap(&request_);
      return status;
    }
    metrics().Refused(Source::kGrpc, "frame_too_large").Increment();
    return absl::ResourceExhaustedError(
        Concat("a message of ", bytes_.Length(), " bytes is too large; expected at most ",
               environment_.limits.batch_bytes_max, " bytes of values"));
  }

  void AskLog(std::uint64_t sequence) {
    sink().WhenDurable(sequence, DurableOfAsker{weak_, [weak = weak_](std::uint64_t durable,
                                                                      const absl::Status& status) {
                                                  if (const auto self = weak.lock())
                                                    self->LogAnswered(durable, status);
                                                }});
  }
  void LogAnswered(std::uint64_t durable, const absl::Status& status) {
    std::uint64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      log_asked_ = false;
      OnLog(durable, status);
      if (!status.ok() || log_wanted_ <= durable) {
        log_wanted_ = 0;
        return;
      }
      log_asked_ = true;
      next = log_wanted_;
    }
    AskLog(next);
  }

  void Resume() {
    const std::lock_guard lock(mutex_);
    if (reads_ == Reads::kOver) return;
    if (stopped_) {
      End(*stopped_);
      return;
    }
    reads_ = Reads::kReading;
    this->StartRead(&bytes_);
  }

  // mutex_ held.
  void End(const absl::Status& status) {
    reads_ = Reads::kOver;
    ReadsAreOver(stopped_ && status.ok() ? *stopped_ : status);
  }

  PeerShare place_;                       // one call
  std::shared_ptr<ReadingReactor> self_;  // until OnDone
  std::weak_ptr<ReadingReactor> weak_;    // for log and sink, which may answer after OnDone
  std::uint64_t log_wanted_ = 0;          // up to where the log must be; guarded by mutex_
  bool log_asked_ = false;                // and has not answered; guarded by mutex_
  grpc::ByteBuffer bytes_;
  Request request_;  // what bytes_ were
  Reads reads_ = Reads::kBusy;
  std::optional<absl::Status> stopped_;  // Stop or OnCancel came while a batch was being taken in
  bool cancelled_ = false;               // guarded by mutex_
};

class PushReactor final
    : public ReadingReactor<grpc::ServerReadReactor<grpc::ByteBuffer>, v1::PushRequest> {
 public:
  PushReactor(const Environment& environment, grpc::ByteBuffer* response)
      : ReadingReactor(environment), response_(response) {}

 private:
  absl::Status TakeIn(const v1::PushRequest& request) override {
    AppendResult result = reader_.Append(request.batch(), environment_.clock());
    if (!result.status.ok()) return std::move(result.status);
    total_.set_batches(total_.batches() + 1);
    total_.set_accepted(total_.accepted() + result.accepted);
    total_.set_refused(total_.refused() + result.refused);
    if (result.duplicate) total_.set_duplicates(total_.duplicates() + 1);
    {
      const std::lock_guard lock(mutex_);
      last_sequence_ = std::max(last_sequence_, result.log_sequence);
    }
    WaitForLog(result.log_sequence);
    return absl::OkStatus();
  }

  void ReadsAreOver(const absl::Status& status) override {
    ended_ = status;
    FinishIfAnswered();
  }

  void OnLog(std::uint64_t durable, const absl::Status& status) override {
    durable_ = durable;
    doubt_ = status;
    FinishIfAnswered();
  }

  // The answer acknowledges all batches of the call.
  void FinishIfAnswered() override {
    if (!ended_) return;
    if (last_sequence_ <= durable_) {
      FinishWith(*std::exchange(ended_, std::nullopt));
    } else if (cancelled()) {
      ended_.reset();
      Finish(ToGrpc(Cancelled()));
    } else if (!doubt_.ok()) {
      ended_.reset();
      metrics()
          .Refused(Source::kGrpc, "log_unavailable")
          .Increment(static_cast<double>(total_.accepted()));
      FinishWith(absl::UnavailableError(
          Concat(std::string(doubt_.message()), "; not all of this call is durable")));
    }
  }

  void FinishWith(const absl::Status& status) {
    if (status.ok()) {
      Finish(ToGrpc(SerializeMessage(total_, kAnyBytes, *response_)));
    } else if (absl::IsUnavailable(status)) {
      // Without an answer the sender could not know.
      Finish(ToGrpc(absl::UnavailableError(
          Concat(std::string(status.message()), "; ", total_.batches(), " batches with ",
                 total_.accepted(), " values of this call were taken in"))));
    } else {
      Finish(ToGrpc(status));
    }
  }

  v1::PushResponse total_;
  grpc::ByteBuffer* const response_;
  // All below: guarded by mutex_.
  std::uint64_t last_sequence_ = 0;  // what the answer waits for
  std::uint64_t durable_ = 0;
  absl::Status doubt_;                 // what the log said last
  std::optional<absl::Status> ended_;  // nothing is read any more
};

// Reads and writes run side by side: at most one of each, and a bounded queue of acknowledgements
// between them.
class PushAcknowledgedReactor final
    : public ReadingReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                            v1::PushAcknowledgedRequest> {
 public:
  explicit PushAcknowledgedReactor(const Environment& environment) : ReadingReactor(environment) {}

  void OnWriteDone(bool ok) override {
    bool read_on = false;
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (ok) {
        queue_.pop_front();
        WriteNext();
      } else {
        // The peer is gone; the read that is under way, or the next one, ends the call.
        queue_.clear();
      }
      if (waits_for_writes_ && waiting() && queue_.size() < kAcknowledgementsMax / 2) {
        waits_for_writes_ = false;
        StopWaiting();
        read_on = true;
      }
      FinishIfAnswered();
    }
    if (read_on) ReadOn();
  }

 private:
  absl::Status TakeIn(const v1::PushAcknowledgedRequest& request) override {
    const AppendResult result = reader_.Append(request.batch(), environment_.clock());
    v1::PushAcknowledgedResponse acknowledgement;
    acknowledgement.set_batch_id(request.batch_id());
    acknowledgement.set_accepted(result.accepted);
    acknowledgement.set_refused(result.refused);
    acknowledgement.set_duplicate(result.duplicate);
    acknowledgement.set_code(static_cast<int>(result.status.code()));
    acknowledgement.set_message(std::string(result.status.message()));
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({result.log_sequence, std::move(acknowledgement)});
      WriteNext();
    }
    WaitForLog(result.log_sequence);
    return absl::OkStatus();
  }

  void OnLog(std::uint64_t durable, const absl::Status& status) override {
    durable_ = durable;
    for (Queued& queued : queue_) {
      if (status.ok() || queued.sequence <= durable) continue;
      metrics()
          .Refused(Source::kGrpc, "log_unavailable")
          .Increment(static_cast<double>(queued.acknowledgement.accepted()));
      queued.sequence = 0;
      queued.acknowledgement.set_accepted(0);
      queued.acknowledgement.set_refused(0);
      queued.acknowledgement.set_code(static_cast<int>(status.code()));
      queued.acknowledgement.set_message(
          Concat("taken in and not durable: ", std::string(status.message())));
    }
    WriteNext();
    FinishIfAnswered();
  }

  bool MustWait() override {
    waits_for_writes_ = queue_.size() >= kAcknowledgementsMax;
    return waits_for_writes_;
  }

  void ReadsAreOver(const absl::Status& status) override {
    ended_ = status;
    FinishIfAnswered();
  }

  // Below: mutex_ held.
  void WriteNext() {
    if (writing_ || queue_.empty() || queue_.front().sequence > durable_) return;
    // Never fails: the message has only numbers and a text that this process made.
    if (!SerializeMessage(queue_.front().acknowledgement, kAnyBytes, writing_bytes_).ok()) return;
    writing_ = true;
    StartWrite(&writing_bytes_);
  }
  // A write that is under way ends first: OnWriteDone asks again.
  void FinishIfAnswered() override {
    if (!ended_ || writing_) return;
    if (cancelled()) queue_.clear();
    if (!queue_.empty()) return;
    Finish(ToGrpc(*std::exchange(ended_, std::nullopt)));
  }

  // Waits, in its turn, until the log is durable up to `sequence`.
  struct Queued {
    std::uint64_t sequence;
    v1::PushAcknowledgedResponse acknowledgement;
  };

  // All below: guarded by mutex_.
  std::deque<Queued> queue_;
  std::uint64_t durable_ = 0;  // as the log said last
  grpc::ByteBuffer writing_bytes_;
  std::optional<absl::Status> ended_;  // nothing is read any more; what the call ends with
  bool writing_ = false;
  bool waits_for_writes_ = false;
};

// Whether the caller may make this call at all, and its peer one more.
absl::Status MayBegin(Caller& caller, const google::protobuf::Descriptor& request,
                      PeerShare& place) {
  absl::Status status = MayCall(caller, request);
  if (!status.ok()) return status;
  status = caller.Hold(PeerResource::kCalls, 1, place);
  return status.ok() ? status : RetryLater(status);
}

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* IngestServiceImpl::Push(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  Caller caller = CallerOf(guard_, *context);
  PeerShare place;
  if (const absl::Status status = MayBegin(caller, *v1::PushRequest::descriptor(), place);
      !status.ok()) {
    return new Refused<grpc::ServerReadReactor<grpc::ByteBuffer>>(status);
  }
  return PushReactor::Begin<PushReactor>(
      {*context, sink_, metrics_, limits_, clock_, calls_, std::move(caller)}, std::move(place),
      response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* IngestServiceImpl::PushAcknowledged(
    grpc::CallbackServerContext* context) {
  Caller caller = CallerOf(guard_, *context);
  PeerShare place;
  if (const absl::Status status =
          MayBegin(caller, *v1::PushAcknowledgedRequest::descriptor(), place);
      !status.ok()) {
    return new Refused<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>(status);
  }
  return PushAcknowledgedReactor::Begin<PushAcknowledgedReactor>(
      {*context, sink_, metrics_, limits_, clock_, calls_, std::move(caller)}, std::move(place));
}

}  // namespace tidemark::server
