// Streams that sum their own values: sums, averages and trimmed means against exact sums, for every
// type of number; unions; and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
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

QueryEngine::Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

template <class T>
WideSum Of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return WideSum::Of(double{value});
  } else if constexpr (std::is_signed_v<T>) {
    return WideSum::Of(std::int64_t{value});
  } else {
    return WideSum::Of(std::uint64_t{value});
  }
}

/// Finite values: few or many, of both signs and all magnitudes, or near the ends of the type.
template <class T>
std::vector<T> Draw(std::mt19937_64& random, std::size_t n) {
  using Limits = std::numeric_limits<T>;
  const int shape = static_cast<int>(random() % 4);
  std::vector<T> values(n);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      const auto mantissa =
          static_cast<T>(static_cast<std::int64_t>(random() % 2'000'001) - 700'000);
      if (shape == 0) value = std::floor(mantissa / T{100'000});
      if (shape == 1) value = mantissa;
      if (shape == 2) value = std::ldexp(mantissa, static_cast<int>(random() % 90) - 60);
      if (shape == 3)
        value = random() % 50 == 0 ? (random() % 2 == 0 ? Limits::max() : Limits::lowest()) / 1024
                                   : Limits::denorm_min() * mantissa;
    } else {
      if (shape == 0) value = static_cast<T>(random() % 13);
      if (shape == 1) value = static_cast<T>(random());
      if (shape == 2) value = static_cast<T>(random() >> (random() % 64));
      if (shape == 3) value = random() % 2 == 0 ? Limits::max() : Limits::min();
    }
  }
  return values;
}

template <class T>
class Truth {
 public:
  explicit Truth(std::vector<T> values) : sorted_(std::move(values)) {
    std::sort(sorted_.begin(), sorted_.end());
    through_.emplace_back();
    for (const T value : sorted_) {
      through_.push_back(through_.back() + Of(value));
      weight_ += std::abs(static_cast<double>(value));
    }
  }
  std::uint64_t n() const { return sorted_.size(); }
  double weight() const { return weight_; }
  T At(std::uint64_t rank) const { return sorted_[rank - 1]; }
  std::uint64_t AtMost(T v) const {
    return static_cast<std::uint64_t>(std::upper_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  std::uint64_t Less(T v) const {
    return static_cast<std::uint64_t>(std::lower_bound(sorted_.begin(), sorted_.end(), v) -
                                      sorted_.begin());
  }
  /// Of the values of ranks (first, last].
  WideSum Sum(std::uint64_t first, std::uint64_t last) const {
    return through_[last] - through_[first];
  }
  /// The number of values at or below the quantile of a share.
  std::uint64_t AtMostShare(double phi) const { return AtMost(At(TargetRank(phi, n()))); }

 private:
  std::vector<T> sorted_;
  std::vector<WideSum> through_;
  double weight_ = 0;  // of all |values|, about
};

bool Holds(double low, double high, const WideSum& sum, std::uint64_t count = 1) {
  const auto factor = static_cast<std::int64_t>(count);
  return low < kInfinity && high > -kInfinity &&
         (std::isinf(low) || WideSum::Of(low).Times(factor) <= sum) &&
         (std::isinf(high) || sum <= WideSum::Of(high).Times(factor));
}

class ValueSums : public ::testing::Test {
 protected:
  StreamHandle Create(const std::string& name, ValueType type, bool sums,
                      QuantileKind form = QuantileKind::kHistogram) {
    StreamSettings settings{.type = type,
                            .quantile_epsilon = epsilon_,
                            .quantile_form = form,
                            .frequencies = form == QuantileKind::kHistogram,
                            .sums = sums};
    const auto stream = test_.pipeline.streams().Create(name, settings);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  template <class T>
  void Append(const std::vector<StreamHandle>& streams, std::span<const T> values) {
    while (!values.empty()) {
      const std::size_t taken = std::min<std::size_t>(1 + random_() % 3000, values.size());
      time_ += static_cast<RecordedTime>(random_() % 30'000);
      for (const StreamHandle& stream : streams) {
        const auto result =
            test_.pipeline.AppendPacked(stream, std::as_bytes(values.first(taken)), time_);
        ASSERT_TRUE(result.status.ok()) << result.status;
      }
      values = values.subspan(taken);
    }
  }

  template <class T>
  void CheckRow(const SumRow& row, const Truth<T>& truth, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t count = last > first ? last - first : 0;
    EXPECT_LE(row.count_low, count);
    EXPECT_GE(row.count_high, count);
    const WideSum sum = count > 0 ? truth.Sum(first, last) : WideSum();
    EXPECT_TRUE(Holds(row.sum_low, row.sum_high, sum)) << row.sum_low << " to " << row.sum_high;
    if (row.average && count > 0) {
      EXPECT_TRUE(Holds(row.average->first, row.average->second, sum, count))
          << row.average->first << " to " << row.average->second;
    }
  }

  /// Everything that may be asked of the stream `name`, which has sums; `plain` has none.
  template <class T>
  void Check(const std::string& name, const std::string& plain, const Truth<T>& truth,
             bool same_windows = true) {
    const auto draw = [&] { return truth.At(1 + random_() % truth.n()); };
    for (int i = 0; i < 12; ++i) {
      const T v = draw();
      const auto [low, high] = std::minmax({draw(), draw()});
      const double phi = static_cast<double>(random_() % 101) / 100;
      const double above = static_cast<double>(random_() % 101) / 100;
      const auto [from, to] = std::minmax({phi, above});
      const std::vector<PairRange> ranges{AtMostValue{v}, BetweenValues{low, high},
                                          AtMostShare{phi}, BetweenShares{from, to}};
      const auto answer = engine_.Sums(name, ranges, Soon());
      ASSERT_TRUE(answer.ok()) << answer.status();
      ASSERT_EQ(answer->coverage.n, truth.n());
      CheckRow(answer->rows[0], truth, 0, truth.AtMost(v));
      const double width = answer->rows[0].sum_high - answer->rows[0].sum_low;
      EXPECT_LE(width, 2 * epsilon_ * truth.weight() * (1 + 1e-9) + 1e-300);
      EXPECT_LE(answer->rows[0].count_high - answer->rows[0].count_low,
                2 * FloorFraction(epsilon_, truth.n()));
      CheckRow(answer->rows[1], truth, truth.Less(low), truth.AtMost(high));
      CheckRow(answer->rows[2], truth, 0, truth.AtMostShare(phi));
      CheckRow(answer->rows[3], truth, from == 0 ? 0 : truth.AtMostShare(from),
               truth.AtMostShare(to));
    }
    for (const double trim : {0.0, 0.004, 0.05, 0.25, 0.4999}) {
      SCOPED_TRACE(trim);
      const auto spread = engine_.Spread(name, {.trim = trim}, Soon());
      ASSERT_TRUE(spread.ok()) << spread.status();
      const std::uint64_t cut = std::min(FloorFraction(trim, truth.n()), (truth.n() - 1) / 2);
      ASSERT_EQ(spread->trimmed_count, truth.n() - 2 * cut);
      EXPECT_TRUE(Holds(spread->mean_low, spread->mean_high, truth.Sum(cut, truth.n() - cut),
                        spread->trimmed_count))
          << spread->mean_low << " to " << spread->mean_high;
      const auto alone = engine_.Spread(plain, {.trim = trim}, Soon());
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_EQ(alone->trimmed_count, spread->trimmed_count);
      if (same_windows) {
        EXPECT_LE(spread->mean_high, alone->mean_high);
        EXPECT_GE(spread->mean_low, alone->mean_low);
      }
      if (alone->mean_high - alone->mean_low > 0) ++approximate_;
      if (spread->mean_high - spread->mean_low < alone->mean_high - alone->mean_low) ++tighter_;
      const double mean = truth.weight() / static_cast<double>(truth.n());
      if (trim == 0 && std::isfinite(truth.weight())) {
        EXPECT_LE(spread->mean_high - spread->mean_low, 1e-15 * mean + 1e-320) << "not exact";
      }
    }
  }

  template <class T>
  void CheckType(ValueType type) {
    for (int i = 0; i < 24; ++i) {
      const std::size_t n = i % 4 == 3 ? 12'000 + random_() % 9'000 : 1 + random_() % 3'000;
      epsilon_ = std::array{0.1, 0.02, 0.005}[random_() % 3];
      const auto form = std::array{QuantileKind::kHistogram, QuantileKind::kCompact,
                                   QuantileKind::kTail}[random_() % 3];
      SCOPED_TRACE(::testing::Message()
                   << ValueTypeName(type) << " " << i << ", n " << n << ", epsilon " << epsilon_);
      const std::string name = std::to_string(i), plain = name + " plain";
      const StreamHandle with = Create(name, type, true, form);
      const StreamHandle without = Create(plain, type, false, form);
      const std::vector<T> values = Draw<T>(random_, n);
      Append<T>({with, without}, values);
      Check<T>(name, plain, Truth<T>(values));
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(approximate_, 10) << "nearly all was exact";
    EXPECT_GT(4 * tighter_, approximate_) << "sums do not help";
  }

  double epsilon_ = 0.01;
  int approximate_ = 0, tighter_ = 0;
  TestPipeline test_{{.window_limits = {.min = 256, .max = 1024}, .sort_workers = 2}};
  QueryEngine engine_{test_.pipeline};
  std::mt19937_64 random_{20'261'122};
  RecordedTime time_ = 1'000'000'000'000;
};

TEST_F(ValueSums, OfFloat64) { CheckType<double>(ValueType::kFloat64); }
TEST_F(ValueSums, OfFloat32) { CheckType<float>(ValueType::kFloat32); }
TEST_F(ValueSums, OfInt64) { CheckType<std::int64_t>(ValueType::kInt64); }
TEST_F(ValueSums, OfUint64) { CheckType<std::uint64_t>(ValueType::kUint64); }
TEST_F(ValueSums, OfUint32) { CheckType<std::uint32_t>(ValueType::kUint32); }

// A tail of huge values, where the distribution alone says little of a mean.
TEST_F(ValueSums, MakeTheMeanOfAHeavyTailTight) {
  epsilon_ = 0.01;
  std::vector<double> values(50'000);
  for (double& value : values) {
    value = std::exp(static_cast<double>(random_() >> 11) * 0x1p-53 * 20);
  }
  Append<double>({Create("s", ValueType::kFloat64, true), Create("p", ValueType::kFloat64, false)},
                 values);
  Check<double>("s", "p", Truth<double>(values));
  const auto with = engine_.Spread("s", {.trim = 0.02}, Soon());
  const auto without = engine_.Spread("p", {.trim = 0.02}, Soon());
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_LT(4 * (with->mean_high - with->mean_low), without->mean_high - without->mean_low);
}

TEST_F(ValueSums, AStateGoesOnElsewhereAndUnionsHaveTheBoundsOfTheWhole) {
  epsilon_ = 0.02;
  std::vector<std::int64_t> all;
  std::vector<StreamState> states, plain;
  for (const std::size_t n : {9'000u, 11u, 3'000u}) {
    const std::vector<std::int64_t> values = Draw<std::int64_t>(random_, n);
    const std::string name = std::to_string(n);
    Append<std::int64_t>({Create(name, ValueType::kInt64, true)}, values);
    Append<std::int64_t>({Create(name + " plain", ValueType::kInt64, false)}, values);
    all.insert(all.end(), values.begin(), values.end());
    states.push_back(engine_.State(name, Soon()).value());
    plain.push_back(engine_.State(name + " plain", Soon()).value());
  }
  // Bytes that are read again are the same bytes; sums of other values are not taken.
  const auto& first = std::get<KeyedState<std::uint64_t>>(states[0]);
  const SummaryFrames frames = first.summaries.Frames();
  using Summaries = StreamSummaries<std::uint64_t>;
  SummaryOptions options = first.settings.summaries();
  EXPECT_EQ(Summaries::FromFrames(options, frames).Frames().sums, frames.sums);
  options.value_sums = SumType::kUint64;
  EXPECT_THROW(Summaries::FromFrames(options, frames), std::invalid_argument);
  options.value_sums.reset();
  EXPECT_THROW(Summaries::FromFrames(options, frames), std::invalid_argument);

  EXPECT_EQ(MergeInto(plain[0], states[1]).code(), absl::StatusCode::kInvalidArgument);
  for (std::size_t i = 1; i < states.size(); ++i) {
    ASSERT_TRUE(MergeInto(states[0], states[i]).ok());
  }
  const auto made = test_.pipeline.streams().Restore("all", std::move(states[0]));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->settings().sums);
  const std::vector<std::int64_t> later = Draw<std::int64_t>(random_, 5'000);
  Append<std::int64_t>({*made}, later);
  all.insert(all.end(), later.begin(), later.end());
  Append<std::int64_t>({Create("plain", ValueType::kInt64, false)}, all);
  Check<std::int64_t>("all", "plain", Truth<std::int64_t>(all), false);
  EXPECT_GT((*made)->Stats().sum_bytes, 0u);
}

TEST_F(ValueSums, RefuseWhatCannotBeAddedUp) {
  const StreamHandle stream = Create("s", ValueType::kFloat32, true);
  const float hard[] = {1.5f, std::numeric_limits<float>::infinity(), -2.0f,
                        std::numeric_limits<float>::quiet_NaN(),
                        -std::numeric_limits<float>::infinity()};
  const auto packed = test_.pipeline.AppendPacked(stream, std::as_bytes(std::span(hard)), 1);
  EXPECT_EQ(packed.accepted, 2u);
  EXPECT_EQ(packed.refused, 3u);
  const double numbers[] = {kInfinity, 4.0, std::nan("")};
  const auto plain = test_.pipeline.AppendNumbers(stream, numbers, 2);
  EXPECT_EQ(plain.accepted, 1u);
  EXPECT_EQ(plain.refused, 2u);
  EXPECT_EQ(stream->Stats().refused, 5u);
  const auto spread = engine_.Spread("s", {}, Soon());
  ASSERT_TRUE(spread.ok());
  EXPECT_TRUE(Holds(spread->mean_low, spread->mean_high, WideSum::Of(3.5), 3));

  const StreamHandle other = Create("other", ValueType::kFloat64, false);
  EXPECT_EQ(test_.pipeline.AppendNumbers(other, numbers, 1).accepted, 2u) << "infinity is a value";
  const auto refused = engine_.Sums("other", {}, Soon()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "stream \"other\" holds float64; sums need values with y, or a stream created with "
            "sums of its values");

  for (const auto& [type, payload] : {std::pair(ValueType::kString, PayloadType::kNone),
                                      std::pair(ValueType::kIpv4, PayloadType::kNone),
                                      std::pair(ValueType::kIpv6, PayloadType::kNone),
                                      std::pair(ValueType::kFloat64, PayloadType::kWeight),
                                      std::pair(ValueType::kFloat64, PayloadType::kY)}) {
    StreamSettings settings{.type = type, .payload = payload, .sums = true};
    const auto status = test_.pipeline.streams().Create("no", settings).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "stream \"no\": sums of a stream's own values are for numbers with nothing beside "
              "them; expected float64, float32, int64, uint64 or uint32, not " +
                  ElementTypeName(settings.element()));
  }
}

TEST_F(ValueSums, ByDefaultAreOfNumbersAlone) {
  StreamSettings defaults;
  defaults.sums = true;
  test_.pipeline.streams().set_defaults(defaults);
  const auto sums = [&](const char* name, ElementType type) {
    return test_.pipeline.Open(name, type).value()->settings().sums;
  };
  EXPECT_TRUE(sums("numbers", {ValueType::kUint32}));
  EXPECT_FALSE(sums("strings", {ValueType::kString}));
  EXPECT_FALSE(sums("addresses", {ValueType::kIpv4}));
  EXPECT_FALSE(sums("pairs", {ValueType::kFloat64, PayloadType::kY}));
}

}  // namespace
}  // namespace tidemark::server
