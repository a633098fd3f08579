// Limits as they are reached over real sockets: the answer, and the metric that counts it. What is
// malformed rather than too much: wrong_input_test.cc.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"

namespace tidemark::test {
namespace {

using client::ValueType;

std::vector<std::string> Items(const std::string& prefix, std::size_t count) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < count; ++i) {
    items.push_back(Numbered(prefix, i) + std::string(100, 'x'));
  }
  return items;
}

class LimitsTest : public testing::Test {
 protected:
  LimitsTest()
      : ingest_(v1::IngestService::NewStub(
            grpc::CreateChannel(daemon_.address("grpc"), grpc::InsecureChannelCredentials()))) {}

  grpc::Status Push(const std::string& stream, const std::vector<std::string>& items) {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto call = ingest_->Push(&context, &response);
    v1::PushRequest request;
    request.mutable_batch()->set_stream(stream);
    for (const std::string& item : items) {
      request.mutable_batch()->mutable_string()->add_values(item);
    }
    call->Write(request);
    call->WritesDone();
    return call->Finish();
  }
  double Refused(const std::string& source, const std::string& reason) {
    return daemon_.Metric("tidemark_ingest_refused_total{reason=\"" + reason + "\",source=\"" +
                          source + "\"}");
  }

  TestDaemon daemon_{{"--max-text-bytes", "65536"}};
  std::unique_ptr<v1::IngestService::Stub> ingest_;
};

// The process holds more than that from its start: every way to make a stream is refused.
TEST(MemoryLimitTest, NoStreamIsMadeAboveIt) {
  const TestDaemon daemon({"--max-memory-bytes", "1048576"});
  const auto refused = [&](const std::string& source) {
    return daemon.Metric("tidemark_ingest_refused_total{reason=\"memory_limit\",source=\"" +
                         source + "\"}");
  };
  const Completed create = RunTidemark(daemon, {"create", "s"});
  EXPECT_EQ(create.status, 1);
  EXPECT_NE(create.err.find("new streams have 7/8 of limits.max_memory_bytes (1048576)"),
            std::string::npos)
      << create.err;
  const auto producer = daemon.Producer();
  EXPECT_FALSE(producer->Open("s", wire::WireType::kFloat64).ok());
  RawSocket statsd(daemon.port("statsd"));
  ASSERT_TRUE(statsd.Send("a:1|ms\nb:2|ms\n"));
  statsd.EndSending();
  EXPECT_TRUE(WaitUntil([&] { return refused("statsd_tcp") == 2; }));
  EXPECT_EQ(daemon.Metric("tidemark_memory_limit_bytes"), 1048576);
  EXPECT_EQ(daemon.Metric("tidemark_streams"), 0);
}

// A stream of the time before the limit, read back above it.
TEST(MemoryLimitTest, WhatIsThereIsReadBackAndTakesNoMore) {
  const TemporaryFolder folder;
  std::vector<std::string> flags = {"--data-dir", folder.path(), "--durability", "log"};
  const std::vector<double> hundred(100, 1.0);
  const std::vector<double> thousand(1000, 2.0);
  const auto send = [](client::TcpProducer& producer, const std::vector<double>& values) {
    const auto stream = producer.Open("s", wire::WireType::kFloat64);
    ASSERT_TRUE(stream.ok()) << stream.status();
    ASSERT_TRUE(producer.SendBatch(*stream, values).ok());
    ASSERT_TRUE(producer.Flush().ok());
  };
  {
    TestDaemon daemon(flags);
    const auto producer = daemon.Producer();
    send(*producer, hundred);
    EXPECT_TRUE(producer->errors().empty());
  }
  flags.insert(flags.end(), {"--max-memory-bytes", "1048576"});
  TestDaemon daemon(flags);
  const auto refused = [&](const std::string& source) {
    return daemon.Metric("tidemark_ingest_refused_total{reason=\"memory_limit\",source=\"" +
                         source + "\"}");
  };
  EXPECT_EQ(daemon.client().DescribeStream("s").count, 100u);
  const auto producer = daemon.Producer();
  send(*producer, thousand);
  ASSERT_EQ(producer->errors().size(), 1u);
  EXPECT_EQ(producer->errors()[0].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(producer->errors()[0].status.message().find("no room for 1000 values more"),
            std::string::npos)
      << producer->errors()[0].status;
  EXPECT_EQ(refused("tcp"), 1000);
  send(*producer, {3.0});
  EXPECT_EQ(producer->errors().size(), 1u) << "its window has room for that";
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "2\n";
  const Completed push = RunTidemark(daemon, {"push", "s"}, lines);
  EXPECT_EQ(push.status, 1);
  EXPECT_NE(push.err.find("no room for 1000 values more"), std::string::npos) << push.err;
  EXPECT_EQ(refused("grpc"), 1000);
  RawSocket statsd(daemon.port("statsd"));
  std::string many = "s";
  for (int i = 0; i < 300; ++i) many += ":2";
  ASSERT_TRUE(statsd.Send(many + "|ms\n"));
  EXPECT_TRUE(WaitUntil([&] { return refused("statsd_tcp") == 300; }));
  EXPECT_EQ(daemon.client().DescribeStream("s").count, 101u);
  EXPECT_EQ(daemon.client().DescribeStream("s").refused, 0u);
  EXPECT_EQ(daemon.client().DescribeStream("s").losses.refused_whole, 2300u);
  const client::CompareAnswer itself = daemon.client().Compare("s", {}, "s", {}, 0.5);
  EXPECT_EQ(itself.losses_a.refused_whole, 2300u);
  EXPECT_EQ(itself.losses_b.refused_whole, 2300u);
  const Completed asked = RunTidemark(daemon, {"quantile", "s", "0.5"});
  EXPECT_TRUE(asked.out.starts_with("s: n 101, epsilon 0.001, 2300 refused in batches\n"))
      << asked.out;
}

// A thousand times the size that is sent would be inflated before anybody asks who calls.
TEST(CompressedMessages, AreRefused) {
  TestDaemon daemon;
  const auto stub = v1::QueryService::NewStub(
      grpc::CreateChannel(daemon.address("grpc"), grpc::InsecureChannelCredentials()));
  v1::QuantilesRequest request;
  request.set_stream(std::string(std::size_t{1} << 20, 'a'));
  v1::QuantilesResponse response;
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    EXPECT_EQ(stub->Quantiles(&context, request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  grpc::ClientContext context;
  EXPECT_NE(stub->Quantiles(&context, request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(LimitsTest, TextOfStringStreamsIsBounded) {
  constexpr std::size_t kEach = 40;
  grpc::Status status;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < 100 && status.ok(); ++i) {
    status = Push(Numbered("s", i), Items("item", kEach));
    taken += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message().find("limits.max_text_bytes"), std::string::npos);
  EXPECT_GE(taken, 5u);
  EXPECT_EQ(Refused("grpc", "text_limit"), kEach);
  EXPECT_EQ(daemon_.Metric("tidemark_dictionary_limit_bytes"), 65536);
  EXPECT_GT(daemon_.Metric("tidemark_dictionary_bytes"), 40'000);
  EXPECT_LT(daemon_.Metric("tidemark_dictionary_bytes"), 80'000);

  // Framed TCP: the batch is answered with its error and the connection goes on.
  const auto producer = daemon_.Producer();
  const auto text = producer->Open("tcp-text", wire::WireType::kString);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> items = Items("tcp", kEach);
  const std::vector<std::string_view> views(items.begin(), items.end());
  EXPECT_TRUE(producer->SendStrings(*text, views).ok());
  EXPECT_TRUE(producer->Flush().ok());
  ASSERT_EQ(producer->errors().size(), 1u);
  EXPECT_EQ(producer->errors()[0].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(producer->accepted(), 0u);
  EXPECT_EQ(Refused("tcp", "text_limit"), kEach);

  // StatsD: counted only.
  RawSocket statsd(daemon_.port("statsd"));
  std::string lines;
  for (const std::string& item : Items("statsd", kEach)) lines += "sets:" + item + "|s\n";
  ASSERT_TRUE(statsd.Send(lines));
  statsd.EndSending();
  EXPECT_TRUE(WaitUntil([&] { return Refused("statsd_tcp", "text_limit") == kEach; }));
  // Datagrams come one by one, so that some may find room yet: none is lost without a count.
  constexpr std::size_t kDatagrams = 400;
  for (const std::string& item : Items("udp", kDatagrams)) {
    SendUdp(daemon_.port("statsd"), "udp-sets:" + item + "|s");
  }
  EXPECT_TRUE(WaitUntil([&] {
    return Refused("statsd_udp", "text_limit") +
               daemon_.Metric(R"(tidemark_ingest_values_total{source="statsd_udp"})") ==
           kDatagrams;
  }));
  EXPECT_GT(Refused("statsd_udp", "text_limit"), 0);

  // Numbers are none of it, known items go on, and room comes back with a deleted stream.
  client::Pusher numbers = daemon_.client().Push("numbers");
  numbers.Write(std::vector<double>{1, 2, 3});
  EXPECT_EQ(numbers.Finish().accepted, 3u);
  EXPECT_TRUE(Push("s0", Items("item", kEach)).ok());
  for (std::size_t i = 0; i < taken; ++i) daemon_.client().DeleteStream(Numbered("s", i));
  EXPECT_TRUE(Push("again", Items("item", kEach)).ok());
}

}  // namespace
}  // namespace tidemark::test
