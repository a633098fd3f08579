// What summaries cost beside the sort of the same windows, what they hold, and what answers cost.
//
//   summary_bench          about a minute
//   summary_bench --smoke  small, in the test run: does it run, are the answers within their bounds
//
// Prints Markdown. Windows come in requests of four, as the pipeline makes them: four are sorted by
// the `cpu` sorter, then four are summarised, on one thread, in its CPU time. The figure is
//   share = time of the bare sort / (time of sort + summaries),
// in each of several rounds: least / median / greatest. The summaries hold a long history before
// the first round, so that carries and drops are those of the long run. Windows are copied in
// before they are sorted, outside the timing. Exit status 1: an answer is outside its bound.
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
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/bench/measuring.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::Spread;
using bench::SpreadOf;
using bench::ThreadSeconds;
using bench::ZipfRank;

constexpr double kQuantileEpsilon = 0.001;
constexpr double kFrequencyEpsilon = 1e-4;

struct Plan {
  std::vector<int> log2_windows{14, 16, 18};
  int rounds = 7;
  std::size_t keys_per_round = std::size_t{1} << 24;
  std::size_t keys_before = std::size_t{1} << 27;  ///< history before the first round
  std::vector<std::uint64_t> held{1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  int answers = 2000;
};
Plan SmokePlan() {
  Plan plan;
  plan.log2_windows = {12};
  plan.rounds = 2;
  plan.keys_per_round = std::size_t{1} << 16;
  plan.keys_before = std::size_t{1} << 18;
  plan.held = {1'000'000};
  plan.answers = 20;
  return plan;
}

enum class Data { kRandom, kSorted, kFewDistinct, kZipf };
constexpr std::array kAllData{Data::kRandom, Data::kSorted, Data::kFewDistinct, Data::kZipf};
const char* Name(Data data) {
  constexpr std::array kNames{"random", "sorted", "100 distinct", "Zipf(1.1)"};
  return kNames[static_cast<std::size_t>(data)];
}

constexpr std::size_t kSources = 16;  // different windows that are used in turn

template <class Key>
std::vector<std::vector<Key>> MakeWindows(Data data, std::size_t window) {
  std::mt19937_64 random(20);
  std::vector<std::vector<Key>> windows(kSources, std::vector<Key>(window));
  for (std::size_t w = 0; w < kSources; ++w) {
    for (std::size_t i = 0; i < window; ++i) {
      switch (data) {
        case Data::kRandom:
          windows[w][i] = static_cast<Key>(random());
          break;
        case Data::kSorted:
          windows[w][i] = static_cast<Key>(w * window + i);
          break;
        case Data::kFewDistinct:
          windows[w][i] = static_cast<Key>(random() % 100) * 1'000'003;
          break;
        case Data::kZipf: {
          windows[w][i] = static_cast<Key>(static_cast<Key>(ZipfRank(random)) * Key{0x9E3779B1});
          break;
        }
      }
    }
  }
  return windows;
}

template <class Key>
std::vector<std::vector<Key>> SortedWindows(Data data, std::size_t window) {
  auto windows = MakeWindows<Key>(data, window);
  for (auto& keys : windows) std::sort(keys.begin(), keys.end());
  return windows;
}

template <class Key>
void TimeWindows(const Plan& plan, sort::WindowSorter& sorter, Data data, std::size_t window) {
  const auto sources = MakeWindows<Key>(data, window);
  QuantileSummary<Key> quantiles(kQuantileEpsilon);
  FrequencySummary<Key> frequencies(kFrequencyEpsilon);
  for (const auto& source : SortedWindows<Key>(data, window)) {
    for (std::size_t n = 0; n < plan.keys_before / kSources; n += window) {
      quantiles.AddWindow(source);
      frequencies.AddWindow(source);
    }
  }

  std::vector<double> rates, quantile_shares, both_shares;
  std::array<std::vector<Key>, sort::kChannels> buffers;
  std::size_t next = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    double sort_s = 0, quantile_s = 0, frequency_s = 0;
    std::size_t keys = 0;
    while (keys < plan.keys_per_round) {
      std::array<std::span<Key>, sort::kChannels> channels;
      for (std::size_t c = 0; c < channels.size(); ++c) {
        buffers[c] = sources[next++ % kSources];
        channels[c] = buffers[c];
      }
      const double start = ThreadSeconds();
      sorter.Sort(sort::Channels<Key>(channels));
      const double sorted = ThreadSeconds();
      for (const auto& channel : channels) quantiles.AddWindow(channel);
      const double sampled = ThreadSeconds();
      for (const auto& channel : channels) frequencies.AddWindow(channel);
      const double counted = ThreadSeconds();
      sort_s += sorted - start;
      quantile_s += sampled - sorted;
      frequency_s += counted - sampled;
      keys += channels.size() * window;
    }
    rates.push_back(static_cast<double>(keys) / sort_s / 1e6);
    quantile_shares.push_back(sort_s / (sort_s + quantile_s));
    both_shares.push_back(sort_s / (sort_s + quantile_s + frequency_s));
  }
  const Spread rate = SpreadOf(rates), quantile = SpreadOf(quantile_shares),
               both = SpreadOf(both_shares);
  std::printf(
      "| u%zu | 2^%d | %s | %.0f / %.0f / %.0f | %.3f / **%.3f** / %.3f | %.3f / **%.3f** / %.3f | "
      "%zu |\n",
      8 * sizeof(Key), std::countr_zero(window), Name(data), rate.least, rate.median, rate.greatest,
      quantile.least, quantile.median, quantile.greatest, both.least, both.median, both.greatest,
      frequencies.entries());
  std::fflush(stdout);
}

template <class Key>
void PrintHeld(const Plan& plan, Data data, std::size_t window) {
  const auto sources = SortedWindows<Key>(data, window);
  QuantileSummary<Key> quantiles(kQuantileEpsilon);
  FrequencySummary<Key> frequencies(kFrequencyEpsilon);
  std::printf("| u%zu | 2^%d | %s |", 8 * sizeof(Key), std::countr_zero(window), Name(data));
  std::size_t next = 0, most = 0;
  for (const std::uint64_t n : plan.held) {
    while (quantiles.count() + window <= n) {
      quantiles.AddWindow(sources[next % kSources]);
      frequencies.AddWindow(sources[next++ % kSources]);
      most = std::max(most, quantiles.bytes());
    }
    std::printf(" %zu + %zu |", quantiles.bytes(), frequencies.bytes());
  }
  std::printf(" %zu |\n", most);
  std::fflush(stdout);
}

/// Answers with an open window of 2^18 values. Returns whether all were within their bounds.
template <class Key>
bool TimeAnswers(const Plan& plan) {
  const std::size_t window = std::size_t{1} << plan.log2_windows.back();
  bool right = true;
  const auto sources = SortedWindows<Key>(Data::kZipf, window);
  QuantileSummary<Key> quantiles(kQuantileEpsilon);
  FrequencySummary<Key> frequencies(kFrequencyEpsilon);
  // One window short of a power of two: every bucket is there.
  const std::size_t windows = plan.keys_before / window - 1;
  for (std::size_t w = 0; w < windows; ++w) {
    quantiles.AddWindow(sources[w % kSources]);
    frequencies.AddWindow(sources[w % kSources]);
  }
  const std::span<const Key> open = sources[3];
  std::mt19937_64 random(4);
  const double start = ThreadSeconds();
  for (int i = 0; i < plan.answers; ++i) {
    const QuantileView<Key> view(quantiles.Snapshot(), open);
    const auto answer = view.Quantile(std::uniform_real_distribution<double>(0, 1)(random));
    const std::uint64_t bound = FloorFraction(kQuantileEpsilon, view.n());
    right &= answer.rank_low + bound >= answer.target && answer.rank_high <= answer.target + bound;
  }
  const double quantile_s = (ThreadSeconds() - start) / plan.answers;
  const std::vector<double> nine{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  const double start_nine = ThreadSeconds();
  for (int i = 0; i < plan.answers; ++i) {
    right &= QuantileView<Key>(quantiles.Snapshot(), open).Quantiles(nine).size() == nine.size();
  }
  const double nine_s = (ThreadSeconds() - start_nine) / plan.answers;
  const double start_top = ThreadSeconds();
  const int tops = std::max(1, plan.answers / 10);
  for (int i = 0; i < tops; ++i) {
    const FrequencyView<Key> view(frequencies.Snapshot(), open);
    for (const auto& item : view.HeavyHitters(0.01)) {
      right &= item.count_high - item.count_low <= FloorFraction(kFrequencyEpsilon, view.n());
    }
  }
  const double top_s = (ThreadSeconds() - start_top) / tops;
  std::size_t samples = 0;
  for (const auto& bucket : quantiles.Snapshot().buckets) samples += bucket.shape.samples;
  std::printf("| u%zu | %zu | %zu | %.1f | %.1f | %.1f |\n", 8 * sizeof(Key), samples, open.size(),
              1e6 * quantile_s, 1e6 * nine_s, 1e6 * top_s);
  return right;
}

int Run(const Plan& plan) {
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  std::printf("%s, one thread, sorter %s. Quantiles at epsilon %g, frequencies at %g.\n\n",
              CpuModel().c_str(), selection.report.active.c_str(), kQuantileEpsilon,
              kFrequencyEpsilon);

  std::printf(
      "Share of the bare sort's rate that is left (least / **median** / greatest of %d "
      "rounds)\n\n",
      plan.rounds);
  std::printf(
      "| keys | window | data | sort alone, M/s | with quantiles | with both | entries |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const int log2_window : plan.log2_windows) {
    for (const Data data : kAllData) {
      TimeWindows<std::uint32_t>(plan, *selection.sorter, data, std::size_t{1} << log2_window);
      TimeWindows<std::uint64_t>(plan, *selection.sorter, data, std::size_t{1} << log2_window);
    }
  }

  std::printf("\nBytes held after n values, quantiles + frequencies (%zu windows in turn)\n\n",
              kSources);
  std::printf("| keys | window | data |");
  for (const std::uint64_t n : plan.held) {
    std::printf(" n = %llu |", static_cast<unsigned long long>(n));
  }
  std::printf(" quantiles, most |\n|---|---|---|%s---|\n",
              [&] {
                std::string dashes;
                for (std::size_t i = 0; i < plan.held.size(); ++i) dashes += "---|";
                return dashes;
              }()
                  .c_str());
  for (const int log2_window : plan.log2_windows) {
    PrintHeld<std::uint32_t>(plan, Data::kZipf, std::size_t{1} << log2_window);
  }
  PrintHeld<std::uint64_t>(plan, Data::kZipf, std::size_t{1} << plan.log2_windows.back());

  std::printf(
      "\nOne answer, microseconds, snapshot included\n\n"
      "| keys | samples | open window | one quantile | nine quantiles | heavy hitters of 1 %% |\n"
      "|---|---|---|---|---|---|\n");
  const bool right32 = TimeAnswers<std::uint32_t>(plan), right64 = TimeAnswers<std::uint64_t>(plan);
  if (!right32 || !right64) {
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
    std::fprintf(stderr, "usage: summary_bench [--smoke]\n");
    return 2;
  }
  return tidemark::Run(smoke ? tidemark::SmokePlan() : tidemark::Plan());
}
