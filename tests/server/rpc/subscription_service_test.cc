// Subscriptions over gRPC: what is kept, what is refused and counted, who may do what, and Watch by
// name. That they outlive the process: tests/server/durability, tests/e2e.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/rpc/rpc_fixture.h"
#include "tidemark/v1/query.grpc.pb.h"
#include "tidemark/v1/subscriptions.grpc.pb.h"

namespace tidemark::server {
namespace {

v1::WatchRequest MedianOf(const std::string& stream) {
  v1::WatchRequest request;
  request.mutable_quantiles()->set_stream(stream);
  request.mutable_quantiles()->add_phi(0.5);
  return request;
}

class SubscriptionServiceTest : public ::testing::Test {
 protected:
  void Start(const RpcOptions& options = {}) {
    server_.emplace(options);
    stub_ = v1::SubscriptionService::NewStub(server_->channel);
    queries_ = v1::QueryService::NewStub(server_->channel);
    const double one = 1;
    for (const char* stream : {"mine.a", "mine.b", "theirs"}) {
      server_->behind.Append<double>(stream, ValueType::kFloat64, {&one, 1});
    }
  }
  grpc::Status Create(const std::string& name, const v1::WatchRequest& watch) {
    grpc::ClientContext context;
    v1::CreateSubscriptionRequest request;
    request.set_name(name);
    *request.mutable_watch() = watch;
    v1::CreateSubscriptionResponse response;
    const grpc::Status status = stub_->CreateSubscription(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.subscription().name(), name);
      EXPECT_EQ(response.subscription().watch().SerializeAsString(), watch.SerializeAsString());
    }
    return status;
  }
  grpc::StatusCode Delete(const std::string& name) { return TryDelete(name).error_code(); }
  grpc::Status TryDelete(const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteSubscriptionRequest request;
    request.set_name(name);
    v1::DeleteSubscriptionResponse response;
    return stub_->DeleteSubscription(&context, request, &response);
  }
  // Page by page.
  std::string Names(std::uint32_t page_size = 0, const std::string& prefix = "") {
    std::string names;
    v1::ListSubscriptionsRequest request;
    request.set_page_size(page_size);
    request.set_prefix(prefix);
    do {
      grpc::ClientContext context;
      v1::ListSubscriptionsResponse response;
      EXPECT_TRUE(stub_->ListSubscriptions(&context, request, &response).ok());
      if (page_size != 0) {
        EXPECT_LE(static_cast<std::uint32_t>(response.subscriptions_size()), page_size);
      }
      for (const auto& one : response.subscriptions()) names += one.name() + " ";
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return names;
  }
  // The first answer, or the end.
  grpc::Status Watch(const v1::WatchRequest& request, v1::WatchResponse& response) {
    grpc::ClientContext context;
    const auto call = queries_->Watch(&context, request);
    const bool answered = call->Read(&response);
    if (answered) context.TryCancel();
    const grpc::Status status = call->Finish();
    return answered ? grpc::Status::OK : status;
  }
  grpc::Status WatchNamed(const std::string& name) {
    v1::WatchRequest request;
    request.set_subscription(name);
    v1::WatchResponse response;
    const grpc::Status status = Watch(request, response);
    if (status.ok()) {
      EXPECT_EQ(response.quantiles().answers_size(), 1);
    }
    return status;
  }

  std::optional<RpcServer> server_;
  std::unique_ptr<v1::SubscriptionService::Stub> stub_;
  std::unique_ptr<v1::QueryService::Stub> queries_;
};

TEST_F(SubscriptionServiceTest, AreKeptListedWatchedAndDeleted) {
  Start();
  EXPECT_EQ(Names(), "");
  for (const char* name : {"q3", "q1", "q2", "r"}) {
    EXPECT_TRUE(Create(name, MedianOf("mine.a")).ok());
  }
  EXPECT_EQ(Names(), "q1 q2 q3 r ");
  EXPECT_EQ(Names(1), "q1 q2 q3 r ");
  EXPECT_EQ(Names(3), "q1 q2 q3 r ");
  EXPECT_EQ(Names(4, "q"), "q1 q2 q3 ");
  EXPECT_TRUE(WatchNamed("q2").ok());
  EXPECT_EQ(Delete("q2"), grpc::OK);
  EXPECT_EQ(Delete("q2"), grpc::NOT_FOUND);
  EXPECT_EQ(WatchNamed("q2").error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Names(), "q1 q3 r ");
  server_->behind.pipeline.UpdateGauges();
  EXPECT_EQ(server_->metrics().named_subscriptions().Value(), 3);
}

TEST_F(SubscriptionServiceTest, TheSameAgainIsTheSameAndAnotherIsRefused) {
  Start();
  EXPECT_TRUE(Create("q", MedianOf("mine.a")).ok());
  EXPECT_TRUE(Create("q", MedianOf("mine.a")).ok());
  const grpc::Status other = Create("q", MedianOf("mine.b"));
  EXPECT_EQ(other.error_code(), grpc::ALREADY_EXISTS);
  EXPECT_EQ(other.error_message(), "there is another subscription \"q\"");
  v1::WatchRequest slower = MedianOf("mine.a");
  slower.mutable_interval()->set_seconds(2);
  EXPECT_EQ(Create("q", slower).error_code(), grpc::ALREADY_EXISTS);
}

TEST_F(SubscriptionServiceTest, EndWithTheirStream) {
  Start();
  EXPECT_TRUE(Create("q", MedianOf("mine.a")).ok());
  EXPECT_TRUE(Create("r", MedianOf("mine.b")).ok());
  ASSERT_TRUE(server_->behind.pipeline.streams().Delete("mine.a").ok());
  EXPECT_EQ(Names(), "r ");
  EXPECT_EQ(WatchNamed("q").error_code(), grpc::NOT_FOUND);
  const double one = 1;
  server_->behind.Append<double>("mine.a", ValueType::kFloat64, {&one, 1});
  EXPECT_EQ(Names(), "r ") << "a new stream of that name has none";
}

TEST_F(SubscriptionServiceTest, WhatAWatchWouldBeRefusedForIsRefused) {
  Start();
  const auto code = [&](const v1::WatchRequest& watch) {
    v1::WatchResponse response;
    const grpc::Status created = Create("q", watch);
    EXPECT_EQ(Watch(watch, response).error_code(), created.error_code()) << created.error_message();
    return created.error_code();
  };
  EXPECT_EQ(code({}), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(MedianOf("nowhere")), grpc::NOT_FOUND);
  v1::WatchRequest wrong = MedianOf("mine.a");
  wrong.mutable_quantiles()->add_phi(1.5);
  EXPECT_EQ(code(wrong), grpc::INVALID_ARGUMENT);
  wrong = MedianOf("mine.a");
  wrong.mutable_interval()->set_nanos(1);
  EXPECT_EQ(code(wrong), grpc::INVALID_ARGUMENT);
  wrong = MedianOf("mine.a");
  wrong.set_min_change(-1);
  EXPECT_EQ(code(wrong), grpc::INVALID_ARGUMENT);
  wrong = {};
  wrong.mutable_sums()->set_stream("mine.a");
  wrong.mutable_sums()->add_ranges()->set_at_most_phi(0.5);
  EXPECT_EQ(code(wrong), grpc::FAILED_PRECONDITION);
  EXPECT_TRUE(Create("q", MedianOf("mine.a")).ok());
  wrong = {};
  wrong.set_subscription("q");
  EXPECT_EQ(Create("r", wrong).error_code(), grpc::INVALID_ARGUMENT);
  wrong.set_min_change(1);
  v1::WatchResponse response;
  EXPECT_EQ(Watch(wrong, response).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Create("", MedianOf("mine.a")).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Names(), "q ");
}

TEST_F(SubscriptionServiceTest, AreBounded) {
  RpcOptions options;
  options.pipeline.registry_limits.subscriptions_max = 2;
  Start(options);
  EXPECT_TRUE(Create("q1", MedianOf("mine.a")).ok());
  v1::WatchRequest large = MedianOf("mine.a");
  for (int i = 0; i < 3000; ++i) large.mutable_quantiles()->add_phi(0.25);
  EXPECT_EQ(Create("q2", large).error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Create("q2", MedianOf("mine.a")).ok());
  EXPECT_EQ(Create("q3", MedianOf("mine.a")).error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Create("q2", MedianOf("mine.a")).ok()) << "it is kept already";
  EXPECT_EQ(server_->QueryErrors("create_subscription", "RESOURCE_EXHAUSTED"), 2);
}

TEST_F(SubscriptionServiceTest, AreTheirsWhoMayAskTheStreamAndHaveTheName) {
  const auto rules = [](const std::string& pattern) {
    const Policy::Sources none;
    return *Policy::Parse("[principal.anonymous]\nquery = [\"" + pattern + "\"]\n", "rules.toml",
                          none);
  };
  RpcOptions options;
  options.rules = rules("*");
  Start(options);
  EXPECT_TRUE(Create("mine.q", MedianOf("mine.a")).ok());
  EXPECT_TRUE(Create("mine.r", MedianOf("theirs")).ok());
  EXPECT_TRUE(Create("their.q", MedianOf("mine.a")).ok());
  EXPECT_TRUE(WatchNamed("mine.r").ok());
  server_->guard.Set(rules("mine.*"));
  EXPECT_EQ(Names(), "mine.q ");
  EXPECT_EQ(Names(1), "mine.q ");
  EXPECT_TRUE(WatchNamed("mine.q").ok());
  for (const char* name : {"mine.r", "their.q", "their.none"}) {
    EXPECT_EQ(WatchNamed(name).error_code(), grpc::PERMISSION_DENIED) << name;
    EXPECT_EQ(Delete(name), grpc::PERMISSION_DENIED) << name;
  }
  // Nobody is told the name of a stream that they may not ask.
  const std::string whose =
      "subscription \"mine.r\" is of a stream that needs role query, which the caller has not";
  EXPECT_EQ(WatchNamed("mine.r").error_message(), whose);
  EXPECT_EQ(TryDelete("mine.r").error_message(), whose);
  EXPECT_EQ(Create("mine.r", MedianOf("mine.a")).error_message(),
            "there is another subscription \"mine.r\"");
  EXPECT_EQ(Delete("mine.none"), grpc::NOT_FOUND);
  EXPECT_EQ(Create("mine.s", MedianOf("theirs")).error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Create("their.s", MedianOf("mine.a")).error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Delete("mine.q"), grpc::OK);
}

}  // namespace
}  // namespace tidemark::server
