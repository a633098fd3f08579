// Answers over windows by time whose border is not known exactly, through the whole pipeline,
// against the values that are truly inside: a clock that steps back, pauses, bursts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "server/query/query_engine.h"
#include "summaries/fraction.h"
#include "summaries/quantile_view.h"
#include "tests/summaries/wide_sum.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

using tidemark::testing::WideSum;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = 0.1;
constexpr std::int64_t kSecond = 1'000'000;

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

/// A stream and all that ever came, each value with the stream's time when it came.
struct Timed {
  StreamHandle stream;
  std::vector<double> values;
  std::vector<RecordedTime> times;

  /// Ascending. A clock behind the stream's time counts as that.
  std::vector<double> Within(std::int64_t age_us, RecordedTime now) const {
    const RecordedTime latest = times.empty() ? now : std::max(now, times.back());
    const auto first = std::upper_bound(times.begin(), times.end(), latest - age_us);
    std::vector<double> inside(values.begin() + (first - times.begin()), values.end());
    std::sort(inside.begin(), inside.end());
    return inside;
  }
};

bool Holds(double low, double high, const WideSum& sum, std::uint64_t count = 1) {
  const auto factor = static_cast<std::int64_t>(count);
  return low < kInfinity && high > -kInfinity &&
         (std::isinf(low) || WideSum::Of(low).Times(factor) <= sum) &&
         (std::isinf(high) || sum <= WideSum::Of(high).Times(factor));
}

std::uint64_t AtMost(const std::vector<double>& sorted, double v) {
  return static_cast<std::uint64_t>(std::upper_bound(sorted.begin(), sorted.end(), v) -
                                    sorted.begin());
}
double ShareAtMost(const std::vector<double>& sorted, double v) {
  return static_cast<double>(AtMost(sorted, v)) / static_cast<double>(sorted.size());
}
double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (const auto* side : {&a, &b}) {
    for (const double v : *side) {
      most = std::max(most, std::abs(ShareAtMost(a, v) - ShareAtMost(b, v)));
    }
  }
  return most;
}

class TimeWindows : public ::testing::Test {
 protected:
  Timed& Create(const std::string& name) {
    StreamSettings settings;
    settings.quantile_epsilon = 0.02;
    settings.sliding = {.values_max = 0, .time_max_us = 3600 * kSecond, .epsilon = kEpsilon};
    streams_[name].stream = test_.pipeline.streams().Create(name, settings).value();
    return streams_[name];
  }
  /// Small batches, each with a time of its own: bursts, pauses, a clock that steps back.
  void Feed(Timed& timed, std::size_t count, double mean) {
    std::normal_distribution<double> normal(mean, 3);
    const int pace = static_cast<int>(random_() % 3);
    while (count > 0) {
      const std::size_t taken = std::min<std::size_t>(1 + random_() % 40, count);
      std::vector<double> values(taken);
      for (double& value : values) {
        value = random_() % 5 == 0 ? std::round(normal(random_)) : normal(random_);
      }
      now_ += static_cast<RecordedTime>(random_() % (pace == 0 ? 300 : 60'000));
      if (random_() % 200 == 0) now_ += static_cast<RecordedTime>(random_() % (200 * kSecond));
      // Its values count as of the latest time so far.
      const RecordedTime recorded =
          random_() % 10 == 0 ? now_ - static_cast<RecordedTime>(random_() % (900 * kSecond))
                              : now_;
      const auto result =
          test_.pipeline.AppendPacked(timed.stream, std::as_bytes(std::span(values)), recorded);
      ASSERT_TRUE(result.status.ok()) << result.status;
      const RecordedTime time =
          timed.times.empty() ? recorded : std::max(recorded, timed.times.back());
      timed.values.insert(timed.values.end(), values.begin(), values.end());
      timed.times.insert(timed.times.end(), taken, time);
      count -= taken;
    }
  }
  std::int64_t Age(const Timed& timed) {
    // Often one that begins among the values, sometimes just any.
    const RecordedTime first = timed.times[random_() % timed.times.size()];
    const std::int64_t age = std::max<std::int64_t>(1, now_ - first + (random_() % 3 == 0 ? 1 : 0));
    return std::min<std::int64_t>(age, 3600 * kSecond);
  }
  RecordedTime Now() {  // an asker's clock may be behind
    return random_() % 4 == 0 ? now_ - static_cast<RecordedTime>(random_() % (50 * kSecond)) : now_;
  }
  Ask Asked(std::int64_t age, RecordedTime now) const {
    return Ask(Soon(), {.time_us = age, .now_us = now});
  }
  void CheckCoverage(const Coverage& coverage, std::uint64_t truth) {
    EXPECT_GE(coverage.n, truth);
    EXPECT_LE(coverage.n - coverage.uncertain, truth);
    if (coverage.uncertain > 0) ++uncertain_;
  }

  void CheckSpread(const std::string& name, std::int64_t age, RecordedTime now) {
    const std::vector<double> truth = streams_[name].Within(age, now);
    SpreadQuestion question;
    question.low_phi = static_cast<double>(random_() % 60) / 100;
    question.high_phi =
        question.low_phi + (1 - question.low_phi) * static_cast<double>(random_() % 5) / 4;
    question.trim = std::array{0.0, 0.01, 0.02, 0.1, 0.3, 0.49}[random_() % 6];
    const auto spread = engine_.Spread(name, question, Asked(age, now));
    if (truth.empty()) {
      if (!spread.ok()) {
        EXPECT_EQ(spread.status().code(), absl::StatusCode::kFailedPrecondition);
      }
      return;
    }
    ASSERT_TRUE(spread.ok()) << spread.status();
    const std::uint64_t n = truth.size();
    CheckCoverage(spread->coverage, n);
    const auto at = [&](double phi) { return truth[TargetRank(phi, n) - 1]; };
    const auto within = [](const std::pair<Value, Value>& bounds, double value) {
      return std::get<double>(bounds.first) <= value && value <= std::get<double>(bounds.second);
    };
    EXPECT_TRUE(within(spread->low_quantile, at(question.low_phi)));
    EXPECT_TRUE(within(spread->high_quantile, at(question.high_phi)));
    EXPECT_TRUE(Holds(spread->range_low, spread->range_high,
                      WideSum::Of(at(question.high_phi)) - WideSum::Of(at(question.low_phi))));
    const std::uint64_t cut = std::min(FloorFraction(question.trim, n), (n - 1) / 2);
    WideSum sum;
    for (std::uint64_t i = cut; i < n - cut; ++i) sum.Add(truth[i]);
    EXPECT_TRUE(Holds(spread->mean_low, spread->mean_high, sum, n - 2 * cut))
        << spread->mean_low << " to " << spread->mean_high << ", trim " << question.trim;
    const std::uint64_t left = n - 2 * cut;
    EXPECT_LE(
        spread->trimmed_count > left ? spread->trimmed_count - left : left - spread->trimmed_count,
        spread->coverage.uncertain);
    if (spread->coverage.uncertain == 0 || question.trim >= 0.1) {
      EXPECT_TRUE(std::isfinite(spread->mean_low) && std::isfinite(spread->mean_high));
    }
    const std::uint64_t distinct = std::set<double>(truth.begin(), truth.end()).size();
    EXPECT_LE(spread->distinct_low, distinct);
    EXPECT_GE(spread->distinct_high, distinct);
  }

  void CheckCompare(const std::string& a, const Ask& ask_a, const std::vector<double>& of_a,
                    const std::string& b, const Ask& ask_b, const std::vector<double>& of_b) {
    if (of_a.empty() || of_b.empty()) return;
    const double threshold = static_cast<double>(random_() % 30) / 100;
    const auto answer = engine_.Compare(a, ask_a, b, ask_b, threshold);
    ASSERT_TRUE(answer.ok()) << answer.status();
    CheckCoverage(answer->a, of_a.size());
    CheckCoverage(answer->b, of_b.size());
    constexpr double kHair = 1e-12;  // of the truth
    const double truth = Distance(of_a, of_b);
    EXPECT_LE(answer->distance_low, truth + kHair);
    EXPECT_GE(answer->distance_high, truth - kHair);
    EXPECT_LE(answer->distance_high - answer->distance_low,
              2 * (answer->a.epsilon + answer->b.epsilon) + kHair);
    const double v = std::get<double>(answer->value);
    const double share_a = ShareAtMost(of_a, v), share_b = ShareAtMost(of_b, v);
    EXPECT_TRUE(answer->share_a_low <= share_a + kHair && share_a <= answer->share_a_high + kHair);
    EXPECT_TRUE(answer->share_b_low <= share_b + kHair && share_b <= answer->share_b_high + kHair);
    EXPECT_GE(std::abs(share_a - share_b), answer->distance_low - kHair);
    if (answer->moved) {
      EXPECT_EQ(*answer->moved, truth > threshold);
    }
    // The fewest values that there may be say how far apart chance may bring them.
    EXPECT_GE(answer->chance_distance,
              std::min(1.0, std::sqrt(std::log(400) / (2 * static_cast<double>(of_a.size())))));
  }

  TestPipeline test_{{.sort_workers = 2}};
  QueryEngine engine_{test_.pipeline};
  std::map<std::string, Timed> streams_;
  std::mt19937_64 random_{20'261'123};
  RecordedTime now_ = 1'000'000'000'000;
  int uncertain_ = 0;
};

TEST_F(TimeWindows, SpreadsAndDistancesHoldTheTruth) {
  Create("a");
  Create("b");
  for (int part = 0; part < 12; ++part) {
    SCOPED_TRACE(part);
    Feed(streams_["a"], 6'000 + random_() % 3'000, part < 6 ? 10 : 10 + part);
    Feed(streams_["b"], 6'000 + random_() % 3'000, part % 2 == 0 ? 10 : 12);
    if (part % 4 == 3)
      now_ += static_cast<RecordedTime>(random_() % (2'000 * kSecond));  // nothing comes
    for (int i = 0; i < 12; ++i) {
      const std::int64_t age_a = Age(streams_["a"]), age_b = Age(streams_["b"]);
      const RecordedTime now_a = Now(), now_b = Now();
      SCOPED_TRACE(::testing::Message() << i << ", ages " << age_a << " and " << age_b);
      CheckSpread("a", age_a, now_a);
      const auto of_a = streams_["a"].Within(age_a, now_a);
      const auto of_b = streams_["b"].Within(age_b, now_b);
      CheckCompare("a", Asked(age_a, now_a), of_a, "b", Asked(age_b, now_b), of_b);
      std::vector<double> all = streams_["a"].values;
      std::sort(all.begin(), all.end());
      CheckCompare("a", Ask(Soon()), all, "a", Asked(age_a, now_a), of_a);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(uncertain_, 100) << "borders were nearly always known";
}

}  // namespace
}  // namespace tidemark::server
