#include "gpu/sort/measure_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

namespace tidemark::sort {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

// Takes as long for each request as it is told, by a clock of its own.
class TimedSorter : public WindowSorter {
 public:
  explicit TimedSorter(std::vector<int> took_ms) : took_ms_(std::move(took_ms)) {}
  std::string_view name() const override { return "timed"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override {
    EXPECT_EQ(channels.size(), kChannels);
    for (const std::span<std::uint32_t> keys : channels) {
      EXPECT_EQ(keys.size(), 100U);
      EXPECT_FALSE(std::is_sorted(keys.begin(), keys.end())) << "keys of the round before";
      std::sort(keys.begin(), keys.end());
    }
    now += milliseconds(took_ms_.at(requests++));
    return name();
  }
  std::string_view Sort(Channels<std::uint64_t>) override { throw SorterError("not here"); }

  Time now{};
  std::size_t requests = 0;

 private:
  const std::vector<int> took_ms_;
};

double Measure(TimedSorter& sorter, milliseconds budget) {
  return MeasureRequest<std::uint32_t>(sorter, 100, budget, [&] { return sorter.now; });
}

TEST(MeasureRequest, DoesNotCountAColdStart) {
  TimedSorter sorter({5000, 2});
  EXPECT_DOUBLE_EQ(Measure(sorter, milliseconds(15)), 0.002);
  EXPECT_EQ(sorter.requests, 2U) << "beyond the budget one round must do";
}

TEST(MeasureRequest, TakesTheFastestOfThreeRounds) {
  TimedSorter sorter({1, 4, 3, 6});
  EXPECT_DOUBLE_EQ(Measure(sorter, milliseconds(1000)), 0.003);
  EXPECT_EQ(sorter.requests, 4U);
}

TEST(MeasureRequest, PassesAFailureOn) {
  TimedSorter sorter({});
  EXPECT_THROW(MeasureRequest<std::uint64_t>(sorter, 100, milliseconds(1), [] { return Time{}; }),
               SorterError);
}

}  // namespace
}  // namespace tidemark::sort
