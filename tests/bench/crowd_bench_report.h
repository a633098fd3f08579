// What crowd_bench says at its end of all scenes together.
#ifndef TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_
#define TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "tests/bench/service_bench_report.h"

namespace tidemark::bench {

/// When somebody asks beside a crowd, of which the series "`when`, p50" and "`when`, p99" are.
inline constexpr char kAlone[] = "alone";
inline constexpr char kComing[] = "while they come";
inline constexpr char kBeside[] = "beside the crowd";
inline constexpr char kEnding[] = "while they end";

/// What was found of one scene.
struct Outcome {
  std::string scene;
  Section section;
  /// What the daemon should have done, counted or not have spent; one line for each.
  std::vector<std::string> faults = {};
};

/// Of what was measured, against alone.
void AddRatios(Section& section);

/// The 99th percentiles of a scene that are beyond the aim, beside it or at its end, one line each.
std::vector<std::string> Slow(const Outcome& outcome);

/// Markdown on stdout: a row for each scene, what is beyond the aim unless the figures are too few
/// to say, and the faults.
void PrintSummary(const std::vector<Outcome>& outcomes, bool with_aim);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_CROWD_BENCH_REPORT_H_
