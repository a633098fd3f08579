// Pushes: the limit of a batch to the byte, slow readers of acknowledgements, and how calls end at
// shutdown. The limit on calls: ingest_service_test.cc.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/ingest_service.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::WaitUntil;
using Ingest = v1::IngestService::Stub;

v1::Batch Doubles(std::size_t count) {
  v1::Batch batch;
  batch.set_stream("f64");
  for (std::size_t i = 0; i < count; ++i) batch.mutable_float64()->add_values(0);
  return batch;
}
v1::Batch Packed(std::size_t bytes) {
  v1::Batch batch;
  batch.set_stream("f64");
  batch.set_packed(std::string(bytes, '\0'));
  return batch;
}
v1::Batch Items(std::size_t count, std::size_t bytes) {
  v1::Batch batch;
  batch.set_stream("text");
  for (std::size_t i = 0; i < count; ++i) {
    batch.mutable_string()->add_values(std::string(bytes, 'x'));
  }
  return batch;
}

class PushCallsTest : public testing::Test {
 protected:
  void Start(const RpcOptions& options) {
    server_ = std::make_unique<RpcServer>(options);
    stub_ = v1::IngestService::NewStub(server_->channel);
  }
  grpc::Status PushOne(const v1::Batch& batch) {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto call = stub_->Push(&context, &response);
    v1::PushRequest request;
    *request.mutable_batch() = batch;
    call->Write(request);
    call->WritesDone();
    return call->Finish();
  }
  double Connections() { return Source().connections.Value(); }
  SourceMetrics& Source() { return server_->metrics().source(server::Source::kGrpc); }

  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Ingest> stub_;
};

TEST_F(PushCallsTest, ABatchMayHoldTheLimitAndNotOneValueMore) {
  Start({.ingest = {.batch_bytes_max = 4096}});
  EXPECT_TRUE(PushOne(Doubles(512)).ok());
  EXPECT_TRUE(PushOne(Packed(4096)).ok());
  EXPECT_TRUE(PushOne(Items(4, 1020)).ok()) << "an item takes 4 bytes more than its text";
  EXPECT_EQ(server_->Refused("frame_too_large"), 0);

  double refused = 0;
  for (const auto& [batch, bytes, values] :
       {std::tuple(Doubles(513), "4104", 513.0), std::tuple(Packed(4104), "4104", 513.0),
        std::tuple(Items(5, 816), "4100", 5.0)}) {
    const grpc::Status status = PushOne(batch);
    EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_EQ(status.error_message(),
              "a batch of " + std::string(bytes) + " bytes is too large; expected at most 4096");
    EXPECT_EQ(RetrySeconds(status), std::nullopt) << "it would be refused again";
    refused += values;
    EXPECT_EQ(server_->Refused("frame_too_large"), refused);
  }
  EXPECT_EQ(Source().values.Value(), 512 + 512 + 4);
}

// gRPC ends a call at once whose message is larger than it takes, and tells the service nothing but
// that it was cancelled.
TEST_F(PushCallsTest, ACallThatIsCutIsCounted) {
  Start({});
  EXPECT_TRUE(PushOne(Packed(4096)).ok());
  EXPECT_EQ(server_->Refused("cut"), 0);
  EXPECT_EQ(PushOne(Packed(17 << 20)).error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(WaitUntil([&] { return server_->Refused("cut") == 1; }));
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  *request.mutable_batch() = Packed(8);
  ASSERT_TRUE(call->Write(request));
  v1::PushAcknowledgedResponse response;
  ASSERT_TRUE(call->Read(&response));
  context.TryCancel();
  call->Finish();
  EXPECT_TRUE(WaitUntil([&] { return server_->Refused("cut") == 2; }));
  EXPECT_EQ(Source().values.Value(), 513);
}

TEST_F(PushCallsTest, ATooLargeBatchIsAcknowledgedWithItsRefusal) {
  Start({.ingest = {.batch_bytes_max = 4096}});
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  request.set_batch_id(1);
  *request.mutable_batch() = Doubles(513);
  ASSERT_TRUE(call->Write(request));
  request.set_batch_id(2);
  *request.mutable_batch() = Doubles(512);
  ASSERT_TRUE(call->Write(request));
  call->WritesDone();
  v1::PushAcknowledgedResponse response;
  ASSERT_TRUE(call->Read(&response));
  EXPECT_EQ(response.batch_id(), 1u);
  EXPECT_EQ(response.code(), grpc::RESOURCE_EXHAUSTED) << response.message();
  ASSERT_TRUE(call->Read(&response));
  EXPECT_EQ(response.batch_id(), 2u);
  EXPECT_EQ(response.accepted(), 512u) << response.message();
  EXPECT_TRUE(call->Finish().ok());
}

// Over two calls, of either kind; in a stream of packed values and in one of items.
TEST_F(PushCallsTest, NumberedBatchesAreCountedOnce) {
  Start({});
  const std::string producer(16, 'p');
  const auto numbered = [&](v1::Batch batch, std::uint64_t number) {
    batch.set_producer(producer);
    batch.set_number(number);
    return batch;
  };
  for (const v1::Batch& plain : {Packed(80), Items(10, 3)}) {
    const auto push = [&](const std::vector<v1::Batch>& batches, v1::PushResponse* response) {
      grpc::ClientContext context;
      const auto call = stub_->Push(&context, response);
      for (const v1::Batch& batch : batches) {
        v1::PushRequest request;
        *request.mutable_batch() = batch;
        call->Write(request);
      }
      call->WritesDone();
      return call->Finish();
    };
    v1::PushResponse total;
    ASSERT_TRUE(push({numbered(plain, 1), numbered(plain, 2), numbered(plain, 1)}, &total).ok());
    EXPECT_EQ(total.batches(), 3u);
    EXPECT_EQ(total.duplicates(), 1u);
    EXPECT_EQ(total.accepted(), 30u);
    grpc::ClientContext context;
    const auto call = stub_->PushAcknowledged(&context);
    v1::PushAcknowledgedRequest request;
    v1::PushAcknowledgedResponse response;
    for (const std::uint64_t number : {2, 3, 3}) {
      *request.mutable_batch() = numbered(plain, number);
      ASSERT_TRUE(call->Write(request));
    }
    for (const bool duplicate : {true, false, true}) {
      ASSERT_TRUE(call->Read(&response));
      EXPECT_EQ(response.duplicate(), duplicate);
      EXPECT_EQ(response.accepted(), 10u) << response.message();
    }
    *request.mutable_batch() = numbered(plain, 5);
    request.mutable_batch()->set_producer(std::string(16, 'q'));
    ASSERT_TRUE(call->Write(request));
    ASSERT_TRUE(call->Read(&response));
    EXPECT_EQ(response.code(), grpc::FAILED_PRECONDITION) << response.message();
    call->WritesDone();
    EXPECT_TRUE(call->Finish().ok());
  }
  EXPECT_EQ(Source().values.Value(), 2 * 3 * 10);
  EXPECT_EQ(Source().duplicates.Value(), 2 * 3);
  EXPECT_EQ(server_->Refused("unknown_producer"), 2 * 10);
}

TEST_F(PushCallsTest, HalfOfAProducerIsRefused) {
  Start({});
  for (const auto& [producer, number] :
       std::vector<std::pair<std::string, int>>{{std::string(16, 'p'), 0},
                                                {"", 1},
                                                {std::string(15, 'p'), 1},
                                                {std::string(16, '\0'), 1}}) {
    v1::Batch batch = Packed(8);
    batch.set_producer(producer);
    batch.set_number(static_cast<std::uint64_t>(number));
    EXPECT_EQ(PushOne(batch).error_code(), grpc::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Source().values.Value(), 0);
}

// Their texts are longer than what gRPC keeps inline.
TEST_F(PushCallsTest, ManyRefusalsInARow) {
  Start({});
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  *request.mutable_batch() = Packed(5);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    request.set_batch_id(id);
    ASSERT_TRUE(call->Write(request));
  }
  call->WritesDone();
  v1::PushAcknowledgedResponse response;
  for (std::uint64_t id = 1; id <= 20; ++id) {
    ASSERT_TRUE(call->Read(&response));
    EXPECT_EQ(response.batch_id(), id);
    EXPECT_EQ(response.code(), grpc::INVALID_ARGUMENT);
    EXPECT_GT(response.message().size(), 30u);
  }
  EXPECT_FALSE(call->Read(&response));
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_EQ(server_->Refused("bad_value"), 20);
}

// Small items take 25 times their bytes once they are parsed, and a name may be as long as a batch.
TEST_F(PushCallsTest, ACallThatFallsSilentHoldsNothingOfItsBatches) {
  Start({});
  // What is allocated, by whomever: where another allocator counts, always 0.
  const auto held = [] {
    const auto info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  struct Silent {
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse>>
        call;
  };
  const auto send = [&](Silent& silent, const v1::Batch& batch) {
    v1::PushAcknowledgedRequest request;
    *request.mutable_batch() = batch;
    EXPECT_TRUE(silent.call->Write(request));
    v1::PushAcknowledgedResponse response;
    EXPECT_TRUE(silent.call->Read(&response));
    return response.code();
  };
  const auto begin = [&] {
    auto silent = std::make_unique<Silent>();
    silent->call = stub_->PushAcknowledged(&silent->context);
    EXPECT_EQ(send(*silent, Items(10, 10)), grpc::OK);
    return silent;
  };
  const std::unique_ptr<Silent> calls[] = {begin(), begin(), begin(), begin()};
  const double before = held();
  for (const auto& silent : calls) {
    EXPECT_EQ(send(*silent, Items(500'000, 0)), grpc::OK);
    v1::Batch named = Items(1, 1);
    named.set_stream(std::string(4 << 20, 'n'));
    EXPECT_EQ(send(*silent, named), grpc::INVALID_ARGUMENT);
    EXPECT_EQ(send(*silent, Items(1, 1)), grpc::OK);
    EXPECT_EQ(send(*silent, named), grpc::INVALID_ARGUMENT);
  }
  constexpr double kMost = 16 << 20;  // gRPC keeps some; the items alone were 100 MB, the names 16
  EXPECT_TRUE(WaitUntil([&] { return held() - before < kMost; })) << held() - before;
  // A batch without a name is still of the one before, which no stream can have.
  v1::Batch unnamed = Items(1, 1);
  unnamed.clear_stream();
  EXPECT_EQ(send(*calls[0], unnamed), grpc::INVALID_ARGUMENT);
  for (const auto& silent : calls) silent->call->WritesDone();
  for (const auto& silent : calls) EXPECT_TRUE(silent->call->Finish().ok());
}

// Not even parsed: its bytes alone are beyond a batch with the longest names.
TEST_F(PushCallsTest, ATooLargeMessageEndsTheCall) {
  Start({.ingest = {.batch_bytes_max = 4096}});
  const std::size_t bytes = 4096 + IngestServiceImpl::kMessageOverheadBytes + 1;
  const grpc::Status status = PushOne(Packed(bytes));
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("a message of "), std::string::npos);
  EXPECT_NE(status.error_message().find("at most 4096 bytes"), std::string::npos);
  EXPECT_EQ(server_->Refused("frame_too_large"), 1);
}

TEST_F(PushCallsTest, TextThatIsNotUtf8IsNamed) {
  Start({});
  v1::Batch batch = Doubles(1);
  batch.set_stream("bad\xff");
  const grpc::Status status = PushOne(batch);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "stream \"bad\\xff\" is not UTF-8: bad byte at offset 3");
  EXPECT_EQ(server_->Refused("bad_name"), 1);

  batch = {};
  batch.set_stream("text");
  batch.mutable_string()->add_values("fine");
  batch.mutable_string()->add_values("\xc0\xaf");
  EXPECT_EQ(PushOne(batch).error_message(),
            "values \"\\xc0\\xaf\" is not UTF-8: bad byte at offset 0");
  EXPECT_EQ(server_->Refused("bad_utf8"), 1);
  EXPECT_EQ(server_->Refused("bad_frame"), 0);
}

TEST_F(PushCallsTest, CallsBeyondTheLimitMayTryAgain) {
  Start({.ingest = {.calls_max = 0}});
  const grpc::Status status = PushOne(Doubles(1));
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(RetrySeconds(status), 1u);
}

// Through an in-process channel, which has no buffers: what is not read stays with the server.
TEST_F(PushCallsTest, ASenderThatDoesNotReadItsAcknowledgementsIsNotReadFrom) {
  Start({});
  stub_ = v1::IngestService::NewStub(server_->server->InProcessChannel({}));
  constexpr std::uint64_t kBatches = 2000;
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  std::thread sender([&] {
    v1::PushAcknowledgedRequest request;
    for (std::uint64_t id = 1; id <= kBatches; ++id) {
      request.set_batch_id(id);
      *request.mutable_batch() = Doubles(1);
      EXPECT_TRUE(call->Write(request));
    }
    call->WritesDone();
  });
  EXPECT_TRUE(WaitUntil([&] { return Source().paused.Value() > 0; }));
  EXPECT_LE(Source().values.Value(), 256) << "acknowledgements that wait are bounded";
  v1::PushAcknowledgedResponse response;
  for (std::uint64_t id = 1; id <= kBatches; ++id) {
    ASSERT_TRUE(call->Read(&response));
    ASSERT_EQ(response.batch_id(), id);
    ASSERT_EQ(response.accepted(), 1u);
  }
  sender.join();
  EXPECT_FALSE(call->Read(&response));
  EXPECT_TRUE(call->Finish().ok());
  EXPECT_EQ(Source().values.Value(), kBatches);
}

TEST_F(PushCallsTest, ShutdownAcknowledgesWhatWasTakenInAndEndsTheCalls) {
  Start({});
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  *request.mutable_batch() = Doubles(3);
  for (std::uint64_t id = 1; id <= 100; ++id) {
    request.set_batch_id(id);
    ASSERT_TRUE(call->Write(request));
  }
  grpc::ClientContext plain_context;
  v1::PushResponse plain_response;
  const auto plain = stub_->Push(&plain_context, &plain_response);
  v1::PushRequest plain_request;
  *plain_request.mutable_batch() = Doubles(5);
  ASSERT_TRUE(plain->Write(plain_request));
  ASSERT_TRUE(WaitUntil([&] { return Source().values.Value() == 305; }));

  server_->ingest.EndCalls();
  // Neither sender does anything, and both calls end.
  v1::PushAcknowledgedResponse response;
  std::uint64_t accepted = 0;
  while (call->Read(&response)) accepted += response.accepted();
  EXPECT_EQ(accepted, 300u);
  const grpc::Status ended = call->Finish();
  EXPECT_EQ(ended.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(ended.error_message(), "the server is shutting down");
  EXPECT_EQ(RetrySeconds(ended), 1u);
  const grpc::Status plain_ended = plain->Finish();
  EXPECT_EQ(plain_ended.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(plain_ended.error_message(),
            "the server is shutting down; 1 batches with 5 values of this call were taken in");
  EXPECT_TRUE(WaitUntil([&] { return server_->ingest.calls() == 0; }));

  const grpc::Status later = PushOne(Doubles(1));
  EXPECT_EQ(later.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(RetrySeconds(later), 1u);
  EXPECT_EQ(server_->Refused("shutting_down"), 1);
  EXPECT_EQ(Source().values.Value(), 305);
}

// Senders that never stop: what is counted is what was acknowledged, whatever was on its way.
TEST_F(PushCallsTest, ShutdownInTheMiddleOfASendersBatches) {
  for (int round = 0; round < 20; ++round) {
    Start({});
    grpc::ClientContext context;
    const auto call = stub_->PushAcknowledged(&context);
    std::thread sender([&] {
      v1::PushAcknowledgedRequest request;
      *request.mutable_batch() = Doubles(1);
      while (call->Write(request)) {
      }
    });
    std::uint64_t accepted = 0;
    v1::PushAcknowledgedResponse response;
    while (call->Read(&response)) {
      accepted += response.accepted();
      if (accepted == 50) server_->ingest.EndCalls();
    }
    sender.join();
    EXPECT_EQ(call->Finish().error_code(), grpc::UNAVAILABLE);
    EXPECT_EQ(Source().values.Value(), static_cast<double>(accepted));
    EXPECT_TRUE(WaitUntil([&] { return server_->ingest.calls() == 0; }));
  }
}

// A call that waits for room in the stages behind ends too, and nothing resumes it later.
TEST_F(PushCallsTest, ShutdownWhileTheStagesBehindAreFull) {
  RpcOptions options{.hold_sorter = true};
  options.pipeline.pending_keys_max = 256;
  options.pipeline.window_limits = {.min = 256, .max = 256};
  Start(options);
  grpc::ClientContext context;
  const auto call = stub_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  *request.mutable_batch() = Doubles(1024);
  ASSERT_TRUE(call->Write(request));
  v1::PushAcknowledgedResponse response;
  ASSERT_TRUE(call->Read(&response));
  ASSERT_TRUE(WaitUntil([&] { return Source().paused.Value() == 1; }));
  server_->ingest.EndCalls();
  EXPECT_FALSE(call->Read(&response));
  EXPECT_EQ(call->Finish().error_code(), grpc::UNAVAILABLE);
  EXPECT_TRUE(WaitUntil([&] { return server_->ingest.calls() == 0; }));
  server_->sorter_barrier.Open();
}

}  // namespace
}  // namespace tidemark::server
