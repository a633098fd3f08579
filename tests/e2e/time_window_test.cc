// Windows by time through the real daemon and the real clock. When a value was taken in the test
// knows only as lying between its sending and its acknowledgement: of some values it is sure that
// they are inside a window, of some that they are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using Clock = std::chrono::system_clock;
using std::chrono::microseconds;

constexpr double kEpsilon = 0.2;
constexpr std::size_t kBatch = 40;

class TimeWindowTest : public testing::Test {
 protected:
  struct Batch {
    Clock::time_point sent, acknowledged;
  };
  /// Values numbered from 0 up, so that a window's are those from some number on.
  void Push(client::AcknowledgedPusher& pusher) {
    std::vector<double> values(kBatch);
    for (double& value : values) value = static_cast<double>(n_++);
    const Clock::time_point sent = Clock::now();
    pusher.Write(values);
    pusher.Flush();
    batches_.push_back({sent, Clock::now()});
  }
  /// The first values that were surely taken in after `border`, and that may have been.
  std::pair<std::uint64_t, std::uint64_t> FirstAfter(Clock::time_point least,
                                                     Clock::time_point most) const {
    std::uint64_t sure = batches_.size(), possible = batches_.size();
    for (std::size_t i = batches_.size(); i-- > 0;) {
      if (batches_[i].sent > most) sure = i;
      if (batches_[i].acknowledged >= least) possible = i;
    }
    return {sure * kBatch, possible * kBatch};
  }

  TestDaemon daemon_;
  std::vector<Batch> batches_;
  std::uint64_t n_ = 0;
};

TEST_F(TimeWindowTest, AnswersHoldWhereverTheBorderLies) {
  client::StreamConfig config;
  config.type = client::ValueType::kFloat64;
  config.sliding = {.max_values = 0, .max_time = std::chrono::hours(1), .epsilon = kEpsilon};
  daemon_.client().CreateStream("s", config);
  auto pusher = daemon_.client().PushAcknowledged("s");
  std::size_t uncertain = 0, answered = 0;
  for (int part = 0; part < 6; ++part) {
    for (int i = 0; i < 250; ++i) Push(pusher);
    for (int ask = 0; ask < 8; ++ask) {
      // From just after the first batch to just before the last one.
      const auto all = batches_.back().acknowledged - batches_.front().sent;
      client::Scope scope;
      scope.last_time =
          std::chrono::duration_cast<microseconds>(all * (8 - ask) / 9) + microseconds(1);
      const Clock::time_point before = Clock::now() - scope.last_time - microseconds(1);
      client::SpreadAnswer spread;
      client::QuantilesAnswer quantiles;
      client::CompareAnswer moved;
      std::string refused;
      try {
        quantiles = daemon_.client().Quantiles("s", {0.5}, scope);
        spread = daemon_.client().Spread(
            "s", {.low_phi = 0.3, .high_phi = 0.8, .trim = 0.1, .scope = scope});
        moved = daemon_.client().Compare("s", {}, "s", scope, 0.3);
      } catch (const client::Error& error) {
        EXPECT_EQ(error.code(), client::Code::kFailedPrecondition) << error.what();
        refused = error.what();
      }
      const Clock::time_point after = Clock::now() - scope.last_time + microseconds(1);
      const auto surely_and_perhaps = FirstAfter(before, after);
      const std::uint64_t sure = surely_and_perhaps.first;
      const std::uint64_t possible = surely_and_perhaps.second;
      SCOPED_TRACE(testing::Message() << "part " << part << ", question " << ask << ", from "
                                      << possible << " or at most " << sure << " of " << n_);
      // Fewest and most values that there may have been.
      const auto fewest = static_cast<double>(n_ - sure), most = static_cast<double>(n_ - possible);
      if (!refused.empty()) {
        // The first windows are short: time may have left them behind before they were asked about.
        EXPECT_EQ(sure, n_) << refused;
        EXPECT_NE(refused.find("window asked"), std::string::npos) << refused;
        continue;
      }
      ++answered;
      const auto overlap = [&](double low, double high, double least, double greatest) {
        EXPECT_LE(low, greatest);
        EXPECT_GE(high, least);
      };
      const auto check_n = [&](std::uint64_t n, std::uint64_t not_sure) {
        overlap(static_cast<double>(n - not_sure), static_cast<double>(n), fewest, most);
        uncertain += not_sure > 0 ? 1 : 0;
      };
      check_n(spread.n, spread.n_uncertain);
      check_n(quantiles.n, quantiles.n_uncertain);
      check_n(moved.n_b, moved.n_uncertain_b);
      // Of values from `first` on the quantile is about first + phi * (n_ - first).
      const auto quantile = [&](double phi, const client::Value& low, const client::Value& high) {
        const auto at = [&](std::uint64_t first) {
          return static_cast<double>(first) + phi * static_cast<double>(n_ - first);
        };
        overlap(std::get<double>(low.kind), std::get<double>(high.kind), at(possible) - 1,
                at(sure) + 1);
      };
      quantile(0.3, spread.low_quantile.first, spread.low_quantile.second);
      quantile(0.8, spread.high_quantile.first, spread.high_quantile.second);
      overlap(spread.range_low, spread.range_high, 0.5 * fewest - 2, 0.5 * most + 2);
      const auto middle = [&](std::uint64_t first) { return static_cast<double>(first + n_) / 2; };
      overlap(spread.trimmed_mean_low, spread.trimmed_mean_high, middle(possible) - 2,
              middle(sure) + 2);
      EXPECT_TRUE(std::isfinite(spread.trimmed_mean_low) &&
                  std::isfinite(spread.trimmed_mean_high));
      // The whole stream against its last part: apart by the share that is not in the window.
      const auto all_values = static_cast<double>(n_);
      overlap(moved.distance_low, moved.distance_high, 1 - most / all_values - 1e-9,
              1 - fewest / all_values + 1e-9);
    }
  }
  EXPECT_GT(answered, 12u) << "of 48 questions";
  EXPECT_GT(uncertain, 0u) << "every border was known: nothing was tested";
}

}  // namespace
}  // namespace tidemark::test
