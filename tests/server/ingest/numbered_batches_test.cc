// Numbered batches over framed TCP: what the server makes of their frames, and that a client of the
// old form sees none of it. What is recognised is tested in tests/server/window, with kill -9 in
// tests/e2e.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/retrying_tcp_producer.h"
#include "server/ingest/io_threads.h"
#include "server/ingest/tcp_server.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using wire::WireType;

// Takes each number once, and refuses what it is told to.
class OnceSink final : public FakeSink {
 public:
  AppendResult AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                            const BatchStamp& stamp) override {
    {
      const std::lock_guard lock(mutex_);
      if (refusals_ > 0 && !values.empty()) {
        --refusals_;
        return {.status = absl::UnavailableError("no disk")};
      }
      const auto found = taken_.find({stream.get(), stamp.from.number});
      if (stamp.from.numbered() && found != taken_.end()) {
        AppendResult again = found->second;
        again.duplicate = true;
        return again;
      }
    }
    AppendResult result = FakeSink::AppendPacked(stream, values, stamp);
    const std::lock_guard lock(mutex_);
    if (result.status.ok()) taken_[{stream.get(), stamp.from.number}] = result;
    return result;
  }
  void RefuseNext(int batches) {
    const std::lock_guard lock(mutex_);
    refusals_ = batches;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<const Stream*, std::uint64_t>, AppendResult> taken_;
  int refusals_ = 0;
};

class NumberedBatchesTest : public testing::Test {
 protected:
  NumberedBatchesTest() { StartServer(0); }
  void StartServer(std::uint16_t port) {
    TcpServerOptions options;
    options.listen.port = port;
    server_ = std::make_unique<TcpServer>(io_.io(), sink_, metrics_, options,
                                          Clocks{[] { return 0; }, [] { return 0; }}, LogFn());
    const absl::Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started;
  }
  double Duplicates() { return metrics_.source(Source::kTcp).duplicates.Value(); }
  double Batches() { return metrics_.source(Source::kTcp).batches.Value(); }

  static void Add(std::string& bytes, std::uint64_t number, double value) {
    wire::AppendBatchHeader(bytes, 1, number, WireType::kFloat64, sizeof value,
                            wire::FrameType::kSequencedBatch);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string Exchange(const std::string& bytes) {
    RawSocket socket(server_->port());
    EXPECT_TRUE(socket.Send(bytes));
    socket.EndSending();
    return socket.ReceiveAll();
  }

  OnceSink sink_;
  Metrics metrics_{"test"};
  IoThreads io_{2, "ingest"};
  std::unique_ptr<TcpServer> server_;
};

TEST_F(NumberedBatchesTest, AreAcknowledgedAgainAndCountedOnce) {
  std::string bytes;
  wire::AppendPreamble(bytes);
  wire::AppendProducer(bytes, "0123456789abcdef");
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  for (int copy = 0; copy < 3; ++copy) Add(bytes, 5, 2.5);
  std::string expected;
  wire::AppendOpened(expected, 1, WireType::kFloat64);
  for (int copy = 0; copy < 3; ++copy) wire::AppendAck(expected, 5, 1, 0);
  EXPECT_EQ(Exchange(bytes), expected);
  EXPECT_EQ(sink_.Numbers("s"), std::vector<double>{2.5});
  EXPECT_EQ(Duplicates(), 2);
  EXPECT_EQ(Batches(), 1);
}

TEST_F(NumberedBatchesTest, WithoutAProducerOrANumberAreRefused) {
  std::string bytes;
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  Add(bytes, 1, 2.5);
  wire::AppendProducer(bytes, "0123456789abcdef");
  Add(bytes, 0, 2.5);
  Add(bytes, 1, 3.5);
  std::string expected;
  wire::AppendOpened(expected, 1, WireType::kFloat64);
  wire::AppendError(expected, 9, wire::kErrorForBatch, 1, 1,
                    "batch 1: SEQUENCED_BATCH without a PRODUCER before it");
  wire::AppendError(expected, 3, wire::kErrorForBatch, 1, 0,
                    "batch 0: numbers of batches begin with 1");
  wire::AppendAck(expected, 1, 1, 0);
  EXPECT_EQ(Exchange(bytes), expected);
  EXPECT_EQ(sink_.Numbers("s"), std::vector<double>{3.5});
  EXPECT_EQ(metrics_.Refused(Source::kTcp, "unknown_producer").Value(), 2);
}

TEST_F(NumberedBatchesTest, OfAnOldClientAreNoneHoweverItsIdsRepeat) {
  std::string bytes;
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  const double value = 1.5;
  for (int copy = 0; copy < 2; ++copy) {
    wire::AppendBatch(bytes, 1, 7, WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
  }
  Exchange(bytes);
  EXPECT_EQ(sink_.Numbers("s"), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(Duplicates(), 0);
}

TEST_F(NumberedBatchesTest, ARetryingProducerSurvivesServersAndRefusals) {
  const std::uint16_t port = server_->port();
  client::RetryingTcpProducer producer("127.0.0.1", port);
  const auto stream = producer.Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::vector<double> sent;
  for (int i = 0; i < 500; ++i) {
    if (i == 100) sink_.RefuseNext(3);
    if (i % 150 == 149) {  // with batches unanswered
      server_.reset();
      StartServer(port);
    }
    const double value = i;
    ASSERT_TRUE(producer.Send(*stream, std::as_bytes(std::span(&value, 1))).ok());
    sent.push_back(value);
  }
  ASSERT_TRUE(producer.Flush().ok());
  EXPECT_EQ(producer.accepted(), 500u);
  EXPECT_TRUE(producer.errors().empty());
  EXPECT_GE(producer.connections(), 4u);
  std::vector<double> held = sink_.Numbers("s");
  std::sort(held.begin(), held.end());
  EXPECT_EQ(held, sent) << "each once";
}

TEST_F(NumberedBatchesTest, ARetryingProducerSaysWhatIsRefused) {
  client::RetryingTcpProducer producer("127.0.0.1", server_->port());
  EXPECT_EQ(producer.Open("", WireType::kFloat64).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto stream = producer.Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok()) << stream.status();
  const std::vector<std::byte> half(7);
  ASSERT_TRUE(producer.Send(*stream, half).ok());
  ASSERT_TRUE(producer.Flush().ok());
  ASSERT_EQ(producer.errors().size(), 1u);
  EXPECT_EQ(producer.errors()[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(producer.errors()[0].batch_id, 2u);
}

TEST_F(NumberedBatchesTest, ARetryingProducerGivesUp) {
  client::RetryingTcpOptions options;
  options.retry_for = std::chrono::milliseconds(30);
  client::RetryingTcpProducer producer("127.0.0.1", server_->port(), options);
  const auto stream = producer.Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok()) << stream.status();
  server_.reset();
  const double value = 1;
  absl::Status status = producer.Send(*stream, std::as_bytes(std::span(&value, 1)));
  if (status.ok()) status = producer.Flush();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(producer.Flush(), status);
}

}  // namespace
}  // namespace tidemark::server
