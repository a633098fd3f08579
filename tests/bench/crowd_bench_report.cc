#include "tests/bench/crowd_bench_report.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <initializer_list>

namespace tidemark::bench {
namespace {

// Another client's 99th percentile beside a crowd, against the one alone.
constexpr double kRatioMax = 2;
constexpr char kAim[] = "at most 2";
constexpr double kMillisInMicro = 1e-3;

std::string RatioName(const std::string& when) { return "p99: " + when + " / alone"; }

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

const Ratio* Find(const Section& section, const std::string& when) {
  for (const Ratio& one : section.ratios()) {
    if (one.name == RatioName(when)) return &one;
  }
  return nullptr;
}

std::string RatioOf(const Section& section, const std::string& when) {
  const Ratio* const ratio = Find(section, when);
  return ratio == nullptr ? "–" : Fixed(2, ratio->of_medians);
}

std::vector<std::string> Beyond(const Outcome& outcome, std::initializer_list<const char*> whens) {
  std::vector<std::string> lines;
  for (const std::string when : whens) {
    const Ratio* const ratio = Find(outcome.section, when);
    if (ratio != nullptr && ratio->of_medians > kRatioMax) {
      lines.push_back(ratio->name + " is " + Fixed(2, ratio->of_medians));
    }
  }
  return lines;
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

void AddRatios(Section& section) {
  for (const std::string when : {kComing, kBeside, kEnding}) {
    section.AddRatio("p50: " + when + " / alone", when + ", p50", "alone, p50", "");
    section.AddRatio(RatioName(when), when + ", p99", "alone, p99", when == kComing ? "" : kAim);
  }
}

std::vector<std::string> Slow(const Outcome& outcome) {
  return Beyond(outcome, {kBeside, kEnding});
}

void PrintSummary(const std::vector<Outcome>& outcomes, bool with_aim) {
  std::printf(
      "\n## All scenes\n\n99th percentiles, ms, and their ratios (of medians) to the one alone.\n\n"
      "| scene | alone | while they come | beside them | while they end | kB for each | growth, MB "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const Outcome& outcome : outcomes) {
    const Section& section = outcome.section;
    const auto p99 = [&](const std::string& when) {
      return Of(section, when + ", p99", 1, kMillisInMicro);
    };
    std::printf("| %s | %s |", outcome.scene.c_str(), p99(kAlone).c_str());
    for (const std::string when : {kComing, kBeside, kEnding}) {
      std::printf(" %s: %s |", RatioOf(section, when).c_str(), p99(when).c_str());
    }
    std::printf(" %s | %s |\n", Of(section, "resident memory for each member", 1).c_str(),
                Of(section, "growth while it is there", 1).c_str());
  }
  if (with_aim) {
    PrintList("Beyond the aim, at most 2", outcomes, Slow);
    PrintList("Beyond 2 while they come", outcomes,
              [](const Outcome& outcome) { return Beyond(outcome, {kComing}); });
  }
  PrintList("Faults", outcomes, [](const Outcome& outcome) { return outcome.faults; });
}

}  // namespace tidemark::bench
