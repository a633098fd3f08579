#include "server/ingest/tcp_server.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/ingest/connection.h"
#include "server/ingest/stream_server.h"
#include "server/window/call_back.h"
#include "server/window/refusal.h"
#include "wire/token.h"

namespace tidemark::server {
namespace {

// The numbers of google.rpc.Code and of absl::StatusCode are the same; so are those of the types.
static_assert(static_cast<int>(absl::StatusCode::kUnavailable) == 14);
static_assert(static_cast<int>(ValueType::kFloat64) == static_cast<int>(wire::WireType::kFloat64));
static_assert(static_cast<int>(ValueType::kIpv6) == static_cast<int>(wire::WireType::kIpv6));
constexpr std::uint8_t kTypeNumberMax = static_cast<std::uint8_t>(wire::WireType::kIpv6);

static_assert(static_cast<int>(PayloadType::kY) == static_cast<int>(wire::WirePayload::kY));
static_assert(kPayloadBytes == wire::kPayloadBytes);

ElementType FromWire(wire::WireElement type) {
  return {static_cast<ValueType>(type.value), static_cast<PayloadType>(type.payload)};
}
wire::WireElement ToWire(ElementType type) {
  return {static_cast<wire::WireType>(type.value), static_cast<wire::WirePayload>(type.payload)};
}

// Views of a string batch that are kept for the next one: 16 bytes each.
constexpr std::size_t kItemsKept = 65'536;

// What a handle costs, its place in the table with it; a denied one's reason is not counted. The
// first of each connection are free, and others are counted by so many.
constexpr std::size_t kHandleBytes = 128;
constexpr std::size_t kHandlesFree = 32;
constexpr std::size_t kHandlesStep = 128;
static_assert(kHandlesStep >= kHandlesFree);

class FramedConnection final : public Connection {
 public:
  FramedConnection(boost::asio::ip::tcp::socket socket, ConnectionContext& shared,
                   const TcpServerOptions& options, Metrics& metrics, LimitedLog& log)
      : Connection(std::move(socket), shared),
        options_(options),
        metrics_(metrics),
        log_(log),
        decoder_(options.frame_bytes_max) {}

 private:
  struct OpenStream {
    StreamHandle stream;
    ElementType type = ValueType::kFloat64;
    absl::Status access = {};  // what the rules said last
  };
  // An acknowledgement that waits until the log is durable up to `sequence`.
  struct Held {
    std::uint64_t sequence;
    std::uint64_t batch_id;
    std::uint64_t accepted;
    std::uint64_t refused;
    std::uint32_t handle;
    std::string behind;  // answers of what came next, which wait for nothing themselves
  };

  Parsed Parse(std::span<const std::byte> bytes, std::size_t& consumed,
               std::size_t& needed) override {
    Parsed parsed = Parsed::kNeedMore;
    if (!may_ingest_ && !Admit(bytes, consumed, needed, parsed)) return parsed;
    wire::ClientFrame frame;
    if (const std::uint64_t version = caller().Version(); version != access_version_) {
      access_version_ = version;
      AskForAll();
    }
    for (;;) {
      if (MustPause()) {
        parsed = Parsed::kPaused;
        break;
      }
      std::size_t used = 0;
      const wire::DecodeResult result = decoder_.Next(bytes.subspan(consumed), frame, used, needed);
      consumed += used;
      if (result == wire::DecodeResult::kNeedMore) break;
      if (result == wire::DecodeResult::kError) {
        OnBadFrame(decoder_.error());
        parsed = Parsed::kClose;
        break;
      }
      if (frame.type == wire::FrameType::kOpen) {
        OnOpen(frame);
      } else if (frame.type == wire::FrameType::kProducer) {
        producer_ = ProducerId(frame.producer());
      } else {
        OnBatch(frame);
      }
    }
    // Once a read, not once a batch: the counters are shared by all connections.
    if (batches_ > 0) context().metrics.batches.Increment(static_cast<double>(batches_));
    if (values_ > 0) context().metrics.values.Increment(static_cast<double>(values_));
    if (nan_ > 0) Refuse("nan", nan_);
    if (duplicates_ > 0) context().metrics.duplicates.Increment(static_cast<double>(duplicates_));
    batches_ = values_ = nan_ = duplicates_ = 0;
    WaitForLog();
    return parsed;
  }

  // Who the peer is, by the first bytes. False: not yet, or not at all; `parsed` says which.
  bool Admit(std::span<const std::byte> bytes, std::size_t& consumed, std::size_t& needed,
             Parsed& parsed) {
    const wire::TokenPreamble shown = wire::DecodeToken(bytes);
    if (shown.result == wire::TokenResult::kNeedMore) {
      needed = shown.needed;
      return false;
    }
    parsed = Parsed::kClose;
    if (shown.result == wire::TokenResult::kError) {
      Refuse("bad_frame", 1);
      Warn(shown.error);
      Fatal(absl::StatusCode::kInvalidArgument, shown.error);
      return false;
    }
    consumed = shown.consumed;
    if (shown.result == wire::TokenResult::kToken) caller().Show(HashToken(shown.token));
    if (const absl::Status may = caller().MayOverAny(Role::kIngest); !may.ok()) {
      Refuse("access", 1);
      Warn(std::string(may.message()));
      Fatal(may.code(), std::string(may.message()));
      return false;
    }
    if (const absl::Status place = TakePlace(); !place.ok()) {
      SayWhy(place);
      return false;
    }
    parsed = Parsed::kNeedMore;
    may_ingest_ = true;
    return true;
  }

  // The rules have changed, or the token has expired.
  void AskForAll() {
    for (auto& [handle, open] : streams_) {
      open.access = caller().MayOver(Role::kIngest, context().sink.NameOf(open.stream));
    }
  }

  void SayWhy(const absl::Status& refused) override {
    Warn(std::string(refused.message()));
    Fatal(refused.code(), std::string(refused.message()));
  }

  bool MustIntroduceItself() override { return !may_ingest_ && caller().guarded(); }

  void AtEnd(End end, std::span<const std::byte> rest) override {
    switch (end) {
      case End::kPeer:
        if (!rest.empty()) {
          Refuse("bad_frame", 1);
          Warn("closed in the middle of a frame: " + std::to_string(rest.size()) +
               " bytes after byte " + std::to_string(decoder_.offset()) + " are no whole frame");
        }
        return;
      case End::kStop:
        Fatal(absl::StatusCode::kUnavailable,
              "the server is shutting down; batches without an acknowledgement were not taken in");
        return;
      case End::kStranger:
        Fatal(absl::StatusCode::kUnauthenticated,
              "closed: no token and no frame came within " +
                  std::to_string(options_.listen.handshake_timeout.count()) + " ms");
        return;
      case End::kIdle:
        Fatal(absl::StatusCode::kDeadlineExceeded,
              "closed: nothing arrived for " +
                  std::to_string(options_.listen.idle_timeout.count() / 1000) + " ms");
        return;
      case End::kReset:  // nobody to tell
        return;
    }
  }

  // Answers leave in the order of what they answer: one that waits for the log holds back those
  // behind it. `append` is given what the answer is to be appended to.
  template <typename Append>
  void Answer(const Append& append) {
    if (held_.empty()) {
      append(out());
      return;
    }
    std::string& behind = held_.back().behind;
    const std::size_t before = behind.size();
    append(behind);
    held_bytes_ += behind.size() - before;
  }

  void AnswerError(absl::StatusCode code, std::uint32_t flags, std::uint32_t handle,
                   std::uint64_t batch_id, std::string_view message) {
    Answer([&](std::string& to) {
      wire::AppendError(to, static_cast<int>(code), flags, handle, batch_id, message);
    });
  }

  std::size_t HeldBytes() const override { return held_bytes_; }

  // One question for all that is held by now: the log answers it once it has synced the last of
  // them, or fails.
  void WaitForLog() {
    if (held_.empty() || asked_) return;
    asked_ = true;
    const std::weak_ptr<Connection> weak = weak_from_this();
    auto answer = [this, weak](std::uint64_t durable, const absl::Status& status) {
      const auto self = weak.lock();
      if (!self) return;
      Post([this, self, durable, status] {
        asked_ = false;
        OnLog(durable, status);
      });
    };
    context().sink.WhenDurable(held_.back().sequence, DurableOfAsker{weak, std::move(answer)});
  }

  void OnLog(std::uint64_t durable, const absl::Status& status) {
    while (!held_.empty() && (!status.ok() || held_.front().sequence <= durable)) {
      const Held& held = held_.front();
      if (held.sequence <= durable) {
        wire::AppendAck(out(), held.batch_id, held.accepted, held.refused);
      } else {
        Refuse("log_unavailable", held.accepted);
        wire::AppendError(out(), static_cast<int>(status.code()), wire::kErrorForBatch, held.handle,
                          held.batch_id,
                          "batch " + std::to_string(held.batch_id) +
                              " was taken in and is not durable: " + std::string(status.message()));
      }
      out() += held.behind;
      held_.pop_front();
    }
    held_bytes_ = held_.size() * wire::kAckBytes;
    for (const Held& held : held_) held_bytes_ += held.behind.size();
    Release();
    WaitForLog();
  }

  void OnBadFrame(const wire::FrameError& error) {
    Refuse(error.kind == wire::FrameError::Kind::kTooLarge ? "frame_too_large" : "bad_frame", 1);
    Warn(error.message);
    Fatal(absl::StatusCode::kInvalidArgument, error.message);
  }

  void OnOpen(const wire::ClientFrame& frame) {
    const auto refuse = [&](std::string_view reason, absl::StatusCode code,
                            std::string_view message) {
      Refuse(reason, 1);
      AnswerError(code, wire::kErrorForOpen, frame.handle, 0,
                  "open as handle " + std::to_string(frame.handle) + ": " + std::string(message));
    };
    const std::optional<wire::WireElement> asked = wire::ParseWireElement(frame.value_type);
    if (!asked ||
        (asked->value == wire::WireType::kDefault && asked->payload != wire::WirePayload::kNone)) {
      refuse("type_mismatch", absl::StatusCode::kInvalidArgument, BadType(frame.value_type));
      return;
    }
    const bool known = streams_.contains(frame.handle);
    if (!known && streams_.size() >= options_.handles_max) {
      refuse("stream_limit", absl::StatusCode::kResourceExhausted,
             "this connection has " + std::to_string(streams_.size()) +
                 " streams open, which is the limit");
      return;
    }
    if (const absl::Status may = caller().MayOver(Role::kIngest, frame.name()); !may.ok()) {
      refuse("access", may.code(), std::string(may.message()));
      return;
    }
    if (!known) {
      if (const absl::Status room = RoomForHandle(); !room.ok()) {
        refuse("stream_limit", room.code(), std::string(room.message()));
        return;
      }
    }
    std::optional<ElementType> type;
    if (frame.value_type != 0) type = FromWire(*asked);
    absl::StatusOr<StreamHandle> stream = context().sink.Open(frame.name(), type);
    if (!stream.ok()) {
      refuse(ReasonOf(stream.status(), Attempt::kOpen), stream.status().code(),
             std::string(stream.status().message()));
      return;
    }
    const ElementType actual = context().sink.TypeOf(*stream);
    streams_[frame.handle] = {*std::move(stream), actual};
    last_ = nullptr;
    Answer([&](std::string& to) { wire::AppendOpened(to, frame.handle, ToWire(actual)); });
  }

  // For one more. What is taken stays until the connection ends.
  absl::Status RoomForHandle() {
    if (streams_.size() < handles_held_) return absl::OkStatus();
    const absl::Status held =
        HoldKept((streams_.size() + kHandlesStep - kHandlesFree) * kHandleBytes);
    if (held.ok()) handles_held_ = streams_.size() + kHandlesStep;
    return held;
  }

  OpenStream* Find(std::uint32_t handle) {
    if (last_ != nullptr && last_handle_ == handle) return last_;
    const auto found = streams_.find(handle);
    if (found == streams_.end()) return nullptr;
    last_handle_ = handle;
    last_ = &found->second;
    return last_;
  }

  void OnBatch(const wire::ClientFrame& frame) {
    OpenStream* open = Find(frame.handle);
    if (open == nullptr) {
      RefuseBatch(frame, "unknown_stream", 1,
                  absl::NotFoundError("no stream is open as handle " +
                                      std::to_string(frame.handle) + "; expected OPEN before"));
      return;
    }
    const bool pairs = open->type.payload != PayloadType::kNone;
    if (!open->access.ok()) {
      RefuseBatch(frame, "access", 1, open->access);
      return;
    }
    const std::size_t value_bytes =
        PackedBytes(open->type.value) == 0
            ? 0
            : PackedBytes(open->type.value) + (pairs ? kPayloadBytes : 0);
    const std::uint64_t values =
        value_bytes == 0 ? 1 : std::max<std::uint64_t>(1, frame.payload.size() / value_bytes);
    if (frame.value_type != 0 && frame.value_type != ToWire(open->type).byte()) {
      const std::optional<wire::WireElement> carried = wire::ParseWireElement(frame.value_type);
      RefuseBatch(*open, frame, "type_mismatch", values,
                  !carried ? absl::InvalidArgumentError(BadType(frame.value_type))
                           : absl::FailedPreconditionError(
                                 "carries " + wire::WireElementName(*carried) +
                                 " but the stream of handle " + std::to_string(frame.handle) +
                                 " holds " + wire::WireElementName(ToWire(open->type))));
      return;
    }
    wire::PairParts parts{.payloads = {}, .values = frame.payload};
    std::string error;
    if (pairs && !wire::SplitPairs(frame.payload, ToWire(open->type).value, parts, error)) {
      RefuseBatch(*open, frame, "bad_value", values, absl::InvalidArgumentError(error));
      return;
    }
    BatchStamp stamp = now();
    if (frame.type == wire::FrameType::kSequencedBatch) {
      const absl::StatusOr<ProducerBatch> from = FromOf(frame);
      if (!from.ok()) {
        RefuseBatch(*open, frame, "unknown_producer", values, from.status());
        return;
      }
      stamp.from = *from;
    }
    AppendResult result;
    std::uint64_t items = values;
    if (open->type.value == ValueType::kString) {
      items_.clear();
      if (!wire::DecodeStrings(parts.values, items_, error)) {
        RefuseBatch(*open, frame, "bad_frame", 1, absl::InvalidArgumentError(error));
        return;
      }
      items = std::max<std::size_t>(1, items_.size());
      result = pairs ? context().sink.AppendStringPairs(open->stream, items_, parts.payloads, stamp)
                     : context().sink.AppendStrings(open->stream, items_, stamp);
      if (items_.capacity() > kItemsKept) {
        items_.clear();
        items_.shrink_to_fit();
      }
    } else if (pairs) {
      result = context().sink.AppendPairs(open->stream, parts.values, parts.payloads, stamp);
    } else {
      result = context().sink.AppendPacked(open->stream, parts.values, stamp);
    }
    if (!result.status.ok()) {
      RefuseBatch(*open, frame, ReasonOf(result.status, Attempt::kBatch), items, result.status);
      if (absl::IsNotFound(result.status)) {  // deleted: let go of what it holds
        streams_.erase(frame.handle);
        last_ = nullptr;
      }
      return;
    }
    if (result.duplicate) {
      ++duplicates_;
    } else {
      ++batches_;
      values_ += result.accepted;
      nan_ += result.refused;
    }
    if (result.log_sequence == 0) {
      Answer([&](std::string& to) {
        wire::AppendAck(to, frame.batch_id, result.accepted, result.refused);
      });
      return;
    }
    // A batch that came again may be older in the log than what is held before it.
    const std::uint64_t before = held_.empty() ? 0 : held_.back().sequence;
    held_.push_back({.sequence = std::max(before, result.log_sequence),
                     .batch_id = frame.batch_id,
                     .accepted = result.accepted,
                     .refused = result.refused,
                     .handle = frame.handle,
                     .behind = {}});
    held_bytes_ += wire::kAckBytes;
  }

  absl::StatusOr<ProducerBatch> FromOf(const wire::ClientFrame& frame) const {
    if (!producer_) {
      return absl::FailedPreconditionError("SEQUENCED_BATCH without a PRODUCER before it");
    }
    if (frame.batch_id == 0) {
      return absl::InvalidArgumentError("numbers of batches begin with 1");
    }
    return ProducerBatch{*producer_, frame.batch_id};
  }

  /// A batch that was meant for that stream.
  void RefuseBatch(const OpenStream& open, const wire::ClientFrame& frame, std::string_view reason,
                   std::uint64_t values, const absl::Status& status) {
    context().sink.CountRefused(open.stream, values);
    RefuseBatch(frame, reason, values, status);
  }
  void RefuseBatch(const wire::ClientFrame& frame, std::string_view reason, std::uint64_t values,
                   const absl::Status& status) {
    Refuse(reason, values);
    AnswerError(status.code(), wire::kErrorForBatch, frame.handle, frame.batch_id,
                "batch " + std::to_string(frame.batch_id) + ": " + std::string(status.message()));
  }

  void Refuse(std::string_view reason, std::uint64_t count) {
    metrics_.Refused(Source::kTcp, reason).Increment(static_cast<double>(count));
  }
  void Fatal(absl::StatusCode code, std::string_view message) {
    AnswerError(code, wire::kErrorFatal, 0, 0, message);
  }
  void Warn(const std::string& message) {
    if (log_.Admit(now())) log_.Write(IngestLogLevel::kWarning, "tcp " + peer() + ": " + message);
  }
  static std::string BadType(std::uint8_t type) {
    return "value type " + std::to_string(type) + " names no type; expected 0 to " +
           std::to_string(kTypeNumberMax) + ", and 16 more with weights or 32 more with y";
  }

  bool may_ingest_ = false;           // the peer has shown that it may
  std::uint64_t access_version_ = 0;  // of the caller, when all open streams were asked for
  const TcpServerOptions& options_;
  Metrics& metrics_;
  LimitedLog& log_;
  wire::ClientFrameDecoder decoder_;
  std::unordered_map<std::uint32_t, OpenStream> streams_;
  std::size_t handles_held_ = kHandlesFree;  // for so many there is room
  // The stream of the batch before: most producers send many batches of one stream in a row.
  OpenStream* last_ = nullptr;
  std::uint32_t last_handle_ = 0;
  std::vector<std::string_view> items_;
  std::optional<std::array<std::uint64_t, 2>> producer_;
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;  // what they will be as answers
  bool asked_ = false;          // the log was asked, and has not answered
  std::uint64_t batches_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t nan_ = 0;
  std::uint64_t duplicates_ = 0;
};

std::string FatalRefusal(const std::string& why) {
  std::string bytes;
  wire::AppendError(bytes, static_cast<int>(absl::StatusCode::kResourceExhausted),
                    wire::kErrorFatal, 0, 0, why);
  return bytes;
}

}  // namespace

// Connections refer to options and log; StreamServer's Stop has closed them all before those go.
struct TcpServer::Impl {
  Impl(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics, TcpServerOptions options_in,
       Clocks clocks, const LogFn& log_in)
      : options(std::move(options_in)),
        log(log_in),
        server(
            io, sink, metrics, Source::kTcp, options.listen, std::move(clocks), log_in,
            [this, &metrics](boost::asio::ip::tcp::socket socket, ConnectionContext& context) {
              return std::make_shared<FramedConnection>(std::move(socket), context, options,
                                                        metrics, log);
            },
            FatalRefusal) {}

  const TcpServerOptions options;
  LimitedLog log;
  StreamServer server;
};

TcpServer::TcpServer(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics,
                     TcpServerOptions options, Clocks clocks, LogFn log)
    : impl_(std::make_unique<Impl>(io, sink, metrics, std::move(options), std::move(clocks), log)) {
}

TcpServer::~TcpServer() = default;

absl::Status TcpServer::Start() { return impl_->server.Start(); }
std::uint16_t TcpServer::port() const { return impl_->server.port(); }
void TcpServer::BeginStop() { impl_->server.BeginStop(); }
void TcpServer::Stop(std::chrono::milliseconds deadline) { impl_->server.Stop(deadline); }
void TcpServer::Sweep() { impl_->server.Sweep(); }
std::size_t TcpServer::connections() const { return impl_->server.connections(); }

}  // namespace tidemark::server
