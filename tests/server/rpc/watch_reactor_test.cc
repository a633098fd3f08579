// The life of a subscription: however it ends, nothing of it stays. What it pushes: tests/e2e.
#include "server/rpc/watch_reactor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "server/rpc/message_bytes.h"
#include "tests/server/rpc/in_process_server.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::WaitUntil;

// QueryServiceImpl's Watch, with an eye on every subscription that it began.
class WatchedService final
    : public v1::QueryService::WithRawCallbackMethod_Watch<v1::QueryService::Service> {
 public:
  explicit WatchedService(TestPipeline& pipeline)
      : engine_(pipeline.pipeline),
        executor_(2, kTasksMax, pipeline.metrics),
        metrics_(pipeline.metrics) {}
  ~WatchedService() override { executor_.Stop(); }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* /*context*/,
                                                    const grpc::ByteBuffer* bytes) override {
    v1::WatchRequest request;
    EXPECT_TRUE(ParseRequest(*bytes, request).ok());
    const WatchReactor::Environment environment{engine_, executor_,      metrics_,
                                                clock_,  subscriptions_, open_};
    const bool refused = request.has_quantiles() && request.quantiles().stream() == kRefused;
    if (!refused) subscriptions_.fetch_add(1);
    // It lives at least until this method has returned it.
    WatchReactor* const reactor =
        refused ? WatchReactor::Refuse(environment, absl::ResourceExhaustedError("refused"))
                : WatchReactor::Begin(environment, request);
    const std::lock_guard lock(mutex_);
    begun_.push_back(reactor->weak_from_this());
    return reactor;
  }

  static constexpr const char* kRefused = "refused";

  std::size_t begun() const {
    const std::lock_guard lock(mutex_);
    return begun_.size();
  }
  std::ptrdiff_t alive() const {
    const std::lock_guard lock(mutex_);
    return std::count_if(begun_.begin(), begun_.end(),
                         [](const auto& reactor) { return !reactor.expired(); });
  }
  std::uint64_t subscriptions() const { return subscriptions_; }
  OpenSubscriptions& open() { return open_; }

 private:
  static constexpr std::size_t kTasksMax = 64;

  const QueryEngine engine_;
  Executor executor_;
  Metrics& metrics_;
  const std::function<std::int64_t()> clock_ = [] { return 0; };
  std::atomic<std::uint64_t> subscriptions_{0};
  OpenSubscriptions open_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<WatchReactor>> begun_;  // guarded by mutex_
};

class WatchReactorTest : public testing::Test {
 protected:
  struct Subscription {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader;

    bool Read() {
      v1::WatchResponse response;
      return reader->Read(&response);
    }
  };

  WatchReactorTest() {
    const std::array<double, 3> values = {1, 2, 3};
    pipeline_.Append("s", ValueType::kFloat64, std::span<const double>(values));
  }

  std::unique_ptr<Subscription> Subscribe(const std::string& stream, std::int64_t interval_ms) {
    v1::WatchRequest request;
    request.mutable_quantiles()->set_stream(stream);
    request.mutable_quantiles()->add_phi(0.5);
    request.mutable_interval()->set_seconds(interval_ms / 1000);
    request.mutable_interval()->set_nanos(
        static_cast<std::int32_t>(interval_ms % 1000 * 1'000'000));
    auto subscription = std::make_unique<Subscription>();
    subscription->reader = stub_->Watch(&subscription->context, request);
    return subscription;
  }
  // Every subscription that was begun has gone, and is no longer counted.
  void ExpectNothingLeft(std::size_t begun) {
    EXPECT_TRUE(WaitUntil([&] { return service_.alive() == 0; }))
        << service_.alive() << " of " << begun << " subscriptions are still in memory";
    EXPECT_EQ(service_.begun(), begun);
    EXPECT_TRUE(WaitUntil([&] { return service_.subscriptions() == 0; }));
    EXPECT_EQ(pipeline_.metrics.subscribers().Value(), 0);
  }

  static constexpr std::int64_t kHourMs = 3'600'000;
  static constexpr std::int64_t kShortMs = 10;

  TestPipeline pipeline_;
  WatchedService service_{pipeline_};
  InProcessServer server_{service_};
  std::unique_ptr<v1::QueryService::Stub> stub_ = v1::QueryService::NewStub(server_.channel());
};

TEST_F(WatchReactorTest, CancelledWhileItWaitsForItsAlarm) {
  for (int i = 0; i < 20; ++i) {
    const auto subscription = Subscribe("s", kHourMs);
    ASSERT_TRUE(subscription->Read());
    EXPECT_EQ(service_.alive(), 1);
    subscription->context.TryCancel();
    EXPECT_EQ(subscription->reader->Finish().error_code(), grpc::CANCELLED);
    ASSERT_TRUE(WaitUntil([&] { return service_.alive() == 0; })) << i;
  }
  ExpectNothingLeft(20);
}

TEST_F(WatchReactorTest, CancelledAtAnyMomentOfALook) {
  constexpr std::size_t kMany = 60;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto subscription = Subscribe("s", kShortMs);
    // After no answer, one, several: alarms that have fired, too.
    for (std::size_t answer = 0; answer < i % 4; ++answer) ASSERT_TRUE(subscription->Read());
    subscription->context.TryCancel();
    EXPECT_EQ(subscription->reader->Finish().error_code(), grpc::CANCELLED);
  }
  // One that was cancelled before the service saw it was never begun.
  EXPECT_LE(service_.begun(), kMany);
  ExpectNothingLeft(service_.begun());
}

TEST_F(WatchReactorTest, TheClientIsGoneWithoutAWord) {
  {
    std::vector<std::unique_ptr<Subscription>> subscriptions;
    subscriptions.reserve(20);
    for (int i = 0; i < 20; ++i)
      subscriptions.push_back(Subscribe("s", i % 2 ? kHourMs : kShortMs));
    for (const auto& subscription : subscriptions) ASSERT_TRUE(subscription->Read());
    EXPECT_EQ(service_.alive(), 20);
  }
  ExpectNothingLeft(20);
}

TEST_F(WatchReactorTest, TheStreamIsDeleted) {
  const auto subscription = Subscribe("s", kShortMs);
  ASSERT_TRUE(subscription->Read());
  ASSERT_TRUE(pipeline_.pipeline.streams().Delete("s").ok());
  while (subscription->Read()) {
  }
  EXPECT_EQ(subscription->reader->Finish().error_code(), grpc::NOT_FOUND);
  ExpectNothingLeft(1);
}

TEST_F(WatchReactorTest, RefusedOrWrongFromTheBeginning) {
  for (const auto& [stream, interval_ms, code] :
       {std::tuple{WatchedService::kRefused, kHourMs, grpc::RESOURCE_EXHAUSTED},
        std::tuple{"s", std::int64_t{1}, grpc::INVALID_ARGUMENT},
        std::tuple{"nowhere", kHourMs, grpc::NOT_FOUND}}) {
    const auto subscription = Subscribe(stream, interval_ms);
    EXPECT_FALSE(subscription->Read());
    EXPECT_EQ(subscription->reader->Finish().error_code(), code) << stream;
  }
  ExpectNothingLeft(3);
}

TEST_F(WatchReactorTest, ShutdownEndsAllAndLaterOnesAtOnce) {
  const auto waits = Subscribe("s", kHourMs);
  const auto unread = Subscribe("s", kShortMs);
  ASSERT_TRUE(waits->Read());
  ASSERT_TRUE(unread->Read());
  service_.open().EndAll(absl::UnavailableError("the server is shutting down"));
  for (const auto* subscription : {&waits, &unread}) {
    while ((*subscription)->Read()) {
    }
    EXPECT_EQ((*subscription)->reader->Finish().error_code(), grpc::UNAVAILABLE);
  }
  const auto late = Subscribe("s", kHourMs);
  EXPECT_FALSE(late->Read());
  EXPECT_EQ(late->reader->Finish().error_code(), grpc::UNAVAILABLE);
  ExpectNothingLeft(3);
}

}  // namespace
}  // namespace tidemark::server
