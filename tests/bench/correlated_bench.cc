// What correlated sums cost beside the sort of the same pairs, how pairs are best sorted, what the
// sums hold, and what answers cost, those derived from distributions too.
//
//   correlated_bench          about a minute and a half
//   correlated_bench --smoke  small, in the test run: does it run, are the answers within their
//                             bounds
//
// Prints Markdown. One thread, its CPU time. Exit status 1: an answer is outside its bound.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/correlated_sums.h"
#include "summaries/correlated_view.h"
#include "summaries/distribution_distance.h"
#include "summaries/key_codec.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "summaries/value_spread.h"
#include "tests/bench/measuring.h"
#include "tests/bench/pair_sorting.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::SpreadOf;
using bench::ThreadSeconds;

constexpr double kEpsilon = 0.001;

struct Plan {
  std::vector<int> log2_windows{14, 18};
  int rounds = 5;
  std::size_t pairs_per_round = std::size_t{1} << 22;
  std::uint64_t history = 100'000'000;
  std::uint64_t held = 10'000'000;
  int answers = 500;
};
Plan SmokePlan() {
  Plan plan;
  plan.log2_windows = {12};
  plan.rounds = 2;
  plan.pairs_per_round = std::size_t{1} << 15;
  plan.history = 200'000;
  plan.held = 200'000;
  plan.answers = 5;
  return plan;
}

enum class Order { kRandom, kSorted, kReversed, kBlocks, kDrift, kZoomIn };
constexpr std::array kAllOrders{Order::kRandom, Order::kSorted, Order::kReversed,
                                Order::kBlocks, Order::kDrift,  Order::kZoomIn};
const char* Name(Order order) {
  constexpr std::array kNames{"random",          "sorted", "reversed",
                              "shuffled blocks", "drift",  "zoom-in"};
  return kNames[static_cast<std::size_t>(order)];
}

enum class Values { kOnes, kLognormal, kHeavy, kFewHuge, kFalling };
constexpr std::array kAllValues{Values::kOnes, Values::kLognormal, Values::kHeavy, Values::kFewHuge,
                                Values::kFalling};
const char* Name(Values values) {
  constexpr std::array kNames{"1", "lognormal, both signs", "lognormal (sigma 4)",
                              "1, every thousandth 10^9", "1 / x"};
  return kNames[static_cast<std::size_t>(values)];
}

/// A long stream, window by window; x covers the 32-bit keys over `length` pairs.
class PairSource {
 public:
  PairSource(Order order, Values values, std::uint64_t length)
      : order_(order), values_(values), length_(length), blocks_(4096) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = static_cast<std::uint32_t>(i);
    std::shuffle(blocks_.begin(), blocks_.end(), random_);
  }

  template <class Key, class Y>
  void Fill(std::span<Key> x, std::span<Y> y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::uint32_t key = DrawX();
      x[i] = sizeof(Key) == 4 ? static_cast<Key>(key) : EncodeWide<Key>(key);
      const double value = DrawY(key);
      if constexpr (std::is_unsigned_v<Y>) {
        y[i] = static_cast<Y>(std::abs(value));
      } else {
        y[i] = static_cast<Y>(value);
      }
    }
  }

 private:
  template <class Key>
  static Key EncodeWide(std::uint32_t key) {
    return static_cast<Key>(
        EncodeKey(std::sqrt(static_cast<double>(key))));  // a double of all bits
  }
  std::uint32_t DrawX() {
    const double share = std::fmod(static_cast<double>(at_++) / static_cast<double>(length_), 1.0);
    constexpr double kKeys = 4294967295.0;
    const auto key = [](double of_one) { return static_cast<std::uint32_t>(of_one * kKeys); };
    switch (order_) {
      case Order::kRandom:
        return static_cast<std::uint32_t>(random_());
      case Order::kSorted:
        return key(share);
      case Order::kReversed:
        return key(1 - share);
      case Order::kBlocks: {
        const double block = std::floor(share * static_cast<double>(blocks_.size()));
        const double inside = share * static_cast<double>(blocks_.size()) - block;
        return key((blocks_[static_cast<std::size_t>(block)] + inside) /
                   static_cast<double>(blocks_.size()));
      }
      case Order::kDrift:
        return key(0.9 * share + 0.1 * static_cast<double>(random_() >> 11) * 0x1p-53);
      case Order::kZoomIn:
        return key(at_ % 2 == 0 ? 1 - share / 2 : share / 2);
    }
    return 0;
  }
  double DrawY(std::uint32_t key) {
    switch (values_) {
      case Values::kOnes:
        return 1;
      case Values::kLognormal:
        return (random_() % 4 == 0 ? -1000 : 1000) * lognormal_(random_);
      case Values::kHeavy:
        return 1000 * heavy_(random_);
      case Values::kFewHuge:
        return random_() % 1000 == 0 ? 1e9 : 1;
      case Values::kFalling:
        return 1e15 / (1.0 + key);
    }
    return 0;
  }

  Order order_;
  Values values_;
  std::uint64_t length_;
  std::uint64_t at_ = 0;
  std::mt19937_64 random_{20};
  std::lognormal_distribution<double> lognormal_{0, 2}, heavy_{0, 4};
  std::vector<std::uint32_t> blocks_;
};

template <class T>
const char* TypeName() {
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, std::int64_t>) return "int64";
  if constexpr (std::is_same_v<T, std::uint64_t>) return "uint64";
  return "u32";
}

/// Sorts by each way and takes in what the last one sorted.
template <class Key, class Y>
void TimeWindows(const Plan& plan, sort::WindowSorter& sorter, Order order, std::size_t window) {
  PairSource source(order, Values::kLognormal, 20 * plan.pairs_per_round);
  PairSorting<Key, Y> sorting(sorter);
  std::vector<Key> x(window), sorted_x, keys;
  std::vector<Y> y(window), sorted_y;
  CorrelatedSums<Key> sums(kEpsilon, SumTypeOf<Y>::value);
  std::vector<double> structs, indices, packed, bare, added, both;
  for (int round = -1; round < plan.rounds; ++round) {  // the first is not counted
    double structs_s = 0, indices_s = 0, packed_s = 0, bare_s = 0, add_s = 0;
    const auto windows = plan.pairs_per_round / window;
    for (std::size_t w = 0; w < windows; ++w) {
      source.Fill(std::span<Key>(x), std::span<Y>(y));
      const auto time = [&](double& total, auto work) {
        const double start = ThreadSeconds();
        work();
        total += ThreadSeconds() - start;
      };
      if (w % 4 == 0) {  // they are slow
        sorted_x = x;
        sorted_y = y;
        time(structs_s, [&] { sorting.SortStructs(sorted_x, sorted_y); });
        sorted_x = x;
        sorted_y = y;
        time(indices_s, [&] { sorting.SortIndices(sorted_x, sorted_y); });
      }
      keys = x;
      const std::span<Key> channel(keys);
      time(bare_s, [&] { sorter.Sort(sort::Channels<Key>(&channel, 1)); });
      sorted_x = x;
      sorted_y = y;
      time(packed_s, [&] { sorting.SortPacked(sorted_x, sorted_y); });
      time(add_s,
           [&] { sums.AddWindow(std::span<const Key>(sorted_x), std::span<const Y>(sorted_y)); });
    }
    if (round < 0) continue;
    const auto pairs = static_cast<double>(windows * window) / 1e6;
    const auto few = static_cast<double>((windows + 3) / 4 * window) / 1e6;
    structs.push_back(few / structs_s);
    indices.push_back(few / indices_s);
    bare.push_back(pairs / bare_s);
    packed.push_back(pairs / packed_s);
    added.push_back(pairs / add_s);
    both.push_back(pairs / (packed_s + add_s));
  }
  std::printf("| u%zu | %s | 2^%d | %s | %s | %s | %s | %s | %s | %s |\n", 8 * sizeof(Key),
              TypeName<Y>(), std::countr_zero(window), Name(order),
              Print(SpreadOf(bare), 0).c_str(), Print(SpreadOf(structs), 0).c_str(),
              Print(SpreadOf(indices), 0).c_str(), Print(SpreadOf(packed), 0).c_str(),
              Print(SpreadOf(added), 0).c_str(), Print(SpreadOf(both), 0).c_str());
  std::fflush(stdout);
}

/// Returns whether the sums were right at a few keys.
template <class Y>
bool PrintHeld(const Plan& plan, sort::WindowSorter& sorter, Order order, Values values) {
  using Key = std::uint32_t;
  const std::size_t window = std::size_t{1} << plan.log2_windows.back();
  PairSource source(order, values, plan.held);
  PairSorting<Key, Y> sorting(sorter);
  std::vector<Key> x(window);
  std::vector<Y> y(window);
  CorrelatedSums<Key> sums(kEpsilon, SumTypeOf<Y>::value);
  std::array<Int128, 15> exact{};
  std::array<std::uint64_t, 15> count{};
  const auto probe = [](std::size_t i) { return static_cast<Key>((i + 1) << 28); };
  std::size_t most = 0;
  while (sums.count() + window <= plan.held) {
    source.Fill(std::span<Key>(x), std::span<Y>(y));
    for (std::size_t i = 0; i < window; ++i) {
      for (std::size_t p = x[i] <= probe(0) ? 0 : (x[i] - 1) >> 28; p < exact.size(); ++p) {
        exact[p] += static_cast<Int128>(y[i]);
        ++count[p];
      }
    }
    sorting.SortPacked(x, y);
    sums.AddWindow(std::span<const Key>(x), std::span<const Y>(y));
    most = std::max(most, sums.cuts());
  }
  const CorrelatedView<Key> view(sums.Snapshot());
  bool right = true;
  double widest = 0;
  const Mass total = sums.Snapshot().cuts->total().low;
  for (std::size_t p = 0; p < exact.size(); ++p) {
    const PairSums through = view.Through(probe(p));
    right &= through.sum.low <= exact[p] && exact[p] <= through.sum.high;
    right &= through.count.low <= count[p] && count[p] <= through.count.high;
    const double width = UpperDouble(through.sum.high - through.sum.low, 0);
    widest = std::max(widest, width / 2 / static_cast<double>(total.weight()));
  }
  right &= widest <= kEpsilon;
  std::printf("| %s | %s | %zu | %zu | %.1f | %.1f | %.4f %% |\n", Name(order), Name(values),
              sums.cuts(), most, static_cast<double>(sums.bytes()) / 1e3,
              static_cast<double>(sums.Serialize().size()) / 1e3, 100 * widest);
  std::fflush(stdout);
  return right;
}

/// Returns whether the answers were within their bounds.
bool TimeAnswers(const Plan& plan, sort::WindowSorter& sorter) {
  using Key = std::uint64_t;
  const std::size_t window = std::size_t{1} << plan.log2_windows.back();
  PairSource source(Order::kRandom, Values::kLognormal, plan.held);
  std::vector<Key> x(window);
  std::vector<double> y(window), values(window);
  CorrelatedSums<Key> sums(kEpsilon, SumType::kFloat64), of_itself(kEpsilon, SumType::kFloat64);
  QuantileSummary<Key> quantiles(kEpsilon), others(kEpsilon);
  PairSorting<Key, double> sorting(sorter);
  while (sums.count() + window <= plan.held) {
    source.Fill(std::span<Key>(x), std::span<double>(y));
    sorting.SortPacked(x, y);
    sums.AddWindow(std::span<const Key>(x), std::span<const double>(y));
    for (std::size_t i = 0; i < window; ++i) values[i] = DecodeFloat64(x[i]);
    of_itself.AddWindow(std::span<const Key>(x), std::span<const double>(values));
    (sums.count() / window % 2 == 0 ? quantiles : others).AddWindow(x);
  }
  std::mt19937_64 random(4);
  const auto micros = [&](auto work) {
    const double start = ThreadSeconds();
    for (int i = 0; i < plan.answers; ++i) work();
    return 1e6 * (ThreadSeconds() - start) / plan.answers;
  };
  const auto share = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  bool right = true;
  const auto row = [](const char* what, double us) { std::printf("| %s | %.1f |\n", what, us); };
  const OpenPairs<Key> open{x, std::span<const double>(y)};
  row("view over the summary", micros([&] { CorrelatedView<Key> view(sums.Snapshot()); }));
  row("view with an open window of pairs",
      micros([&] { CorrelatedView<Key> view(sums.Snapshot(), open); }));
  const CorrelatedView<Key> view(sums.Snapshot()), full(sums.Snapshot(), open);
  row("sums through a key",
      micros([&] { right &= view.Through(x[random() % window]).count.low > 0; }));
  const auto check = [&](const CorrelatedView<Key>& of) {
    const auto answer = of.ThroughQuantile(share()).at;
    const auto error = FloorFraction(kEpsilon, of.n());
    right &= answer.rank_low + error >= answer.target && answer.rank_high <= answer.target + error;
  };
  row("sums through a quantile", micros([&] { check(view); }));
  row("sums through a quantile, with the open window", micros([&] { check(full); }));
  const QuantileView<Key> a(quantiles.Snapshot()), b(others.Snapshot());
  const auto steps_a = a.Steps(), steps_b = b.Steps();
  std::printf("| steps: %zu and %zu | |\n", steps_a.keys.size(), steps_b.keys.size());
  row("steps of a quantile summary", micros([&] { right &= a.Steps().n == a.n(); }));
  const auto distance = DistanceOf(steps_a, steps_b);
  row("distance of two distributions, from their steps",
      micros([&] { right &= DistanceOf(steps_a, steps_b).low <= distance.high; }));
  row("range between two quantiles, from the steps", micros([&] {
        right &= RangeBetweenQuantiles<Key>(steps_a, 0.25, 0.75, Float64Value).range.low > 0;
      }));
  row("trimmed mean, from the steps",
      micros([&] { right &= TrimmedMeanOf<Key>(steps_a, 0.05, Float64Value).count > 0; }));
  const CorrelatedView<Key> itself(of_itself.Snapshot());
  row("trimmed mean, from sums of x over itself",
      micros([&] { right &= TrimmedMeanOf<Key>(itself, 0.05, Float64Value).count > 0; }));
  std::printf(
      "\nTwo halves of one stream: distance in [%.5f, %.5f]. Trimmed mean (5 %%): from the "
      "steps [%.2f, %.2f], from sums of x over itself [%.2f, %.2f].\n",
      distance.low, distance.high, TrimmedMeanOf<Key>(steps_a, 0.05, Float64Value).mean.low,
      TrimmedMeanOf<Key>(steps_a, 0.05, Float64Value).mean.high,
      TrimmedMeanOf<Key>(itself, 0.05, Float64Value).mean.low,
      TrimmedMeanOf<Key>(itself, 0.05, Float64Value).mean.high);
  return right;
}

int Run(const Plan& plan) {
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  std::printf(
      "%s, one thread, sorter %s, epsilon %g. Million pairs/s, least / **median** / greatest of %d "
      "rounds.\n\n"
      "| keys | y | window | x | keys alone | std::sort of pairs | std::sort of indices | packed | "
      "sums | packed and sums |\n|---|---|---|---|---|---|---|---|---|---|\n",
      CpuModel().c_str(), selection.report.active.c_str(), kEpsilon, plan.rounds);
  for (const int log2_window : plan.log2_windows) {
    const std::size_t window = std::size_t{1} << log2_window;
    for (const Order order : {Order::kRandom, Order::kSorted}) {
      TimeWindows<std::uint32_t, std::uint64_t>(plan, *selection.sorter, order, window);
      TimeWindows<std::uint32_t, std::int64_t>(plan, *selection.sorter, order, window);
      TimeWindows<std::uint32_t, double>(plan, *selection.sorter, order, window);
      TimeWindows<std::uint64_t, double>(plan, *selection.sorter, order, window);
    }
  }
  bool right = true;
  std::printf(
      "\nHeld after %llu pairs (u32, int64) in windows of 2^%d\n\n"
      "| x | y | cuts | most | KB held | KB serialized | widest half-interval of a sum, of Y |\n"
      "|---|---|---|---|---|---|---|\n",
      static_cast<unsigned long long>(plan.held), plan.log2_windows.back());
  for (const Order order : kAllOrders) {
    for (const Values values : kAllValues) {
      right &= PrintHeld<std::int64_t>(plan, *selection.sorter, order, values);
    }
  }
  std::printf(
      "\nOne answer (u64 keys, float64 y), after %llu pairs\n\n| answer | us |\n|---|---|\n",
      static_cast<unsigned long long>(plan.held));
  right &= TimeAnswers(plan, *selection.sorter);
  if (!right) {
    std::fprintf(stderr, "an answer was outside its bound\n");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const bool smoke = argc == 2 && std::strcmp(argv[1], "--smoke") == 0;
  if (argc > 1 && !smoke) {
    std::fprintf(stderr, "usage: correlated_bench [--smoke]\n");
    return 2;
  }
  return tidemark::Run(smoke ? tidemark::SmokePlan() : tidemark::Plan());
}
