#include "gpu/sort/measured_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "gpu/sort/cpu_algorithms.h"
#include "gpu/sort/window_class.h"

namespace tidemark::sort {
namespace {

// Beyond any machine: such a figure was not measured.
constexpr double kFastest = 1e15;  // keys a second

std::string ValueOf(std::string_view cpuinfo, std::string_view name) {
  std::size_t begin = 0;
  while (begin < cpuinfo.size()) {
    const std::size_t end = std::min(cpuinfo.find('\n', begin), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(begin, end - begin);
    const std::size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string_view::npos &&
        line.find_first_not_of(" \t", name.size()) == colon) {
      const std::size_t value = line.find_first_not_of(" \t", colon + 1);
      return value == std::string_view::npos ? "" : std::string(line.substr(value));
    }
    begin = end + 1;
  }
  return "";
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out.empty() ? "none" : out;
}

std::string Differs(std::string_view what, const std::string& then, const std::string& now) {
  return std::string(what) + " then: " + then + ", now: " + now;
}

std::string WhyOfAnotherMachine(const MeasuredOn& then, const MeasuredOn& now) {
  if (then.cpu != now.cpu) return Differs("CPU", then.cpu, now.cpu);
  if (then.algorithms != now.algorithms) {
    return Differs("its algorithms", then.algorithms, now.algorithms);
  }
  if (then.gl_sorters != now.gl_sorters) {
    return Differs("GL sorters", Joined(then.gl_sorters), Joined(now.gl_sorters));
  }
  if (then.budget_ms != now.budget_ms) {
    return Differs("milliseconds for measuring", std::to_string(then.budget_ms),
                   std::to_string(now.budget_ms));
  }
  return "";
}

bool KnowsCpuAlgorithm(const std::string& name) {
  const std::vector<CpuAlgorithm>& all = CpuAlgorithms();
  return std::any_of(all.begin(), all.end(),
                     [&](const CpuAlgorithm& algorithm) { return algorithm.name == name; });
}

}  // namespace

std::string CpuModelIn(std::string_view cpuinfo) {
  if (std::string model = ValueOf(cpuinfo, "model name"); !model.empty()) return model;
  const std::string part = ValueOf(cpuinfo, "CPU part");
  return part.empty() ? "" : "implementer " + ValueOf(cpuinfo, "CPU implementer") + " part " + part;
}

MeasuredOn ThisMachine(std::vector<std::string> gl_sorters, int budget_ms) {
  std::ifstream file("/proc/cpuinfo");
  const std::string cpuinfo{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  MeasuredOn on;
  on.cpu = CpuModelIn(cpuinfo);
  if (on.cpu.empty()) on.cpu = "of unknown model";
  for (const CpuAlgorithm& algorithm : CpuAlgorithms()) {
    on.algorithms += (on.algorithms.empty() ? "" : " ") + algorithm.name;
  }
  on.gl_sorters = std::move(gl_sorters);
  on.budget_ms = budget_ms;
  return on;
}

std::string WhyUnusable(const MeasuredRates& rates, const MeasuredOn& now) {
  if (std::string why = WhyOfAnotherMachine(rates.on, now); !why.empty()) return why;
  std::array<std::array<bool, kWindowClasses>, kKeyWidths> has{};
  for (const SorterMeasurement& row : rates.rows) {
    const std::string what = row.algorithm + " at windows of " + std::to_string(row.window) + " " +
                             std::to_string(row.key_bits) + "-bit keys";
    if (!(row.keys_per_second > 0 && row.keys_per_second < kFastest)) {
      return "no possible rate of " + what;
    }
    const std::size_t window_class = ClassOf(row.window);
    std::size_t width = 0;
    while (width < kKeyWidths && WidthBits(width) != row.key_bits) ++width;
    if (width == kKeyWidths || ClassWindow(window_class) != row.window) {
      return "nobody measures " + what;
    }
    if (row.sorter != "cpu") continue;
    if (!KnowsCpuAlgorithm(row.algorithm)) return "there is no " + what;
    has[width][window_class] = true;
  }
  for (std::size_t width = 0; width < kKeyWidths; ++width) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      if (has[width][c]) continue;
      return "no rate of the CPU at windows of " + std::to_string(ClassWindow(c)) + " " +
             std::to_string(WidthBits(width)) + "-bit keys";
    }
  }
  return "";
}

}  // namespace tidemark::sort
