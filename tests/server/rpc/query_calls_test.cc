// Queries and subscriptions over gRPC: limits, codes, texts, retry details, deadlines, metrics.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/rpc/query_service.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;
using test::WaitUntil;

class QueryCallsTest : public testing::Test {
 protected:
  void Start(const RpcOptions& options = {}) {
    server_ = std::make_unique<RpcServer>(options);
    streams_ = v1::StreamService::NewStub(server_->channel);
    query_ = v1::QueryService::NewStub(server_->channel);
  }
  grpc::Status Quantile(const std::string& stream, double phi = 0.5,
                        system_clock::time_point deadline = system_clock::time_point::max(),
                        int phis = 1) {
    grpc::ClientContext context;
    if (deadline != system_clock::time_point::max()) context.set_deadline(deadline);
    v1::QuantilesRequest request;
    request.set_stream(stream);
    for (int i = 0; i < phis; ++i) request.add_phi(phi);
    v1::QuantilesResponse response;
    return query_->Quantiles(&context, request, &response);
  }
  // More than gRPC's thread answers by itself.
  grpc::Status ManyQuantiles(const std::string& stream,
                             system_clock::time_point deadline = system_clock::time_point::max()) {
    return Quantile(stream, 0.5, deadline, 100);
  }
  static v1::WatchRequest WatchOf(const std::string& stream, double phi = 0.5) {
    v1::WatchRequest request;
    request.mutable_quantiles()->set_stream(stream);
    request.mutable_quantiles()->add_phi(phi);
    request.mutable_interval()->set_nanos(10'000'000);
    return request;
  }
  // How a subscription ends by itself; DEADLINE_EXCEEDED if it does not.
  grpc::Status WatchToTheEnd(const v1::WatchRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + std::chrono::seconds(20));
    const auto call = query_->Watch(&context, request);
    v1::WatchResponse response;
    while (call->Read(&response)) {
    }
    return call->Finish();
  }
  grpc::Status TopOf(const std::string& stream, std::uint32_t limit,
                     v1::HeavyHittersResponse* response, double support = 1e-6) {
    grpc::ClientContext context;
    v1::HeavyHittersRequest request;
    request.set_stream(stream);
    request.set_support(support);
    request.set_limit(limit);
    return query_->HeavyHitters(&context, request, response);
  }
  // A stream whose every item is kept: `count` different ones.
  void MakeDistinct(const std::string& name, std::uint32_t count) {
    ASSERT_TRUE(server_->behind.pipeline.streams()
                    .Create(name, {.type = ValueType::kUint32, .frequency_epsilon = 1e-6})
                    .ok());
    std::vector<std::uint32_t> values(count);
    std::iota(values.begin(), values.end(), 0);
    ASSERT_TRUE(
        server_->behind.Append<std::uint32_t>(name, ValueType::kUint32, values).status.ok());
  }
  void MakeTexts(const std::string& name, std::size_t count, std::size_t bytes) {
    ASSERT_TRUE(server_->behind.pipeline.streams()
                    .Create(name, {.type = ValueType::kString, .frequency_epsilon = 1e-6})
                    .ok());
    std::vector<std::string> texts(count);
    for (std::size_t i = 0; i < count; ++i) {
      texts[i] = std::to_string(i);
      texts[i].resize(bytes, 'x');
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    ASSERT_TRUE(
        server_->behind.Append<std::string_view>(name, ValueType::kString, views).status.ok());
  }
  void MakeNumbers(const std::string& name) {
    const double values[] = {1, 2, 3};
    ASSERT_TRUE(server_->behind.Append<double>(name, ValueType::kFloat64, values).status.ok());
  }

  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::StreamService::Stub> streams_;
  std::unique_ptr<v1::QueryService::Stub> query_;
};

TEST_F(QueryCallsTest, TooManyQueriesMayTryAgain) {
  Start();
  MakeNumbers("s");
  server_->HoldQueries();
  ASSERT_TRUE(server_->executor.Post([] {}));  // the queue's only place
  const grpc::Status status = ManyQuantiles("s");
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(RetrySeconds(status), 1u);
  EXPECT_EQ(server_->QueryErrors("quantiles", "UNAVAILABLE"), 1);
  server_->query_barrier.Open();
  EXPECT_TRUE(WaitUntil([&] { return ManyQuantiles("s").ok(); }));
}

TEST_F(QueryCallsTest, WhatATaskThrowsEndsThatTaskAlone) {
  Start({.clock = []() -> std::int64_t { throw std::runtime_error("no time"); }});
  MakeNumbers("s");
  ASSERT_TRUE(server_->executor.Post([] { throw std::runtime_error("a task"); }));
  EXPECT_TRUE(WaitUntil([&] { return server_->QueryErrors("executor", "INTERNAL") == 1; }));
  const grpc::Status watched = WatchToTheEnd(WatchOf("s"));
  EXPECT_EQ(watched.error_code(), grpc::INTERNAL);
  EXPECT_EQ(watched.error_message(), "no time");
  EXPECT_EQ(server_->QueryErrors("watch", "INTERNAL"), 1);
  EXPECT_TRUE(ManyQuantiles("s").ok());
}

// A thousand times 4 MiB of small values, parsed, would be tens of gigabytes.
TEST_F(QueryCallsTest, TooManyArgumentsDoNotWaitForAQueryThread) {
  Start({.query_queue_max = 8});
  MakeNumbers("s");
  server_->HoldQueries();
  const auto refused = [&](const auto& call, const auto& request, auto response) {
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + std::chrono::seconds(10));
    const grpc::Status status = (query_.get()->*call)(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
    return status.error_message();
  };
  constexpr int kMany = QueryEngine::kArgumentsMax + 1;
  v1::QuantilesRequest quantiles;
  v1::RanksRequest ranks;
  v1::HistogramRequest histogram;
  v1::CountsRequest counts;
  v1::SumsRequest sums;
  for (int i = 0; i < kMany; ++i) {
    quantiles.add_phi(0.5);
    ranks.add_values();
    histogram.mutable_bounds()->add_values();
    counts.add_items();
    sums.add_ranges();
  }
  using Stub = v1::QueryService::Stub;
  EXPECT_EQ(refused(&Stub::Quantiles, quantiles, v1::QuantilesResponse()),
            "10001 phi in one request; expected at most 10000");
  EXPECT_EQ(refused(&Stub::Ranks, ranks, v1::RanksResponse()),
            "10001 values in one request; expected at most 10000");
  EXPECT_EQ(refused(&Stub::Histogram, histogram, v1::HistogramResponse()),
            "10001 bounds in one request; expected at most 10000");
  EXPECT_EQ(refused(&Stub::Counts, counts, v1::CountsResponse()),
            "10001 items in one request; expected at most 10000");
  EXPECT_EQ(refused(&Stub::Sums, sums, v1::SumsResponse()),
            "10001 ranges in one request; expected at most 10000");
  EXPECT_EQ(server_->QueryErrors("ranks", "INVALID_ARGUMENT"), 1);
  v1::WatchRequest watch = WatchOf("s");
  *watch.mutable_quantiles() = quantiles;
  EXPECT_EQ(WatchToTheEnd(watch).error_message(),
            "10001 phi in one request; expected at most 10000");
}

TEST_F(QueryCallsTest, AnAnswerOfMicrosecondsNeedsNoQueryThread) {
  RpcOptions options{.hold_sorter = true};
  options.pipeline.window_limits = {.min = 256, .max = 1 << 18};
  Start(options);
  MakeNumbers("s");
  // One value more than gRPC's thread sorts by itself, in one open window.
  const std::vector<double> many(kAtOnceKeys + 1, 1.0);
  ASSERT_TRUE(server_->behind.pipeline.streams().Create("many", {}).ok());
  for (int i = 0; i < 2; ++i) {  // the first batch ends before the window has grown
    ASSERT_TRUE(server_->behind.Append<double>("many", ValueType::kFloat64, many).status.ok());
  }
  server_->HoldQueries();
  EXPECT_TRUE(Quantile("s").ok());
  EXPECT_EQ(Quantile("nowhere").error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(server_->QueriesTimed("quantiles"), 2u);
  // What must wait or sort is left to a query thread; all of them are held.
  const auto soon = [] { return system_clock::now() + milliseconds(50); };
  EXPECT_EQ(Quantile("many", 0.5, soon()).error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 1; }));
  server_->query_barrier.Open();
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
}

TEST_F(QueryCallsTest, ACallThatIsOverIsNotBegun) {
  Start();
  MakeNumbers("s");
  server_->HoldQueries();
  const grpc::Status status = ManyQuantiles("s", system_clock::now() + milliseconds(50));
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 1; }));
  // The server's deadline is as much later as the request was under way.
  const auto later = system_clock::now() + milliseconds(100);
  WaitUntil([&] { return system_clock::now() > later; });
  server_->query_barrier.Open();
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
  // Whichever of the two it sees first.
  EXPECT_EQ(server_->QueryErrors("quantiles", "CANCELLED") +
                server_->QueryErrors("quantiles", "DEADLINE_EXCEEDED"),
            1);
  EXPECT_EQ(server_->QueriesTimed("quantiles"), 0u) << "it was answered for nobody";
}

// Windows under way never come back: waiting for them ends with the call's deadline.
TEST_F(QueryCallsTest, TheDeadlineEndsTheWaitForWindows) {
  RpcOptions options{.hold_sorter = true};
  options.pipeline.window_limits = {.min = 256, .max = 256};
  Start(options);
  const std::vector<double> values(1000, 1.0);
  ASSERT_TRUE(server_->behind.Append<double>("s", ValueType::kFloat64, values).status.ok());
  const grpc::Status status = Quantile("s", 0.5, system_clock::now() + milliseconds(50));
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_TRUE(WaitUntil([&] { return server_->calls.running() == 0; }));
  EXPECT_EQ(server_->QueryErrors("quantiles", "DEADLINE_EXCEEDED"), 1);
}

TEST_F(QueryCallsTest, TextThatIsNotUtf8IsNamedAndCounted) {
  Start();
  const std::string bad = "bad\xff";
  const auto expect = [&](const grpc::Status& status, const std::string& what,
                          std::string_view method) {
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << method;
    EXPECT_EQ(status.error_message(), what + " \"bad\\xff\" is not UTF-8: bad byte at offset 3");
    EXPECT_EQ(server_->QueryErrors(method, "INVALID_ARGUMENT"), 1) << method;
  };
  const auto ask = [&](auto method, auto request, auto response, auto& stub) {
    grpc::ClientContext context;
    return (stub.*method)(&context, request, &response);
  };
  v1::CreateStreamRequest create;
  create.set_name(bad);
  expect(ask(&v1::StreamService::Stub::CreateStream, create, v1::CreateStreamResponse(), *streams_),
         "name", "create_stream");
  v1::ListStreamsRequest list;
  list.set_prefix(bad);
  expect(ask(&v1::StreamService::Stub::ListStreams, list, v1::ListStreamsResponse(), *streams_),
         "prefix", "list_streams");
  v1::DescribeStreamRequest describe;
  describe.set_name(bad);
  expect(ask(&v1::StreamService::Stub::DescribeStream, describe, v1::DescribeStreamResponse(),
             *streams_),
         "name", "describe_stream");
  v1::DeleteStreamRequest remove;
  remove.set_name(bad);
  expect(ask(&v1::StreamService::Stub::DeleteStream, remove, v1::DeleteStreamResponse(), *streams_),
         "name", "delete_stream");
  expect(Quantile(bad), "stream", "quantiles");
  v1::RanksRequest ranks;
  ranks.set_stream("s");
  ranks.add_values()->set_string(bad);
  expect(ask(&v1::QueryService::Stub::Ranks, ranks, v1::RanksResponse(), *query_), "string",
         "ranks");
  v1::HistogramRequest histogram;
  histogram.mutable_bounds()->add_values()->set_string(bad);
  expect(ask(&v1::QueryService::Stub::Histogram, histogram, v1::HistogramResponse(), *query_),
         "string", "histogram");
  v1::HeavyHittersResponse top;
  expect(TopOf(bad, 0, &top), "stream", "heavy_hitters");
  v1::CountsRequest counts;
  counts.add_items()->set_string(bad);
  expect(ask(&v1::QueryService::Stub::Counts, counts, v1::CountsResponse(), *query_), "string",
         "counts");
  expect(WatchToTheEnd(WatchOf(bad)), "stream", "watch");
}

// Bytes that are no message at all.
TEST_F(QueryCallsTest, MalformedBytes) {
  Start();
  grpc::GenericStub stub(server_->channel);
  grpc::ClientContext context;
  const grpc::Slice slice("\x0a\x7f no such length");
  const grpc::ByteBuffer request(&slice, 1);
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/tidemark.v1.QueryService/Quantiles", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, &context);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "a message of 17 bytes is no tidemark.v1.QuantilesRequest: its bytes are malformed");
  EXPECT_EQ(server_->QueryErrors("quantiles", "INVALID_ARGUMENT"), 1);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(QueryCallsTest, ATooLargeRequest) {
  Start();
  grpc::ClientContext context;
  v1::QuantilesRequest request;
  request.set_stream(std::string(kRequestBytesMax, 's'));
  v1::QuantilesResponse response;
  const grpc::Status status = query_->Quantiles(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("expected at most 4194304"), std::string::npos)
      << status.error_message();
}

TEST_F(QueryCallsTest, HeavyHittersAreNeverCutInSilence) {
  Start();
  MakeDistinct("full", 10'000);
  v1::HeavyHittersResponse response;
  grpc::Status status = TopOf("full", 0, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.items_size(), 10'000);

  MakeDistinct("more", 10'001);
  for (const std::uint32_t limit : {0u, 10'001u, 4'000'000'000u}) {
    status = TopOf("more", limit, &response);
    EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED) << limit;
    EXPECT_EQ(status.error_message(),
              "10001 items have a support of 1e-06; an answer holds 10000: set limit to that or "
              "less, or ask for a larger support");
    EXPECT_EQ(RetrySeconds(status), std::nullopt);
  }
  EXPECT_EQ(server_->QueryErrors("heavy_hitters", "RESOURCE_EXHAUSTED"), 3);
  status = TopOf("more", 10'000, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.items_size(), 10'000) << "only so many were asked for";
}

TEST_F(QueryCallsTest, PagesOfLongNamesEndEarly) {
  RpcOptions options;
  options.pipeline.registry_limits.name_bytes_max = 4096;
  Start(options);
  constexpr std::size_t kStreams = 1000;
  for (std::size_t i = 0; i < kStreams; ++i) {
    std::string name = std::to_string(i);
    name.resize(4096, 'n');
    ASSERT_TRUE(server_->behind.pipeline.Open(name, ValueType::kUint32).ok());
  }
  std::set<std::string> seen;
  v1::ListStreamsRequest request;
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListStreamsResponse response;
    const grpc::Status status = streams_->ListStreams(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_GT(response.streams_size(), 0);
    for (const auto& stream : response.streams()) EXPECT_TRUE(seen.insert(stream.name()).second);
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(seen.size(), kStreams);
  EXPECT_GE(pages, 4);
}

// 5,000 items of 1,000 bytes are few rows and more than a message.
TEST_F(QueryCallsTest, AnAnswersTextsAreBounded) {
  Start();
  MakeTexts("text", 5'000, 1'000);
  v1::HeavyHittersResponse response;
  const grpc::Status status = TopOf("text", 0, &response);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("set a smaller limit"), std::string::npos)
      << status.error_message();
  EXPECT_TRUE(TopOf("text", 4'000, &response).ok()) << "what gRPC's clients receive by default";
  EXPECT_EQ(response.items_size(), 4'000);
  // Between the texts and the message lie 20 bytes a row, so that the message may be too large by
  // itself.
  const grpc::Status by_message = TopOf("text", 4'150, &response);
  EXPECT_EQ(by_message.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(by_message.error_message().find("bytes, more than the 4194304 of one message"),
            std::string::npos)
      << by_message.error_message();
}

TEST_F(QueryCallsTest, AContinuousAnswerIsBoundedToo) {
  Start();
  MakeTexts("text", 1'000, 1'000);
  v1::WatchRequest request;
  request.mutable_heavy_hitters()->set_stream("text");
  request.mutable_heavy_hitters()->set_support(1e-6);
  const grpc::Status status = WatchToTheEnd(request);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("more than the 524288 of one message"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(server_->QueryErrors("watch", "RESOURCE_EXHAUSTED"), 1);

  // All the φ that a request may have do fit.
  MakeNumbers("s");
  v1::WatchRequest phis = WatchOf("s");
  for (int i = 1; i < 10'000; ++i) phis.mutable_quantiles()->add_phi(0.3);
  grpc::ClientContext context;
  const auto call = query_->Watch(&context, phis);
  v1::WatchResponse response;
  EXPECT_TRUE(call->Read(&response));
  EXPECT_EQ(response.quantiles().answers_size(), 10'000);
  context.TryCancel();
}

TEST_F(QueryCallsTest, RefusedAndFailedSubscriptionsAreCounted) {
  Start();
  MakeNumbers("s");
  EXPECT_EQ(WatchToTheEnd(WatchOf("nowhere")).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(server_->QueryErrors("watch", "NOT_FOUND"), 1);
  EXPECT_EQ(WatchToTheEnd(WatchOf("s", 2)).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(server_->QueryErrors("watch", "INVALID_ARGUMENT"), 1);
  EXPECT_EQ(WatchToTheEnd({}).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(server_->QueryErrors("watch", "INVALID_ARGUMENT"), 2);
  EXPECT_EQ(server_->QueriesTimed("watch"), 2u) << "the third had nothing to look for";

  // One that its reader ends is no error.
  grpc::ClientContext context;
  const auto call = query_->Watch(&context, WatchOf("s"));
  v1::WatchResponse response;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(call->Read(&response));
  EXPECT_GE(server_->QueriesTimed("watch"), 5u);
  context.TryCancel();
  EXPECT_EQ(call->Finish().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(WaitUntil([&] { return server_->metrics().subscribers().Value() == 0; }));
  EXPECT_EQ(server_->QueryErrors("watch", "CANCELLED"), 0);
}

TEST_F(QueryCallsTest, SubscriptionsBeyondTheLimitMayTryAgain) {
  Start({.subscriptions_max = 1});
  MakeNumbers("s");
  grpc::ClientContext context;
  const auto call = query_->Watch(&context, WatchOf("s"));
  v1::WatchResponse response;
  ASSERT_TRUE(call->Read(&response));
  const grpc::Status status = WatchToTheEnd(WatchOf("s"));
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(RetrySeconds(status), 1u);
  EXPECT_EQ(server_->QueryErrors("watch", "RESOURCE_EXHAUSTED"), 1);
  context.TryCancel();
  call->Finish();
}

TEST_F(QueryCallsTest, LooksThatAFullExecutorSkipsAreCounted) {
  Start();
  MakeNumbers("s");
  server_->HoldQueries();
  ASSERT_TRUE(server_->executor.Post([] {}));
  grpc::ClientContext context;
  const auto call = query_->Watch(&context, WatchOf("s"));
  EXPECT_TRUE(WaitUntil([&] { return server_->QueryErrors("watch", "UNAVAILABLE") >= 2; }));
  server_->query_barrier.Open();
  v1::WatchResponse response;
  EXPECT_TRUE(call->Read(&response)) << "it goes on";
  context.TryCancel();
  call->Finish();
}

TEST_F(QueryCallsTest, ShutdownEndsSubscriptions) {
  Start();
  MakeNumbers("s");
  grpc::ClientContext context;
  const auto call = query_->Watch(&context, WatchOf("s"));
  v1::WatchResponse response;
  ASSERT_TRUE(call->Read(&response));
  server_->queries.EndSubscriptions();
  while (call->Read(&response)) {
  }
  const grpc::Status ended = call->Finish();
  EXPECT_EQ(ended.error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(RetrySeconds(ended), 1u);
  EXPECT_EQ(RetrySeconds(WatchToTheEnd(WatchOf("s"))), 1u);
}

}  // namespace
}  // namespace tidemark::server
