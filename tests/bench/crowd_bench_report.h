// What crowd_bench says at its end of all scenes together.
#ifndef TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_
#define TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "tests/bench/service_bench_report.h"

namespace tidemark::bench {

/// The aim: another client's 99th percentile beside a crowd, against the one alone.
inline constexpr double kRatioMax = 2;

/// What was found of one scene.
struct Outcome {
  std::string scene;
  Section section;
  /// What the daemon should have done, counted or not have spent; one line for each.
  std::vector<std::string> faults = {};
};

/// The ratios of a scene that have an aim and miss it, one line for each.
std::vector<std::string> Slow(const Outcome& outcome);

/// Markdown on stdout: a row for each scene, then what is beyond the aim and what is a fault.
void PrintSummary(const std::vector<Outcome>& outcomes);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_
