// MakeSorter: names, reports, and that what it returns sorts. No software GL context is opened
// here.
#include "gpu/sort/sorter_factory.h"

#include <gtest/gtest.h>

#include "gpu/sort/vqsort_targets.h"
#include "gpu/sort/window_class.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

SorterOptions Quick(const std::string& name) {
  SorterOptions options;
  options.name = name;
  options.measure_budget_ms = 20;
  return options;
}

TEST(MakeSorter, RefusesAnUnknownNameAndNamesThoseThatExist) {
  try {
    MakeSorter(Quick("quantum"));
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "unknown sorter \"quantum\"; there are auto, cpu, gl-compute, gl-bitonic, "
                 "gl-abisort and gl-pbsn");
  }
}

TEST(MakeSorter, CpuMeasuresAndSorts) {
  const SorterSelection selection = MakeSorter(Quick("cpu"));
  EXPECT_EQ(selection.sorter->name(), "cpu");
  EXPECT_EQ(selection.report.requested, "cpu");
  EXPECT_EQ(selection.report.active, "cpu");
  EXPECT_EQ(selection.report.why, "asked_for");
  EXPECT_FALSE(selection.report.gl.available);
  EXPECT_EQ(selection.report.gl.error, "") << "GL was not asked for";
  for (const char* part : {"cpu: ", " sorts windows of 2^18 32-bit keys at ", " M/s", "64-bit"}) {
    EXPECT_NE(selection.report.reason.find(part), std::string::npos) << selection.report.reason;
  }
  EXPECT_EQ(selection.report.reason.find("without vqsort") == std::string::npos, BuiltWithVqsort())
      << selection.report.reason;
  for (const std::size_t n : {0, 1, 1000, 100000}) {
    ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                          {MakeKeys<std::uint32_t>("random", n, n)}, "");
    ExpectSortsLikeStdSort<std::uint64_t>(*selection.sorter,
                                          {MakeKeys<std::uint64_t>("random", n, n)}, "");
  }
  EXPECT_EQ(selection.sorter->failures(), 0);
}

TEST(MakeSorter, AutoOpensNoSoftwareContextUnlessTold) {
  const SorterSelection selection = MakeSorter(Quick("auto"));
  EXPECT_EQ(selection.report.requested, "auto");
  EXPECT_FALSE(selection.report.gl.software) << selection.report.gl.renderer;
  if (!selection.report.gl.available) {
    EXPECT_EQ(selection.report.active, "cpu");
    EXPECT_EQ(selection.report.why, "no_gl");
    EXPECT_NE(selection.report.gl.error, "");
    EXPECT_NE(selection.report.reason.find(selection.report.gl.error), std::string::npos)
        << selection.report.reason;
  }
  ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                        {MakeKeys<std::uint32_t>("random", 5000, 1)}, "auto");
}

TEST(MakeSorter, ChoosesOneRowForEachWidthAndSize) {
  const SorterSelection selection = MakeSorter(Quick("auto"));
  for (const int bits : {32, 64, 128}) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      int chosen = 0;
      for (const SorterMeasurement& row : selection.report.measurements) {
        chosen += row.chosen && row.key_bits == bits && row.window == ClassWindow(c) ? 1 : 0;
      }
      EXPECT_EQ(chosen, 1) << bits << " bits, 2^" << 8 + 2 * c;
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
