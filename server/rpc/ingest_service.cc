#include "server/rpc/ingest_service.h"

#include <deque>
#include <mutex>
#include <utility>

#include "server/rpc/batch_reader.h"
#include "server/rpc/convert.h"

namespace tidemark::server {
namespace {

// Acknowledgements that may wait for a slow reader; beyond it nothing more is read.
constexpr std::size_t kAcknowledgementsMax = 256;

// Counts a call as a connection while it lives.
class ConnectionCount {
 public:
  explicit ConnectionCount(Metrics& metrics) : gauge_(metrics.source(Source::kGrpc).connections) {
    gauge_.Increment();
  }
  ~ConnectionCount() { gauge_.Decrement(); }
  ConnectionCount(const ConnectionCount&) = delete;
  ConnectionCount& operator=(const ConnectionCount&) = delete;

 private:
  prometheus::Gauge& gauge_;
};

// A server reactor lives until gRPC calls OnDone, which it does only after Finish. While a reactor
// waits for room in the sink it has not finished, so that the callback finds it alive.
class PushReactor final : public grpc::ServerReadReactor<v1::PushRequest> {
 public:
  PushReactor(IngestSink& sink, Metrics& metrics, const IngestServiceImpl::Clock& clock,
              v1::PushResponse* response)
      : sink_(sink),
        metrics_(metrics),
        clock_(clock),
        reader_(sink, metrics),
        response_(response),
        connection_(metrics) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      response_->set_batches(batches_);
      response_->set_accepted(accepted_);
      response_->set_refused(refused_);
      Finish(grpc::Status::OK);
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
      sink_.WhenReady([this] { StartRead(&request_); });
    } else {
      StartRead(&request_);
    }
  }

  void OnDone() override { delete this; }

 private:
  IngestSink& sink_;
  Metrics& metrics_;
  const IngestServiceImpl::Clock& clock_;
  BatchReader reader_;
  v1::PushRequest request_;
  v1::PushResponse* const response_;
  const ConnectionCount connection_;
  std::uint64_t batches_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
};

// Reads and writes run side by side: at most one of each, and a bounded queue of acknowledgements
// between them.
class PushAcknowledgedReactor final
    : public grpc::ServerBidiReactor<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse> {
 public:
  PushAcknowledgedReactor(IngestSink& sink, Metrics& metrics, const IngestServiceImpl::Clock& clock)
      : sink_(sink),
        metrics_(metrics),
        clock_(clock),
        reader_(sink, metrics),
        connection_(metrics) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      const std::lock_guard lock(mutex_);
      reads_done_ = true;
      FinishIfIdle();
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
  void ReadOn() {
    if (sink_.saturated()) {
      metrics_.source(Source::kGrpc).paused.Increment();
      sink_.WhenReady([this] { StartRead(&request_); });
    } else {
      StartRead(&request_);
    }
  }
  // Below: mutex_ held.
  void WriteNext() {
    if (writing_ || queue_.empty()) return;
    writing_ = true;
    StartWrite(&queue_.front());
  }
  void FinishIfIdle() {
    if (reads_done_ && !writing_ && queue_.empty()) Finish(grpc::Status::OK);
  }

  IngestSink& sink_;
  Metrics& metrics_;
  const IngestServiceImpl::Clock& clock_;
  BatchReader reader_;
  v1::PushAcknowledgedRequest request_;
  const ConnectionCount connection_;

  std::mutex mutex_;
  std::deque<v1::PushAcknowledgedResponse> queue_;
  bool writing_ = false;
  bool reads_done_ = false;
  bool waits_for_writes_ = false;
};

}  // namespace

grpc::ServerReadReactor<v1::PushRequest>* IngestServiceImpl::Push(
    grpc::CallbackServerContext* /*context*/, v1::PushResponse* response) {
  return new PushReactor(sink_, metrics_, clock_, response);
}

grpc::ServerBidiReactor<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse>*
IngestServiceImpl::PushAcknowledged(grpc::CallbackServerContext* /*context*/) {
  return new PushAcknowledgedReactor(sink_, metrics_, clock_);
}

}  // namespace tidemark::server
