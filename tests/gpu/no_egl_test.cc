// What the factory makes of a machine on which EGL has no vendor driver: ctest starts this program
// with __EGL_VENDOR_LIBRARY_FILENAMES naming a file that does not exist, so that libglvnd finds
// none.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gpu/sort/gl_devices.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

class NoEglTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NoEglTest, FallsBackToTheCpuAndSaysWhy) {
  SorterOptions options;
  options.name = GetParam();
  options.allow_software_gl = true;
  options.measure_budget_ms = 20;
  const SorterSelection selection = MakeSorter(options);
  EXPECT_EQ(selection.sorter->name(), "cpu");
  EXPECT_EQ(selection.report.active, "cpu");
  EXPECT_FALSE(selection.report.gl.available);
  EXPECT_NE(selection.report.gl.error, "");
  EXPECT_NE(selection.report.reason.find(selection.report.gl.error), std::string::npos)
      << selection.report.reason;
  std::cout << selection.report.reason << '\n';
  ExpectSortsLikeStdSort<std::uint64_t>(*selection.sorter,
                                        {MakeKeys<std::uint64_t>("random", 3000, 1)}, "no EGL");
}

TEST(NoEglDevices, NoneIsListedAndTheReasonSaid) {
  const GlDevices found = DescribeGlDevices();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_EQ(found.chosen, -1);
  for (const GlSorterTrial& trial : TryGlSorters()) {
    EXPECT_EQ(trial.window_max, 0u);
    EXPECT_NE(trial.error, "") << trial.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Names, NoEglTest,
                         ::testing::Values("gl-compute", "gl-bitonic", "gl-abisort", "gl-pbsn",
                                           "auto"),
                         [](const ::testing::TestParamInfo<const char*>& name_info) {
                           std::string name = name_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tidemark::sort
