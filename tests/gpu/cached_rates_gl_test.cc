// `auto` with GL sorters whose rates are known from an earlier start: the same choice, and nothing
// measured. On Mesa's software rasteriser, whose measurement takes most of the time.
#include <gtest/gtest.h>

#include <string>

#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

SorterOptions WithSoftware() {
  SorterOptions options;
  options.allow_software_gl = true;
  options.measure_budget_ms = 0;
  return options;
}

TEST(CachedRatesGl, GiveTheSameChoiceAndFollowTheDevice) {
  const SorterSelection first = MakeSorter(WithSoftware());
  ASSERT_TRUE(first.report.gl.available) << first.report.gl.error;
  ASSERT_TRUE(first.report.worth_keeping);
  MeasuredRates rates = RatesOf(first.report);
  ASSERT_EQ(rates.on.gl_sorters.size(), 2u);
  for (const std::string& sorter : rates.on.gl_sorters) {
    EXPECT_NE(sorter.find(first.report.gl.renderer), std::string::npos) << sorter;
    EXPECT_NE(sorter.find(first.report.gl.version), std::string::npos) << sorter;
  }

  SorterOptions options = WithSoftware();
  options.known = rates;
  const SorterSelection second = MakeSorter(options);
  EXPECT_TRUE(second.report.cached) << second.report.not_cached;
  EXPECT_EQ(second.report.active, first.report.active);
  EXPECT_EQ(second.report.reason, first.report.reason);
  EXPECT_EQ(second.report.measurements.size(), first.report.measurements.size());

  // Rates by which GL wins where it was measured: the choice follows them, not what it would
  // measure.
  std::erase_if(rates.rows,
                [](const SorterMeasurement& row) { return row.sorter == "gl-bitonic"; });
  for (SorterMeasurement& row : rates.rows) {
    if (row.sorter == "gl-compute") row.keys_per_second = 1e12;
  }
  options.known = rates;
  const SorterSelection faster = MakeSorter(options);
  EXPECT_EQ(faster.sorter->name(), "auto");
  EXPECT_TRUE(faster.sorter->SortsTogether(0, {1 << 10, 1 << 10, 1 << 10, 1 << 10}));
  testing::ExpectSortsLikeStdSort<std::uint32_t>(
      *faster.sorter, {testing::MakeKeys<std::uint32_t>("random", 1 << 10, 1)}, "by known rates");

  // Another driver: measured anew.
  rates.on.gl_sorters[0] += " of a later driver";
  options.known = rates;
  const SorterSelection other = MakeSorter(options);
  EXPECT_FALSE(other.report.cached);
  EXPECT_TRUE(other.report.not_cached.starts_with("GL sorters then: ")) << other.report.not_cached;
}

}  // namespace
}  // namespace tidemark::sort
