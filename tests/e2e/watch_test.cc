// Continuous queries of the real daemon: when they push, how they end, what slow and many readers
// cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using client::Code;
using client::QuantilesAnswer;
using client::Watch;
using client::WatchAnswer;
using std::chrono::milliseconds;

const QuantilesAnswer& Quantiles(const WatchAnswer& answer) {
  return std::get<QuantilesAnswer>(answer.answer);
}
double First(const WatchAnswer& answer) {
  return std::get<double>(Quantiles(answer).answers.at(0).value.kind);
}

Code CodeOf(Watch& watch) {
  try {
    while (watch.Next()) {
    }
  } catch (const client::Error& error) {
    return error.code();
  }
  return Code::kOk;
}

class WatchTest : public testing::Test {
 protected:
  void Push(const std::string& stream, const std::vector<double>& values) {
    client::Pusher pusher = daemon_.client().Push(stream);
    pusher.Write(values);
    pusher.Finish();
  }
  double Subscribers() const { return daemon_.Metric("tidemark_subscribers"); }

  TestDaemon daemon_{{"--max-subscriptions", "210"}};
};

TEST_F(WatchTest, PushesEveryInterval) {
  Push("s", {1, 2, 3});
  Watch watch = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(30)});
  const auto begun = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point last{};
  for (int i = 0; i < 6; ++i) {
    const auto answer = watch.Next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(Quantiles(*answer).n, 3u);
    EXPECT_EQ(First(*answer), 2);
    EXPECT_GT(answer->time, last);
    last = answer->time;
  }
  // Five intervals lie between six answers; the first one does not wait.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(5 * 30 - 20));
  Push("s", {10, 10, 10, 10});
  EXPECT_TRUE(WaitUntil([&] {
    const auto answer = watch.Next();
    return answer && Quantiles(*answer).n == 7 && First(*answer) == 10;
  }));
}

TEST_F(WatchTest, MinChangePushesOnlyWhenMoved) {
  Push("s", {5});
  const milliseconds interval(10);
  Watch watch =
      daemon_.client().WatchQuantiles("s", {0.5}, {.interval = interval, .min_change = 1});
  ASSERT_EQ(First(*watch.Next()), 5);
  // A second subscription is the clock: 20 looks at values that do not move.
  Watch clock = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = interval});
  Push("s", {5.5, 5.5, 5.5});
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(clock.Next());
  Push("s", std::vector<double>(10, 100));
  const auto moved = watch.Next();
  ASSERT_TRUE(moved);
  EXPECT_EQ(First(*moved), 100) << "an answer that moved by less than min_change was pushed";
  EXPECT_EQ(Quantiles(*moved).n, 14u);
  EXPECT_EQ(moved->skipped, 0u);
}

TEST_F(WatchTest, HeavyHittersMove) {
  Push("s", std::vector<double>(10, 1));
  Watch watch = daemon_.client().WatchHeavyHitters(
      "s", 0.4, 0, {.interval = milliseconds(10), .min_change = 0.05});
  const auto items = [](const WatchAnswer& answer) {
    return std::get<client::HeavyHittersAnswer>(answer.answer).items;
  };
  EXPECT_EQ(items(*watch.Next()).size(), 1u);
  Push("s", std::vector<double>(10, 2));
  EXPECT_EQ(items(*watch.Next()).size(), 2u);
}

TEST_F(WatchTest, CancelEndsIt) {
  Push("s", {1});
  Watch watch = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = std::chrono::hours(1)});
  ASSERT_TRUE(watch.Next());
  EXPECT_EQ(Subscribers(), 1);
  auto waits = std::async(std::launch::async, [&] { return watch.Next(); });
  watch.Cancel();
  EXPECT_FALSE(waits.get());
  EXPECT_TRUE(WaitUntil([&] { return Subscribers() == 0; }));
}

TEST_F(WatchTest, DeletedStreamEndsIt) {
  Push("s", {1});
  Watch watch = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(20)});
  ASSERT_TRUE(watch.Next());
  daemon_.client().DeleteStream("s");
  EXPECT_EQ(CodeOf(watch), Code::kNotFound);
  EXPECT_TRUE(WaitUntil([&] { return Subscribers() == 0; }));
}

TEST_F(WatchTest, WrongRequestsAreRefused) {
  Push("s", {1});
  client::Client& client = daemon_.client();
  Watch fast = client.WatchQuantiles("s", {0.5}, {.interval = milliseconds(1)});
  EXPECT_EQ(CodeOf(fast), Code::kInvalidArgument);
  Watch outside = client.WatchQuantiles("s", {2});
  EXPECT_EQ(CodeOf(outside), Code::kInvalidArgument);
  Watch negative = client.WatchQuantiles("s", {0.5}, {.min_change = -1});
  EXPECT_EQ(CodeOf(negative), Code::kInvalidArgument);
  Watch sliding = client.WatchQuantiles("s", {0.5}, {.scope = {.last_values = 5}});
  EXPECT_EQ(CodeOf(sliding), Code::kFailedPrecondition);
  Watch nowhere = client.WatchQuantiles("nowhere", {0.5});
  EXPECT_EQ(CodeOf(nowhere), Code::kNotFound);
  EXPECT_TRUE(WaitUntil([&] { return Subscribers() == 0; }));
  const auto errors = [&](const std::string& code) {
    return daemon_.Metric("tidemark_query_errors_total{method=\"watch\",code=\"" + code + "\"}");
  };
  EXPECT_EQ(errors("INVALID_ARGUMENT"), 3);
  EXPECT_EQ(errors("FAILED_PRECONDITION"), 1);
  EXPECT_EQ(errors("NOT_FOUND"), 1);
  EXPECT_EQ(daemon_.Metric("tidemark_query_seconds_count{method=\"watch\"}"), 3);
}

TEST_F(WatchTest, ManyAtOnceAndTheLimit) {
  Push("s", {1, 2, 3});
  constexpr std::size_t kMany = 200;
  {
    std::vector<Watch> watches;
    for (std::size_t i = 0; i < kMany; ++i) {
      watches.push_back(
          daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(100)}));
    }
    for (int round = 0; round < 3; ++round) {
      for (Watch& watch : watches) {
        const auto answer = watch.Next();
        ASSERT_TRUE(answer);
        EXPECT_EQ(First(*answer), 2);
      }
    }
    EXPECT_EQ(Subscribers(), kMany);
    // Ten more fit; the next does not, and takes nothing from the others.
    for (std::size_t i = 0; i < 10; ++i) {
      watches.push_back(daemon_.client().WatchQuantiles("s", {0.5}));
      ASSERT_TRUE(watches.back().Next());
    }
    Watch over = daemon_.client().WatchQuantiles("s", {0.5});
    EXPECT_EQ(CodeOf(over), Code::kResourceExhausted);
    ASSERT_TRUE(watches.front().Next());
    watches.pop_back();
    EXPECT_TRUE(WaitUntil([&] {
      Watch again = daemon_.client().WatchQuantiles("s", {0.5});
      try {
        return again.Next().has_value();
      } catch (const client::Error& error) {
        EXPECT_EQ(error.code(), Code::kResourceExhausted);
        return false;
      }
    })) << "a place that became free is not given to the next";
  }
  EXPECT_TRUE(WaitUntil([&] { return Subscribers() == 0; }));
}

// Large answers, 100 a second, to somebody who never reads.
TEST_F(WatchTest, SlowReaderCostsNothing) {
  std::vector<double> values(50'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  Push("s", values);
  std::vector<double> phi(2000);
  for (std::size_t i = 0; i < phi.size(); ++i) {
    phi[i] = static_cast<double>(i) / static_cast<double>(phi.size());
  }
  client::Client reader({.server = daemon_.address("grpc")});
  Watch slow = reader.WatchQuantiles("s", phi, {.interval = milliseconds(10)});
  Watch prompt = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(10)});
  const auto skipped = [&] { return daemon_.Metric("tidemark_subscription_skipped_total"); };
  ASSERT_TRUE(WaitUntil([&] { return skipped() >= 20; }));
  const std::uint64_t before = daemon_.RssBytes();
  ASSERT_TRUE(WaitUntil([&] {
    EXPECT_TRUE(prompt.Next());  // the others get theirs
    return skipped() >= 170;
  }));
  const std::uint64_t after = daemon_.RssBytes();
  EXPECT_EQ(daemon_.client().Quantiles("s", {0.5}).n, values.size());
#ifndef TIDEMARK_SANITIZED
  // 150 skipped answers of about 50 KiB would be 7.5 MiB if they were kept.
  EXPECT_LT(after, before + (std::uint64_t{4} << 20)) << "skipped answers are kept";
#endif
  std::cout << "150 skipped answers: resident memory from " << (before >> 10) << " to "
            << (after >> 10) << " KiB\n";
  // Once it reads, it is told how many it missed, and gets fresh ones.
  Push("s", {1e9});
  EXPECT_TRUE(WaitUntil([&] {
    const auto answer = slow.Next();
    return answer && answer->skipped >= 100 && Quantiles(*answer).n == values.size() + 1;
  }));
}

TEST_F(WatchTest, ShutdownEndsThem) {
  Push("s", {1});
  Watch watch = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(20)});
  ASSERT_TRUE(watch.Next());
  auto ended = std::async(std::launch::async, [&] { return CodeOf(watch); });
  // Another is open and never read. The daemon may take ten seconds for its end; it needs none.
  Watch unread = daemon_.client().WatchQuantiles("s", {0.5}, {.interval = milliseconds(20)});
  ASSERT_TRUE(WaitUntil([&] { return Subscribers() == 2; }));
  const auto begun = std::chrono::steady_clock::now();
  daemon_.Stop();
  const auto spent = std::chrono::steady_clock::now() - begun;
  EXPECT_EQ(ended.get(), Code::kUnavailable);
  EXPECT_LT(spent, std::chrono::seconds(4)) << "open subscriptions or idle connections hold it up";
}

}  // namespace
}  // namespace tidemark::test
