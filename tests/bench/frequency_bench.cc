// What frequencies cost: sort and summary of a stream of items on one thread, in its CPU time.
//
//   frequency_bench          about two minutes
//   frequency_bench --smoke  small, in the test run: does it run, are the answers within their
//   bounds
//
// Prints Markdown. Windows of 2^18 keys are copied in (not timed), sorted by the `cpu` sorter and
// summarised, one after the other; and once more as they came, by ItemCounter. Rates: least /
// median / greatest of several rounds, of which each measures all of these on the same windows.
// Zipf: domain 2^24, the ids scrambled, so that neighbours in rank are not neighbours as keys. Exit
// status 1: an answer is outside its bound, or the two summaries differ.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/item_counter.h"
#include "summaries/sorted_runs.h"
#include "summaries/weighted_frequency.h"
#include "tests/bench/measuring.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::SpreadOf;
using bench::ThreadSeconds;

struct Plan {
  std::size_t window = std::size_t{1} << 18;
  std::size_t sources = 64;  ///< different windows, used in turn
  std::size_t windows_before = 320;
  std::size_t windows_per_round = 16;
  int rounds = 5;
  int answers = 200;
};
Plan SmokePlan() {
  return {.window = std::size_t{1} << 12,
          .sources = 4,
          .windows_before = 8,
          .windows_per_round = 4,
          .rounds = 2,
          .answers = 3};
}

/// Ranks from 1 to `domain` with probability proportional to rank^-exponent, by rejection inversion
/// (Hörmann, Derflinger, ACM TOMACS 1996).
class Zipf {
 public:
  Zipf(double domain, double exponent)
      : domain_(domain),
        exponent_(exponent),
        least_(Integral(1.5) - 1),
        most_(Integral(domain + 0.5)),
        sure_(2 - Inverse(Integral(2.5) - std::pow(2, -exponent))) {}

  template <class Random>
  std::uint64_t operator()(Random& random) const {
    for (;;) {
      const double u = std::uniform_real_distribution<double>(least_, most_)(random);
      const double x = Inverse(u);
      const double rank = std::clamp(std::floor(x + 0.5), 1.0, domain_);
      if (rank - x <= sure_ || u >= Integral(rank + 0.5) - std::pow(rank, -exponent_)) {
        return static_cast<std::uint64_t>(rank);
      }
    }
  }

 private:
  double Integral(double x) const { return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_); }
  double Inverse(double u) const { return std::pow(1 + u * (1 - exponent_), 1 / (1 - exponent_)); }
  double domain_, exponent_, least_, most_, sure_;
};

/// A different id for each rank, in no order (the finishers of MurmurHash3).
std::uint32_t Scrambled(std::uint32_t rank) {
  rank = (rank ^ rank >> 16) * 0x85EBCA6Bu;
  rank = (rank ^ rank >> 13) * 0xC2B2AE35u;
  return rank ^ rank >> 16;
}
std::uint64_t Scrambled(std::uint64_t rank) {
  rank = (rank ^ rank >> 33) * 0xFF51AFD7ED558CCDu;
  rank = (rank ^ rank >> 33) * 0xC4CEB9FE1A85EC53u;
  return rank ^ rank >> 33;
}

enum class Data { kZipf11, kZipf15, kUniform, kFewDistinct, kSorted, kTenThousand, kTen, kEqual };
constexpr std::array kAllData{Data::kZipf11, Data::kZipf15,      Data::kUniform, Data::kFewDistinct,
                              Data::kSorted, Data::kTenThousand, Data::kTen,     Data::kEqual};
const char* Name(Data data) {
  constexpr std::array kNames{"Zipf(1.1)", "Zipf(1.5)",       "uniform",     "1,000 distinct",
                              "sorted",    "10,000 distinct", "10 distinct", "all equal"};
  return kNames[static_cast<std::size_t>(data)];
}

template <class Key>
using Windows = std::vector<std::vector<Key>>;

template <class Key>
Windows<Key> MakeWindows(const Plan& plan, Data data) {
  std::mt19937_64 random(20);
  const Zipf zipf(std::size_t{1} << 24, data == Data::kZipf15 ? 1.5 : 1.1);
  Windows<Key> windows(plan.sources, std::vector<Key>(plan.window));
  Key next = 0;
  for (auto& window : windows) {
    for (Key& key : window) {
      switch (data) {
        case Data::kZipf11:
        case Data::kZipf15:
          key = Scrambled(static_cast<Key>(zipf(random)));
          break;
        case Data::kUniform:
          key = static_cast<Key>(random());
          break;
        case Data::kFewDistinct:
          key = Scrambled(static_cast<Key>(random() % 1000));
          break;
        case Data::kSorted:
          key = next++;
          break;
        case Data::kTenThousand:
          key = Scrambled(static_cast<Key>(random() % 10'000));
          break;
        case Data::kTen:
          key = Scrambled(static_cast<Key>(random() % 10));
          break;
        case Data::kEqual:
          key = 7;
          break;
      }
    }
  }
  return windows;
}

/// Whether the counts of the items that are reported hold. Window w was fed fed[w] times.
template <class Key>
bool BoundsHold(const FrequencyView<Key>& view, const Windows<Key>& windows,
                const std::vector<std::uint64_t>& fed) {
  std::unordered_map<Key, std::uint64_t> counts;
  const auto items = view.HeavyHitters(std::max(2 * view.MinimumSupport(), 1e-3));
  for (const auto& item : items) counts[item.key] = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (const Key key : windows[w]) {
      if (const auto at = counts.find(key); at != counts.end()) at->second += fed[w];
    }
  }
  const std::uint64_t width = FloorFraction(view.epsilon(), view.n());
  bool hold = true;
  for (const auto& item : items) {
    hold &= item.count_low <= counts[item.key] && counts[item.key] <= item.count_high &&
            item.count_high - item.count_low <= width;
  }
  return hold;
}

template <class Key>
bool TimeStream(const Plan& plan, sort::WindowSorter& sorter, Data data, double epsilon) {
  const auto windows = MakeWindows<Key>(plan, data);
  auto sorted = windows;
  for (auto& window : sorted) std::sort(window.begin(), window.end());
  FrequencySummary<Key> summary(epsilon);
  std::vector<std::uint64_t> fed(windows.size());
  std::size_t next = 0, most = 0;
  const auto taken = [&] {
    const std::size_t window = next++ % windows.size();
    ++fed[window];
    return window;
  };
  for (std::size_t i = 0; i < plan.windows_before; ++i) {
    summary.AddWindow(sorted[taken()]);
    most = std::max(most, summary.bytes());
  }

  FrequencySummary<Key> counted = summary;
  ItemCounter<Key> counter([&](std::span<Key> keys) {
    const std::array<std::span<Key>, 1> channel{keys};
    sorter.Sort(sort::Channels<Key>(channel));
  });
  GridMemory memory;
  std::vector<double> bare, rates, counted_rates, ratios;
  std::vector<Key> window;
  for (int round = 0; round < plan.rounds; ++round) {
    double sort_s = 0, summary_s = 0, counted_s = 0;
    for (std::size_t i = 0; i < plan.windows_per_round; ++i) {
      const std::size_t which = taken();
      window = windows[which];
      const std::array<std::span<Key>, 1> channel{window};
      const double start = ThreadSeconds();
      sorter.Sort(sort::Channels<Key>(channel));
      const double middle = ThreadSeconds();
      summary.AddWindow(window);
      summary_s += ThreadSeconds() - middle;
      sort_s += middle - start;
      most = std::max(most, summary.bytes());
      window = windows[which];
      const double again = ThreadSeconds();
      counter.AddWindow(window, counted, memory);
      counted_s += ThreadSeconds() - again;
    }
    const double keys = static_cast<double>(plan.windows_per_round * plan.window);
    bare.push_back(keys / sort_s / 1e6);
    rates.push_back(keys / (sort_s + summary_s) / 1e6);
    counted_rates.push_back(keys / counted_s / 1e6);
    ratios.push_back((sort_s + summary_s) / counted_s);
  }
  std::printf("| u%zu | %s | %g | %s | %s | %s | %s | %zu | %zu | %zu |\n", 8 * sizeof(Key),
              Name(data), epsilon, Print(SpreadOf(bare), 0).c_str(),
              Print(SpreadOf(rates), 0).c_str(), Print(SpreadOf(counted_rates), 0).c_str(),
              Print(SpreadOf(ratios), 2).c_str(), summary.entries(), summary.bytes(), most);
  std::fflush(stdout);
  return counted.Serialize() == summary.Serialize() &&
         BoundsHold(FrequencyView<Key>(summary.Snapshot()), windows, fed);
}

/// What each part takes, in sorted windows that were not touched before.
template <class Key>
void TimeParts(const Plan& plan, Data data) {
  auto windows = MakeWindows<Key>(plan, data);
  for (auto& window : windows) std::sort(window.begin(), window.end());
  constexpr std::size_t kParts = 4;
  std::array<double, kParts> seconds{};
  std::uint64_t sink = 0;
  const std::uint64_t least = 1 + CeilFraction(1e-4, plan.window);
  const auto part = [&](std::size_t which, std::span<const Key> window) {
    const auto visit = [&](std::size_t begin, std::size_t end) { sink += end - begin; };
    switch (which) {
      case 0:
        for (const Key key : window) sink += key;
        break;
      case 1:
        internal::ForEachRunAt(window, 1, visit);
        break;
      case 2:
        internal::ForEachRunAt(window, 3, visit);
        break;
      default:
        internal::ForEachRunAt(window, least, visit);
    }
  };
  for (std::size_t round = 0; round < 2; ++round) {
    for (std::size_t which = 0; which < kParts; ++which) {
      const double start = ThreadSeconds();
      for (const auto& window : windows) part(which, window);
      seconds[which] += ThreadSeconds() - start;
    }
  }
  std::printf("| u%zu | %s |", 8 * sizeof(Key), Name(data));
  const double bytes = 2.0 * static_cast<double>(windows.size() * plan.window * sizeof(Key));
  for (const double s : seconds) std::printf(" %.1f |", bytes / s / 1e9);
  std::printf("%s\n", sink == 0 ? " nothing was read" : "");
}

template <class Key>
bool TimeWeighted(const Plan& plan, double epsilon) {
  const auto windows = MakeWindows<Key>(plan, Data::kZipf11);
  std::mt19937_64 random(3);
  WeightedFrequencySummary<Key> summary(epsilon);
  double add_s = 0, aggregate_s = 0;
  std::unordered_map<Key, std::uint64_t> truth;
  std::size_t most = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    std::vector<KeyWeight<Key>> pairs;
    for (const Key key : windows[w]) pairs.push_back({key, 40 + random() % 1461});
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    const double start = ThreadSeconds();
    summary.AddWindow(pairs);
    const double middle = ThreadSeconds();
    pairs.resize(AggregateEqualKeys(std::span(pairs)));
    aggregate_s += ThreadSeconds() - middle;
    add_s += middle - start;
    most = std::max(most, summary.bytes());
    for (const auto& item : pairs) truth[item.key] += item.weight;
  }
  const double pairs = static_cast<double>(windows.size() * plan.window);
  std::printf("| u%zu | %g | %.0f | %.0f | %zu | %zu |\n", 8 * sizeof(Key), epsilon,
              pairs / add_s / 1e6, pairs / aggregate_s / 1e6, summary.entries(), most);
  const FrequencyView<Key> view(summary.Snapshot());
  bool hold = view.n() == summary.weight();
  for (const auto& [key, weight] : truth) {
    const auto item = view.Count(key);
    hold &= item.count_low <= weight && weight <= item.count_high;
  }
  return hold;
}

/// One answer, with an open window that is full.
template <class Key>
void TimeAnswers(const Plan& plan, double epsilon) {
  auto windows = MakeWindows<Key>(plan, Data::kZipf11);
  FrequencySummary<Key> summary(epsilon);
  for (auto& window : windows) {
    std::sort(window.begin(), window.end());
    summary.AddWindow(window);
  }
  const FrequencyView<Key> view(summary.Snapshot(), windows.front());
  std::uint64_t sink = 0;
  const auto time = [&](auto answer) {
    const double start = ThreadSeconds();
    for (int i = 0; i < plan.answers; ++i) answer(static_cast<std::size_t>(i));
    return 1e6 * (ThreadSeconds() - start) / plan.answers;
  };
  const double count = time([&](std::size_t i) { sink += view.Count(windows[0][i]).count_high; });
  const double heavy = time([&](std::size_t) { sink += view.HeavyHitters(0.01).size(); });
  const double top = time([&](std::size_t) { sink += view.TopK(100).certain; });
  const TopItems<Key> items = view.TopK(100);
  std::printf("| u%zu | %g | %.1f | %.1f | %.1f | %zu of %zu |%s\n", 8 * sizeof(Key), epsilon,
              count, heavy, top, items.certain, items.items.size(),
              sink == 0 ? " nothing found" : "");
}

int Run(const Plan& plan) {
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  std::printf("%s, one thread, sorter %s, windows of %zu keys.\n\n", CpuModel().c_str(),
              selection.report.active.c_str(), plan.window);
  std::printf(
      "Million items a second (least / **median** / greatest of %d rounds), after %zu values; "
      "counted: "
      "with the summary; ratio: to sort and summary\n\n"
      "| keys | data | epsilon | sort alone | sort and summary | counted | ratio | entries | "
      "bytes held | most held |\n|---|---|---|---|---|---|---|---|---|---|\n",
      plan.rounds, plan.windows_before * plan.window);
  bool right = true;
  for (const Data data : kAllData) {
    for (const double epsilon : {1e-3, 1e-4}) {
      right &= TimeStream<std::uint32_t>(plan, *selection.sorter, data, epsilon);
      right &= TimeStream<std::uint64_t>(plan, *selection.sorter, data, epsilon);
    }
  }
  std::printf(
      "\nReading sorted windows, GB/s of their keys: all of them added up, the runs of all items, "
      "of "
      "those that come 3 times, and of those above 1e-4 of the window\n\n"
      "| keys | data | added up | all runs | 3 or more | 1e-4 or more "
      "|\n|---|---|---|---|---|---|\n");
  for (const Data data : {Data::kZipf11, Data::kUniform, Data::kFewDistinct}) {
    TimeParts<std::uint32_t>(plan, data);
    TimeParts<std::uint64_t>(plan, data);
  }
  std::printf(
      "\nWeighted keys, Zipf(1.1), weights of 40 to 1,500: million pairs a second from sorted "
      "windows "
      "(the sort is not timed)\n\n"
      "| keys | epsilon | summary | AggregateEqualKeys | entries | most held |\n"
      "|---|---|---|---|---|---|\n");
  for (const double epsilon : {1e-3, 1e-4}) {
    right &= TimeWeighted<std::uint32_t>(plan, epsilon);
    right &= TimeWeighted<std::uint64_t>(plan, epsilon);
  }
  std::printf(
      "\nOne answer, microseconds, with a full open window, Zipf(1.1)\n\n"
      "| keys | epsilon | one count | heavy hitters of 1 %% | top 100 | of them certain |\n"
      "|---|---|---|---|---|---|\n");
  for (const double epsilon : {1e-3, 1e-4}) {
    TimeAnswers<std::uint32_t>(plan, epsilon);
    TimeAnswers<std::uint64_t>(plan, epsilon);
  }
  if (!right) std::fprintf(stderr, "an answer was outside its bound, or differed\n");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const bool smoke = argc == 2 && std::string_view(argv[1]) == "--smoke";
  if (argc > 1 && !smoke) {
    std::fprintf(stderr, "usage: frequency_bench [--smoke]\n");
    return 2;
  }
  return tidemark::Run(smoke ? tidemark::SmokePlan() : tidemark::Plan());
}
