#include "server/rpc/ingest_service.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "server/rpc/batch_reader.h"
#include "server/rpc/convert.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// Acknowledgements that may wait for a slow reader; beyond it nothing more is read.
constexpr std::size_t kAcknowledgementsMax = 256;

// Counts a call, also as a connection, while it lives.
class ConnectionCount {
 public:
  ConnectionCount(Metrics& metrics, std::atomic<std::uint64_t>& calls)
      : gauge_(metrics.source(Source::kGrpc).connections), calls_(calls) {
    gauge_.Increment();
    calls_.fetch_add(1);
  }
  ~ConnectionCount() {
    gauge_.Decrement();
    calls_.fetch_sub(1);
  }
  ConnectionCount(const ConnectionCount&) = delete;
  ConnectionCount& operator=(const ConnectionCount&) = delete;

 private:
  prometheus::Gauge& gauge_;
  std::atomic<std::uint64_t>& calls_;
};

template <class Message>
absl::Status Parse(grpc::ByteBuffer& bytes, Message& message, Metrics& metrics) {
  if (grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok()) {
    return absl::OkStatus();
  }
  metrics.Refused(Source::kGrpc, "bad_frame").Increment();
  return absl::InvalidArgumentError(
      Concat("a message is not a ", message.GetTypeName(),
             ": its bytes are malformed, or a text in it is not UTF-8"));
}

template <class Message>
grpc::Status Serialize(const Message& message, grpc::ByteBuffer* bytes) {
  bool own = false;
  return grpc::SerializationTraits<Message>::Serialize(message, bytes, &own);
}

// A call that ends at once.
template <class Reactor>
class Refused final : public Reactor {
 public:
  explicit Refused(const absl::Status& status) { this->Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// A server reactor lives until gRPC calls OnDone, which it does only after Finish. While a reactor
// waits for room in the sink it has not finished, so that the callback finds it alive.
class PushReactor final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  PushReactor(IngestSink& sink, Metrics& metrics, const IngestServiceImpl::Clock& clock,
              std::atomic<std::uint64_t>& calls, grpc::ByteBuffer* response)
      : sink_(sink),
        metrics_(metrics),
        clock_(clock),
        reader_(sink, metrics),
        response_(response),
        connection_(metrics, calls) {
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      v1::PushResponse response;
      response.set_batches(batches_);
      response.set_accepted(accepted_);
      response.set_refused(refused_);
      Finish(Serialize(response, response_));
      return;
    }
    if (absl::Status status = Parse(bytes_, request_, metrics_); !status.ok()) {
      Finish(ToGrpc(status));
      return;
    }
    const AppendResult result = reader_.Append(request_.batch(), clock_());
    if (!result.status.ok()) {
      Finish(ToGrpc(result.status));
      return;
    }
    ++batches_;
    accepted_ += result.accepted;
    refused_ += result.refused;
    if (sink_.saturated()) {
      metrics_.source(Source::kGrpc).paused.Increment();
      sink_.WhenReady([this] { StartRead(&bytes_); });
    } else {
      StartRead(&bytes_);
    }
  }

  void OnDone() override { delete this; }

 private:
  IngestSink& sink_;
  Metrics& metrics_;
  const IngestServiceImpl::Clock& clock_;
  BatchReader reader_;
  grpc::ByteBuffer bytes_;
  v1::PushRequest request_;
  grpc::ByteBuffer* const response_;
  const ConnectionCount connection_;
  std::uint64_t batches_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
};

// Reads and writes run side by side: at most one of each, and a bounded queue of acknowledgements
// between them.
class PushAcknowledgedReactor final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  PushAcknowledgedReactor(IngestSink& sink, Metrics& metrics, const IngestServiceImpl::Clock& clock,
                          std::atomic<std::uint64_t>& calls)
      : sink_(sink),
        metrics_(metrics),
        clock_(clock),
        reader_(sink, metrics),
        connection_(metrics, calls) {
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      EndReads(absl::OkStatus());
      return;
    }
    // Without its batch id such a message cannot be acknowledged: those before it are, and then the
    // call ends.
    if (absl::Status status = Parse(bytes_, request_, metrics_); !status.ok()) {
      EndReads(std::move(status));
      return;
    }
    const AppendResult result = reader_.Append(request_.batch(), clock_());
    v1::PushAcknowledgedResponse acknowledgement;
    acknowledgement.set_batch_id(request_.batch_id());
    acknowledgement.set_accepted(result.accepted);
    acknowledgement.set_refused(result.refused);
    acknowledgement.set_code(static_cast<int>(result.status.code()));
    acknowledgement.set_message(std::string(result.status.message()));
    bool read_on = true;
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(acknowledgement));
      WriteNext();
      if (queue_.size() >= kAcknowledgementsMax) {
        waits_for_writes_ = true;
        read_on = false;
      }
    }
    if (read_on) ReadOn();
  }

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
      if (waits_for_writes_ && queue_.size() < kAcknowledgementsMax / 2) {
        waits_for_writes_ = false;
        read_on = true;
      }
      FinishIfIdle();
    }
    if (read_on) ReadOn();
  }

  void OnDone() override { delete this; }

 private:
  void EndReads(absl::Status status) {
    const std::lock_guard lock(mutex_);
    reads_done_ = true;
    status_ = std::move(status);
    FinishIfIdle();
  }
  void ReadOn() {
    if (sink_.saturated()) {
      metrics_.source(Source::kGrpc).paused.Increment();
      sink_.WhenReady([this] { StartRead(&bytes_); });
    } else {
      StartRead(&bytes_);
    }
  }
  // Below: mutex_ held.
  void WriteNext() {
    if (writing_ || queue_.empty()) return;
    // Never fails: the message has only numbers and a text that this process made.
    if (!Serialize(queue_.front(), &writing_bytes_).ok()) return;
    writing_ = true;
    StartWrite(&writing_bytes_);
  }
  void FinishIfIdle() {
    if (reads_done_ && !writing_ && queue_.empty()) Finish(ToGrpc(status_));
  }

  IngestSink& sink_;
  Metrics& metrics_;
  const IngestServiceImpl::Clock& clock_;
  BatchReader reader_;
  grpc::ByteBuffer bytes_;
  v1::PushAcknowledgedRequest request_;
  const ConnectionCount connection_;

  std::mutex mutex_;
  std::deque<v1::PushAcknowledgedResponse> queue_;
  grpc::ByteBuffer writing_bytes_;
  absl::Status status_;  // what the call ends with
  bool writing_ = false;
  bool reads_done_ = false;
  bool waits_for_writes_ = false;
};

}  // namespace

absl::Status IngestServiceImpl::Admit() {
  if (refusing_) return absl::UnavailableError("the server is shutting down");
  if (calls_ < calls_max_) return absl::OkStatus();
  metrics_.source(Source::kGrpc).connections_refused.Increment();
  return absl::ResourceExhaustedError(
      Concat("the limit of ", calls_max_, " ingest calls at a time is reached"));
}

grpc::ServerReadReactor<grpc::ByteBuffer>* IngestServiceImpl::Push(
    grpc::CallbackServerContext* /*context*/, grpc::ByteBuffer* response) {
  if (const absl::Status status = Admit(); !status.ok()) {
    return new Refused<grpc::ServerReadReactor<grpc::ByteBuffer>>(status);
  }
  return new PushReactor(sink_, metrics_, clock_, calls_, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* IngestServiceImpl::PushAcknowledged(
    grpc::CallbackServerContext* /*context*/) {
  if (const absl::Status status = Admit(); !status.ok()) {
    return new Refused<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>(status);
  }
  return new PushAcknowledgedReactor(sink_, metrics_, clock_, calls_);
}

}  // namespace tidemark::server
