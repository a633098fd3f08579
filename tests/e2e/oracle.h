// What is true of a stream, from all of its values, and whether an answer agrees: the bounds that
// proto/tidemark/v1/query.proto states, looked at from outside.
#ifndef TIDEMARK_TESTS_E2E_ORACLE_H_
#define TIDEMARK_TESTS_E2E_ORACLE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "client/answers.h"

namespace tidemark::test {

/// `T` is an alternative of client::Value::Kind. Checks report failures of the running test.
template <class T>
class Oracle {
 public:
  /// `values`: what the stream holds, in any order, without NaN.
  explicit Oracle(std::vector<T> values) : sorted_(std::move(values)) {
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
      end = UpTo(sorted_[begin]);
      runs_.emplace_back(sorted_[begin], end - begin);
    }
  }

  std::uint64_t n() const { return sorted_.size(); }
  const std::vector<T>& sorted() const { return sorted_; }
  /// The number of values < and <= v.
  std::uint64_t Below(const T& v) const {
    return static_cast<std::uint64_t>(std::lower_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  std::uint64_t UpTo(const T& v) const {
    return static_cast<std::uint64_t>(std::upper_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  std::uint64_t Count(const T& v) const { return UpTo(v) - Below(v); }

  void Check(const client::QuantilesAnswer& answer, const std::vector<double>& phi,
             double epsilon) const {
    EXPECT_EQ(answer.n, n());
    EXPECT_EQ(answer.epsilon, epsilon);
    ASSERT_EQ(answer.answers.size(), n() == 0 ? 0 : phi.size());
    for (std::size_t i = 0; i < answer.answers.size(); ++i) {
      const client::QuantileAnswer& a = answer.answers[i];
      EXPECT_EQ(a.phi, phi[i]);
      const T& value = std::get<T>(a.value.kind);
      ASSERT_GT(Count(value), 0u) << "phi " << phi[i] << ": " << client::FormatValue(a.value)
                                  << " is no element of the stream";
      // ceil(phi n), where a product a hair above a whole number may count as that number.
      const double product = phi[i] * static_cast<double>(n());
      bool good = false;
      for (const double hair : {-1e-9, 1e-9}) {
        const auto target =
            std::clamp(static_cast<std::uint64_t>(std::max(0.0, std::ceil(product + hair))),
                       std::uint64_t{1}, n());
        const std::uint64_t nearest = std::clamp(target, Below(value) + 1, UpTo(value));
        good = good || (a.rank_low <= nearest && nearest <= a.rank_high &&
                        Near(a.rank_low, target, epsilon) && Near(a.rank_high, target, epsilon));
      }
      EXPECT_TRUE(good) << "phi " << phi[i] << ", n " << n() << ": " << client::FormatValue(a.value)
                        << " takes the ranks " << Below(value) + 1 << " to " << UpTo(value)
                        << ", certificate [" << a.rank_low << ", " << a.rank_high << "]";
    }
  }

  void Check(const client::RanksAnswer& answer, const std::vector<client::Value>& asked,
             double epsilon) const {
    EXPECT_EQ(answer.n, n());
    ASSERT_EQ(answer.answers.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const client::RankAnswer& a = answer.answers[i];
      const std::uint64_t truth = UpTo(std::get<T>(asked[i].kind));
      EXPECT_TRUE(a.rank_low <= truth && truth <= a.rank_high &&
                  Narrow(a.rank_low, a.rank_high, 2 * epsilon))
          << "rank of " << client::FormatValue(asked[i]) << " is " << truth << ", certificate ["
          << a.rank_low << ", " << a.rank_high << "], n " << n();
    }
  }

  /// Any histogram: buckets that follow one another and cover everything.
  void Check(const client::HistogramAnswer& answer, double epsilon) const {
    EXPECT_EQ(answer.n, n());
    for (std::size_t i = 0; i < answer.buckets.size(); ++i) {
      const client::HistogramBucket& b = answer.buckets[i];
      EXPECT_EQ(b.low.has_value(), i > 0);
      if (b.low && i > 0) {
        EXPECT_EQ(*b.low, *answer.buckets[i - 1].high);
      }
      const std::uint64_t below = b.low ? UpTo(std::get<T>(b.low->kind)) : 0;
      const std::uint64_t truth = (b.high ? UpTo(std::get<T>(b.high->kind)) : n()) - below;
      EXPECT_TRUE(b.count_low <= truth && truth <= b.count_high &&
                  Narrow(b.count_low, b.count_high, 4 * epsilon))
          << "bucket " << i << " holds " << truth << ", certificate [" << b.count_low << ", "
          << b.count_high << "], n " << n();
    }
    if (n() > 0 && !answer.buckets.empty() && answer.buckets.back().high) {
      EXPECT_EQ(std::get<T>(answer.buckets.back().high->kind), sorted_.back());
    }
  }

  void Check(const client::HeavyHittersAnswer& answer, double support, double epsilon) const {
    EXPECT_EQ(answer.n, n());
    EXPECT_EQ(answer.epsilon, epsilon);
    EXPECT_EQ(answer.support, support);
    std::map<T, std::uint64_t> found;
    std::uint64_t last = n();
    for (const client::ItemCount& item : answer.items) {
      CheckCount(item, epsilon);
      const T& value = std::get<T>(item.value.kind);
      EXPECT_TRUE(found.emplace(value, item.count_low).second) << "an item twice";
      EXPECT_GE(static_cast<double>(Count(value)),
                (support - epsilon) * static_cast<double>(n()) * (1 - 1e-12))
          << client::FormatValue(item.value) << " is no heavy hitter";
      EXPECT_LE(item.count_high, last) << "not in descending order";
      last = item.count_high;
    }
    for (const auto& [value, count] : runs_) {
      if (static_cast<double>(count) < support * static_cast<double>(n()) * (1 + 1e-12)) continue;
      EXPECT_TRUE(found.contains(value))
          << client::FormatValue(client::Value{value}) << " came " << count << " times of " << n()
          << " and is missing at support " << support;
    }
  }

  void Check(const client::CountsAnswer& answer, const std::vector<client::Value>& asked,
             double epsilon) const {
    EXPECT_EQ(answer.n, n());
    ASSERT_EQ(answer.items.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(answer.items[i].value, asked[i]);
      CheckCount(answer.items[i], epsilon);
    }
  }

 private:
  double Allowed(double share) const { return share * static_cast<double>(n()) * (1 + 1e-12); }
  bool Near(std::uint64_t rank, std::uint64_t target, double epsilon) const {
    const std::uint64_t apart = rank > target ? rank - target : target - rank;
    return static_cast<double>(apart) <= Allowed(epsilon);
  }
  bool Narrow(std::uint64_t low, std::uint64_t high, double share) const {
    return low <= high && static_cast<double>(high - low) <= Allowed(share);
  }
  void CheckCount(const client::ItemCount& item, double epsilon) const {
    const std::uint64_t truth = Count(std::get<T>(item.value.kind));
    EXPECT_TRUE(item.count_low <= truth && truth <= item.count_high &&
                Narrow(item.count_low, item.count_high, epsilon))
        << client::FormatValue(item.value) << " came " << truth << " times, certificate ["
        << item.count_low << ", " << item.count_high << "], n " << n();
  }

  std::vector<T> sorted_;
  std::vector<std::pair<T, std::uint64_t>> runs_;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_E2E_ORACLE_H_
