// The route between GL and CPU, and the way back when GL fails; with a sorter that plays GL.
#include "gpu/sort/routed_sorter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "gpu/sort/cpu_sorter.h"
#include "gpu/sort/window_class.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

// Sorts with std::sort until told to fail; a failing request leaves its keys in another order, as
// the contract of WindowSorter allows.
class PlayedGl final : public WindowSorter {
 public:
  explicit PlayedGl(std::atomic<int>& requests, std::atomic<bool>& fails)
      : requests_(requests), fails_(fails) {}
  std::string_view name() const override { return "played"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override { return Play(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return Play(channels); }

 private:
  template <class Key>
  std::string_view Play(Channels<Key> channels) {
    ++requests_;
    for (const std::span<Key> keys : channels) {
      if (fails_) {
        std::reverse(keys.begin(), keys.end());
      } else {
        std::sort(keys.begin(), keys.end());
      }
    }
    if (fails_) throw SorterError("played: the context was lost");
    return name();
  }

  std::atomic<int>& requests_;
  std::atomic<bool>& fails_;
};

class RoutedSorterTest : public ::testing::Test {
 protected:
  std::unique_ptr<RoutedSorter> Make(const RouteTable& table) {
    return std::make_unique<RoutedSorter>(
        "auto", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())),
        std::make_unique<PlayedGl>(gl_requests_, gl_fails_), table,
        [this](const std::string& message) { messages_.push_back(message); });
  }
  static RouteTable AlwaysGl() {
    RouteTable table;
    table.always_gl = true;
    table.gl_window_max = 1 << 12;
    return table;
  }

  std::atomic<int> gl_requests_{0};
  std::atomic<bool> gl_fails_{false};
  std::vector<std::string> messages_;
};

TEST_F(RoutedSorterTest, SortsOnGlWhileItWorks) {
  const auto sorter = Make(AlwaysGl());
  ExpectSortsLikeStdSort<std::uint32_t>(*sorter, {MakeKeys<std::uint32_t>("random", 1000, 1)}, "");
  ExpectSortsLikeStdSort<std::uint64_t>(*sorter, {MakeKeys<std::uint64_t>("random", 1000, 2)}, "");
  EXPECT_EQ(gl_requests_, 2);
  EXPECT_EQ(sorter->failures(), 0);
  EXPECT_EQ(sorter->last_failure(), "");
}

// Takes no window that holds a key of 2^24 or more.
class ChoosyGl final : public WindowSorter {
 public:
  explicit ChoosyGl(std::atomic<int>& requests) : requests_(requests) {}
  std::string_view name() const override { return "choosy"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override { return Play(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return Play(channels); }

 private:
  template <class Key>
  std::string_view Play(Channels<Key> channels) {
    for (const std::span<Key> keys : channels) {
      for (const Key key : keys) {
        if (key >= 1 << 24) throw SorterRefusal("choosy: a key of 2^24 or more");
      }
    }
    ++requests_;
    for (const std::span<Key> keys : channels) std::sort(keys.begin(), keys.end());
    return name();
  }

  std::atomic<int>& requests_;
};

TEST_F(RoutedSorterTest, ARefusalIsNoFailure) {
  RoutedSorter sorter("choosy", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())),
                      std::make_unique<ChoosyGl>(gl_requests_), AlwaysGl(),
                      [this](const std::string& message) { messages_.push_back(message); });
  for (int request = 0; request < 2; ++request) {
    ExpectSortsLikeStdSort<std::uint32_t>(
        sorter, {MakeKeys<std::uint32_t>("low bits only", 300, 1)}, "taken");
    ExpectSortsLikeStdSort<std::uint32_t>(sorter, {MakeKeys<std::uint32_t>("all max", 300, 1)},
                                          "refused");
  }
  EXPECT_EQ(gl_requests_, 2);
  EXPECT_EQ(sorter.failures(), 0);
  EXPECT_TRUE(messages_.empty());
}

TEST_F(RoutedSorterTest, SortsKeysOf128BitsOnTheCpu) {
  const auto sorter = Make(AlwaysGl());
  ExpectSortsLikeStdSort<Key128>(*sorter, {MakeKeys<Key128>("random", 1000, 1)}, "");
  EXPECT_FALSE(sorter->SortsTogether(WidthIndex<Key128>(), {1000, 1000, 1000, 1000}));
  EXPECT_TRUE(sorter->SortsTogether(WidthIndex<std::uint64_t>(), {1000, 1000, 1000, 1000}));
  EXPECT_EQ(gl_requests_, 0);
  EXPECT_EQ(sorter->failures(), 0);
  // A GL sorter that is asked all the same says that it cannot.
  std::vector<Key128> keys{2, 1};
  const std::span<Key128> channel[] = {keys};
  PlayedGl played(gl_requests_, gl_fails_);
  WindowSorter& gl = played;
  EXPECT_THROW(gl.Sort(channel), SorterError);
}

TEST_F(RoutedSorterTest, SortsTheFailedRequestAndAllLaterOnesOnTheCpu) {
  const auto sorter = Make(AlwaysGl());
  gl_fails_ = true;
  for (int request = 0; request < 3; ++request) {
    ExpectSortsLikeStdSort<std::uint32_t>(
        *sorter,
        {MakeKeys<std::uint32_t>("random", 500, 3), MakeKeys<std::uint32_t>("random", 20, 4)},
        "after the failure");
  }
  EXPECT_EQ(gl_requests_, 1);
  EXPECT_EQ(sorter->failures(), 1);
  EXPECT_EQ(sorter->last_failure(), "played: the context was lost");
  EXPECT_EQ(messages_, std::vector<std::string>{"played: the context was lost"});
}

// Reduces as the reference does until told to fail.
class PlayedReducer final : public WindowSorter {
 public:
  PlayedReducer(std::atomic<int>& requests, std::atomic<bool>& fails)
      : requests_(requests), fails_(fails) {}
  std::string_view name() const override { return "played"; }
  std::string_view Sort(Channels<std::uint32_t>) override { throw SorterError("not asked"); }
  std::string_view Sort(Channels<std::uint64_t>) override { throw SorterError("not asked"); }
  std::string_view SortReduced(Channels<std::uint32_t> channels, std::span<const WindowNeeds> needs,
                               std::span<ReducedWindow<std::uint32_t>> reduced) override {
    ++requests_;
    if (fails_) throw SorterError("played: the context was lost");
    for (std::size_t c = 0; c < channels.size(); ++c) {
      std::sort(channels[c].begin(), channels[c].end());
      reduced[c] = ReduceSorted<std::uint32_t>(channels[c], needs[c]);
    }
    return name();
  }
  bool Reduces(std::size_t width_index,
               const std::array<std::size_t, kChannels>& lengths) const override {
    return width_index == 0 && lengths[0] != 77;
  }

 private:
  std::atomic<int>& requests_;
  std::atomic<bool>& fails_;
};

TEST_F(RoutedSorterTest, ReducedWindowsAreGlsAloneAndRefusedOtherwise) {
  RoutedSorter sorter("auto", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())),
                      std::make_unique<PlayedReducer>(gl_requests_, gl_fails_), AlwaysGl(),
                      [this](const std::string& message) { messages_.push_back(message); });
  std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("few distinct", 300, 1);
  std::vector<std::uint32_t> too_long = MakeKeys<std::uint32_t>("random", 5000, 1);
  std::vector<std::uint64_t> wide = {3, 1, 1};
  const std::span<std::uint32_t> channel[] = {keys}, long_channel[] = {too_long};
  const std::span<std::uint64_t> wide_channel[] = {wide};
  const WindowNeeds needs[] = {{reduce::SamplePlaces{9, 10}, true}};
  ReducedWindow<std::uint32_t> reduced[1];
  ReducedWindow<std::uint64_t> wide_reduced[1];
  const auto reduce = [&](Channels<std::uint32_t> channels) {
    return sorter.SortReduced(channels, needs, reduced);
  };
  EXPECT_TRUE(sorter.Reduces(0, {300, 0, 0, 0}));
  EXPECT_FALSE(sorter.Reduces(0, {77, 0, 0, 0})) << "GL says so";
  EXPECT_FALSE(sorter.Reduces(0, {5000, 0, 0, 0})) << "longer than GL takes";
  EXPECT_FALSE(sorter.Reduces(2, {300, 0, 0, 0})) << "keys of 128 bits";
  EXPECT_EQ(reduce(channel), "played");
  std::sort(keys.begin(), keys.end());
  const auto expected = ReduceSorted<std::uint32_t>(keys, needs[0]);
  EXPECT_TRUE(reduced[0].samples == expected.samples && reduced[0].runs == expected.runs);
  EXPECT_THROW(reduce(long_channel), SorterRefusal);
  EXPECT_THROW(sorter.SortReduced(Channels<std::uint64_t>(wide_channel), needs, wide_reduced),
               SorterRefusal)
      << "as every sorter that does not override it";
  EXPECT_EQ(gl_requests_, 1);
  EXPECT_EQ(sorter.failures(), 0);
  gl_fails_ = true;
  EXPECT_THROW(reduce(channel), SorterRefusal) << "for the caller to sort whole";
  EXPECT_THROW(reduce(channel), SorterRefusal);
  EXPECT_FALSE(sorter.Reduces(0, {300, 0, 0, 0}));
  EXPECT_EQ(gl_requests_, 2) << "not asked again";
  EXPECT_EQ(sorter.failures(), 1);
  EXPECT_EQ(messages_, std::vector<std::string>{"played: the context was lost"});
}

TEST_F(RoutedSorterTest, SaysWhoSorted) {
  const auto sorter = Make(AlwaysGl());
  const auto sort = [&](std::size_t n) {
    std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", n, 1);
    const std::span<std::uint32_t> channel[] = {keys};
    return sorter->Sort(Channels<std::uint32_t>(channel));
  };
  EXPECT_EQ(sorter->name(), "auto");
  EXPECT_EQ(sort(1000), "played");
  EXPECT_EQ(sort(5000), "cpu") << "longer than GL takes";
  gl_fails_ = true;
  EXPECT_EQ(sort(1000), "cpu") << "the request that GL failed to sort";
  EXPECT_EQ(sort(1000), "cpu") << "after the failure";
}

TEST_F(RoutedSorterTest, LosesNoKeyWhenGlFailsUnderManyThreads) {
  RouteTable table = AlwaysGl();
  RoutedSorter sorter("auto", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())),
                      std::make_unique<PlayedGl>(gl_requests_, gl_fails_), table, {});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; round < 100; ++round) {
        if (t == 0 && round == 50) gl_fails_ = true;
        ExpectSortsLikeStdSort<std::uint32_t>(
            sorter, {MakeKeys<std::uint32_t>("random", 300 + round, t)}, "thread");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(sorter.failures(), 1);
  EXPECT_LE(sorter.failures(), 4);  // one for each caller that was under way at most
}

TEST_F(RoutedSorterTest, KeepsWindowsThatGlCannotTakeOnTheCpu) {
  const auto sorter = Make(AlwaysGl());
  ExpectSortsLikeStdSort<std::uint32_t>(*sorter, {MakeKeys<std::uint32_t>("random", 5000, 1)}, "");
  EXPECT_EQ(gl_requests_, 0);
  EXPECT_EQ(sorter->failures(), 0);
}

TEST_F(RoutedSorterTest, ComparesTheMeasuredCostOfTheWholeRequest) {
  RouteTable table;
  table.gl_window_max = 1 << 20;
  for (auto& width : table.gl_request_seconds) width.fill(std::numeric_limits<double>::infinity());
  for (auto& width : table.cpu_key_seconds) width.fill(1e-8);
  // Four windows of 2^16 keys: 2.6 ms on the CPU, 1 ms on GL, whether the channels are full or not.
  table.gl_request_seconds[0][ClassOf(1 << 16)] = 1e-3;
  const auto sorter = Make(table);
  constexpr std::size_t kWindow = 1 << 16;
  EXPECT_TRUE(sorter->PrefersGl(0, {kWindow, kWindow, kWindow, kWindow}));
  EXPECT_TRUE(sorter->PrefersGl(0, {kWindow, kWindow, 0, 0}));
  EXPECT_FALSE(sorter->PrefersGl(0, {kWindow, 0, 0, 0}));
  EXPECT_FALSE(sorter->PrefersGl(1, {kWindow, kWindow, kWindow, kWindow})) << "64-bit keys";
  EXPECT_FALSE(sorter->PrefersGl(0, {1 << 10, 1 << 10, 1 << 10, 1 << 10})) << "not measured";
}

// GL is faster for four windows than the CPU, slower for one; time stands still unless it is moved.
RouteTable BothInUse() {
  RouteTable table;
  table.gl_window_max = 1 << 12;
  for (auto& width : table.gl_request_seconds) width.fill(2e-3);
  for (auto& width : table.cpu_key_seconds) width.fill(1e-3 / 1024);
  return table;
}

// Holds what it is given until it is let go.
class HeldGl final : public WindowSorter {
 public:
  std::string_view name() const override { return "held"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override {
    {
      std::unique_lock lock(mutex_);
      ++inside_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return let_go_; });
      if (fails_) throw SorterError("held: the context was lost");
    }
    for (const std::span<std::uint32_t> keys : channels) std::sort(keys.begin(), keys.end());
    return name();
  }
  std::string_view Sort(Channels<std::uint64_t>) override { throw SorterError("not asked"); }

  void WaitUntilInside(int requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == requests; });
  }
  void LetGo(bool fails) {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    fails_ = fails;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool let_go_ = false, fails_ = false;
};

class BothAtOnce : public ::testing::TestWithParam<bool> {};

TEST_P(BothAtOnce, TheCpuSortsWhileGlIsBusyAndWhenItFails) {
  const bool fails = GetParam();
  auto held = std::make_unique<HeldGl>();
  HeldGl& gl = *held;
  std::atomic<int> failures{0};
  RoutedSorter sorter(
      "auto", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())), std::move(held),
      BothInUse(), [&](const std::string&) { ++failures; }, [] { return RouteChoice::Time(0); });
  constexpr std::array<std::size_t, kChannels> kFour = {1024, 1024, 1024, 1024};
  ASSERT_TRUE(sorter.SortsTogether(0, kFour));
  std::string_view by_first;
  std::vector<std::vector<std::uint32_t>> first;
  for (std::size_t c = 0; c < kChannels; ++c) {
    first.push_back(MakeKeys<std::uint32_t>("random", 1024, c));
  }
  std::thread other([&] {
    std::array<std::span<std::uint32_t>, kChannels> channels;
    std::copy(first.begin(), first.end(), channels.begin());
    by_first = sorter.Sort(Channels<std::uint32_t>(channels));
  });
  gl.WaitUntilInside(1);
  // GL would be done after 4 ms, the CPU with four windows after 4 and with one after 1.
  EXPECT_FALSE(sorter.SortsTogether(0, kFour));
  for (int request = 0; request < 3; ++request) {
    std::vector<std::uint32_t> keys = MakeKeys<std::uint32_t>("random", 1024, 9);
    const std::span<std::uint32_t> channel[] = {keys};
    EXPECT_EQ(sorter.Sort(Channels<std::uint32_t>(channel)), "cpu");
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  }
  gl.LetGo(fails);
  other.join();
  EXPECT_EQ(by_first, fails ? "cpu" : "held");
  for (const auto& keys : first) EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(failures, fails ? 1 : 0);
  EXPECT_EQ(sorter.SortsTogether(0, kFour), !fails);
}
INSTANTIATE_TEST_SUITE_P(HeldGl, BothAtOnce, ::testing::Bool(), [](const auto& run) {
  return std::string(run.param ? "Fails" : "Sorts");
});

// Sorts, refuses and, from some request on, fails.
class MoodyGl final : public WindowSorter {
 public:
  MoodyGl(int refuses_every, int fails_from)
      : refuses_every_(refuses_every), fails_from_(fails_from) {}
  std::string_view name() const override { return "moody"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override { return Play(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return Play(channels); }

 private:
  template <class Key>
  std::string_view Play(Channels<Key> channels) {
    const int request = ++requests_;
    if (request % refuses_every_ == 0) throw SorterRefusal("moody: not this one");
    for (const std::span<Key> keys : channels) std::sort(keys.begin(), keys.end());
    if (request >= fails_from_) {
      for (const std::span<Key> keys : channels) std::reverse(keys.begin(), keys.end());
      throw SorterError("moody: the context was lost");
    }
    return name();
  }
  const int refuses_every_, fails_from_;
  std::atomic<int> requests_{0};
};

// Whatever the threads' order, the clock and GL do, every window is sorted, and the counts say of
// every request where it went.
TEST(RoutedSorterProperty, EveryWindowIsSorted) {
  constexpr std::uint64_t kSeed = 20261122;
  std::mt19937_64 seeds(kSeed);
  for (int round = 0; round < 12; ++round) {
    std::mt19937_64 random(seeds());
    const bool fails = random() % 2 == 0;
    const int fails_from = fails ? 1 + static_cast<int>(random() % 100) : 1 << 30;
    std::atomic<std::int64_t> time{0};
    const auto tick = static_cast<std::int64_t>(1 + random() % 2'000'000);
    RoutedSorter sorter("auto", std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().back())),
                        std::make_unique<MoodyGl>(3 + static_cast<int>(random() % 20), fails_from),
                        BothInUse(), {}, [&] { return RouteChoice::Time(time += tick); });
    constexpr std::size_t kThreads = 4, kRequests = 40;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&sorter, own = std::mt19937_64(random()), round]() mutable {
        for (std::size_t request = 0; request < kRequests; ++request) {
          std::vector<std::vector<std::uint32_t>> windows(1 + own() % kChannels);
          std::array<std::size_t, kChannels> lengths{};
          for (std::size_t c = 0; c < windows.size(); ++c) {
            lengths[c] = own() % 4 == 0 ? own() % 5000 : 1024;
            windows[c] = MakeKeys<std::uint32_t>("random", lengths[c], own());
          }
          if (!sorter.SortsTogether(0, lengths)) windows.resize(1);
          ExpectSortsLikeStdSort<std::uint32_t>(
              sorter, windows, "seed " + std::to_string(kSeed) + " round " + std::to_string(round));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::uint64_t requests = 0, refused_or_failed = 0;
    const RouteStats stats = *sorter.routes();
    for (const RouteStats::Count& count : stats.counts) {
      requests += count.requests;
      if (count.sorter == "cpu" && count.reason == "only") refused_or_failed += count.requests;
    }
    EXPECT_GE(requests, kThreads * kRequests);
    EXPECT_LE(requests, kThreads * kRequests + refused_or_failed);
    EXPECT_LE(sorter.failures(), kThreads);
    if (!fails) {
      EXPECT_EQ(sorter.failures(), 0u);
    }
  }
}

}  // namespace
}  // namespace tidemark::sort
