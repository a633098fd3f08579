// Calls that wait for the log, while the disk hangs: they hold up nobody else, and end when their
// caller has gone.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/durability/durable_log.h"
#include "server/rpc/summary_service.h"
#include "server/window/call_back.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/support/fake_disk.h"
#include "tests/support/wait_until.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"
#include "tidemark/v1/streams.grpc.pb.h"
#include "tidemark/v1/subscriptions.grpc.pb.h"

namespace tidemark::server {
namespace {

using std::chrono::system_clock;
using test::WaitUntil;

class DurableCallsTest : public ::testing::Test {
 protected:
  DurableCallsTest() {
    store::LogOptions options;
    options.folder = "/log";
    options.sync_interval = std::chrono::microseconds(200);
    options.pending_bytes_max = kPendingBytesMax;
    log_.emplace(disk_, options, store::LogEnd{}, 1, 1, DurableLog::Trouble());
    server_.emplace(RpcOptions{.query_threads = kThreads,
                               .query_queue_max = 100,
                               .peers = PeerLimits{.calls = kCallsMax}});
    server_->behind.pipeline.UseLog(&*log_);
    queries_ = v1::QueryService::NewStub(server_->channel);
    subscriptions_ = v1::SubscriptionService::NewStub(server_->channel);
    streams_ = v1::StreamService::NewStub(server_->channel);
    ingest_ = v1::IngestService::NewStub(server_->channel);
    const std::uint32_t one = 1;
    server_->behind.Append<std::uint32_t>("s", ValueType::kUint32, {&one, 1});
  }
  ~DurableCallsTest() override { disk_.HoldSyncs(false); }

  static void Bound(grpc::ClientContext& context, std::chrono::milliseconds bound) {
    context.set_deadline(system_clock::now() + bound);
  }
  grpc::StatusCode Top() {
    grpc::ClientContext context;
    Bound(context, std::chrono::seconds(20));
    v1::HeavyHittersRequest request;
    request.set_stream("s");
    request.set_support(0.5);
    v1::HeavyHittersResponse response;
    return queries_->HeavyHitters(&context, request, &response).error_code();
  }
  grpc::StatusCode Subscribe(const std::string& name, std::chrono::milliseconds bound) {
    grpc::ClientContext context;
    Bound(context, bound);
    v1::CreateSubscriptionRequest request;
    request.set_name(name);
    request.mutable_watch()->mutable_heavy_hitters()->set_stream("s");
    request.mutable_watch()->mutable_heavy_hitters()->set_support(0.5);
    v1::CreateSubscriptionResponse response;
    return subscriptions_->CreateSubscription(&context, request, &response).error_code();
  }
  grpc::StatusCode Unsubscribe(const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteSubscriptionRequest request;
    request.set_name(name);
    v1::DeleteSubscriptionResponse response;
    return subscriptions_->DeleteSubscription(&context, request, &response).error_code();
  }

  static constexpr int kThreads = 2;
  static constexpr std::size_t kCallsMax = 20;
  static constexpr std::size_t kPendingBytesMax = 64 * 1024;
  testing::FakeDisk disk_;
  std::optional<DurableLog> log_;
  std::optional<RpcServer> server_;
  std::unique_ptr<v1::QueryService::Stub> queries_;
  std::unique_ptr<v1::SubscriptionService::Stub> subscriptions_;
  std::unique_ptr<v1::StreamService::Stub> streams_;
  std::unique_ptr<v1::IngestService::Stub> ingest_;
};

// Pushes of one numbered batch, again and again, as a producer does whose calls end at their
// deadline.
class DurablePushesTest : public DurableCallsTest {
 protected:
  // Of values; with half of the log's pending bytes the log is behind.
  static v1::Batch Numbered(std::size_t count) {
    v1::Batch batch;
    batch.set_stream("s");
    batch.set_packed(std::string(count * sizeof(std::uint32_t), '\0'));
    batch.set_producer(std::string(16, 'p'));
    batch.set_number(1);
    return batch;
  }
  grpc::StatusCode Push(const v1::Batch& batch, bool last, std::chrono::milliseconds bound,
                        v1::PushResponse* response) {
    grpc::ClientContext context;
    Bound(context, bound);
    const auto call = ingest_->Push(&context, response);
    v1::PushRequest request;
    *request.mutable_batch() = batch;
    call->Write(request);
    if (last) call->WritesDone();
    return call->Finish().error_code();
  }
  grpc::StatusCode PushAcknowledged(const v1::Batch& batch, bool last,
                                    std::chrono::milliseconds bound) {
    grpc::ClientContext context;
    Bound(context, bound);
    const auto call = ingest_->PushAcknowledged(&context);
    v1::PushAcknowledgedRequest request;
    *request.mutable_batch() = batch;
    call->Write(request);
    if (last) call->WritesDone();
    v1::PushAcknowledgedResponse response;
    EXPECT_FALSE(call->Read(&response)) << "nothing is durable";
    return call->Finish().error_code();
  }
  // More attempts than a peer may have calls. `push(bound)` makes one.
  void EndAtTheirDeadlines(std::size_t count, auto push) {
    const double before = Source().values.Value();
    disk_.HoldSyncs(true);
    for (std::size_t i = 0; i < kCallsMax + 5; ++i) {
      ASSERT_EQ(push(std::chrono::milliseconds(40)), grpc::DEADLINE_EXCEEDED) << "attempt " << i;
      ASSERT_TRUE(WaitUntil([&] { return server_->ingest.calls() == 0; })) << "attempt " << i;
    }
    EXPECT_EQ(Top(), grpc::OK);
    disk_.HoldSyncs(false);
    v1::PushResponse response;
    EXPECT_EQ(Push(Numbered(count), true, std::chrono::seconds(20), &response), grpc::OK);
    EXPECT_EQ(response.duplicates(), 1u);
    EXPECT_EQ(Source().values.Value(), before + static_cast<double>(count)) << "counted once";
    const store::LogStats log = log_->Stats();
    EXPECT_EQ(log.durable_sequence, log.last_sequence);
  }
  SourceMetrics& Source() { return server_->metrics().source(server::Source::kGrpc); }
};

TEST_F(DurableCallsTest, NoThreadWaitsForADiskThatHangs) {
  disk_.HoldSyncs(true);
  std::vector<std::future<grpc::StatusCode>> held;
  const auto subscriptions = [&] { return server_->behind.pipeline.streams().subscriptions(); };
  for (std::size_t i = 0; i < 4 * kThreads; ++i) {
    held.push_back(std::async(std::launch::async, [this, i] {
      return Subscribe("q" + std::to_string(i), std::chrono::seconds(60));
    }));
  }
  // All of them were begun and wait for the log.
  ASSERT_TRUE(WaitUntil([&] { return subscriptions() == 4 * kThreads; }));
  EXPECT_EQ(Top(), grpc::OK);
  held.push_back(std::async(std::launch::async, [this] { return Unsubscribe("q0"); }));
  ASSERT_TRUE(WaitUntil([&] { return subscriptions() == 4 * kThreads - 1; }));
  EXPECT_EQ(Top(), grpc::OK);
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == held.size(); }));
  disk_.HoldSyncs(false);
  for (auto& call : held) EXPECT_EQ(call.get(), grpc::OK);
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
}

TEST_F(DurableCallsTest, ACallThatWaitsIsACallOfItsPeer) {
  disk_.HoldSyncs(true);
  std::vector<std::future<grpc::Status>> held;
  for (std::size_t i = 0; i < kCallsMax; ++i) {
    held.push_back(std::async(std::launch::async, [this, i] {
      grpc::ClientContext context;
      Bound(context, std::chrono::seconds(60));
      v1::CreateStreamRequest request;
      request.set_name("new" + std::to_string(i));
      v1::CreateStreamResponse response;
      return streams_->CreateStream(&context, request, &response);
    }));
  }
  ASSERT_TRUE(WaitUntil([&] { return server_->behind.pipeline.streams().size() > kCallsMax; }));
  EXPECT_EQ(Top(), grpc::RESOURCE_EXHAUSTED);
  disk_.HoldSyncs(false);
  for (auto& call : held) EXPECT_TRUE(call.get().ok());
  EXPECT_TRUE(WaitUntil([&] { return Top() == grpc::OK; }));
}

TEST_F(DurableCallsTest, TheDeadlineEndsTheCall) {
  disk_.HoldSyncs(true);
  EXPECT_EQ(Subscribe("q", std::chrono::milliseconds(200)), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
  EXPECT_EQ(server_->QueryErrors("create_subscription", "DEADLINE_EXCEEDED"), 1);
  disk_.HoldSyncs(false);
  EXPECT_EQ(Subscribe("q", std::chrono::seconds(20)), grpc::OK) << "the same again";
}

TEST_F(DurableCallsTest, ADiskThatFailsEndsTheCall) {
  disk_.HoldSyncs(true);
  auto call =
      std::async(std::launch::async, [this] { return Subscribe("q", std::chrono::seconds(60)); });
  ASSERT_TRUE(WaitUntil([&] { return server_->behind.pipeline.streams().subscriptions() == 1; }));
  disk_.FailAll(ENOSPC);
  disk_.HoldSyncs(false);
  EXPECT_EQ(call.get(), grpc::UNAVAILABLE);
  disk_.Heal();
}

// NOT_FOUND and ALREADY_EXISTS tell who asks again that the first attempt did it: not before it is
// durable.
TEST_F(DurableCallsTest, WhatIsSaidOfAnEarlierChangeWaitsForIt) {
  disk_.HoldSyncs(true);
  const auto streams = [&] { return server_->behind.pipeline.streams().size(); };
  std::vector<std::future<grpc::StatusCode>> calls;
  const auto later = [&](auto call) {
    calls.push_back(std::async(std::launch::async, call));
    const std::size_t begun = calls.size();
    ASSERT_TRUE(WaitUntil([&] { return server_->calls.running() == begun; }));
  };
  const auto create = [this](v1::ValueType type) {
    grpc::ClientContext context;
    v1::CreateStreamRequest request;
    request.set_name("t");
    request.mutable_config()->set_type(type);
    v1::CreateStreamResponse response;
    return streams_->CreateStream(&context, request, &response).error_code();
  };
  const auto remove = [this] {
    grpc::ClientContext context;
    v1::DeleteStreamRequest request;
    request.set_name("s");
    v1::DeleteStreamResponse response;
    return streams_->DeleteStream(&context, request, &response).error_code();
  };
  later([&] { return create(v1::VALUE_TYPE_UINT32); });
  ASSERT_TRUE(WaitUntil([&] { return streams() == 2; }));
  later([&] { return create(v1::VALUE_TYPE_STRING); });  // ALREADY_EXISTS
  later(remove);
  ASSERT_TRUE(WaitUntil([&] { return streams() == 1; }));
  later(remove);  // NOT_FOUND
  later([this] { return Unsubscribe("none"); });
  disk_.FailAll(ENOSPC);
  disk_.HoldSyncs(false);
  for (auto& call : calls) EXPECT_EQ(call.get(), grpc::UNAVAILABLE);
  EXPECT_EQ(remove(), grpc::UNAVAILABLE);
  disk_.Heal();
  EXPECT_TRUE(WaitUntil([&] { return remove() == grpc::NOT_FOUND; }));
  EXPECT_EQ(create(v1::VALUE_TYPE_STRING), grpc::ALREADY_EXISTS);
}

// What is refused waits for the log too, and appends nothing that would bound how often.
TEST_F(DurableCallsTest, TheLogKeepsNothingOfCallsThatHaveEnded) {
  disk_.HoldSyncs(true);
  server_->behind.pipeline.streams().Create("t", StreamSettings{}).IgnoreError();
  for (std::size_t i = 0; i < 3 * GoneAskers::kLeast; ++i) {
    grpc::ClientContext context;
    Bound(context, std::chrono::milliseconds(10));
    v1::DeleteStreamRequest request;
    request.set_name("none");
    v1::DeleteStreamResponse response;
    EXPECT_EQ(streams_->DeleteStream(&context, request, &response).error_code(),
              grpc::DEADLINE_EXCEEDED);
    ASSERT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
    ASSERT_LE(log_->waiting(), GoneAskers::kLeast + 1);
  }
  disk_.HoldSyncs(false);
}

TEST_F(DurablePushesTest, APushWhoseSenderHasGoneWaitsForNoDisk) {
  EndAtTheirDeadlines(10, [this](std::chrono::milliseconds bound) {
    v1::PushResponse response;
    return Push(Numbered(10), true, bound, &response);
  });
}

TEST_F(DurablePushesTest, NorDoAcknowledgements) {
  bool last = false;
  EndAtTheirDeadlines(10, [&](std::chrono::milliseconds bound) {
    last = !last;
    return PushAcknowledged(Numbered(10), last, bound);
  });
}

TEST_F(DurablePushesTest, NorACallThatReadsNothingMoreWhileTheLogIsBehind) {
  constexpr std::size_t kCount = kPendingBytesMax / 2 / sizeof(std::uint32_t);
  bool acknowledged = false;
  EndAtTheirDeadlines(kCount, [&](std::chrono::milliseconds bound) {
    acknowledged = !acknowledged;
    if (acknowledged) return PushAcknowledged(Numbered(kCount), false, bound);
    v1::PushResponse response;
    return Push(Numbered(kCount), false, bound, &response);
  });
  EXPECT_GT(Source().paused.Value(), 0);
}

}  // namespace
}  // namespace tidemark::server
