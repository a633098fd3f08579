// The watchdog is told only while threads of ingest and the pipeline really go on: both are held up
// here, and let go. Nothing waits for time to pass.
#include "server/daemon/progress_check.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/daemon/service_manager.h"
#include "server/ingest/io_threads.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

TEST(ProgressCheck, IngestThatTakesUpNothingIsSeen) {
  IoThreads io(2, "test");
  ProgressCheck check(
      [&](std::function<void()> work) { boost::asio::post(io.io(), std::move(work)); },
      [] { return PipelineProgress{}; });
  const auto settle = [&] {  // until what was posted ran
    std::promise<void> ran;
    boost::asio::post(io.io(), [&] { ran.set_value(); });
    ran.get_future().wait();
  };
  std::promise<void> let_go;
  const std::shared_future<void> free = let_go.get_future().share();
  std::promise<void> held[2];
  for (std::promise<void>& thread : held) {
    boost::asio::post(io.io(), [&thread, free] {
      thread.set_value();
      free.wait();
    });
  }
  for (std::promise<void>& thread : held) thread.get_future().wait();
  EXPECT_EQ(check.Stalled(), "") << "the first call posts";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(check.Stalled(), "the threads of ingest take up nothing");
  let_go.set_value();
  bool goes_on = false;
  for (int i = 0; i < 1'000 && !goes_on; ++i) {
    settle();
    goes_on = check.Stalled().empty();
  }
  EXPECT_TRUE(goes_on);
  io.Stop();
}

// Sorts when it is let go.
class HeldSorter final : public sort::WindowSorter {
 public:
  explicit HeldSorter(std::shared_future<void> free)
      : free_(std::move(free)), inner_(TestPipeline::CpuSorter().sorter) {}
  std::string_view name() const override { return inner_->name(); }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override { return Wait(channels); }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override { return Wait(channels); }
  std::string_view Sort(sort::Channels<Key128> channels) override { return Wait(channels); }

 private:
  template <class Channels>
  std::string_view Wait(Channels channels) {
    free_.wait();
    return inner_->Sort(channels);
  }
  const std::shared_future<void> free_;
  const std::unique_ptr<sort::WindowSorter> inner_;
};

TEST(ProgressCheck, APipelineThatSummarizesNothingIsSeen) {
  std::promise<void> let_go;
  sort::SorterSelection selection = TestPipeline::CpuSorter();
  selection.sorter = std::make_unique<HeldSorter>(let_go.get_future().share());
  PipelineOptions options;
  options.window_limits = {.min = 16, .max = 16};
  TestPipeline held(options, std::move(selection));
  ProgressCheck check([](const std::function<void()>& work) { work(); },  // ingest is fine
                      [&] { return ProgressOf(held.pipeline, held.metrics); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(check.Stalled(), "") << "nothing is to be done";
  const std::vector<std::uint64_t> values(1'000, 7);
  held.Append<std::uint64_t>("s", ValueType::kUint64, values);
  EXPECT_GT(ProgressOf(held.pipeline, held.metrics).pending_keys, 0);
  EXPECT_EQ(check.Stalled(), "") << "they came just now";
  EXPECT_EQ(check.Stalled(), "full windows wait, and none was summarized");
  EXPECT_EQ(check.Stalled(), "full windows wait, and none was summarized");
  let_go.set_value();
  held.Bytes("s");  // waits for windows under way
  EXPECT_EQ(check.Stalled(), "");
  EXPECT_GE(ProgressOf(held.pipeline, held.metrics).published, 1u);
  EXPECT_EQ(check.Stalled(), "");
}

TEST(WatchdogInterval, IsAQuarterOfWhatTheManagerSays) {
  using std::chrono::microseconds;
  EXPECT_EQ(WatchdogInterval("180000000", nullptr, 7), microseconds(45'000'000));
  EXPECT_EQ(WatchdogInterval("4000", "7", 7), microseconds(1'000));
  EXPECT_EQ(WatchdogInterval("4000", "", 7), microseconds(1'000));
  EXPECT_EQ(WatchdogInterval("4000", "8", 7), std::nullopt) << "another process is meant";
  EXPECT_EQ(WatchdogInterval("4000", "x", 7), std::nullopt);
  EXPECT_EQ(WatchdogInterval(nullptr, "7", 7), std::nullopt);
  for (const char* bad : {"", "0", "-5", "1s", "3", "99999999999999999999"}) {
    EXPECT_EQ(WatchdogInterval(bad, nullptr, 7), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace tidemark::server
