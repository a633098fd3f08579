// What is true of the first n values of a stream, and whether the engine's answers agree with it:
// the bounds that README.md and proto/tidemark/v1/query.proto state, looked at from outside.
#ifndef TIDEMARK_TESTS_SERVER_QUERY_GRID_ORACLE_H_
#define TIDEMARK_TESTS_SERVER_QUERY_GRID_ORACLE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/query/query_engine.h"
#include "server/window/stream.h"
#include "tests/server/query/grid_values.h"

namespace tidemark::server {

/// Sorts once, then answers in logarithmic time. Strings, which have counts alone, are counted.
template <class KindOf>
class SortedTruth {
 public:
  using T = typename KindOf::Type;
  /// `values`: without NaN; kept by the caller.
  explicit SortedTruth(std::span<const T> values) : n_(values.size()) {
    if constexpr (KindOf::kRanks) {
      sorted_.assign(values.begin(), values.end());
      std::sort(sorted_.begin(), sorted_.end());
      for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
        while (end < sorted_.size() && sorted_[end] == sorted_[begin]) ++end;
        runs_.emplace_back(sorted_[begin], end - begin);
      }
    } else {
      for (const T& value : values) ++counts_[value];
      runs_.assign(counts_.begin(), counts_.end());
    }
    std::sort(runs_.begin(), runs_.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
  }

  std::uint64_t n() const { return n_; }
  /// The number of values < v, <= v, == v.
  std::uint64_t Below(const T& v) const { return Position(std::ranges::lower_bound(sorted_, v)); }
  std::uint64_t UpTo(const T& v) const { return Position(std::ranges::upper_bound(sorted_, v)); }
  std::uint64_t Count(const T& v) const {
    if constexpr (KindOf::kRanks) return UpTo(v) - Below(v);
    const auto found = counts_.find(v);
    return found == counts_.end() ? 0 : found->second;
  }
  /// Distinct values and how often they came, the most frequent first.
  const std::vector<std::pair<T, std::uint64_t>>& runs() const { return runs_; }

 private:
  std::uint64_t Position(typename std::vector<T>::const_iterator at) const {
    return static_cast<std::uint64_t>(at - sorted_.begin());
  }
  const std::uint64_t n_;
  std::vector<T> sorted_;
  std::unordered_map<T, std::uint64_t> counts_;
  std::vector<std::pair<T, std::uint64_t>> runs_;
};

/// Counts anew for each question: for a few of them about a prefix that is not worth a sort.
template <class KindOf>
class ScannedTruth {
 public:
  using T = typename KindOf::Type;
  explicit ScannedTruth(std::span<const T> values) : values_(values) {}
  std::uint64_t n() const { return values_.size(); }
  std::uint64_t Below(const T& v) const {
    return CountIf([&](const T& value) { return value < v; });
  }
  std::uint64_t UpTo(const T& v) const {
    return CountIf([&](const T& value) { return value <= v; });
  }
  std::uint64_t Count(const T& v) const {
    return CountIf([&](const T& value) { return value == v; });
  }

 private:
  template <class Matches>
  std::uint64_t CountIf(Matches matches) const {
    return static_cast<std::uint64_t>(std::count_if(values_.begin(), values_.end(), matches));
  }
  const std::span<const T> values_;
};

/// The largest part of what the guarantee allows that any certificate used: above 1 is a failure,
/// near 0 would mean that the checks never met an approximate answer.
struct Spent {
  double quantiles = 0;  ///< distance of a certificate's end from its target, of εn
  double ranks = 0;      ///< width of a rank's certificate, of 2εn
  double buckets = 0;    ///< width of a bucket's count, of 4εn
  double counts = 0;     ///< width of an item's count, of εn
};

/// Checks report failures of the running test.
template <class KindOf, class Truth>
class GridOracle {
 public:
  using T = typename KindOf::Type;
  GridOracle(const Truth& truth, const StreamSettings& settings, Spent& spent)
      : truth_(truth),
        epsilon_(settings.quantile_epsilon),
        frequency_epsilon_(settings.frequency_epsilon),
        spent_(spent) {}

  void Check(const QuantilesAnswer& answer, std::span<const double> phis) {
    CheckCoverage(answer.coverage, epsilon_);
    ASSERT_EQ(answer.rows.size(), n() == 0 ? 0 : phis.size());
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
      const QuantileRow& row = answer.rows[i];
      EXPECT_EQ(row.phi, phis[i]);
      const T value = KindOf::FromValue(row.value);
      const std::uint64_t below = truth_.Below(value);
      const std::uint64_t up_to = truth_.UpTo(value);
      ASSERT_GT(up_to, below) << "phi " << row.phi << ": the answer is no element of the stream";
      const std::uint64_t target = Target(row.phi);
      const std::uint64_t nearest = std::clamp(target, below + 1, up_to);
      EXPECT_LE(row.rank_low, nearest) << "phi " << row.phi << ", target " << target;
      EXPECT_GE(row.rank_high, nearest) << "phi " << row.phi << ", target " << target;
      ExpectWithin(Apart(row.rank_low, target), epsilon_, spent_.quantiles, "quantile");
      ExpectWithin(Apart(row.rank_high, target), epsilon_, spent_.quantiles, "quantile");
    }
  }

  void Check(const RanksAnswer& answer, std::span<const Value> asked) {
    CheckCoverage(answer.coverage, epsilon_);
    ASSERT_EQ(answer.rows.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const RankRow& row = answer.rows[i];
      EXPECT_EQ(row.value, asked[i]);
      const std::uint64_t truth = truth_.UpTo(KindOf::FromValue(asked[i]));
      EXPECT_LE(row.rank_low, truth) << "value " << i;
      EXPECT_GE(row.rank_high, truth) << "value " << i;
      ExpectWithin(Apart(row.rank_low, row.rank_high), 2 * epsilon_, spent_.ranks, "rank");
    }
  }

  /// Any histogram: buckets follow one another and cover everything.
  void Check(const HistogramAnswer& answer) {
    CheckCoverage(answer.coverage, epsilon_);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
      const BucketRow& row = answer.rows[i];
      ASSERT_EQ(row.low.has_value(), i > 0);
      if (i > 0) {
        EXPECT_EQ(*row.low, *answer.rows[i - 1].high);
      }
      const std::uint64_t up_to = row.high ? truth_.UpTo(KindOf::FromValue(*row.high)) : n();
      EXPECT_LE(row.count_low, up_to - below) << "bucket " << i;
      EXPECT_GE(row.count_high, up_to - below) << "bucket " << i;
      ExpectWithin(Apart(row.count_low, row.count_high), 4 * epsilon_, spent_.buckets, "bucket");
      below = up_to;
    }
    EXPECT_EQ(below, answer.rows.empty() ? 0 : n()) << "values above the last bucket";
  }

  /// Equal depth: some bound stands within εn of each i / buckets.
  void CheckDepths(const HistogramAnswer& answer, std::uint32_t buckets) {
    EXPECT_LE(answer.rows.size(), buckets);
    EXPECT_EQ(answer.rows.empty(), n() == 0);
    for (std::uint32_t i = 1; i <= buckets && n() > 0; ++i) {
      const std::uint64_t target = Target(static_cast<double>(i) / buckets);
      std::uint64_t best = n();
      for (const BucketRow& row : answer.rows) {
        ASSERT_TRUE(row.high.has_value());
        const T bound = KindOf::FromValue(*row.high);
        const std::uint64_t up_to = truth_.UpTo(bound);
        const std::uint64_t below = truth_.Below(bound);
        ASSERT_GT(up_to, below) << "the bound is no element of the stream";
        best = std::min(best, Apart(std::clamp(target, below + 1, up_to), target));
      }
      ExpectWithin(best, epsilon_, spent_.quantiles, "depth");
    }
  }

  void Check(const ItemsAnswer& answer, std::span<const Value> asked) {
    CheckCoverage(answer.coverage, frequency_epsilon_);
    ASSERT_EQ(answer.rows.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(answer.rows[i].value, asked[i]);
      CheckCount(answer.rows[i]);
    }
  }

  /// Needs a truth that knows all items.
  void CheckHeavy(const ItemsAnswer& answer, double support) {
    CheckCoverage(answer.coverage, frequency_epsilon_);
    EXPECT_EQ(answer.support, support);
    std::unordered_set<T> found;
    std::uint64_t last = n();
    for (const ItemRow& row : answer.rows) {
      CheckCount(row);
      const T value = KindOf::FromValue(row.value);
      EXPECT_TRUE(found.insert(value).second) << "an item twice";
      EXPECT_GE(static_cast<double>(truth_.Count(value)),
                Share(support - frequency_epsilon_) * (1 - kRounding))
          << "a false heavy hitter at support " << support;
      EXPECT_LE(row.count_high, last) << "not in descending order";
      last = row.count_high;
    }
    for (const auto& [value, count] : truth_.runs()) {
      if (static_cast<double>(count) < Share(support) * (1 - kRounding)) break;
      EXPECT_TRUE(found.contains(value))
          << "an item came " << count << " times and is missing at support " << support;
    }
  }

 private:
  // 0.05 n is a whole number for the user and a hair above or below it as a double. Up to n = 10^6
  // and for every ε of the grid the next fraction is at least 10^-3 away.
  static constexpr double kRounding = 1e-12;

  std::uint64_t n() const { return truth_.n(); }
  double Share(double share) const { return share * static_cast<double>(n()); }
  // ceil(φn), at least 1.
  std::uint64_t Target(double phi) const {
    const double product = Share(phi);
    return std::clamp(static_cast<std::uint64_t>(std::ceil(product * (1 - kRounding))),
                      std::uint64_t{1}, n());
  }
  static std::uint64_t Apart(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

  void CheckCoverage(const Coverage& coverage, double epsilon) const {
    EXPECT_EQ(coverage.n, n());
    EXPECT_EQ(coverage.epsilon, epsilon);
  }
  void CheckCount(const ItemRow& row) {
    const std::uint64_t truth = truth_.Count(KindOf::FromValue(row.value));
    EXPECT_LE(row.count_low, truth);
    EXPECT_GE(row.count_high, truth);
    EXPECT_LE(row.count_low, row.count_high);
    ExpectWithin(Apart(row.count_low, row.count_high), frequency_epsilon_, spent_.counts, "count");
  }
  void ExpectWithin(std::uint64_t error, double share, double& spent, const char* what) const {
    if (error == 0) return;
    const double used = static_cast<double>(error) / Share(share);
    spent = std::max(spent, used);
    EXPECT_LE(used, 1 + kRounding) << "the certificate of a " << what << " is off by " << error;
  }

  const Truth& truth_;
  const double epsilon_;  // of quantiles
  const double frequency_epsilon_;
  Spent& spent_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_QUERY_GRID_ORACLE_H_
