// What the info call says of the sorter, before and after it failed.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "gpu/sort/routed_sorter.h"
#include "server/rpc/stream_service.h"
#include "tests/server/rpc/in_process_server.h"
#include "tests/support/pipeline_fixture.h"
#include "tidemark/v1/info.grpc.pb.h"

namespace tidemark::server {
namespace {

// A GPU whose context is lost at the first request.
class LostSorter final : public sort::WindowSorter {
 public:
  std::string_view name() const override { return "gl-bitonic"; }
  std::string_view Sort(sort::Channels<std::uint32_t>) override { Fail(); }
  std::string_view Sort(sort::Channels<std::uint64_t>) override { Fail(); }

 private:
  [[noreturn]] static void Fail() { throw sort::SorterError("reading back: context lost"); }
};

class InfoServiceTest : public testing::Test {
 protected:
  v1::SorterInfo Sorter() {
    const auto stub = v1::InfoService::NewStub(server_.channel());
    grpc::ClientContext context;
    v1::GetInfoResponse response;
    EXPECT_TRUE(stub->GetInfo(&context, {}, &response).ok());
    return response.sorter();
  }
  // The series of tidemark_sorter_info as scraped, without its name.
  std::string Metric() {
    pipeline_.pipeline.UpdateGauges();
    const std::string text = pipeline_.metrics.Serialize();
    const std::string name = "\ntidemark_sorter_info";
    const std::size_t begin = text.find(name);
    if (begin == std::string::npos || text.find(name, begin + 1) != std::string::npos) return "";
    const std::size_t labels = begin + name.size();
    return text.substr(labels, text.find('\n', labels) - labels);
  }
  // "auto" that chose the GPU, wired as the daemon wires it.
  sort::SorterSelection Selection() {
    sort::RouteTable table;
    table.always_gl = true;
    table.gl_window_max = 1 << 20;
    sort::SorterSelection selection;
    selection.sorter = std::make_unique<sort::RoutedSorter>(
        "auto", TestPipeline::CpuSorter().sorter, std::make_unique<LostSorter>(), table,
        [this](const std::string&) { failures_.Increment(); });
    selection.report.requested = "auto";
    selection.report.active = "gl-bitonic";
    selection.report.reason = "measured faster";
    selection.report.why = "measured";
    selection.report.gl.renderer = "played GPU";
    return selection;
  }

  prometheus::Counter failures_;
  TestPipeline pipeline_{{.window_limits = {.min = 256, .max = 256}}, Selection()};
  InfoServiceImpl service_{pipeline_.pipeline, [](v1::GetInfoResponse&) {}};
  InProcessServer server_{service_};
};

TEST_F(InfoServiceTest, ASorterThatFailedIsNoLongerCalledActive) {
  EXPECT_EQ(Sorter().active(), "gl-bitonic");
  EXPECT_EQ(Sorter().reason(), "measured faster");
  EXPECT_EQ(Metric(),
            R"({active="gl-bitonic",reason="measured",renderer="played GPU",requested="auto"} 1)");

  std::vector<double> values(1024);
  std::iota(values.rbegin(), values.rend(), 0);
  pipeline_.Append("s", ValueType::kFloat64, std::span<const double>(values));
  pipeline_.Bytes("s");  // every window is sorted and summarized
  const v1::SorterInfo sorter = Sorter();
  EXPECT_EQ(sorter.requested(), "auto");
  EXPECT_EQ(sorter.active(), "cpu");
  EXPECT_EQ(sorter.reason(), "cpu since a failure of gl-bitonic: reading back: context lost");
  EXPECT_EQ(Metric(),
            R"({active="cpu",reason="gl_failed",renderer="played GPU",requested="auto"} 1)");
  EXPECT_EQ(failures_.Value(), 1) << "told once, and then the CPU sorts";
  EXPECT_EQ(pipeline_.pipeline.streams().Find("s").value()->Stats().count, values.size());
}

// A sorter that throws instead of falling back by itself: the sort stage counts and tells.
TEST(SortStageFailure, IsInTheMetricAndReported) {
  sort::SorterSelection selection;
  selection.sorter = std::make_unique<LostSorter>();
  selection.report.requested = selection.report.active = "gl-bitonic";
  TestPipeline test({.window_limits = {.min = 256, .max = 256}}, std::move(selection));
  std::vector<double> values(512, 1.0);
  test.Append("s", ValueType::kFloat64, std::span<const double>(values));
  test.Bytes("s");
  EXPECT_GE(test.metrics.sorter_failures().Value(), 1);
  EXPECT_NE(test.metrics.Serialize().find("\ntidemark_sorter_failures_total "), std::string::npos);
  const std::lock_guard lock(test.mutex);
  ASSERT_FALSE(test.sorter_errors.empty());
  EXPECT_EQ(test.sorter_errors.front(), "reading back: context lost");
}

}  // namespace
}  // namespace tidemark::server
