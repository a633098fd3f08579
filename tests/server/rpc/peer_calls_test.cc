// Calls at the limits of one peer: queries, subscriptions and pushes, all of this one machine.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "tests/server/rpc/rpc_fixture.h"
#include "tests/support/wait_until.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"

namespace tidemark::server {
namespace {

using test::WaitUntil;

constexpr char kTwoCalls[] =
    "this peer has 2 calls, which is the limit of one peer; try again later";

class PeerCallsTest : public testing::Test {
 protected:
  void Start(const PeerLimits& limits) {
    server_ = std::make_unique<RpcServer>(RpcOptions{.query_queue_max = 8, .peers = limits});
    query_ = v1::QueryService::NewStub(server_->channel);
    ingest_ = v1::IngestService::NewStub(server_->channel);
    const double one = 1;
    server_->behind.Append<double>("s", ValueType::kFloat64, {&one, 1});
  }
  // Too many for gRPC's thread to answer by itself: the call waits for a query thread.
  grpc::Status Quantiles(int phis = 100, const std::string& stream = "s") {
    grpc::ClientContext context;
    v1::QuantilesRequest request;
    request.set_stream(stream);
    for (int i = 0; i < phis; ++i) request.add_phi(0.5);
    v1::QuantilesResponse response;
    return query_->Quantiles(&context, request, &response);
  }
  std::future<grpc::Status> WaitingQuantiles(const std::string& stream = "s") {
    const double before = Waiting();
    auto call = std::async(std::launch::async, [this, stream] { return Quantiles(100, stream); });
    EXPECT_TRUE(WaitUntil([&] { return Waiting() > before; }));
    return call;
  }
  double Waiting() { return server_->metrics().QueueDepth("query").Value(); }
  // A call that has been answered gives its place back a moment after the answer has come.
  bool MayBegin(std::uint64_t calls) {
    PeerShare share;
    return server_->peers->Take("127.0.0.1", PeerResource::kCalls, 0, "grpc", share).ok() &&
           share.TryResize(calls);
  }
  double Refused(const std::string& reason) {
    return server_->metrics().PeerRefused("grpc", reason).Value();
  }

  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::QueryService::Stub> query_;
  std::unique_ptr<v1::IngestService::Stub> ingest_;
};

TEST_F(PeerCallsTest, QueriesThatWait) {
  Start({.calls = 2});
  server_->HoldQueries();
  auto first = WaitingQuantiles();
  auto second = WaitingQuantiles();
  const grpc::Status third = Quantiles();
  EXPECT_EQ(third.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(third.error_message(), kTwoCalls);
  EXPECT_EQ(RetrySeconds(third), 1U);
  EXPECT_EQ(Refused("calls"), 1);
  EXPECT_EQ(server_->QueryErrors("quantiles", "RESOURCE_EXHAUSTED"), 1);
  server_->query_barrier.Open();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return server_->peers->peers() == 0; }));
  EXPECT_TRUE(Quantiles().ok());
}

TEST_F(PeerCallsTest, BytesOfRequestsThatWait) {
  Start({.bytes = 1500});
  server_->HoldQueries();
  auto first = WaitingQuantiles("none");  // 100 times 8 bytes, and hardly an answer
  const grpc::Status second = Quantiles();
  EXPECT_EQ(second.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(second.error_message(), "more than the 1500 bytes that one peer may have on their way");
  EXPECT_EQ(Refused("bytes"), 1);
  EXPECT_TRUE(Quantiles(1).ok()) << "small ones go on";
  server_->query_barrier.Open();
  EXPECT_EQ(first.get().error_code(), grpc::NOT_FOUND);
}

TEST_F(PeerCallsTest, RequestsTakeWhatTheyTakeOnceTheyAreParsed) {
  Start({.bytes = 80'000});
  server_->HoldQueries();
  const auto ranks = [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::RanksRequest request;
    request.set_stream("s");
    for (int i = 0; i < 1000; ++i) request.add_values()->set_uint32(0);
    EXPECT_LT(request.ByteSizeLong(), 5000U);
    v1::RanksResponse response;
    return query_->Ranks(&context, request, &response);
  };
  auto first = std::async(std::launch::async, ranks);
  EXPECT_TRUE(WaitUntil([&] { return Waiting() > 0; }));
  EXPECT_EQ(ranks().error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Refused("bytes"), 1);
  server_->query_barrier.Open();
  EXPECT_TRUE(first.get().ok());
}

TEST_F(PeerCallsTest, CallsAboutStreamsAreCallsToo) {
  Start({.calls = 2});
  server_->HoldQueries();
  auto first = WaitingQuantiles();
  const auto streams = v1::StreamService::NewStub(server_->channel);
  const auto info = v1::InfoService::NewStub(server_->channel);
  std::atomic<std::uint64_t> places = 1;  // that are waited for
  const auto call = [&](auto& stub, const auto& method, const auto& request, auto response) {
    EXPECT_TRUE(WaitUntil([&] { return MayBegin(places); }));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return (stub.get()->*method)(&context, request, &response);
  };
  using Streams = v1::StreamService::Stub;
  v1::CreateStreamRequest create;
  create.set_name("new");
  v1::DescribeStreamRequest describe;
  describe.set_name("new");
  v1::DeleteStreamRequest remove;
  remove.set_name("new");
  const auto all = [&] {
    return std::array{
        call(streams, &Streams::CreateStream, create, v1::CreateStreamResponse()),
        call(streams, &Streams::DescribeStream, describe, v1::DescribeStreamResponse()),
        call(streams, &Streams::DeleteStream, remove, v1::DeleteStreamResponse()),
        call(info, &v1::InfoService::Stub::GetInfo, v1::GetInfoRequest(), v1::GetInfoResponse())};
  };
  // Nobody waits for a query thread, but who may look at every stream.
  for (const grpc::Status& status : all()) EXPECT_TRUE(status.ok()) << status.error_message();
  const double waiting = Waiting();
  auto second = std::async(std::launch::async, [&] {
    return call(streams, &Streams::ListStreams, v1::ListStreamsRequest(),
                v1::ListStreamsResponse());
  });
  ASSERT_TRUE(WaitUntil([&] { return Waiting() > waiting; }));
  EXPECT_FALSE(MayBegin(1));
  places = 0;
  for (const grpc::Status& status : all()) {
    EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
    EXPECT_EQ(status.error_message(), kTwoCalls);
    EXPECT_EQ(RetrySeconds(status), 1U);
  }
  EXPECT_EQ(Refused("calls"), 4);
  server_->query_barrier.Open();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return server_->peers->peers() == 0; }));
}

// Its stream of HTTP/2 takes 64 KiB, and nothing is read.
class UnreadQuantiles {
 public:
  UnreadQuantiles(grpc::GenericStub& stub, int phis) {
    v1::QuantilesRequest request;
    request.set_stream("s");
    for (int i = 0; i < phis; ++i) request.add_phi(0.5);
    bool own = false;
    grpc::ByteBuffer bytes;
    EXPECT_TRUE(
        grpc::SerializationTraits<google::protobuf::Message>::Serialize(request, &bytes, &own)
            .ok());
    call_ = stub.PrepareCall(&context_, "/tidemark.v1.QueryService/Quantiles", &queue_);
    call_->StartCall(nullptr);
    Next();
    call_->WriteLast(bytes, {}, nullptr);
    Next();
  }
  ~UnreadQuantiles() {
    context_.TryCancel();
    End();
    queue_.Shutdown();
    Next();
  }
  grpc::Status Read() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    Next();
    return End();
  }

 private:
  grpc::Status End() {
    if (!std::exchange(ended_, true)) {
      call_->Finish(&status_, nullptr);
      Next();
    }
    return status_;
  }
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool ended_ = false;
};

class UnreadAnswersTest : public PeerCallsTest {
 protected:
  void Start(const PeerLimits& limits) {
    PeerCallsTest::Start(limits);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_.emplace(grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port),
                                            grpc::InsecureChannelCredentials(), arguments));
  }
  // An answer of 10,000 rows, which is computed and waits to be read.
  std::unique_ptr<UnreadQuantiles> Unread() {
    const std::uint64_t before = server_->QueriesTimed("quantiles");
    auto call = std::make_unique<UnreadQuantiles>(*stub_, 10'000);
    EXPECT_TRUE(WaitUntil([&] {
      return server_->QueriesTimed("quantiles") > before && server_->calls.running() == 0;
    }));
    return call;
  }
  std::optional<grpc::GenericStub> stub_;
};

TEST_F(UnreadAnswersTest, AreCallsOfTheirPeer) {
  Start({.calls = 2});
  auto first = Unread();
  const auto second = Unread();
  EXPECT_EQ(Quantiles(1).error_message(), kTwoCalls);
  first.reset();
  EXPECT_TRUE(WaitUntil([&] { return Quantiles(1).ok(); }));
}

TEST_F(UnreadAnswersTest, AndBytes) {
  Start({.bytes = 600'000});
  auto first = Unread();
  const auto second = Unread();
  EXPECT_EQ(Refused("bytes"), 1);
  EXPECT_EQ(server_->QueryErrors("quantiles", "RESOURCE_EXHAUSTED"), 1);
  const grpc::Status refused = second->Read();
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(RetrySeconds(refused), 1U);
  EXPECT_NE(refused.error_message().find("read the answers before it first"), std::string::npos)
      << refused.error_message();
  first.reset();
  EXPECT_TRUE(WaitUntil([&] { return Quantiles(10'000).ok(); }));
}

TEST_F(PeerCallsTest, PushesAndSubscriptionsAreCallsToo) {
  Start({.calls = 2});
  grpc::ClientContext watch_context;
  v1::WatchRequest watch;
  watch.mutable_quantiles()->set_stream("s");
  watch.mutable_quantiles()->add_phi(0.5);
  const auto subscription = query_->Watch(&watch_context, watch);
  v1::WatchResponse answer;
  ASSERT_TRUE(subscription->Read(&answer));
  grpc::ClientContext push_context;
  const auto push = ingest_->PushAcknowledged(&push_context);
  v1::PushAcknowledgedRequest batch;
  batch.mutable_batch()->set_stream("s");
  batch.mutable_batch()->mutable_float64()->add_values(1);
  ASSERT_TRUE(push->Write(batch));
  v1::PushAcknowledgedResponse acknowledgement;
  ASSERT_TRUE(push->Read(&acknowledgement));

  EXPECT_EQ(Quantiles(1).error_message(), kTwoCalls);
  {
    grpc::ClientContext context;
    const auto refused = query_->Watch(&context, watch);
    EXPECT_FALSE(refused->Read(&answer));
    const grpc::Status status = refused->Finish();
    EXPECT_EQ(status.error_message(), kTwoCalls);
    EXPECT_EQ(RetrySeconds(status), 1U);
  }
  {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto refused = ingest_->Push(&context, &response);
    refused->WritesDone();
    const grpc::Status status = refused->Finish();
    EXPECT_EQ(status.error_message(), kTwoCalls);
    EXPECT_EQ(RetrySeconds(status), 1U);
  }
  EXPECT_EQ(Refused("calls"), 3);
  EXPECT_EQ(server_->QueryErrors("watch", "RESOURCE_EXHAUSTED"), 1);
  // What ends makes room.
  push->WritesDone();
  EXPECT_TRUE(push->Finish().ok());
  EXPECT_TRUE(WaitUntil([&] { return Quantiles(1).ok(); }));
  watch_context.TryCancel();
  subscription->Finish();
  EXPECT_TRUE(WaitUntil([&] { return server_->peers->peers() == 0; }));
}

}  // namespace
}  // namespace tidemark::server
