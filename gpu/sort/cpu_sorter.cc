#include "gpu/sort/cpu_sorter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace tidemark::sort {
namespace {

using Clock = std::chrono::steady_clock;

// Keys sorted in one timing: small windows are timed many at once, so that the clock's resolution
// and the branch predictor's memory of one window do not decide.
constexpr std::size_t kKeysPerTiming = std::size_t{1} << 14;

// The minimum over so many rounds is steady enough to rank algorithms that differ by a tenth.
constexpr int kRoundsMax = 7;

// An algorithm that needs this many times the best one's time is not timed again.
constexpr double kHopeless = 1.5;

template <class Key>
class Bench {
 public:
  explicit Bench(std::size_t window)
      : window_(window), original_(std::max(window, kKeysPerTiming)), keys_(original_.size()) {
    // A fixed seed: the choice should depend on the machine alone.
    std::mt19937_64 random(2005);
    for (Key& key : original_) key = static_cast<Key>(random());
  }

  double SecondsPerKey(const CpuAlgorithm& algorithm) {
    std::memcpy(keys_.data(), original_.data(), keys_.size() * sizeof(Key));
    const Clock::time_point start = Clock::now();
    for (std::size_t i = 0; i < keys_.size(); i += window_) {
      algorithm.Sort(keys_.data() + i, window_);
    }
    const std::chrono::duration<double> seconds = Clock::now() - start;
    return seconds.count() / static_cast<double>(keys_.size());
  }

 private:
  const std::size_t window_;
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

template <class Key>
void MeasureClass(std::size_t window_class, Clock::duration budget, CpuChoice& choice,
                  std::vector<SorterMeasurement>& measured) {
  const Clock::time_point end = Clock::now() + budget;
  const std::size_t window = ClassWindow(window_class);
  const std::vector<const CpuAlgorithm*> candidates = Candidates();
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  Bench<Key> bench(window);
  double fastest = std::numeric_limits<double>::infinity();
  // Rounds are interleaved: whatever else the machine does hits every algorithm alike.
  for (int round = 0; round < kRoundsMax && (round == 0 || Clock::now() < end); ++round) {
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (round > 0 && best[c] > kHopeless * fastest) continue;
      best[c] = std::min(best[c], bench.SecondsPerKey(*candidates[c]));
      fastest = std::min(fastest, best[c]);
    }
  }
  const auto winner =
      static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
  choice.algorithm[WidthIndex<Key>()][window_class] = candidates[winner];
  choice.seconds_per_key[WidthIndex<Key>()][window_class] = best[winner];
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    measured.push_back({static_cast<int>(8 * sizeof(Key)), window, "cpu", candidates[c]->name,
                        1 / best[c], c == winner});
  }
}

}  // namespace

CpuChoice UseOnly(const CpuAlgorithm& algorithm) {
  CpuChoice choice;
  for (auto& width : choice.algorithm) width.fill(&algorithm);
  return choice;
}

CpuChoice MeasureCpu(std::chrono::milliseconds budget, std::vector<SorterMeasurement>& measured) {
  const Clock::duration share = Clock::duration(budget) / (kWindowClasses * kKeyWidths);
  CpuChoice choice;
  for (std::size_t c = 0; c < kWindowClasses; ++c) {
    MeasureClass<std::uint32_t>(c, share, choice, measured);
    MeasureClass<std::uint64_t>(c, share, choice, measured);
  }
  return choice;
}

}  // namespace tidemark::sort
