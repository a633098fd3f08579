// What streams and those who wait are told while the disk works, fails and recovers.
#include "server/durability/durable_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "server/window/call_back.h"
#include "server/window/refusal.h"
#include "tests/server/durability/logged_pipeline.h"

namespace tidemark::server {
namespace {

using Told = std::pair<std::uint64_t, absl::Status>;

Told Wait(Pipeline& pipeline, std::uint64_t sequence) {
  const auto told = std::make_shared<std::promise<Told>>();
  pipeline.WhenDurable(sequence, [told](std::uint64_t durable, const absl::Status& status) {
    told->set_value({durable, status});
  });
  return told->get_future().get();
}

TEST(DurableLog, WithoutOneEverythingIsAcknowledgedAtOnce) {
  TestPipeline plain;
  const std::vector<double> values = {1, 2};
  EXPECT_EQ(plain.Append<double>("a", ValueType::kFloat64, values).log_sequence, 0u);
  EXPECT_TRUE(Wait(plain.pipeline, 0).second.ok());
}

TEST(DurableLog, WhatWasWaitedForSurvives) {
  testing::FakeDisk disk;
  std::mt19937_64 random(3);
  const std::vector<double> values(100, 4.5);
  for (int round = 1; round <= 5; ++round) {
    {
      LoggedPipeline live(disk);
      EXPECT_EQ(live.replayed_batches(), static_cast<std::uint64_t>(round - 1));
      const AppendResult result = live.held().Append<double>("a", ValueType::kFloat64, values);
      ASSERT_TRUE(result.status.ok());
      const auto [durable, status] = Wait(live.pipeline(), result.log_sequence);
      EXPECT_TRUE(status.ok());
      EXPECT_GE(durable, result.log_sequence);
      disk.StopAt(1);  // nothing more reaches the disk
    }
    disk.Crash(random);
  }
}

TEST(DurableLog, RefusesWhileTheDiskFailsAndRecovers) {
  testing::FakeDisk disk;
  std::promise<void> failed;
  std::promise<void> recovered;
  LoggedPipeline live(disk, SmallWindows(), [&](const absl::Status& status) {
    (status.ok() ? recovered : failed).set_value();
  });
  const std::vector<double> values(10, 1.5);
  const auto append = [&] { return live.held().Append<double>("a", ValueType::kFloat64, values); };
  EXPECT_TRUE(Wait(live.pipeline(), append().log_sequence).second.ok());

  disk.FailAll(ENOSPC);
  const AppendResult doubtful = append();
  ASSERT_TRUE(doubtful.status.ok());  // in memory, and so in answers
  const auto [durable, status] = Wait(live.pipeline(), doubtful.log_sequence);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(durable, doubtful.log_sequence);
  failed.get_future().wait();
  const AppendResult refused = append();
  EXPECT_TRUE(absl::IsUnavailable(refused.status));
  EXPECT_EQ(ReasonOf(refused.status, Attempt::kBatch), "log_unavailable");
  const absl::Status none = live.pipeline().Open("b", std::nullopt).status();
  EXPECT_EQ(ReasonOf(none, Attempt::kOpen), "log_unavailable") << none;
  EXPECT_TRUE(absl::IsUnavailable(live.pipeline().streams().Delete("a")));
  EXPECT_EQ(live.pipeline().streams().Find("a").value()->Stats().count, 20u);
  EXPECT_EQ(live.pipeline().streams().size(), 1u);

  disk.Heal();
  recovered.get_future().wait();
  const AppendResult taken = append();
  ASSERT_TRUE(taken.status.ok()) << taken.status;
  EXPECT_TRUE(Wait(live.pipeline(), taken.log_sequence).second.ok());
  ASSERT_TRUE(live.log().Stop().ok());
  EXPECT_TRUE(absl::IsUnavailable(append().status));  // closed
  TestPipeline again;
  EXPECT_EQ(ReplayLog(disk, kLogFolder, again.pipeline).value().values, 30u);
}

// Sources are slowed, and nothing is refused, as long as they ask.
TEST(DurableLog, SourcesWaitForASlowDisk) {
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  const std::vector<double> values(1000, 1.5);
  const auto append = [&] { return live.held().Append<double>("a", ValueType::kFloat64, values); };
  const auto fill = [&] {
    std::uint64_t last = 0;
    while (!live.log().behind() && !::testing::Test::HasFailure()) {
      const AppendResult result = append();
      EXPECT_TRUE(result.status.ok()) << result.status;
      last = result.log_sequence;
    }
    EXPECT_TRUE(live.pipeline().saturated());
    return last;
  };
  for (int round = 0; round < 3; ++round) {
    disk.HoldSyncs(true);
    const std::uint64_t last = fill();
    EXPECT_TRUE(append().status.ok()) << "one more of each source fits";
    std::promise<void> ready;
    live.pipeline().WhenReady([&] { ready.set_value(); });
    std::future<void> resumed = ready.get_future();
    EXPECT_EQ(resumed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    disk.HoldSyncs(false);
    resumed.wait();
    EXPECT_TRUE(Wait(live.pipeline(), last).second.ok());
  }
  // A disk that fails holds nobody up: they are to be told.
  disk.HoldSyncs(true);
  fill();
  std::promise<void> ready;
  live.pipeline().WhenReady([&] { ready.set_value(); });
  disk.FailAll(ENOSPC);
  disk.HoldSyncs(false);
  ready.get_future().wait();
  EXPECT_TRUE(absl::IsUnavailable(append().status));
  EXPECT_FALSE(live.log().behind());
  disk.Heal();
}

// A caller whose deadline passes, or a connection that is cut, leaves nothing behind, however long
// the disk hangs.
TEST(DurableLog, ThoseThatHaveGoneAreForgotten) {
  testing::FakeDisk disk;
  LoggedPipeline live(disk);
  const std::vector<double> values(1000, 1.5);
  const auto append = [&] { return live.held().Append<double>("a", ValueType::kFloat64, values); };
  disk.HoldSyncs(true);
  std::uint64_t last = 0;
  while (!live.log().behind()) last = append().log_sequence;
  constexpr std::size_t kStay = 100;
  struct Asker {
    std::atomic<int> told = 0;
    std::atomic<int> resumed = 0;
  };
  std::vector<std::shared_ptr<Asker>> stay;
  std::size_t most = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto asker = std::make_shared<Asker>();
    const std::weak_ptr<Asker> weak = asker;
    live.pipeline().WhenDurable(
        last, DurableOfAsker{weak, [weak](std::uint64_t, const absl::Status& status) {
                               const auto self = weak.lock();
                               if (self && status.ok()) ++self->told;
                             }});
    live.pipeline().WhenReady(OfAsker<>{weak, [weak] {
                                          if (const auto self = weak.lock()) ++self->resumed;
                                        }});
    if (i % 50 == 0) stay.push_back(asker);
    most = std::max(most, live.log().waiting());
  }
  ASSERT_EQ(stay.size(), kStay);
  EXPECT_GE(most, 2 * kStay);
  EXPECT_LE(most, 2 * (2 * kStay + 1));
  disk.HoldSyncs(false);
  EXPECT_TRUE(Wait(live.pipeline(), last).second.ok());
  live.pipeline().Stop();
  for (const auto& asker : stay) {
    EXPECT_EQ(asker->told, 1);
    EXPECT_EQ(asker->resumed, 1);
  }
}

}  // namespace
}  // namespace tidemark::server
