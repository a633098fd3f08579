#include "tests/fault/disk_trouble.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tidemark/v1/ingest.grpc.pb.h"

namespace tidemark::fault {
namespace {

// One value, by a call without retries: it may be counted in the end, though it is refused. So it
// goes to a stream of its own.
grpc::Status Push(v1::IngestService::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::kPatience);
  v1::PushResponse response;
  const auto writer = stub.Push(&context, &response);
  v1::PushRequest request;
  request.mutable_batch()->set_stream(std::string(kProbeStream));
  request.mutable_batch()->set_type(v1::VALUE_TYPE_UINT64);
  request.mutable_batch()->set_packed(std::string(8, '\1'));
  writer->Write(request);
  writer->WritesDone();
  return writer->Finish();
}

}  // namespace

double RefusedBatches(FaultRun& run) {
  return run.daemon()->Metric("tidemark_ingest_refused_total{reason=\"log_unavailable\"}");
}

void ExpectRefusedLoudly(FaultRun& run, const std::string& why,
                         const std::function<void()>& again) {
  EXPECT_TRUE(test::WaitUntil([&] { return RefusedBatches(run) > 0; }));
  EXPECT_GE(run.daemon()->Metric("tidemark_log_failures_total"), 1);
  const auto stub = v1::IngestService::NewStub(
      grpc::CreateChannel(run.daemon().grpc_address(), grpc::InsecureChannelCredentials()));
  grpc::Status refused;
  EXPECT_TRUE(test::WaitUntil([&] {
    again();
    refused = Push(*stub);
    return !refused.ok();
  }));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
  EXPECT_NE(refused.error_message().find(why), std::string::npos) << refused.error_message();
  EXPECT_NE(refused.error_details().find("google.rpc.RetryInfo"), std::string::npos);
  EXPECT_EQ(run.daemon()->Get("/-/healthy").code, 200);
  run.daemon().AwaitGrpc();
  for (const FaultStream& stream : kStreams) {
    const std::string name(stream.name);
    const std::uint64_t n = run.daemon()->client().DescribeStream(name).count;
    if (stream.kind == Kind::kTexts) {
      EXPECT_GE(run.daemon()->client().HeavyHitters(name, 0.1).n, n);
    } else {
      EXPECT_GE(run.daemon()->client().Quantiles(name, {0.5}).n, n);
    }
  }
  again();
  // What was durable before may be acknowledged still, and again; nothing else.
  EXPECT_TRUE(test::WaitUntil([&] {
    const std::uint64_t acknowledged = run.writers().acknowledged();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return run.writers().acknowledged() == acknowledged;
  })) << "acknowledged while nothing is durable";
}

}  // namespace tidemark::fault
