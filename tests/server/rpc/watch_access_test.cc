// Subscriptions of those who may, and of those who may not, at the limit.
#include <gtest/gtest.h>

#include "tests/server/rpc/rpc_fixture.h"
#include "tidemark/v1/query.grpc.pb.h"

namespace tidemark::server {
namespace {

std::shared_ptr<const Policy> QueriesOf(const std::string& pattern) {
  const Policy::Sources none;
  const auto policy =
      Policy::Parse("[principal.anonymous]\nquery = [\"" + pattern + "\"]\n", "rules.toml", none);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(nullptr);
}

v1::WatchRequest WatchOf(const std::string& stream) {
  v1::WatchRequest request;
  request.mutable_quantiles()->set_stream(stream);
  request.mutable_quantiles()->add_phi(0.5);
  return request;
}

TEST(WatchAccessTest, WhoMayNotTakesNobodysPlace) {
  RpcServer server({.subscriptions_max = 1, .rules = QueriesOf("mine")});
  const double one = 1;
  server.behind.Append<double>("mine", ValueType::kFloat64, {&one, 1});
  const auto stub = v1::QueryService::NewStub(server.channel);
  const auto end = [&](const std::string& stream) {
    grpc::ClientContext context;
    const auto call = stub->Watch(&context, WatchOf(stream));
    v1::WatchResponse response;
    while (call->Read(&response)) {
    }
    return call->Finish().error_code();
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(end("theirs"), grpc::PERMISSION_DENIED);
  grpc::ClientContext context;
  const auto open = stub->Watch(&context, WatchOf("mine"));
  v1::WatchResponse response;
  ASSERT_TRUE(open->Read(&response));
  EXPECT_EQ(end("theirs"), grpc::PERMISSION_DENIED) << "and not that the limit is reached";
  EXPECT_EQ(end("mine"), grpc::RESOURCE_EXHAUSTED);
  context.TryCancel();
  open->Finish();
}

}  // namespace
}  // namespace tidemark::server
