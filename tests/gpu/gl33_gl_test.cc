// What the factory makes of a context without compute shaders: ctest starts this program with
// MESA_GL_VERSION_OVERRIDE=3.3. Drivers other than Mesa's do not heed it; then there is nothing to
// see.
#include <gtest/gtest.h>

#include "gpu/sort/sorter_factory.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

SorterSelection Make(const std::string& name) {
  SorterOptions options;
  options.name = name;
  options.allow_software_gl = true;
  options.measure_budget_ms = 20;
  return MakeSorter(options);
}

TEST(OpenGl33, RunsGlBitonicAndSaysWhyNotGlCompute) {
  const SorterSelection bitonic = Make("gl-bitonic");
  ASSERT_EQ(bitonic.report.active, "gl-bitonic") << bitonic.report.reason;
  if (bitonic.report.gl.version.substr(0, 3) != "3.3") {
    GTEST_SKIP() << "the context has OpenGL " << bitonic.report.gl.version;
  }
  const SorterSelection compute = Make("gl-compute");
  EXPECT_EQ(compute.report.active, "cpu");
  EXPECT_EQ(compute.report.why, "no_gl");
  EXPECT_NE(
      compute.report.reason.find("cpu: gl-compute cannot run, setting up gl-compute failed: "),
      std::string::npos)
      << compute.report.reason;
  EXPECT_NE(compute.report.reason.find("compute shaders need 4.3"), std::string::npos)
      << compute.report.reason;
  std::cout << compute.report.reason << '\n';
  ExpectSortsLikeStdSort<std::uint32_t>(*compute.sorter,
                                        {MakeKeys<std::uint32_t>("random", 3000, 1)}, "3.3");
  const SorterSelection automatic = Make("auto");
  for (const SorterMeasurement& row : automatic.report.measurements) {
    EXPECT_NE(row.sorter, "gl-compute");
  }
}

}  // namespace
}  // namespace tidemark::sort
