#include "client/retrying_tcp_producer.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

namespace tidemark::client {
namespace {

// What a server keeps of a producer's numbers.
constexpr std::size_t kNumbersKept = 64;
constexpr std::size_t kErrorsMax = 1000;
constexpr std::uint32_t kNotOpen = 0;  // TcpProducer's handles begin with 1
// The first is shorter than any restart; the longest, than anybody's patience.
constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{1'000};

std::string RandomId() {
  std::random_device device;
  std::string id;
  while (id.size() < wire::kProducerIdBytes) id.push_back(static_cast<char>(device()));
  if (id.front() == 0) id.front() = 1;  // not all of them 0
  return id;
}

// That a connection ends with one of these says nothing against the next.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

RetryingTcpProducer::RetryingTcpProducer(std::string host, std::uint16_t port,
                                         RetryingTcpOptions options)
    : host_(std::move(host)), port_(port), options_(options), id_(RandomId()) {}

absl::StatusOr<std::size_t> RetryingTcpProducer::Open(std::string_view name,
                                                      wire::WireElement type) {
  // Answers of what is kept first: then a refusal is this stream's.
  if (absl::Status flushed = Drive(0); !flushed.ok()) return flushed;
  const std::size_t place = streams_.size();
  streams_.push_back({.name = std::string(name), .type = type, .next_number = 1, .open = {}});
  // An empty batch, answered before any other: server/window/producers.h says why.
  const std::size_t errors = errors_.size();
  absl::Status opened = Send(place, {}, {});
  if (opened.ok()) opened = Drive(0);
  if (opened.ok() && errors_.size() > errors) {
    opened = errors_.back().status;
    errors_.pop_back();
  }
  if (opened.ok()) return place;
  if (!MayPass(opened)) {  // of this stream; the others go on
    over_ = absl::OkStatus();
    kept_.clear();
    sent_ = 0;
    streams_.pop_back();
  }
  return opened;
}

absl::Status RetryingTcpProducer::Send(std::size_t stream, std::span<const std::byte> values,
                                       std::span<const std::byte> payloads) {
  const std::size_t window = std::clamp<std::size_t>(options_.window_batches, 1, kNumbersKept);
  if (absl::Status room = Drive(window - 1); !room.ok()) return room;
  kept_.push_back({stream, streams_[stream].next_number++, Text(payloads), Text(values)});
  return Drive(window);
}

absl::Status RetryingTcpProducer::Drive(std::size_t unanswered) {
  while (over_.ok() && (kept_.size() > unanswered || sent_ < kept_.size())) {
    absl::Status status = Step();
    if (status.ok()) continue;
    connection_.reset();
    sent_ = 0;
    over_ = MayPass(status) ? WaitToRetry(status) : status;
  }
  return over_;
}

absl::Status RetryingTcpProducer::Step() {
  if (!connection_) {
    if (absl::Status connected = Connect(); !connected.ok()) return connected;
  }
  absl::Status status;
  if (sent_ < kept_.size()) {
    Stream& stream = streams_[kept_[sent_].stream];
    if (stream.open.handle == kNotOpen) {
      absl::StatusOr<TcpStream> opened = connection_->Open(stream.name, stream.type);
      if (!cut_.ok()) return cut_;
      if (!opened.ok()) return opened.status();
      stream.open = *opened;
      stream.type = opened->type;
    }
    const Batch& batch = kept_[sent_++];
    status = connection_->SendNumbered(stream.open, batch.number, Bytes(batch.payloads),
                                       Bytes(batch.values));
  } else {
    status = connection_->AwaitAnswers(kept_.size() - 1);
  }
  return cut_.ok() ? status : cut_;
}

absl::Status RetryingTcpProducer::Connect() {
  sent_ = 0;
  cut_ = absl::OkStatus();
  TcpProducerOptions options;
  options.window_batches = kNumbersKept;
  options.producer = id_;
  options.on_answer = [this](const BatchAnswer& answer) { OnAnswer(answer); };
  auto connection = TcpProducer::Connect(host_, port_, std::move(options));
  if (!connection.ok()) return connection.status();
  ++connections_;
  for (Stream& stream : streams_) stream.open.handle = kNotOpen;
  connection_ = *std::move(connection);
  return absl::OkStatus();
}

absl::Status RetryingTcpProducer::WaitToRetry(const absl::Status& why) {
  const auto now = std::chrono::steady_clock::now();
  if (!failing_since_) {
    failing_since_ = now;
    pause_ = kFirstPause;
  }
  if (now - *failing_since_ >= options_.retry_for) {
    return absl::Status(why.code(), std::string(why.message()) + "; gave up after trying for " +
                                        std::to_string(options_.retry_for.count()) + " ms");
  }
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  return absl::OkStatus();
}

void RetryingTcpProducer::OnAnswer(const BatchAnswer& answer) {
  if (!cut_.ok()) return;  // what comes behind is sent again, too
  if (absl::IsUnavailable(answer.status)) {
    cut_ = answer.status;
    return;
  }
  kept_.pop_front();
  --sent_;
  failing_since_.reset();
  accepted_ += answer.accepted;
  refused_ += answer.refused;
  if (!answer.status.ok() && errors_.size() < kErrorsMax) {
    errors_.push_back({answer.batch_id, answer.status});
  }
}

}  // namespace tidemark::client
