// Every epsilon that a stream may be created with, the smallest above all, is one that its
// summaries take full windows with.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

TEST(Epsilon, WhatMayBeCreatedTakesFullWindows) {
  for (const double epsilon : {kEpsilonMin, 1e-5, kEpsilonMax}) {
    SCOPED_TRACE(epsilon);
    TestPipeline test;
    const auto created = test.pipeline.streams().Create(
        "s",
        {.type = ValueType::kFloat32, .quantile_epsilon = epsilon, .frequency_epsilon = epsilon});
    ASSERT_TRUE(created.ok()) << created.status();
    const CapacityLimits limits;
    // Filled in no time, windows grow to the largest; two of these.
    std::vector<float> values(3 * limits.max);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    test.Append("s", ValueType::kFloat32, std::span<const float>(values));
    test.Bytes("s");
    const StreamStats stats = (*created)->Stats();
    EXPECT_EQ(stats.count, values.size());
    EXPECT_EQ(stats.window_capacity, limits.max);
    EXPECT_GE(stats.windows_summarized, 7u);
    EXPECT_EQ(stats.pending, stats.window_fill);
    // 4/epsilon values are kept whole by one summary, 1/epsilon by the other.
    EXPECT_EQ(stats.exact, epsilon == kEpsilonMin);
    // At most all of them: a float a sample; an entry of the frequencies takes 24 bytes.
    EXPECT_LE(stats.quantile_bytes, 5 * values.size());
    EXPECT_LE(stats.frequency_bytes, 30 * values.size());
  }
}

TEST(Epsilon, BelowTheFloorNothingIsCreated) {
  TestPipeline test;
  StreamRegistry& streams = test.pipeline.streams();
  for (const double epsilon :
       {std::nextafter(kEpsilonMin, 0.0), std::nextafter(kEpsilonMax, 1.0)}) {
    EXPECT_EQ(streams.Create("q", {.quantile_epsilon = epsilon}).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(streams.Create("f", {.frequency_epsilon = epsilon}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(streams.size(), 0u);
}

}  // namespace
}  // namespace tidemark::server
