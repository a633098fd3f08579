// Streams whose windows come back as samples and items: everything is as if they had come back
// whole, also when the sorter fails. All types, and real sorters: tests/server/query.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

constexpr CapacityLimits kWindows = {.min = 1 << 12, .max = 1 << 12};

// Reduces, if it may, until it fails: then for good, as a lost context does.
class FakeReducer final : public sort::WindowSorter {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view Sort(sort::Channels<std::uint32_t> channels) override { return All(channels); }
  std::string_view Sort(sort::Channels<std::uint64_t> channels) override { return All(channels); }
  std::string_view SortReduced(sort::Channels<std::uint64_t> channels,
                               std::span<const sort::WindowNeeds> needs,
                               std::span<sort::ReducedWindow<std::uint64_t>> reduced) override {
    All(channels);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      reduced[c] = sort::ReduceSorted<std::uint64_t>(channels[c], needs[c]);
      windows_reduced += reduced[c].whole ? 0 : 1;
    }
    return name();
  }
  bool Reduces(std::size_t, const std::array<std::size_t, sort::kChannels>&) const override {
    return reduces;
  }
  bool SortsTogether(std::size_t, const std::array<std::size_t, sort::kChannels>&) const override {
    return true;
  }

  bool reduces = true;
  int requests_until_failure = -1;
  std::atomic<int> windows_reduced{0};

 private:
  template <class Key>
  std::string_view All(sort::Channels<Key> channels) {
    if (requests_until_failure >= 0 && requests_++ >= requests_until_failure) {
      throw sort::SorterError("injected failure");
    }
    for (const auto& channel : channels) std::sort(channel.begin(), channel.end());
    return name();
  }

  std::atomic<int> requests_{0};
};

struct Fed {
  std::string bytes;
  int windows_reduced = 0;
  std::size_t errors = 0;
};

// Each value less than all before it, so that a window's smallest key is nobody else's; some often.
Fed Feed(bool reduces, int requests_until_failure, bool items, bool quantiles_compact = false) {
  auto sorter = std::make_unique<FakeReducer>();
  FakeReducer& fake = *sorter;
  fake.reduces = reduces;
  fake.requests_until_failure = requests_until_failure;
  sort::SorterSelection selection;
  selection.report.requested = selection.report.active = "fake";
  selection.sorter = std::move(sorter);
  TestPipeline test({.window_limits = kWindows, .sort_workers = 2}, std::move(selection));
  StreamSettings settings{.type = ValueType::kInt64, .quantile_epsilon = 0.01};
  settings.frequency_epsilon = 0.001;
  settings.frequencies = items;
  if (quantiles_compact) settings.quantile_form = QuantileKind::kCompact;
  const StreamHandle stream = test.pipeline.streams().Create("s", settings).value();
  std::int64_t next = 1'000'000;
  for (int batch = 0; batch < 40; ++batch) {
    std::vector<std::int64_t> values(3000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 7 == 0 ? 2'000'000 : --next;
    EXPECT_TRUE(
        test.pipeline.AppendPacked(stream, std::as_bytes(std::span(values)), batch).status.ok());
  }
  Fed fed;
  fed.bytes = test.Bytes("s");
  fed.windows_reduced = fake.windows_reduced;
  const std::lock_guard lock(test.mutex);
  fed.errors = test.sorter_errors.size();
  return fed;
}

TEST(ReducedWindows, GiveTheSameBytes) {
  for (const bool items : {false, true}) {
    const Fed whole = Feed(false, -1, items);
    const Fed reduced = Feed(true, -1, items);
    EXPECT_EQ(whole.windows_reduced, 0);
    EXPECT_EQ(reduced.windows_reduced, 40 * 3000 / kWindows.max);
    EXPECT_TRUE(reduced.bytes == whole.bytes) << "items " << items;
    EXPECT_EQ(reduced.errors, 0u);
  }
}

TEST(ReducedWindows, AreSortedWholeByTheFallbackWhenTheSorterFails) {
  const Fed whole = Feed(false, -1, true);
  const Fed failing = Feed(true, 3, true);
  EXPECT_GT(failing.windows_reduced, 0);
  EXPECT_LT(failing.windows_reduced, 40 * 3000 / kWindows.max);
  EXPECT_TRUE(failing.bytes == whole.bytes);
  EXPECT_GT(failing.errors, 0u);
}

TEST(ReducedWindows, AreNotAskedForWhereTheSummaryTakesTheKeys) {
  const Fed whole = Feed(false, -1, true, /*quantiles_compact=*/true);
  const Fed reduced = Feed(true, -1, true, /*quantiles_compact=*/true);
  EXPECT_EQ(reduced.windows_reduced, 0);
  EXPECT_TRUE(reduced.bytes == whole.bytes);
}

}  // namespace
}  // namespace tidemark::server
