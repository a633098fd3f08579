// Names, settings and limits of streams.
#include "server/window/stream_registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/window/refusal.h"

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

// Who may forget a subscription was judged by its stream, and the name may have moved since.
TEST_F(StreamRegistryTest, ForgetsASubscriptionOfTheStreamThatIsMeant) {
  for (const char* name : {"mine", "other"}) {
    ASSERT_TRUE(registry_.FindOrCreate(name, std::nullopt).ok());
  }
  ASSERT_TRUE(registry_.Subscribe({"S", "mine", "asked"}).ok());
  ASSERT_TRUE(registry_.Unsubscribe("S", "mine").ok());
  ASSERT_TRUE(registry_.Subscribe({"S", "other", "asked"}).ok());
  const absl::Status refused = registry_.Unsubscribe("S", "mine").status();
  EXPECT_EQ(refused, absl::NotFoundError("there is no subscription \"S\""));
  EXPECT_EQ(registry_.FindSubscription("S").value().stream, "other");
  EXPECT_TRUE(registry_.Unsubscribe("S").ok());
}

TEST(StreamRegistryMemory, MakesNoStreamAboveTheLimit) {
  std::uint64_t used = 1000;
  StreamContext context{.memory = {1000, [&] { return used; }}};
  StreamRegistry registry(StreamSettings{}, RegistryLimits{}, context);
  const StreamHandle there = registry.FindOrCreate("there", std::nullopt).value();
  used = 1001;
  context.memory.Look();
  const absl::Status refused = registry.FindOrCreate("new", std::nullopt).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "cannot create stream \"new\": the daemon holds 1001 bytes, more than "
            "limits.max_memory_bytes (1000)");
  EXPECT_EQ(ReasonOf(refused, Attempt::kOpen), "memory_limit");
  EXPECT_EQ(registry.FindOrCreate("there", std::nullopt).value(), there) << "those there go on";
  EXPECT_FALSE(registry.Create("new", StreamSettings{}).ok());
  used = 999;
  for (std::uint32_t i = 0; i < MemoryGuard::kAsks && registry.size() == 1; ++i) {
    registry.FindOrCreate("new", std::nullopt).IgnoreError();
  }
  EXPECT_EQ(registry.size(), 2u) << "room is not seen";
}

TEST(StreamRegistryMemory, OvershootsByAFewStreamsAtMost) {
  std::uint64_t used = 0;
  StreamContext context{.memory = {1000, [&] { return used; }}};
  StreamRegistry registry(StreamSettings{}, RegistryLimits{}, context);
  for (int i = 0; i < 5000; ++i) {
    if (registry.FindOrCreate(fmt::format("s{}", i), std::nullopt).ok()) used += 3;
  }
  EXPECT_GT(used, 1000u);
  EXPECT_LE(used, 1000u + 3 * MemoryGuard::kAsks);
}

TEST_F(StreamRegistryTest, DeletesWhatIsIdleForSoLong) {
  const StreamHandle busy = registry_.FindOrCreate("busy", std::nullopt).value();
  const StreamHandle idle = registry_.FindOrCreate("idle", std::nullopt).value();
  const auto tell = [](const StreamHandle& stream) {
    std::vector<Window> full;
    const double value = 1;
    return stream->AppendNumbers(std::span(&value, 1), 0, full).status;
  };
  ASSERT_TRUE(tell(busy).ok());
  ASSERT_TRUE(tell(idle).ok());
  for (int tick = 0; tick <= 3; ++tick) {
    EXPECT_EQ(registry_.DeleteIdle(3), 0u) << tick;
    busy->TrimStorage();
    idle->TrimStorage();
    ASSERT_TRUE(tell(busy).ok());
  }
  EXPECT_EQ(registry_.DeleteIdle(3), 1u);
  EXPECT_FALSE(registry_.Find("idle").ok());
  EXPECT_TRUE(absl::IsNotFound(tell(idle))) << "who still has it is told";
  EXPECT_NE(registry_.FindOrCreate("idle", std::nullopt).value(), idle);
  EXPECT_TRUE(tell(busy).ok());
}

// Also for what it holds, which is looked at before anything of the stream is. Deleted it says so,
// whatever is sent.
TEST_F(StreamRegistryTest, EveryBatchThatIsRefusedKeepsAStream) {
  std::vector<Window> full;
  const auto numbers = [&](double value) {
    return [&full, value](Stream& stream) {
      return stream.AppendNumbers(std::span(&value, 1), 0, full).status;
    };
  };
  const auto packed = [&](std::size_t bytes, std::size_t payloads) {
    return [&full, bytes, payloads](Stream& stream) {
      const std::vector<std::byte> zeros(bytes + payloads);
      const auto all = std::span(zeros);
      return stream.AppendPairs(all.first(bytes), all.last(payloads), 0, full).status;
    };
  };
  const auto text = [&](std::string item) {
    return [&full, item](Stream& stream) {
      const std::string_view view = item;
      return stream.AppendStrings(std::span(&view, 1), {}, 0, full).status;
    };
  };
  const struct {
    StreamSettings settings;
    std::function<absl::Status(Stream&)> send;
  } cases[] = {
      {{.type = ValueType::kUint32}, numbers(0.5)},
      {{.type = ValueType::kUint64}, numbers(-1)},
      {{.type = ValueType::kInt64}, numbers(1e300)},
      {{.type = ValueType::kFloat32}, numbers(1e300)},
      {{.type = ValueType::kIpv4}, numbers(1)},
      {{.type = ValueType::kIpv6}, numbers(1)},
      {{.type = ValueType::kString}, numbers(1)},
      {{.payload = PayloadType::kWeight}, numbers(1)},
      {{.type = ValueType::kUint32}, packed(3, 0)},
      {{.type = ValueType::kFloat64}, packed(8, 8)},
      {{.payload = PayloadType::kWeight}, packed(8, 4)},
      {{.type = ValueType::kIpv6}, packed(8, 0)},
      {{.type = ValueType::kString}, packed(8, 0)},
      {{.type = ValueType::kUint32}, text("a")},
      {{.type = ValueType::kString}, text(std::string(5000, 'a'))},
      {{.type = ValueType::kString}, text("\xFF")},
      {{.type = ValueType::kString, .payload = PayloadType::kWeight}, text("a")},
  };
  for (const auto& [settings, send] : cases) {
    SCOPED_TRACE(Describe(settings));
    const StreamHandle stream = MakeStream("s", settings, context_);
    for (int tick = 0; tick < 3; ++tick) stream->TrimStorage();
    ASSERT_EQ(stream->idle_trims(), 2u);
    const absl::Status refused = send(*stream);
    EXPECT_TRUE(absl::IsInvalidArgument(refused) || absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(stream->idle_trims(), 0u);
    stream->TrimStorage();
    EXPECT_FALSE(stream->MarkDeletedIfIdle(1)) << refused;
    ASSERT_TRUE(stream->MarkDeleted().ok());
    EXPECT_TRUE(absl::IsNotFound(send(*stream))) << refused;
  }
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
