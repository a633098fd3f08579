// Client::Push and Client::PushAcknowledged: spans cut into packed batches, and the two calls that
// carry them.
#include "client/push.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "client/connection.h"
#include "client/convert.h"

namespace tidemark::client {

static_assert(std::endian::native == std::endian::little,
              "packed values are little-endian, and spans are sent as they lie in memory");

// What both calls are to the cutting of batches: something that takes the next batch.
struct PushCall {
  PushCall(std::shared_ptr<Connection> to, std::string name)
      : connection(std::move(to)), stream(std::move(name)) {}
  virtual ~PushCall() = default;

  /// The batch to fill, its values empty. Every batch names its stream: beside its
  /// values that costs nothing, and a refused first batch then leaves no doubt about the next.
  v1::Batch* Next() {
    v1::Batch* batch = NextBatch();
    batch->set_stream(stream);
    return batch;
  }
  /// Sends the batch that Next gave.
  void Send() {
    if (over) throw *over;
    SendBatch();
  }
  [[noreturn]] void Fail(const Error& error) {
    over = error;
    throw error;
  }
  Error EndedEarly() const {
    return Error(Code::kUnavailable,
                 "the daemon at " + connection->options.server + " ended the push before its end");
  }

  virtual v1::Batch* NextBatch() = 0;
  virtual void SendBatch() = 0;

  /// For the next call. REQUIRES: the one before is finished.
  grpc::ClientContext* NewContext() {
    const std::lock_guard lock(mutex);
    context = std::make_unique<grpc::ClientContext>();
    connection->Show(*context);
    if (cancelled) context->TryCancel();
    return context.get();
  }
  void Cancel() {
    const std::lock_guard lock(mutex);
    cancelled = true;
    if (context) context->TryCancel();
    cancelled_now.notify_all();
  }

  std::shared_ptr<Connection> connection;
  std::string stream;
  std::optional<Error> over;  ///< why the call takes nothing more
  std::mutex mutex;
  std::condition_variable cancelled_now;
  // Guarded by mutex; but that the context is there is known to the thread that made it.
  std::unique_ptr<grpc::ClientContext> context;
  bool cancelled = false;
};

namespace {

// The number of payloads beside `values` values. Throws unless it is none or one for each.
std::size_t CheckPayloads(const Payloads& payloads, std::size_t values) {
  const std::size_t count = std::visit(
      [](const auto& held) -> std::size_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return 0;
        } else {
          return held.size();
        }
      },
      payloads);
  if (payloads.index() != 0 && count != values) {
    throw Error(Code::kInvalidArgument, std::to_string(count) + " weights or y for " +
                                            std::to_string(values) +
                                            " values; expected one for each");
  }
  return count;
}

// Those of `count` values, from the one at `first` on.
void AddPayloads(const Payloads& payloads, std::size_t first, std::size_t count, v1::Batch& batch) {
  if (const auto* weights = std::get_if<std::span<const std::uint64_t>>(&payloads)) {
    const auto part = weights->subspan(first, count);
    batch.mutable_weights()->mutable_values()->Add(part.begin(), part.end());
  } else if (const auto* y = std::get_if<std::span<const double>>(&payloads)) {
    const auto part = y->subspan(first, count);
    batch.mutable_y()->mutable_values()->Add(part.begin(), part.end());
  }
}

void SendPacked(PushCall& call, ValueType type, std::span<const std::byte> values,
                const Payloads& payloads = {}) {
  const std::size_t bytes = PackedBytes(type);
  CheckPayloads(payloads, values.size() / bytes);
  for (std::size_t first = 0; !values.empty(); first += kBatchValues) {
    const auto part = values.first(std::min(kBatchValues * bytes, values.size()));
    v1::Batch* batch = call.Next();
    batch->set_type(static_cast<v1::ValueType>(type));
    batch->mutable_packed()->assign(reinterpret_cast<const char*>(part.data()), part.size());
    AddPayloads(payloads, first, part.size() / bytes, *batch);
    call.Send();
    values = values.subspan(part.size());
  }
}

template <typename String>
void SendStrings(PushCall& call, std::span<const String> items, const Payloads& payloads) {
  CheckPayloads(payloads, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!IsUtf8(items[i])) {
      throw Error(Code::kInvalidArgument,
                  "item " + std::to_string(i) + " of the span is not UTF-8");
    }
  }
  std::size_t i = 0;
  while (i < items.size()) {
    v1::Batch* batch = call.Next();
    batch->set_type(v1::VALUE_TYPE_STRING);
    auto* out = batch->mutable_string()->mutable_values();
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (i < items.size() && count < kBatchValues &&
           (count == 0 || bytes + items[i].size() <= kBatchStringBytes)) {
      out->Add()->assign(items[i].data(), items[i].size());
      bytes += items[i].size();
      ++count;
      ++i;
    }
    AddPayloads(payloads, i - count, count, *batch);
    call.Send();
  }
}

// Plain pushing.
struct PlainCall final : PushCall {
  PlainCall(std::shared_ptr<Connection> to, std::string name)
      : PushCall(std::move(to), std::move(name)),
        writer(connection->ingest->Push(NewContext(), &response)) {}
  ~PlainCall() override {
    if (finished) return;
    context->TryCancel();
    writer->Finish();
  }

  v1::Batch* NextBatch() override {
    request.mutable_batch()->clear_values();
    request.mutable_batch()->clear_payloads();
    return request.mutable_batch();
  }
  void SendBatch() override {
    if (writer->Write(request)) return;
    finished = true;
    const grpc::Status status = writer->Finish();
    Fail(status.ok() ? EndedEarly() : connection->ToError(status));
  }
  PushSummary Finish() {
    if (over) throw *over;
    writer->WritesDone();
    finished = true;
    const grpc::Status status = writer->Finish();
    if (!status.ok()) Fail(connection->ToError(status));
    over = Error(Code::kFailedPrecondition, "the push is finished");
    return {response.batches(), response.accepted(), response.refused()};
  }

  v1::PushRequest request;
  v1::PushResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::PushRequest>> writer;
  bool finished = false;
};

// Acknowledged pushing. One thread does both directions: it reads an acknowledgement only when it
// may send nothing more. That cannot lock up: at most max_unacknowledged short messages wait in the
// other direction, far below a flow-control window.
//
// With retry_for a call may be cut: its batches are kept until they are acknowledged, and sent
// again in their order over the next one. Numbers are those of batch ids and one more: number 1 is
// an empty batch, acknowledged before any other is sent (server/window/producers.h says why).
struct AcknowledgedCall final : PushCall {
  AcknowledgedCall(std::shared_ptr<Connection> to, std::string name, AcknowledgedPushOptions given)
      : PushCall(std::move(to), std::move(name)), options(std::move(given)) {
    if (retries()) {
      producer = RandomId();
      options.max_unacknowledged = std::min(options.max_unacknowledged, kNumbersKept);
    }
    StartCall();
  }
  ~AcknowledgedCall() override {
    if (!io) return;
    context->TryCancel();
    io->Finish();
  }

  bool retries() const { return options.retry_for.count() > 0; }

  v1::Batch* NextBatch() override {
    request.mutable_batch()->clear_values();
    request.mutable_batch()->clear_payloads();
    return request.mutable_batch();
  }
  void SendBatch() override {
    while (sent - summary.batches >= std::max<std::size_t>(options.max_unacknowledged, 1)) {
      ReadOne();
    }
    request.set_batch_id(++sent);
    if (!retries()) {
      if (!io->Write(request)) Broken();
      return;
    }
    request.mutable_batch()->set_producer(producer);
    request.mutable_batch()->set_number(sent + 1);
    unacknowledged.push_back(request);
    if ((!introduced && !Introduce()) || !io->Write(unacknowledged.back())) Broken();
  }
  void ReadOne() {
    // After a cut the acknowledgement comes over another call.
    const std::uint64_t before = summary.batches;
    while (summary.batches == before) {
      if (!ReadIfAny()) Broken();
    }
  }
  // False once the daemon sends no more.
  bool ReadIfAny() {
    v1::PushAcknowledgedResponse response;
    if (!io->Read(&response)) return false;
    if (response.batch_id() != summary.batches + 1) {
      context->TryCancel();
      io->Finish();
      io.reset();
      Fail(Error(Code::kInternal, "acknowledgement of batch " +
                                      std::to_string(response.batch_id()) + " where batch " +
                                      std::to_string(summary.batches + 1) + " was due"));
    }
    const Acknowledgement acknowledgement{response.batch_id(), response.accepted(),
                                          response.refused(),  static_cast<Code>(response.code()),
                                          response.message(),  response.duplicate()};
    if (retries()) {
      if (acknowledgement.code == Code::kUnavailable) {
        cut = Error(acknowledgement.code, acknowledgement.message);
        return false;
      }
      unacknowledged.pop_front();
      failing_since.reset();
    }
    ++summary.batches;
    if (acknowledgement.code == Code::kOk) {
      summary.accepted += acknowledgement.accepted;
      summary.refused += acknowledgement.refused;
      summary.duplicates += acknowledgement.duplicate ? 1 : 0;
    } else {
      ++summary.refused_batches;
      if (!first_refusal) first_refusal = Error(acknowledgement.code, acknowledgement.message);
    }
    if (options.on_acknowledgement) options.on_acknowledgement(acknowledgement);
    return true;
  }
  AcknowledgedPushSummary Flush() {
    if (over) throw *over;
    while (summary.batches < sent) ReadOne();
    if (first_refusal && !options.on_acknowledgement) throw *first_refusal;
    return summary;
  }
  AcknowledgedPushSummary Finish() {
    if (over) throw *over;
    writes_done = true;
    io->WritesDone();
    while (summary.batches < sent) ReadOne();
    const grpc::Status status = io->Finish();
    io.reset();
    // Of a retrying push all is acknowledged: how the call ends changes nothing.
    if (!status.ok() && !retries()) Fail(connection->ToError(status));
    over = Error(Code::kFailedPrecondition, "the push is finished");
    if (first_refusal && !options.on_acknowledgement) throw *first_refusal;
    return summary;
  }

  void StartCall() { io = connection->ingest->PushAcknowledged(NewContext()); }
  // Throws why the call ended, or begins it anew with all that is not acknowledged.
  void Broken() {
    for (;;) {
      const Error why = EndCall();
      if (!retries() || why.code() != Code::kUnavailable) Fail(why);
      WaitToRetry(why);
      ++summary.retries;
      StartCall();
      if (SendAgain()) return;
    }
  }
  Error EndCall() {
    // Acknowledgements that arrived before the end are as good as others; and gRPC's Finish waits
    // for ever while one is unread and the call is not cancelled.
    while (!cut && introduced == retries() && ReadIfAny()) {
    }
    if (cut) context->TryCancel();
    const grpc::Status status = io->Finish();
    io.reset();
    if (cut) return *std::exchange(cut, std::nullopt);
    return status.ok() ? EndedEarly() : connection->ToError(status);
  }
  // Until there is a connection again, or for a pause that gets longer.
  void WaitToRetry(const Error& why) {
    const auto now = std::chrono::steady_clock::now();
    if (!failing_since) {
      failing_since = now;
      pause = kFirstPause;
    }
    if (now - *failing_since >= options.retry_for) {
      Fail(Error(why.code(), std::string(why.what()) + "; gave up after trying for " +
                                 std::to_string(options.retry_for.count()) + " ms"));
    }
    {
      std::unique_lock lock(mutex);
      if (cancelled_now.wait_for(lock, pause, [this] { return cancelled; })) {
        Fail(Error(Code::kCancelled, "the push was cancelled"));
      }
    }
    pause = std::min(2 * pause, kLongestPause);
    connection->channel->WaitForConnected(std::chrono::system_clock::now() + pause);
  }
  // False: cut again.
  bool SendAgain() {
    if (!unacknowledged.empty() && !introduced && !Introduce()) return false;
    for (const v1::PushAcknowledgedRequest& batch : unacknowledged) {
      if (!io->Write(batch)) return false;
    }
    if (writes_done) io->WritesDone();
    return true;
  }
  // Number 1, an empty batch of the same kind as the first one.
  bool Introduce() {
    const v1::Batch& first = unacknowledged.front().batch();
    v1::PushAcknowledgedRequest introduction;
    v1::Batch* batch = introduction.mutable_batch();
    batch->set_stream(first.stream());
    batch->set_type(first.type());
    batch->set_producer(producer);
    batch->set_number(1);
    if (first.has_string()) {
      batch->mutable_string();
    } else {
      batch->set_packed("");
    }
    if (first.has_weights()) batch->mutable_weights();
    if (first.has_y()) batch->mutable_y();
    v1::PushAcknowledgedResponse response;
    if (!io->Write(introduction) || !io->Read(&response)) return false;
    if (response.code() != 0) {
      cut = Error(static_cast<Code>(response.code()), response.message());
      return false;
    }
    introduced = true;
    failing_since.reset();
    return true;
  }
  static std::string RandomId() {
    std::random_device device;
    std::string id;
    while (id.size() < kProducerIdBytes) id.push_back(static_cast<char>(device()));
    if (id.front() == 0) id.front() = 1;  // not all of them 0
    return id;
  }

  // What the daemon keeps of a producer's numbers.
  static constexpr std::size_t kNumbersKept = 64;
  static constexpr std::size_t kProducerIdBytes = 16;
  // The first is shorter than any restart; the longest, than anybody's patience.
  static constexpr std::chrono::milliseconds kFirstPause{20};
  static constexpr std::chrono::milliseconds kLongestPause{1'000};

  AcknowledgedPushOptions options;
  v1::PushAcknowledgedRequest request;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse>>
      io;  // null: finished
  std::uint64_t sent = 0;
  AcknowledgedPushSummary summary;
  std::optional<Error> first_refusal;
  bool writes_done = false;

  // With retry_for.
  std::string producer;
  bool introduced = false;
  std::deque<v1::PushAcknowledgedRequest> unacknowledged;
  std::optional<Error> cut;  // why the call is of no use, though it goes on
  std::optional<std::chrono::steady_clock::time_point> failing_since;
  std::chrono::milliseconds pause{0};
};

}  // namespace

BatchWriter::BatchWriter(std::unique_ptr<PushCall> call) : call_(std::move(call)) {}
BatchWriter::~BatchWriter() = default;

void BatchWriter::Write(std::span<const double> values) {
  SendPacked(*call_, ValueType::kFloat64, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const float> values) {
  SendPacked(*call_, ValueType::kFloat32, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const std::int64_t> values) {
  SendPacked(*call_, ValueType::kInt64, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const std::uint64_t> values) {
  SendPacked(*call_, ValueType::kUint64, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const std::uint32_t> values) {
  SendPacked(*call_, ValueType::kUint32, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const Ipv4> values) {
  SendPacked(*call_, ValueType::kIpv4, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const Ipv6> values) {
  SendPacked(*call_, ValueType::kIpv6, std::as_bytes(values));
}
void BatchWriter::Write(std::span<const std::string_view> items, Payloads payloads) {
  SendStrings(*call_, items, payloads);
}
void BatchWriter::Write(std::span<const std::string> items, Payloads payloads) {
  SendStrings(*call_, items, payloads);
}

void BatchWriter::WritePacked(ValueType type, std::span<const std::byte> values,
                              Payloads payloads) {
  const std::size_t bytes = PackedBytes(type);
  if (bytes == 0) {
    throw Error(Code::kInvalidArgument,
                "values of type " + std::string(TypeName(type)) + " have no packed form");
  }
  if (values.size() % bytes != 0) {
    throw Error(Code::kInvalidArgument, std::to_string(values.size()) +
                                            " bytes are no multiple of " + std::to_string(bytes) +
                                            ", the size of a " + std::string(TypeName(type)));
  }
  SendPacked(*call_, type, values, payloads);
}

void BatchWriter::Cancel() { call_->Cancel(); }

Pusher::Pusher(std::unique_ptr<PushCall> call) : BatchWriter(std::move(call)) {}
PushSummary Pusher::Finish() { return static_cast<PlainCall&>(*call_).Finish(); }

AcknowledgedPusher::AcknowledgedPusher(std::unique_ptr<PushCall> call)
    : BatchWriter(std::move(call)) {}
AcknowledgedPushSummary AcknowledgedPusher::Flush() {
  return static_cast<AcknowledgedCall&>(*call_).Flush();
}
AcknowledgedPushSummary AcknowledgedPusher::Finish() {
  return static_cast<AcknowledgedCall&>(*call_).Finish();
}

Pusher Client::Push(const std::string& stream) {
  return Pusher(std::make_unique<PlainCall>(connection_, RequireUtf8("stream name", stream)));
}

AcknowledgedPusher Client::PushAcknowledged(const std::string& stream,
                                            AcknowledgedPushOptions options) {
  return AcknowledgedPusher(std::make_unique<AcknowledgedCall>(
      connection_, RequireUtf8("stream name", stream), std::move(options)));
}

}  // namespace tidemark::client
