// What the benchmarks share: the clock, the machine's name, the spread of rounds, Zipf ranks.
#ifndef TIDEMARK_TESTS_BENCH_MEASURING_H_
#define TIDEMARK_TESTS_BENCH_MEASURING_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace tidemark::bench {

/// Processor time of this thread, seconds.
inline double ThreadSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

/// Of an even number of rounds, `median` is the greater of the two in the middle.
struct Spread {
  double least = 0, median = 0, greatest = 0;
};
/// REQUIRES: not empty.
inline Spread SpreadOf(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  return {rounds.front(), rounds[rounds.size() / 2], rounds.back()};
}
/// "least / **median** / greatest", Markdown.
inline std::string Print(const Spread& s, int decimals) {
  char text[96];
  std::snprintf(text, sizeof text, "%.*f / **%.*f** / %.*f", decimals, s.least, decimals, s.median,
                decimals, s.greatest);
  return text;
}

/// Ranks from 0 to 2^20 - 1; the r-th one with a probability in proportion to (r + 1)^-1.1.
template <class Random>
std::size_t ZipfRank(Random& random) {
  static const std::vector<double> sums = [] {
    std::vector<double> all;
    double sum = 0;
    for (int rank = 1; rank <= 1 << 20; ++rank) all.push_back(sum += std::pow(rank, -1.1));
    return all;
  }();
  const double at = std::uniform_real_distribution<double>(0, sums.back())(random);
  return static_cast<std::size_t>(std::lower_bound(sums.begin(), sums.end(), at) - sums.begin());
}

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_MEASURING_H_
