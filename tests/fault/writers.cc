#include "tests/fault/writers.h"

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <utility>

#include "client/client.h"
#include "client/push.h"
#include "client/retrying_tcp_producer.h"

namespace tidemark::fault {
namespace {

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void Write(client::AcknowledgedPusher& pusher, Kind kind, const FaultBatch& batch) {
  const client::ValueType type = ConfigOf(kind).type;
  if (type == client::ValueType::kString) {
    pusher.Write(TextsOf(batch.values));
    return;
  }
  client::Payloads payloads;
  if (!batch.payloads.empty()) {
    payloads =
        std::span(reinterpret_cast<const std::uint64_t*>(batch.payloads.data()), batch.count);
  }
  pusher.WritePacked(type, AsBytes(batch.values), payloads);
}

}  // namespace

Writers::Writers(WritersOptions options) : options_(std::move(options)) {
  for (std::uint8_t writer = 0; writer < kWriters; ++writer) {
    threads_.emplace_back([this, writer] {
      if (writer < kTcpWriters) {
        RunTcp(writer);
      } else {
        RunGrpc(writer);
      }
    });
  }
}

void Writers::End() {
  ends_ = true;
  Finish();
}

void Writers::Finish() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::uint64_t Writers::acknowledged() const {
  std::uint64_t sum = 0;
  for (const auto& values : acknowledged_) sum += values;
  return sum;
}

void Writers::Pause() const {
  if (options_.pause.count() > 0) std::this_thread::sleep_for(options_.pause);
}

void Writers::RunTcp(std::uint8_t writer) {
  client::RetryingTcpProducer producer(
      "127.0.0.1", options_.tcp_port,
      {.retry_for = options_.retry_for, .window_batches = options_.window_batches});
  struct Open {
    std::size_t feed;
    std::size_t place;
  };
  std::vector<Open> open;
  std::uint64_t values = 0;
  for (std::size_t feed = 0; feed < kFeeds.size(); ++feed) {
    if (kFeeds[feed].writer != writer) continue;
    const FaultStream& stream = kStreams[kFeeds[feed].stream];
    const auto place = producer.Open(stream.name, WireOf(stream.kind));
    EXPECT_TRUE(place.ok()) << stream.name << ": " << place.status();
    if (!place.ok()) return;
    open.push_back({feed, *place});
  }
  for (bool any = true; any;) {
    any = false;
    for (const Open& at : open) {
      if (!Goes(at.feed)) continue;
      any = true;
      Sent& sent = sent_[at.feed];
      const FaultBatch batch = BatchOf(options_.seed, kFeeds[at.feed], ++sent.last_number);
      sent.values += batch.count;
      values += batch.count;
      const absl::Status status =
          producer.Send(at.place, AsBytes(batch.values), AsBytes(batch.payloads));
      EXPECT_TRUE(status.ok()) << "writer " << int{writer} << ": " << status;
      if (!status.ok()) return;
      acknowledged_[writer] = producer.accepted();
      Pause();
    }
  }
  const absl::Status status = producer.Flush();
  EXPECT_TRUE(status.ok()) << "writer " << int{writer} << ": " << status;
  acknowledged_[writer] = producer.accepted();
  retries_ += producer.connections() - 1;
  EXPECT_EQ(producer.accepted(), values) << "writer " << int{writer};
  EXPECT_EQ(producer.refused(), 0u);
  for (const client::BatchError& error : producer.errors()) {
    ADD_FAILURE() << "writer " << int{writer} << ", batch " << error.batch_id << ": "
                  << error.status;
  }
}

void Writers::RunGrpc(std::uint8_t writer) {
  std::size_t feed = 0;
  while (kFeeds[feed].writer != writer) ++feed;
  const FaultStream& stream = kStreams[kFeeds[feed].stream];
  Sent& sent = sent_[feed];
  try {
    client::Client client({.server = options_.grpc_address});
    client::AcknowledgedPushOptions options;
    options.max_unacknowledged = options_.window_batches;
    options.retry_for = options_.retry_for;
    options.on_acknowledgement = [&](const client::Acknowledgement& answer) {
      EXPECT_EQ(answer.code, client::Code::kOk) << answer.message;
      EXPECT_EQ(answer.refused, 0u);
      acknowledged_[writer] += answer.accepted;
    };
    client::AcknowledgedPusher pusher = client.PushAcknowledged(std::string(stream.name), options);
    while (Goes(feed)) {
      const FaultBatch batch = BatchOf(options_.seed, kFeeds[feed], ++sent.last_number);
      sent.values += batch.count;
      Write(pusher, stream.kind, batch);
      Pause();
    }
    const client::AcknowledgedPushSummary summary = pusher.Finish();
    EXPECT_EQ(summary.accepted, sent.values) << "writer " << int{writer};
    retries_ += summary.retries;
  } catch (const client::Error& error) {
    ADD_FAILURE() << "writer " << int{writer} << ": " << error.what();
  }
}

}  // namespace tidemark::fault
