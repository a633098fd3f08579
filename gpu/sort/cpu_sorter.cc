#include "gpu/sort/cpu_sorter.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "gpu/sort/interleaved_rounds.h"

namespace tidemark::sort {
namespace {

using Clock = std::chrono::steady_clock;

// Keys sorted in one timing: small windows are timed many at once, so that the clock's resolution
// and the branch predictor's memory of one window do not decide.
constexpr std::size_t kKeysPerTiming = std::size_t{1} << 14;

// Time that this thread has spent running. Beside other programs the scheduler takes the processor
// away in the middle of a timing; that time is theirs. On two cores beside four busy loops, five of
// eight starts chose a slower algorithm for at least one class by wall time and giving up after one
// timing, and none by this time and two timings.
double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Times one algorithm on random keys of one width, in windows of any class.
template <class Key>
class Bench {
 public:
  Bench() : original_(ClassWindow(kWindowClasses - 1)), keys_(original_.size()) {
    // A fixed seed: the choice should depend on the machine alone.
    std::mt19937_64 random(2005);
    for (Key& key : original_) {
      key = static_cast<Key>(random());
      if constexpr (sizeof(Key) > sizeof(std::uint64_t)) key = key << 64 | random();
    }
  }

  double SecondsPerKey(const CpuAlgorithm& algorithm, std::size_t window) {
    const std::size_t keys = std::max(window, kKeysPerTiming);
    std::memcpy(keys_.data(), original_.data(), keys * sizeof(Key));
    const double start = ThreadSeconds();
    for (std::size_t i = 0; i < keys; i += window) algorithm.Sort(keys_.data() + i, window);
    return (ThreadSeconds() - start) / static_cast<double>(keys);
  }

 private:
  std::vector<Key> original_;
  std::vector<Key> keys_;
};

std::vector<const CpuAlgorithm*> Candidates() {
  const std::vector<CpuAlgorithm>& all = CpuAlgorithms();
  const bool has_vqsort = all.front().name.starts_with("vqsort");
  std::vector<const CpuAlgorithm*> candidates;
  for (const CpuAlgorithm& algorithm : all) {
    if (algorithm.name == "std-sort" && has_vqsort) continue;
    candidates.push_back(&algorithm);
  }
  return candidates;
}

}  // namespace

CpuChoice UseOnly(const CpuAlgorithm& algorithm) {
  CpuChoice choice;
  for (auto& width : choice.algorithm) width.fill(&algorithm);
  return choice;
}

CpuChoice MeasureCpu(std::chrono::milliseconds budget, std::vector<SorterMeasurement>& measured) {
  const Clock::time_point end = Clock::now() + budget;
  const std::vector<const CpuAlgorithm*> candidates = Candidates();
  Bench<std::uint32_t> narrow;
  Bench<std::uint64_t> wide;
  Bench<Key128> widest;
  // Task kKeyWidths c + w is class c with keys of width w.
  const std::vector<std::vector<double>> best = BestOfRounds(
      kWindowClasses * kKeyWidths, candidates.size(), RoundRules{},
      [&](std::size_t task, std::size_t candidate) {
        const std::size_t window = ClassWindow(task / kKeyWidths);
        const CpuAlgorithm& algorithm = *candidates[candidate];
        switch (task % kKeyWidths) {
          case 0:
            return narrow.SecondsPerKey(algorithm, window);
          case 1:
            return wide.SecondsPerKey(algorithm, window);
          default:
            return widest.SecondsPerKey(algorithm, window);
        }
      },
      [end] { return Clock::now() < end; });
  CpuChoice choice;
  for (std::size_t task = 0; task < best.size(); ++task) {
    const std::size_t window_class = task / kKeyWidths;
    const std::size_t width = task % kKeyWidths;
    const auto winner = static_cast<std::size_t>(
        std::min_element(best[task].begin(), best[task].end()) - best[task].begin());
    choice.algorithm[width][window_class] = candidates[winner];
    choice.seconds_per_key[width][window_class] = best[task][winner];
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      measured.push_back({WidthBits(width), ClassWindow(window_class), "cpu", candidates[c]->name,
                          1 / best[task][c], c == winner});
    }
  }
  return choice;
}

CpuChoice ChooseCpu(const std::vector<SorterMeasurement>& rates,
                    std::vector<SorterMeasurement>& measured) {
  CpuChoice choice;
  const std::size_t first = measured.size();
  const std::vector<CpuAlgorithm>& all = CpuAlgorithms();
  for (const SorterMeasurement& rate : rates) {
    if (rate.sorter != "cpu") continue;
    measured.push_back(rate);
    measured.back().chosen = false;
    std::size_t width = 0;
    while (WidthBits(width) != rate.key_bits) ++width;
    const std::size_t window_class = ClassOf(rate.window);
    double& best = choice.seconds_per_key[width][window_class];
    if (best > 0 && 1 / rate.keys_per_second >= best) continue;
    best = 1 / rate.keys_per_second;
    choice.algorithm[width][window_class] =
        &*std::find_if(all.begin(), all.end(),
                       [&](const CpuAlgorithm& one) { return one.name == rate.algorithm; });
  }
  for (std::size_t i = first; i < measured.size(); ++i) {
    SorterMeasurement& row = measured[i];
    std::size_t width = 0;
    while (WidthBits(width) != row.key_bits) ++width;
    row.chosen = choice.algorithm[width][ClassOf(row.window)]->name == row.algorithm;
  }
  return choice;
}

}  // namespace tidemark::sort
