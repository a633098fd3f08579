// What GPUs make of the sorters: every sorter at every size beside the CPU and the bus, and the
// papers' own comparisons, counted and timed.
//
//   gpu_bench                  everything; 4 × 2^10 to 4 × 2^24 keys, 2^16 on a software rasteriser
//   gpu_bench --sections A,B   of counts, bus, sorters, pbsn, abisort, reduction, tiles
//   gpu_bench --sorters A,B    in the section `sorters` these alone
//   gpu_bench --min-log2 K --max-log2 K --step S   windows of 2^K keys, every S-th power
//   gpu_bench --seconds S      for each sorter in each cell (1, on a software rasteriser 0.2)
//   gpu_bench --total S        nothing is begun after S seconds; a section gets its share of them
//   gpu_bench --csv FILE       the same rows as CSV, appended; each is on the disk at once
//   gpu_bench --hardware       fails where there is but a software rasteriser
//   gpu_bench --smoke          one small size, one round: does it run, are the results equal
//
// Prints Markdown. Four windows a request. "End to end" is the whole request: the caller's copies,
// upload, passes, read-back, and the check of what came back. "Device only" lies between two fences
// around the passes, data resident, in requests of their own, and holds the telling of the
// commands; timer queries are given beside it where they can be believed. In each round all
// entrants of a cell take their turn; results are compared with std::sort's outside the timing. On
// a software rasteriser the times say nothing of a GPU; the counts hold anywhere.
//
// Exit status 1: a result was wrong, or a section or a sorter failed; the others have run. 2:
// usage.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/gpu_bench_sections.h"

namespace tidemark::bench {

bool GpuBenchOptions::Wants(const std::string& sorter) const {
  return sorters.empty() || std::find(sorters.begin(), sorters.end(), sorter) != sorters.end();
}

std::vector<int> GpuBenchOptions::Sizes(int most) const {
  std::vector<int> sizes;
  for (int log2 = log2_min; log2 <= std::min(log2_max, most); log2 += log2_step) {
    sizes.push_back(log2);
  }
  if (sizes.empty()) sizes.push_back(std::min(log2_min, most));
  return sizes;
}

namespace {

struct Section {
  const char* name;
  const char* title;
  void (*run)(Report&, const GpuBenchOptions&);
  double share;  // of the time, against the others
};

constexpr Section kSections[] = {
    {"counts", "Counts, exact on every device", BenchCounts, 0.5},
    {"bus", "The bus", BenchBus, 3},
    {"sorters", "All sorters", BenchSorters, 5},
    {"pbsn", "Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005)", BenchPbsn, 1.5},
    {"abisort", "Greß, Zachmann (GPU-ABiSort, 2006)", BenchABiSort, 2},
    {"reduction", "Roger, Assarson, Holzschuch (2007)", BenchReduction, 2},
    {"tiles", "Govindaraju et al. (Cache-Efficient Sorting, 2005)", BenchTiles, 2},
};

constexpr const char* kUsage =
    "gpu_bench: %s; there are --sections, --sorters, --min-log2, --max-log2, --step, --seconds, "
    "--total, --csv, each with a value, and --hardware, --smoke\n";

struct Arguments {
  GpuBenchOptions options;
  std::string csv;
  bool hardware = false;
  double total = 0;
  std::string fault;
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Of an argument with a value; false if there is none of that name.
bool Take(Arguments& arguments, const std::string& name, const std::string& value) {
  GpuBenchOptions& options = arguments.options;
  const auto number = [&](double least, double most) {
    char* end = nullptr;
    const double given = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(given >= least && given <= most)) {
      arguments.fault = name + " " + value + ": expected a number from " +
                        std::to_string(static_cast<int>(least)) + " to " +
                        std::to_string(static_cast<int>(most));
      return least;
    }
    return given;
  };
  if (name == "--sections") {
    options.sections = Split(value);
  } else if (name == "--sorters") {
    options.sorters = Split(value);
  } else if (name == "--min-log2") {
    options.log2_min = static_cast<int>(number(4, 24));
  } else if (name == "--max-log2") {
    options.log2_max = static_cast<int>(number(4, 24));
  } else if (name == "--step") {
    options.log2_step = static_cast<int>(number(1, 8));
  } else if (name == "--seconds") {
    options.budget.seconds = number(0, 3600);
  } else if (name == "--total") {
    arguments.total = number(1, 86400);
  } else if (name == "--csv") {
    arguments.csv = value;
  } else {
    return false;
  }
  return true;
}

void CheckNames(Arguments& arguments) {
  const auto known = [](const std::string& name, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> sections;
  for (const Section& section : kSections) sections.emplace_back(section.name);
  for (const std::string& name : arguments.options.sections) {
    if (!known(name, sections)) arguments.fault = "no section \"" + name + "\"";
  }
  for (const std::string& name : arguments.options.sorters) {
    if (!known(name, {"std::sort", "cpu", "gl-compute", "gl-bitonic", "gl-abisort", "gl-pbsn"})) {
      arguments.fault = "no sorter \"" + name + "\"";
    }
  }
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc && arguments.fault.empty(); ++i) {
    const std::string name = argv[i];
    if (name == "--smoke") {
      GpuBenchOptions& options = arguments.options;
      options.smoke = true;
      options.log2_min = options.log2_max = 8;
      options.batch_keys = 0;
      options.budget = {60, 1, 1};
    } else if (name == "--hardware") {
      arguments.hardware = true;
    } else if (i + 1 == argc || !Take(arguments, name, argv[i + 1])) {
      arguments.fault = "unknown argument \"" + name + "\", or one without its value";
    } else {
      ++i;
    }
  }
  if (arguments.fault.empty()) CheckNames(arguments);
  return arguments;
}

void SayMachine(Report& report, const GpuBenchOptions& options) {
  const Machine& machine = report.machine();
  report.Say("# gpu_bench\n\ndate: " + machine.date + "\nCPU: " + machine.cpu + ", " +
             std::to_string(machine.cores) + " cores\ncompiler: " __VERSION__);
  if (!machine.no_gl.empty()) {
    report.Say("GL: none: " + machine.no_gl);
    return;
  }
  report.Say("GL: " + machine.device + "\nvendor: " + machine.vendor +
             "\ndriver: " + machine.driver);
  if (machine.software) {
    report.Say("This is a software rasteriser: it proves correctness, not speed.");
  }
  report.Say("least / **median** / greatest of " + std::to_string(options.budget.rounds_min) +
             " to " + std::to_string(options.budget.rounds_max) + " rounds, interleaved");
}

void RunSections(Report& report, const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::string>& wanted = arguments.options.sections;
  std::vector<const Section*> sections;
  double shares = 0;
  for (const Section& section : kSections) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), section.name) == wanted.end()) {
      continue;
    }
    sections.push_back(&section);
    shares += section.share;
  }
  const auto end = Clock::now() + std::chrono::duration<double>(arguments.total);
  for (const Section* section : sections) {
    GpuBenchOptions options = arguments.options;
    if (arguments.total > 0) {
      const std::chrono::duration<double> left = end - Clock::now();
      options.budget.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   left * (section->share / shares));
    }
    shares -= section->share;
    report.Section(section->name);
    report.Say(std::string("\n## ") + section->title + ": section `" + section->name + "`");
    try {
      section->run(report, options);
    } catch (const std::exception& error) {
      report.Say(std::string("\nThis section failed: ") + error.what());
      report.Failed(std::string("section ") + section->name + ": " + error.what());
    }
  }
}

int Main(int argc, char** argv) {
  Arguments arguments = Parse(argc, argv);
  if (!arguments.fault.empty()) {
    std::fprintf(stderr, kUsage, arguments.fault.c_str());
    return 2;
  }
  try {
    Report report(DescribeMachine(!arguments.hardware), arguments.csv);
    if (arguments.hardware && !report.machine().no_gl.empty()) {
      std::fprintf(stderr, "gpu_bench: no hardware: %s\n", report.machine().no_gl.c_str());
      return 1;
    }
    int& log2_max = arguments.options.log2_max;
    if (log2_max == 0) log2_max = report.machine().software ? 16 : 24;
    double& seconds = arguments.options.budget.seconds;
    if (seconds < 0) seconds = report.machine().software ? 0.2 : 1;
    SayMachine(report, arguments.options);
    RunSections(report, arguments);
    return report.bad() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
