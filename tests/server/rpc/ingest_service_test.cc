// The limit on ingest calls. What a call does with its batches: tests/e2e, tests/fuzz.
#include "server/rpc/ingest_service.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/server/rpc/in_process_server.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/wait_until.h"
#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::server {
namespace {

using test::WaitUntil;

class IngestServiceTest : public testing::Test {
 protected:
  // A call that was let in: its first batch is acknowledged.
  struct OpenCall {
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::PushAcknowledgedRequest, v1::PushAcknowledgedResponse>>
        stream;
    bool admitted = false;
  };
  std::unique_ptr<OpenCall> Open() {
    auto call = std::make_unique<OpenCall>();
    call->stream = stub_->PushAcknowledged(&call->context);
    v1::PushAcknowledgedRequest request;
    request.mutable_batch()->set_stream("s");
    request.mutable_batch()->mutable_float64()->add_values(1);
    v1::PushAcknowledgedResponse response;
    call->admitted = call->stream->Write(request) && call->stream->Read(&response) &&
                     response.code() == grpc::OK && response.accepted() == 1;
    return call;
  }
  static grpc::Status Close(OpenCall& call) {
    call.stream->WritesDone();
    return call.stream->Finish();
  }
  grpc::Status PushOne() {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto writer = stub_->Push(&context, &response);
    v1::PushRequest request;
    request.mutable_batch()->set_stream("s");
    request.mutable_batch()->mutable_float64()->add_values(1);
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  }
  SourceMetrics& metrics() { return pipeline_.metrics.source(Source::kGrpc); }

  static constexpr std::uint64_t kCallsMax = 2;
  TestPipeline pipeline_;
  IngestServiceImpl service_{pipeline_.pipeline, pipeline_.metrics,
                             IngestLimits{.calls_max = kCallsMax}, [] { return 0; }};
  InProcessServer server_{service_};
  std::unique_ptr<v1::IngestService::Stub> stub_ = v1::IngestService::NewStub(server_.channel());
};

TEST_F(IngestServiceTest, CallsBeyondTheLimitAreRefusedAndCounted) {
  const auto first = Open();
  const auto second = Open();
  ASSERT_TRUE(first->admitted && second->admitted);
  EXPECT_EQ(service_.calls(), kCallsMax);
  EXPECT_EQ(metrics().connections.Value(), kCallsMax);

  const auto third = Open();
  EXPECT_FALSE(third->admitted);
  const grpc::Status refused = Close(*third);
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(), "the limit of 2 ingest calls at a time is reached");
  EXPECT_EQ(PushOne().error_code(), grpc::RESOURCE_EXHAUSTED) << "the other method has no limit";
  EXPECT_EQ(metrics().connections_refused.Value(), 2);
  EXPECT_EQ(service_.calls(), kCallsMax) << "a refused call took a place";
  EXPECT_EQ(metrics().values.Value(), 2) << "a refused call's values were taken in";

  // A place that becomes free is given to the next.
  EXPECT_TRUE(Close(*first).ok());
  EXPECT_TRUE(WaitUntil([&] { return service_.calls() == 1; }));
  EXPECT_TRUE(PushOne().ok());
  EXPECT_TRUE(Close(*second).ok());
  EXPECT_TRUE(WaitUntil([&] { return service_.calls() == 0; }));
  EXPECT_EQ(metrics().connections.Value(), 0);
  EXPECT_EQ(metrics().connections_refused.Value(), 2);
}

TEST_F(IngestServiceTest, ACallThatIsCancelledGivesItsPlaceBack) {
  auto first = Open();
  auto second = Open();
  first->context.TryCancel();
  second.reset();  // never finished: the client is gone
  EXPECT_EQ(first->stream->Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(WaitUntil([&] { return service_.calls() == 0; }));
  EXPECT_TRUE(Open()->admitted);
}

TEST_F(IngestServiceTest, NoCallIsLetInDuringAShutdown) {
  service_.EndCalls();
  EXPECT_EQ(PushOne().error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(service_.calls(), 0u);
  EXPECT_EQ(metrics().connections_refused.Value(), 0) << "not for the limit";
}

}  // namespace
}  // namespace tidemark::server
