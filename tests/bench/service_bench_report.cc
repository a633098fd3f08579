#include "tests/bench/service_bench_report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tests/bench/measuring.h"

namespace tidemark::bench {
namespace {

// Three significant digits at least, no exponent.
std::string Number(double value) {
  char text[64];
  const double size = std::abs(value);
  const int decimals = size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string Range(const std::vector<double>& rounds) {
  const auto [low, high] = std::minmax_element(rounds.begin(), rounds.end());
  return Number(*low) + "–" + Number(*high);
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

double Median(std::vector<double> values) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Quantile(std::vector<double> values, double q) {
  assert(!values.empty());
  const auto count = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(q * count)));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void Section::Add(std::string_view series, std::string_view unit, double value) {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&](const Series& known) { return known.name == series; });
  if (found != series_.end()) {
    found->rounds.push_back(value);
  } else {
    series_.push_back({std::string(series), std::string(unit), {value}});
  }
}

const Series* Section::Find(std::string_view series) const {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&](const Series& known) { return known.name == series; });
  return found == series_.end() ? nullptr : &*found;
}

void Section::AddRatio(std::string_view name, std::string_view numerator,
                       std::string_view denominator, std::string_view aim) {
  const Series* top = Find(numerator);
  const Series* bottom = Find(denominator);
  if (top == nullptr || bottom == nullptr) return;
  assert(top->rounds.size() == bottom->rounds.size());
  Ratio ratio{
      std::string(name), {}, Median(top->rounds) / Median(bottom->rounds), std::string(aim)};
  for (std::size_t i = 0; i < top->rounds.size(); ++i) {
    ratio.rounds.push_back(top->rounds[i] / bottom->rounds[i]);
  }
  ratios_.push_back(std::move(ratio));
}

void Section::Print() const {
  std::printf("\n## %s\n\n| | unit | median | min–max | rounds |\n|---|---|---|---|---|\n",
              name_.c_str());
  for (const Series& one : series_) {
    std::printf("| %s | %s | %s | %s | %zu |\n", one.name.c_str(), one.unit.c_str(),
                Number(Median(one.rounds)).c_str(), Range(one.rounds).c_str(), one.rounds.size());
  }
  if (!ratios_.empty()) {
    std::printf("\n| ratio | of medians | min–max in a round | aim |\n|---|---|---|---|\n");
    for (const Ratio& one : ratios_) {
      std::printf("| %s | %s | %s | %s |\n", one.name.c_str(), Number(one.of_medians).c_str(),
                  Range(one.rounds).c_str(), one.aim.c_str());
    }
  }
  for (const std::string& note : notes_) std::printf("\n%s\n", note.c_str());
  std::fflush(stdout);
}

std::vector<std::string> DescribeMachine() {
  utsname kernel{};
  uname(&kernel);
  return {
    "CPU: " + CpuModel() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores",
        "L2 of core 0: " + FirstLine("/sys/devices/system/cpu/cpu0/cache/index2/size") +
            ", L3: " + FirstLine("/sys/devices/system/cpu/cpu0/cache/index3/size"),
        std::string("kernel: ") + kernel.sysname + " " + kernel.release + " " + kernel.machine,
        std::string("compiler: ") +
#if defined(__clang__)
            __VERSION__,
#else
            "g++ " __VERSION__,
#endif
        "load average at this moment: " + FirstLine("/proc/loadavg"),
  };
}

void WriteJson(const std::string& path, const std::vector<Section>& sections) {
  nlohmann::ordered_json document;
  document["machine"] = DescribeMachine();
  document["sections"] = nlohmann::ordered_json::object();
  for (const Section& section : sections) {
    auto& of = document["sections"][section.name()];
    for (const Series& one : section.series()) {
      of["series"][one.name] = {
          {"unit", one.unit}, {"median", Median(one.rounds)}, {"rounds", one.rounds}};
    }
    for (const Ratio& one : section.ratios()) {
      of["ratios"][one.name] = {
          {"of_medians", one.of_medians}, {"rounds", one.rounds}, {"aim", one.aim}};
    }
  }
  std::ofstream file(path, std::ios::trunc);
  file << document.dump(2) << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace tidemark::bench
