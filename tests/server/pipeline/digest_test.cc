// Streams whose summaries take digests: their windows are not sorted, and everything is as if they
// were.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "server/window/keyed_stream.h"
#include "summaries/quantile_view.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

constexpr CapacityLimits kWindows = {.min = 1 << 13, .max = 1 << 14};

StreamSettings Compact(ValueType type) {
  StreamSettings settings;
  settings.type = type;
  settings.quantile_epsilon = 0.01;
  settings.quantile_form = QuantileKind::kCompact;
  settings.frequencies = false;
  return settings;
}

// Sorts with std::sort; may fail; may claim to sort four windows together, as a GPU does.
class FakeSorter final : public sort::WindowSorter {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override { return All(channels); }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override { return All(channels); }
  bool SortsTogether(std::size_t, const std::array<std::size_t, sort::kChannels>&) const override {
    return together;
  }

  std::atomic<int> calls{0};
  int fail_every = 0;
  bool together = false;

 private:
  template <class Key>
  std::string_view All(sort::Channels<Key> channels) {
    const int call = ++calls;
    if (fail_every > 0 && call % fail_every == 0) {
      std::reverse(channels[0].begin(), channels[0].end());
      throw sort::SorterError("injected failure");
    }
    for (const auto& channel : channels) std::sort(channel.begin(), channel.end());
    return name();
  }
};

sort::SorterSelection Selection(std::unique_ptr<FakeSorter> sorter) {
  sort::SorterSelection selection;
  selection.report.requested = selection.report.active = "fake";
  selection.sorter = std::move(sorter);
  return selection;
}

// Of every few batches other values: uniform (also as keys), lognormal, few distinct, ascending,
// one.
template <class Value>
std::vector<std::vector<Value>> MakeBatches(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> lognormal(0, 2);
  std::vector<std::vector<Value>> batches(120);
  double at = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    batches[i].resize(1 + random() % 20'000);
    for (Value& value : batches[i]) {
      const double kinds[] = {(1 << 20) + static_cast<double>(random() % (1 << 20)),
                              1e3 * lognormal(random), static_cast<double>(random() % 20), at += 1,
                              5};
      value = static_cast<Value>(kinds[i / 12 % 5]);
    }
  }
  return batches;
}

struct Outcome {
  std::string bytes;
  std::uint64_t count = 0;
  double grid_keys = 0;
  double all_keys = 0;
  std::size_t errors = 0;
};

template <class Value>
Outcome Feed(const std::vector<std::vector<Value>>& batches, const StreamSettings& settings,
             std::unique_ptr<FakeSorter> sorter, int workers, bool views = false) {
  TestPipeline test({.window_limits = kWindows, .sort_workers = workers},
                    Selection(std::move(sorter)));
  const StreamHandle stream = test.pipeline.streams().Create("s", settings).value();
  RecordedTime now = 0;
  for (const auto& batch : batches) {
    const auto result =
        test.pipeline.AppendPacked(stream, std::as_bytes(std::span(batch)), now += 1000);
    EXPECT_TRUE(result.status.ok()) << result.status;
    if (!views || stream->Stats().count % 3 != 0) continue;
    using Key = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
    const ViewRule<Key> rule{
        .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60),
        .tolerates = nullptr,
        .sort = nullptr,
        .sort_pairs = nullptr};
    const auto view = static_cast<const KeyedStream<Key>&>(*stream).View(rule);
    EXPECT_TRUE(view.ok()) << view.status();
  }
  Outcome outcome;
  outcome.bytes = test.Bytes("s");
  outcome.count = stream->Stats().count;
  outcome.grid_keys = test.metrics.SortKeys("grid").Value();
  outcome.all_keys = outcome.grid_keys + test.metrics.SortKeys("fake").Value() +
                     test.metrics.SortKeys("cpu").Value();
  outcome.errors = test.sorter_errors.size();
  return outcome;
}

template <class Value>
void ExpectSameBytes(ValueType type) {
  const auto batches = MakeBatches<Value>(5);
  const StreamSettings settings = Compact(type);
  const auto sorter = [](bool together, int fail_every) {
    auto fake = std::make_unique<FakeSorter>();
    fake->together = together;
    fake->fail_every = fail_every;
    return fake;
  };
  const Outcome sorted = Feed(batches, settings, sorter(true, 0), 1);
  EXPECT_EQ(sorted.grid_keys, 0) << "a GPU sorts several together";
  ASSERT_GT(sorted.bytes.size(), 300u);
  for (const int workers : {1, 4}) {
    for (const bool views : {false, true}) {
      SCOPED_TRACE(::testing::Message() << workers << " workers, views " << views);
      const Outcome counted = Feed(batches, settings, sorter(false, 0), workers, views);
      EXPECT_TRUE(counted.bytes == sorted.bytes) << "not the bytes of sorted windows";
      EXPECT_EQ(counted.count, sorted.count);
      EXPECT_EQ(counted.all_keys, sorted.all_keys);
      EXPECT_GT(counted.grid_keys, 0);
      EXPECT_LT(counted.grid_keys, counted.all_keys);
    }
  }
  const Outcome failing = Feed(batches, settings, sorter(false, 3), 2);
  EXPECT_TRUE(failing.bytes == sorted.bytes) << "every third sort fails";
  EXPECT_GT(failing.errors, 5u);
  auto other = batches;
  other[50][0] = Value{3};
  other[3][0] = Value{3};
  EXPECT_FALSE(Feed(other, settings, sorter(false, 0), 1).bytes == sorted.bytes)
      << "the comparison can fail";
}

TEST(Digests, SameBytesAsSorted32) { ExpectSameBytes<float>(ValueType::kFloat32); }
TEST(Digests, SameBytesAsSorted64) { ExpectSameBytes<double>(ValueType::kFloat64); }

// Whoever needs the order gets it.
TEST(Digests, OnlyOfStreamsThatNeedNoOrder) {
  const auto batches = MakeBatches<float>(6);
  const auto grid_keys = [&](auto change) {
    StreamSettings settings = Compact(ValueType::kFloat32);
    change(settings);
    const Outcome outcome = Feed(batches, settings, std::make_unique<FakeSorter>(), 2);
    EXPECT_GT(outcome.all_keys, 0);
    return outcome.grid_keys;
  };
  EXPECT_GT(grid_keys([](StreamSettings&) {}), 0);
  EXPECT_EQ(grid_keys([](StreamSettings& s) { s.frequencies = true; }), 0);
  EXPECT_EQ(grid_keys([](StreamSettings& s) { s.quantile_form = QuantileKind::kTail; }), 0);
  EXPECT_EQ(grid_keys([](StreamSettings& s) { s.quantile_form = QuantileKind::kHistogram; }), 0);
  EXPECT_EQ(grid_keys([](StreamSettings& s) { s.sliding.values_max = 100'000; }), 0);
}

}  // namespace
}  // namespace tidemark::server
