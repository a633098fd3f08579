#include "tests/bench/crowd_bench_report.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace tidemark::bench {
namespace {

constexpr double kMillisInMicro = 1e-3;

std::string Fixed(int decimals, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// In another unit: each figure times `scale`.
std::string Of(const Section& section, const std::string& name, int decimals, double scale = 1) {
  for (const Series& one : section.series()) {
    if (one.name != name) continue;
    const auto [least, most] = std::minmax_element(one.rounds.begin(), one.rounds.end());
    return Fixed(decimals, scale * Median(one.rounds)) + " (" + Fixed(decimals, scale * *least) +
           "–" + Fixed(decimals, scale * *most) + ")";
  }
  return "–";
}

std::string RatioOf(const Section& section, const std::string& name) {
  for (const Ratio& one : section.ratios()) {
    if (one.name == name) return Fixed(2, one.of_medians);
  }
  return "–";
}

void PrintList(const char* title, const std::vector<Outcome>& outcomes,
               const std::function<std::vector<std::string>(const Outcome&)>& lines_of) {
  std::printf("\n%s:", title);
  bool any = false;
  for (const Outcome& outcome : outcomes) {
    for (const std::string& line : lines_of(outcome)) {
      std::printf("%s- %s: %s\n", any ? "" : "\n\n", outcome.scene.c_str(), line.c_str());
      any = true;
    }
  }
  if (!any) std::printf(" none.\n");
}

}  // namespace

std::vector<std::string> Slow(const Outcome& outcome) {
  std::vector<std::string> lines;
  for (const Ratio& one : outcome.section.ratios()) {
    if (!one.aim.empty() && one.of_medians > kRatioMax) {
      lines.push_back(one.name + " is " + Fixed(2, one.of_medians) + ", the aim " + one.aim);
    }
  }
  return lines;
}

void PrintSummary(const std::vector<Outcome>& outcomes) {
  std::printf(
      "\n## All scenes\n\n99th percentiles, ms, and their ratios (of medians) to the one alone.\n\n"
      "| scene | alone | while they come | beside them | while they end | kB for each | growth, MB "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const Outcome& outcome : outcomes) {
    const Section& section = outcome.section;
    std::printf("| %s | %s |", outcome.scene.c_str(),
                Of(section, "alone, p99", 1, kMillisInMicro).c_str());
    for (const std::string when : {"while they come", "beside the crowd", "while they end"}) {
      std::printf(" %s: %s |", RatioOf(section, "p99: " + when + " / alone").c_str(),
                  Of(section, when + ", p99", 1, kMillisInMicro).c_str());
    }
    std::printf(" %s | %s |\n", Of(section, "resident memory for each member", 1).c_str(),
                Of(section, "growth while it is there", 1).c_str());
  }
  PrintList("Beyond the aim", outcomes, Slow);
  PrintList("Faults", outcomes, [](const Outcome& outcome) { return outcome.faults; });
}

}  // namespace tidemark::bench
