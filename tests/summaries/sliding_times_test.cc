// When values came: what is known of the first value of a window by time, against every value's
// time.
#include "summaries/sliding_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

SlidingRule MakeRule(double epsilon) {
  SlidingOptions options;
  options.epsilon = epsilon;
  options.max_age_us = 1'000'000;
  options.block_size = 64;
  return SlidingRule(options);
}

/// The times of all values, as the stream counts them.
class Times {
 public:
  void Append(const TimedCount& values) {
    latest_ = times_.empty() ? values.time_us : std::max(latest_, values.time_us);
    times_.insert(times_.end(), values.count, latest_);
  }
  std::uint64_t After(std::int64_t border) const {
    return static_cast<std::uint64_t>(std::upper_bound(times_.begin(), times_.end(), border) -
                                      times_.begin());
  }
  std::int64_t At(std::uint64_t value) const { return times_[value]; }
  std::uint64_t end() const { return times_.size(); }

 private:
  std::vector<std::int64_t> times_;
  std::int64_t latest_ = 0;
};

SlidingTimes WrittenAndRead(const SlidingTimes& times, const SlidingRule& rule) {
  ByteWriter writer("TEST", 4);
  times.Write(writer);
  const std::string bytes = writer.Finish();
  ByteReader reader(bytes, "TEST", 4, "times");
  SlidingTimes read = SlidingTimes::Read(reader, rule);
  reader.ExpectEnd();
  return read;
}

TEST(SlidingTimes, TheFirstValueOfAWindowIsKnownWithinItsShare) {
  for (int seed = 0; seed < Cases(60, 3000); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const SlidingRule rule = MakeRule(std::vector{0.2, 0.1, 0.01}[random() % 3]);
    SlidingTimes times;
    Times truth;
    std::int64_t clock = static_cast<std::int64_t>(random() % 100) - 50;
    const std::uint64_t largest = 1 + random() % 6;
    const std::uint64_t still = 1 + random() % 4;
    std::uint64_t forgotten = 0;
    for (int batch = 0; batch < 6000; ++batch) {
      if (random() % still == 0) clock += static_cast<std::int64_t>(random() % 3);
      if (random() % 500 == 0) clock += 500;
      if (random() % 300 == 0) clock -= 100;
      const TimedCount values{random() % largest, clock};
      times.Append(values, rule);
      if (values.count > 0) truth.Append(values);
      if (random() % 997 == 0) {
        forgotten = std::max(forgotten, random() % (truth.end() + 1) / 2);
        times.Forget(forgotten);
      }
      if (random() % 1000 == 0) times = WrittenAndRead(times, rule);
      if (random() % 40 != 0 || truth.end() == 0) continue;
      ASSERT_EQ(times.end(), truth.end());
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t value = forgotten + random() % (truth.end() - forgotten);
        const std::int64_t border = truth.At(value) + static_cast<std::int64_t>(random() % 3) - 1;
        const std::uint64_t first = truth.After(border);
        if (first < forgotten) continue;
        const WindowBegin begin = times.After(border);
        ASSERT_LE(begin.low, first);
        ASSERT_GE(begin.high, first);
        ASSERT_LE(begin.high - begin.low, rule.TimeSlack(truth.end() - begin.high));
      }
    }
    // Values each with a time of their own.
    const double share = rule.epsilon() / 8;
    EXPECT_LT(static_cast<double>(times.marks()),
              1.6 / share * std::log(share * static_cast<double>(truth.end()) + 3) + 200);
  }
}

TEST(SlidingTimes, FewRunsAreKnownExactly) {
  const SlidingRule rule = MakeRule(0.2);
  SlidingTimes times;
  EXPECT_EQ(times.After(0), (WindowBegin{0, 0}));
  EXPECT_EQ(times.latest(), SlidingTimes::kNever);
  times.Append({1000, 50}, rule);
  times.Append({1000, 40}, rule);  // the clock stepped back: as of 50
  times.Append({0, 90}, rule);     // nothing came
  times.Append({10, 60}, rule);
  EXPECT_EQ(times.latest(), 60);
  EXPECT_EQ(times.marks(), 2u);
  EXPECT_EQ(times.After(SlidingTimes::kNever), (WindowBegin{0, 0}));
  EXPECT_EQ(times.After(49), (WindowBegin{0, 0}));
  EXPECT_EQ(times.After(50), (WindowBegin{2000, 2000}));
  EXPECT_EQ(times.After(59), (WindowBegin{2000, 2000}));
  EXPECT_EQ(times.After(60), (WindowBegin{2010, 2010}));
}

TEST(SlidingTimes, BordersDoNotOverflow) {
  EXPECT_EQ(WindowBorder(100, 30), 70);
  EXPECT_EQ(WindowBorder(SlidingTimes::kNever, 1), SlidingTimes::kNever);
  EXPECT_EQ(WindowBorder(SlidingTimes::kNever + 5, std::int64_t{1} << 62), SlidingTimes::kNever);
  const std::int64_t last = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(WindowBorder(last, std::int64_t{1} << 62), last - (std::int64_t{1} << 62));
}

}  // namespace
}  // namespace tidemark
