// The daemon's limits as settings: each set small, with the answer and the count that the table
// "Limits" of docs/operations.md names, and what is below the limit still works. Texts and memory:
// limits_test.cc; what peers have: guarding_test.cc; connections: grpc_connections_test.cc.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"

namespace tidemark::test {
namespace {

class LimitsWiringTest : public testing::Test {
 protected:
  // One limit, and the daemon that has it.
  TestDaemon& Start(const std::vector<std::string>& flags) {
    daemon_ = std::make_unique<TestDaemon>(flags);
    return *daemon_;
  }
  client::Code Push(const std::string& stream, const auto& values) {
    return CodeOf([&] {
      client::Pusher pusher = daemon_->client().Push(stream);
      pusher.Write(values);
      EXPECT_EQ(pusher.Finish().accepted, values.size());
    });
  }
  // Over framed TCP: what the opening says, or else the batch.
  absl::StatusCode Send(const std::string& stream, const std::vector<double>& values) {
    const auto producer = daemon_->Producer();
    const auto opened = producer->Open(stream, wire::WireType::kFloat64);
    if (!opened.ok()) return opened.status().code();
    const auto sent = producer->SendBatch(*opened, values);
    const absl::Status flushed = producer->Flush();
    if (!sent.ok()) return sent.status().code();
    if (!flushed.ok()) return flushed.code();
    return producer->errors().empty() ? absl::StatusCode::kOk
                                      : producer->errors().front().status.code();
  }
  void SendLines(const std::string& lines) const {
    RawSocket statsd(daemon_->port("statsd"));
    EXPECT_TRUE(statsd.Send(lines));
    statsd.EndSending();
    statsd.ReceiveAll();
  }
  client::Code Create(const std::string& stream) {
    return CodeOf([&] { daemon_->client().CreateStream(stream); });
  }
  double Refused(const std::string& source, const std::string& reason) const {
    return daemon_->Metric("tidemark_ingest_refused_total{reason=\"" + reason + "\",source=\"" +
                           source + "\"}");
  }
  double QueryErrors(const std::string& method, const std::string& code) const {
    return daemon_->Metric("tidemark_query_errors_total{method=\"" + method + "\",code=\"" + code +
                           "\"}");
  }
  double PeerRefused(const std::string& protocol) const {
    return daemon_->Metric("tidemark_peer_refused_total{reason=\"bytes\",protocol=\"" + protocol +
                           "\"}");
  }

  const std::vector<double> one_ = {1};
  std::unique_ptr<TestDaemon> daemon_;
};

TEST_F(LimitsWiringTest, Streams) {
  TestDaemon& daemon = Start({"--max-streams", "3"});
  EXPECT_EQ(daemon.client().Info().limits.max_streams, 3u);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Push(name, one_), client::Code::kOk);
  EXPECT_EQ(Push("d", one_), client::Code::kResourceExhausted);
  EXPECT_EQ(Refused("grpc", "stream_limit"), 1);
  EXPECT_EQ(Send("d", one_), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Refused("tcp", "stream_limit"), 1);
  SendLines("d:1|ms\na:1|ms\n");
  EXPECT_TRUE(WaitUntil([&] { return Refused("statsd_tcp", "stream_limit") == 1; }));
  EXPECT_EQ(Create("d"), client::Code::kResourceExhausted);
  EXPECT_EQ(QueryErrors("create_stream", "RESOURCE_EXHAUSTED"), 1);
  EXPECT_EQ(daemon.client().ListStreams().size(), 3u);
  // Those that are there go on, and a place that is free is taken.
  EXPECT_EQ(Send("a", one_), absl::StatusCode::kOk);
  EXPECT_TRUE(WaitUntil([&] { return daemon.client().DescribeStream("a").count == 3; }));
  daemon.client().DeleteStream("b");
  EXPECT_EQ(Push("d", one_), client::Code::kOk);
}

TEST_F(LimitsWiringTest, BytesOfAName) {
  TestDaemon& daemon = Start({"--max-name-bytes", "8"});
  EXPECT_EQ(daemon.client().Info().limits.max_name_bytes, 8u);
  EXPECT_EQ(Push("grpc5678", one_), client::Code::kOk);
  EXPECT_EQ(Send("tcp45678", one_), absl::StatusCode::kOk);
  EXPECT_EQ(Create("made5678"), client::Code::kOk);
  EXPECT_EQ(Push("grpc56789", one_), client::Code::kInvalidArgument);
  EXPECT_EQ(Refused("grpc", "bad_name"), 1);
  EXPECT_EQ(Send("tcp456789", one_), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused("tcp", "bad_name"), 1);
  EXPECT_EQ(Create("made56789"), client::Code::kInvalidArgument);
  EXPECT_EQ(QueryErrors("create_stream", "INVALID_ARGUMENT"), 1);
  SendLines("lines6789:1|ms\nlines678:1|ms\n");
  EXPECT_TRUE(WaitUntil([&] { return Refused("statsd_tcp", "bad_name") == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return daemon.client().ListStreams("lines").size() == 1; }));
  EXPECT_EQ(daemon.client().ListStreams().size(), 4u);
}

TEST_F(LimitsWiringTest, BytesOfABatch) {
  TestDaemon& daemon = Start({"--max-batch-bytes", "4096"});
  EXPECT_EQ(daemon.client().Info().limits.max_batch_bytes, 4096u);
  const std::vector<double> most(4096 / sizeof(double), 1.5);
  const std::vector<double> more(most.size() + 1, 1.5);
  EXPECT_EQ(Push("g", most), client::Code::kOk);
  EXPECT_EQ(Push("g", more), client::Code::kResourceExhausted);
  EXPECT_EQ(Refused("grpc", "frame_too_large"), static_cast<double>(more.size()));
  EXPECT_EQ(Send("t", most), absl::StatusCode::kOk);
  EXPECT_EQ(Send("t", more), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refused("tcp", "frame_too_large"), 1);
  EXPECT_EQ(daemon.client().DescribeStream("g").count, most.size());
  EXPECT_EQ(daemon.client().DescribeStream("t").count, most.size());
  // The connection has ended: an answer, and nothing behind it.
  RawSocket raw(daemon.port("tcp"));
  std::string bytes;
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, "t");
  wire::AppendBatch(bytes, 1, 1, wire::WireType::kFloat64, std::as_bytes(std::span(more)));
  ASSERT_TRUE(raw.Send(bytes));
  bool ended = false;
  EXPECT_FALSE(raw.ReceiveAll(&ended).empty());
  EXPECT_TRUE(ended);
}

TEST_F(LimitsWiringTest, BytesOfAnItem) {
  TestDaemon& daemon = Start({"--max-item-bytes", "10"});
  EXPECT_EQ(daemon.client().Info().limits.max_item_bytes, 10u);
  const std::vector<std::string> most = {"ten bytes."};
  const std::vector<std::string> more = {"ten bytes.."};
  EXPECT_EQ(Push("g", most), client::Code::kOk);
  EXPECT_EQ(Push("g", more), client::Code::kInvalidArgument);
  EXPECT_EQ(Refused("grpc", "item_too_large"), 1);
  const auto producer = daemon.Producer();
  const auto text = producer->Open("t", wire::WireType::kString);
  ASSERT_TRUE(text.ok()) << text.status();
  for (const auto* items : {&most, &more, &most}) {  // the connection goes on
    const std::vector<std::string_view> views(items->begin(), items->end());
    EXPECT_TRUE(producer->SendStrings(*text, views).ok());
  }
  EXPECT_TRUE(producer->Flush().ok());
  ASSERT_EQ(producer->errors().size(), 1u);
  EXPECT_EQ(producer->errors()[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(producer->accepted(), 2u);
  EXPECT_EQ(Refused("tcp", "item_too_large"), 1);
  SendLines("s:" + most[0] + "|s\ns:" + more[0] + "|s\n");
  EXPECT_TRUE(WaitUntil([&] { return Refused("statsd_tcp", "item_too_large") == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return daemon.client().ListStreams("s").size() == 1; }));
}

TEST_F(LimitsWiringTest, Producers) {
  TestDaemon& daemon = Start({"--max-producers", "2"});
  std::vector<client::BatchAnswer> answers;
  const auto send = [&](char producer, std::uint64_t number) {
    client::TcpProducerOptions options;
    options.producer.assign(16, producer);
    client::BatchAnswer told;
    options.on_answer = [&told](const client::BatchAnswer& answer) { told = answer; };
    const auto connection = daemon.Producer(options);
    const auto opened = connection->Open("s", wire::WireType::kFloat64);
    EXPECT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE(connection->SendNumbered(*opened, number, {}, std::as_bytes(std::span(one_))).ok());
    EXPECT_TRUE(connection->Flush().ok());
    return told.status.code();
  };
  for (const char producer : {'a', 'b'}) {
    EXPECT_EQ(send(producer, 1), absl::StatusCode::kOk);
    EXPECT_EQ(send(producer, 2), absl::StatusCode::kOk);
  }
  EXPECT_EQ(daemon.Metric("tidemark_producers"), 2);
  EXPECT_EQ(daemon.Metric("tidemark_producers_forgotten_total"), 0);
  EXPECT_EQ(send('c', 1), absl::StatusCode::kOk);
  EXPECT_EQ(daemon.Metric("tidemark_producers"), 2);
  EXPECT_EQ(daemon.Metric("tidemark_producers_forgotten_total"), 1);
  EXPECT_EQ(send('a', 3), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refused("tcp", "unknown_producer"), 1);
  EXPECT_EQ(send('b', 3), absl::StatusCode::kOk);
  EXPECT_EQ(send('b', 3), absl::StatusCode::kOk) << "known";
  EXPECT_EQ(daemon.client().DescribeStream("s").count, 6u);
}

TEST_F(LimitsWiringTest, BytesOfAPeer) {
  constexpr std::size_t kLimit = 65'536;
  TestDaemon& daemon =
      Start({"--max-bytes-per-peer", std::to_string(kLimit), "--loopback-is-one-peer"});
  ASSERT_EQ(Push("s", std::vector<double>(1'000, 1)), client::Code::kOk);
  EXPECT_EQ(Send("s", one_), absl::StatusCode::kOk);
  // A question that is larger in memory.
  const std::vector<client::Value> many(10'000, client::Value{1.0});
  EXPECT_EQ(CodeOf([&] { daemon.client().Ranks("s", many); }), client::Code::kResourceExhausted);
  EXPECT_EQ(PeerRefused("grpc"), 1);
  EXPECT_EQ(daemon.client().Ranks("s", {client::Value{1.0}}).n, 1'001u);
  // A frame that is longer: in the middle of it the connection ends.
  EXPECT_EQ(Send("s", std::vector<double>(4 * kLimit / sizeof(double), 1)),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PeerRefused("tcp"), 1);
  EXPECT_EQ(Send("s", std::vector<double>(100, 1)), absl::StatusCode::kOk);
  // Handles beyond those that are free and those that the limit has room for; the rest goes on.
  const auto producer = daemon.Producer();
  absl::Status refused;
  for (int i = 0; i < 1'000 && refused.ok(); ++i) refused = producer->Open("s").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(PeerRefused("tcp"), 2);
  EXPECT_EQ(Refused("tcp", "stream_limit"), 1);
  EXPECT_TRUE(producer->SendBatch({.handle = 1, .type = wire::WireType::kFloat64}, one_).ok());
  EXPECT_TRUE(producer->Flush().ok());
  EXPECT_EQ(producer->accepted(), 1u);
}

TEST_F(LimitsWiringTest, NamedSubscriptions) {
  TestDaemon& daemon = Start({"--max-named-subscriptions", "2"});
  ASSERT_EQ(Push("s", one_), client::Code::kOk);
  const client::WatchQuery query{
      .stream = "s", .asks = client::QuantilesQuery{{0.5}}, .options = {}};
  const auto subscribe = [&](const std::string& name) {
    return CodeOf([&] { daemon.client().Subscribe(name, query); });
  };
  EXPECT_EQ(subscribe("first"), client::Code::kOk);
  EXPECT_EQ(subscribe("second"), client::Code::kOk);
  EXPECT_EQ(subscribe("third"), client::Code::kResourceExhausted);
  EXPECT_EQ(subscribe("second"), client::Code::kOk) << "it is there";
  EXPECT_EQ(QueryErrors("create_subscription", "RESOURCE_EXHAUSTED"), 1);
  EXPECT_EQ(daemon.Metric("tidemark_named_subscriptions"), 2);
  daemon.client().Unsubscribe("first");
  EXPECT_EQ(subscribe("third"), client::Code::kOk);
  EXPECT_TRUE(daemon.client().WatchSubscription("third").Next().has_value());
}

TEST_F(LimitsWiringTest, IdleStreams) {
  TestDaemon& daemon = Start({"--stream-ttl-s", "6"});
  const auto producer = daemon.Producer();
  const auto idle = producer->Open("idle", wire::WireType::kFloat64);
  const auto busy = producer->Open("busy", wire::WireType::kFloat64);
  ASSERT_TRUE(idle.ok() && busy.ok());
  EXPECT_TRUE(producer->SendBatch(*idle, one_).ok());
  std::uint64_t sent = 0;
  EXPECT_TRUE(WaitUntil([&] {
    EXPECT_TRUE(producer->SendBatch(*busy, one_).ok());
    EXPECT_TRUE(producer->Flush().ok());
    ++sent;
    return daemon.Metric("tidemark_streams_expired_total") > 0;
  }));
  EXPECT_EQ(daemon.Metric("tidemark_streams_expired_total"), 1);
  EXPECT_EQ(CodeOf([&] { daemon.client().Quantiles("idle", {0.5}); }), client::Code::kNotFound);
  EXPECT_EQ(daemon.client().DescribeStream("busy").count, sent);
  // Its handle is refused, and opened again it is a new stream.
  EXPECT_TRUE(producer->SendBatch(*idle, one_).ok());
  EXPECT_TRUE(producer->Flush().ok());
  ASSERT_EQ(producer->errors().size(), 1u);
  EXPECT_EQ(producer->errors()[0].status.code(), absl::StatusCode::kNotFound);
  const auto again = producer->Open("idle", wire::WireType::kFloat64);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(producer->SendBatch(*again, one_).ok());
  EXPECT_TRUE(producer->Flush().ok());
  EXPECT_EQ(daemon.client().DescribeStream("idle").count, 1u);
  EXPECT_EQ(Push("idle", one_), client::Code::kOk);
}

}  // namespace
}  // namespace tidemark::test
