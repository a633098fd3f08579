// Names, settings and limits of streams.
#include "server/window/stream_registry.h"

#include <gtest/gtest.h>

namespace tidemark::server {
namespace {

class StreamRegistryTest : public testing::Test {
 protected:
  StreamContext context_;
  StreamRegistry registry_{StreamSettings{}, RegistryLimits{.streams_max = 3}, context_};
};

TEST_F(StreamRegistryTest, CreatesOnFirstUseWithDefaults) {
  const auto stream = registry_.FindOrCreate("s", std::nullopt);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->type(), ValueType::kFloat64);
  EXPECT_EQ(*registry_.FindOrCreate("s", ValueType::kFloat64), *stream);
  const auto other = registry_.FindOrCreate("s", ValueType::kString);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(other.status().message(), "stream \"s\" holds float64, not string");
}

TEST_F(StreamRegistryTest, CreatingAgainWithTheSameSettingsSucceeds) {
  const StreamSettings settings{.type = ValueType::kUint32, .quantile_epsilon = 0.01};
  ASSERT_TRUE(registry_.Create("s", settings).ok());
  EXPECT_TRUE(registry_.Create("s", settings).ok());
  EXPECT_EQ(registry_.Create("s", StreamSettings{}).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StreamRegistryTest, RefusesBadSettings) {
  for (const double epsilon :
       {0.0, -1.0, 1e-13, 9e-7, 0.6, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(registry_.Create("s", {.quantile_epsilon = epsilon}).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(registry_.Create("s", {.frequency_epsilon = epsilon}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(registry_.size(), 0u);
}

TEST_F(StreamRegistryTest, RefusesWhatContradictsItself) {
  const auto refused = [&](const StreamSettings& settings, const std::string& why) {
    const absl::Status status = registry_.Create("s", settings).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(why), std::string::npos) << status;
    EXPECT_EQ(status.message().find("stream \"s\": "), 0u) << status;
  };
  refused({.type = ValueType::kString, .payload = PayloadType::kY}, "strings have no order");
  refused({.type = ValueType::kString, .frequencies = false}, "strings have counts");
  refused({.hierarchy = {{8, 16}}}, "for addresses");
  refused({.type = ValueType::kIpv4, .frequencies = false, .hierarchy = {{8}}}, "for addresses");
  refused({.type = ValueType::kIpv4, .hierarchy = {{16, 8}}}, "must ascend");
  refused({.type = ValueType::kIpv4, .hierarchy = {{8, 8}}}, "must ascend");
  refused({.type = ValueType::kIpv4, .hierarchy = {{8, 33}}}, "0 to 32 bits");
  refused({.type = ValueType::kIpv6, .hierarchy = {{64, 129}}}, "0 to 128 bits");
  refused({.type = ValueType::kIpv6, .frequencies = false}, "expected frequencies");
  refused({.type = ValueType::kIpv6, .payload = PayloadType::kY}, "counts and no ranks");
  refused({.tail_epsilon = 0.6}, "tail epsilon");
  refused({.sliding = {.values_max = (std::uint64_t{1} << 40) + 1}}, "too wide");
  refused({.sliding = {.time_max_us = -1}}, "out of range");
  EXPECT_EQ(registry_.size(), 0u);
  EXPECT_TRUE(registry_.Create("s", {.type = ValueType::kIpv4, .hierarchy = {{0, 32}}}).ok());
  EXPECT_TRUE(registry_.Create("s6", {.type = ValueType::kIpv6, .hierarchy = {{0, 128}}}).ok());
}

TEST_F(StreamRegistryTest, HoldsItsLimit) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(registry_.FindOrCreate(name, {}).ok());
  const auto fourth = registry_.FindOrCreate("d", {});
  EXPECT_EQ(fourth.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(registry_.FindOrCreate("a", {}).ok());
  ASSERT_TRUE(registry_.Delete("a").ok());
  EXPECT_TRUE(registry_.FindOrCreate("d", {}).ok());
}

TEST_F(StreamRegistryTest, ListsInOrderByPageAndPrefix) {
  for (const char* name : {"b", "a", "bc"}) ASSERT_TRUE(registry_.FindOrCreate(name, {}).ok());
  const auto names = [](const std::vector<StreamHandle>& streams) {
    std::vector<std::string> out;
    for (const auto& stream : streams) out.push_back(stream->name());
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(registry_.List("", "", 2)), (Names{"a", "b"}));
  EXPECT_EQ(names(registry_.List("b", "", 2)), (Names{"bc"}));
  EXPECT_EQ(names(registry_.List("", "b", 9)), (Names{"b", "bc"}));
  EXPECT_EQ(names(registry_.List("b", "b", 9)), (Names{"bc"}));
  EXPECT_EQ(names(registry_.List("", "zz", 9)), Names{});
}

TEST_F(StreamRegistryTest, DeletedStreamRefusesBatchesAndIsGone) {
  const StreamHandle stream = *registry_.FindOrCreate("s", {});
  ASSERT_TRUE(registry_.Delete("s").ok());
  EXPECT_EQ(registry_.Delete("s").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(registry_.Find("s").status().message(), "there is no stream \"s\"");
  std::vector<Window> full;
  const double value = 1;
  const auto result = stream->AppendNumbers({&value, 1}, 0, full);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(stream->Stats().count, 0u);
}

}  // namespace
}  // namespace tidemark::server
