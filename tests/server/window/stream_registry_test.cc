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

// A process that holds what a test says.
class StreamRegistryMemory : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kLimit = 16 << 20;

  void Holds(std::uint64_t bytes) {
    used_ = bytes;
    context_.memory.Look();
  }
  absl::Status Send(const StreamHandle& stream, std::size_t count, RecordedTime time) {
    const std::vector<double> values(count, 1.0);
    std::vector<Window> full;
    absl::Status status = stream->AppendNumbers(values, time, full).status;
    for (Window& window : full) stream->Commit(std::move(window), [](std::uint64_t) {});
    return status;
  }
  absl::Status SendTexts(const StreamHandle& stream, std::size_t count) {
    const std::vector<std::string_view> items(count, "item");
    std::vector<Window> full;
    return stream->AppendStrings(items, {}, 0, full).status;
  }
  StreamHandle Make(std::string_view name, StreamSettings settings = {}) {
    return registry_.Create(name, settings).value();
  }
  // One that has taken in nothing, made while there was room.
  StreamHandle Fresh() {
    const std::uint64_t held = context_.memory.used();
    Holds(1);
    StreamHandle stream = Make(fmt::format("fresh {}", registry_.size()));
    Holds(held);
    return stream;
  }
  // Many values, a hundred a second: large, and quiet.
  StreamHandle MakeLarge(std::string_view name) {
    StreamHandle stream = Make(name);
    for (std::uint64_t sent = 0; sent < kSmallStreamValues + 256; sent += 128) {
      EXPECT_TRUE(Send(stream, 128, time_ += 1'280'000).ok());
    }
    EXPECT_EQ(stream->Stats().window_capacity, context_.window_limits.min);
    return stream;
  }

  std::uint64_t used_ = 0;
  RecordedTime time_ = 0;
  StreamContext context_{.memory = {kLimit, [this] { return used_; }}};
  StreamRegistry registry_{StreamSettings{}, RegistryLimits{}, context_};
};

TEST_F(StreamRegistryMemory, MakesNoStreamAboveSevenEighths) {
  Holds(kLimit / 8 * 7 - MemoryGuard::kWishBytes);
  const StreamHandle there = registry_.FindOrCreate("there", std::nullopt).value();
  Holds(kLimit / 8 * 7 + 1);
  const absl::Status refused = registry_.FindOrCreate("new", std::nullopt).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.message(),
      "cannot create stream \"new\": the daemon holds 14680065 bytes, and new streams have 7/8 "
      "of limits.max_memory_bytes (16777216)");
  EXPECT_EQ(ReasonOf(refused, Attempt::kOpen), "memory_limit");
  EXPECT_EQ(registry_.FindOrCreate("there", std::nullopt).value(), there) << "those there go on";
  EXPECT_TRUE(Send(there, 1000, 1).ok());
  EXPECT_FALSE(registry_.Create("new", StreamSettings{}).ok());
  used_ = 999;
  for (std::uint64_t wished = 0; wished < MemoryGuard::kLookBytes && registry_.size() == 1;
       wished += MemoryGuard::kWishBytes) {
    registry_.FindOrCreate("new", std::nullopt).IgnoreError();
  }
  EXPECT_EQ(registry_.size(), 2u) << "room is not seen";
}

TEST_F(StreamRegistryMemory, SmallStreamsGrowNoMoreAboveFifteenSixteenths) {
  const StreamHandle small = Make("small");
  ASSERT_TRUE(Send(small, 1, 1).ok());
  const StreamHandle texts = Make("texts", {.type = ValueType::kString});
  ASSERT_TRUE(SendTexts(texts, 1).ok());
  const StreamHandle large = MakeLarge("large");
  const StreamHandle burst = Make("burst");  // most of it is in the open window
  ASSERT_TRUE(Send(burst, kSmallStreamValues, ++time_).ok());
  Holds(kLimit / 16 * 15);
  const absl::Status refused = Send(small, 100, 2);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "no room for 100 values more of stream \"small\": the daemon holds 15728640 bytes, and "
            "streams of few values have 15/16 of limits.max_memory_bytes (16777216)");
  EXPECT_EQ(ReasonOf(refused, Attempt::kBatch), "memory_limit");
  EXPECT_EQ(SendTexts(texts, 100).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(small->Stats().count, 1u) << "nothing of it is there";
  EXPECT_EQ(texts->Stats().count, 1u);
  EXPECT_EQ(registry_.Find("small").value()->Stats().refused, 0u) << "that is of values";
  EXPECT_TRUE(Send(small, 15, 3).ok()) << "what its window has room for";
  EXPECT_FALSE(Send(small, 1, 3).ok());
  EXPECT_FALSE(SendTexts(texts, 1).ok()) << "of texts the window says too little";
  EXPECT_TRUE(Send(Fresh(), 0, 3).ok()) << "nothing takes nothing: how a producer begins";
  EXPECT_TRUE(Send(large, 100, time_ += 1'000'000).ok());
  EXPECT_TRUE(Send(burst, kSmallStreamValues, ++time_).ok());
  // Fast alone is not enough.
  EXPECT_EQ(Send(small, kSmallStreamValues, 4).code(), absl::StatusCode::kResourceExhausted);
  Holds(kLimit / 2);
  EXPECT_TRUE(Send(small, 100, 5).ok());
}

TEST_F(StreamRegistryMemory, BusyStreamsAloneGrowAboveTheLimit) {
  const StreamHandle quiet = MakeLarge("quiet");
  const StreamHandle busy = MakeLarge("busy");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Send(busy, 1000, ++time_).ok());
  Holds(2 * kLimit);
  const absl::Status refused = Send(quiet, 10'000, ++time_);
  EXPECT_EQ(
      refused.message(),
      "no room for 10000 values more of stream \"quiet\": the daemon holds 33554432 bytes, and "
      "quiet streams have no more than all of limits.max_memory_bytes (16777216)");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(busy, 10'000, time_ += 1000).ok()) << i;
  EXPECT_EQ(busy->Stats().count, kSmallStreamValues + 256 + 10'000 + 1'000'000);
  // Not a batch of ten thousand now and then.
  EXPECT_FALSE(Send(busy, 10'000, time_ += 10'000'000).ok());
}

// Blocks have one size whatever the rate: until the record of recent values is full they are quiet.
TEST_F(StreamRegistryMemory, SlidingStreamsGrowUntilTheirRecordIsFull) {
  StreamSettings settings;
  settings.sliding.values_max = 1000;
  settings.sliding.epsilon = 0.1;
  const StreamHandle full = Make("full", settings);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(full, 1000, time_ += 1000).ok());
  settings.sliding.values_max = 10'000'000;
  settings.sliding.epsilon = 0.001;
  const StreamHandle wide = Make("wide", settings);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(wide, 1000, time_ += 1000).ok());
  Holds(kLimit);
  EXPECT_TRUE(Send(full, 1000, time_ += 1000).ok());
  EXPECT_FALSE(Send(wide, 1000, time_ += 1000).ok());
}

// Its pages are touched as values come: what it has is no room yet.
TEST_F(StreamRegistryMemory, ALargeWindowOfFewValuesHasNothingYet) {
  const StreamHandle stream = Make("fast");
  for (int i = 0; i < 22; ++i) ASSERT_TRUE(Send(stream, 1000, ++time_).ok());
  ASSERT_EQ(stream->Stats().window_capacity, 65'536u);
  Holds(kLimit / 16 * 15);
  EXPECT_FALSE(Send(stream, 1, ++time_).ok());
}

TEST_F(StreamRegistryMemory, WhatCannotBeSaidIsAsBefore) {
  Holds(kLimit);
  Holds(0);
  EXPECT_FALSE(registry_.FindOrCreate("new", std::nullopt).ok());
}

TEST_F(StreamRegistryMemory, TheFirstWishLooks) {
  used_ = kLimit;
  EXPECT_FALSE(registry_.FindOrCreate("new", std::nullopt).ok());
}

TEST_F(StreamRegistryMemory, WhatWasWishedForSinceTheLastLookCounts) {
  std::uint64_t made = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (!registry_.FindOrCreate(fmt::format("s{}", i), std::nullopt).ok()) continue;
    ++made;
    used_ += MemoryGuard::kWishBytes;
  }
  EXPECT_LE(used_, kLimit / 8 * 7);
  EXPECT_GE(used_, kLimit / 8 * 7 - 2 * MemoryGuard::kLookBytes) << "room is left";
  EXPECT_GT(made, 1000u);
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
