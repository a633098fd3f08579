#include "gpu/sort/sorter_factory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <random>
#include <utility>

#include "gpu/sort/cpu_sorter.h"
#include "gpu/sort/gl_sorters.h"
#include "gpu/sort/measure_request.h"
#include "gpu/sort/routed_sorter.h"
#include "gpu/sort/vqsort_targets.h"
#include "gpu/sort/window_class.h"

namespace tidemark::sort {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Part of the budget that the CPU's algorithms get when a GL sorter is measured as well.
constexpr double kCpuShare = 0.5;

// Smallest class measured on GL: below it, a request of any device known costs more in draw calls
// (36 at 2^8) and transfers than sorting four windows of 256 keys on the CPU, about 4 us.
constexpr std::size_t kFirstGlClass = 1;

// A GL sorter that is so many times slower than the CPU at one size is not measured at larger ones,
// if a request of this one used its time up: from one class to the next it gains a factor of 2 or
// so, and there are at most four more.
constexpr double kHopeless = 16;

// Said wherever a GL sorter is in use.
constexpr const char* kWideKeysOnCpu = "; keys of 128 bits (ipv6) are sorted on the cpu";

std::string MillionsPerSecond(double keys_per_second) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f M/s", keys_per_second / 1e6);
  return text.data();
}

// "vqsort-avx2 sorts windows of 2^18 32-bit keys at 312 M/s, radix-lsd-11 201 M/s": the largest
// class, the chosen algorithm and the best of the other kinds.
std::string Figures(const std::vector<SorterMeasurement>& measurements, int key_bits) {
  const std::size_t window = ClassWindow(kWindowClasses - 1);
  std::vector<const SorterMeasurement*> rows;
  for (const SorterMeasurement& row : measurements) {
    if (row.window == window && row.key_bits == key_bits) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(), [](const SorterMeasurement* a, const SorterMeasurement* b) {
    if (a->chosen != b->chosen) return a->chosen;
    return a->keys_per_second > b->keys_per_second;
  });
  std::string out;
  std::vector<std::string> kinds;  // one figure for each kind of algorithm is enough
  for (const SorterMeasurement* row : rows) {
    const std::string kind = row->algorithm.substr(0, row->algorithm.find('-'));
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(kind);
    out += out.empty() ? row->algorithm + " sorts windows of 2^" +
                             std::to_string(std::bit_width(window) - 1) + " " +
                             std::to_string(key_bits) + "-bit keys at "
                       : ", " + row->algorithm + " ";
    out += MillionsPerSecond(row->keys_per_second);
  }
  return out;
}

std::string Figures(const std::vector<SorterMeasurement>& measurements) {
  return Figures(measurements, 32) + "; " + Figures(measurements, 64) + "; " +
         Figures(measurements, 128);
}

// A GL sorter by name, and the one that it is.
struct GlKind {
  const char* name;
  const char* algorithm;
  GlSorterOrReason (*open)(const GlOpening& how);
  bool for_auto;  // whether `auto` measures it
};
constexpr GlKind kGlKinds[] = {
    {"gl-compute", "bitonic-compute", OpenGlCompute, true},
    {"gl-bitonic", "bitonic-fragment", OpenGlBitonic, true},
    {"gl-abisort", "abisort-fragment", OpenGlABiSort, false},
    {"gl-pbsn", "pbsn-blending", OpenGlPbsn, false},
};

// One that `auto` may use: what it took for a request of each width and class.
struct GlCandidate {
  const GlKind* kind = nullptr;
  GlSorterOrReason gl;
  std::array<std::array<double, kWindowClasses>, kKeyWidths> request_seconds{};  // or infinity

  void Forget() {
    for (auto& width : request_seconds) width.fill(std::numeric_limits<double>::infinity());
  }
};

double CpuSeconds(const CpuChoice& cpu, std::size_t width, std::size_t window_class) {
  return cpu.seconds_per_key[width][window_class] *
         static_cast<double>(kChannels * ClassWindow(window_class));
}

template <class Key>
void MeasureGlWidth(GlCandidate& candidate, Clock::duration budget, const CpuChoice& cpu) {
  constexpr std::size_t kWidth = WidthIndex<Key>();
  for (std::size_t c = kFirstGlClass; c < kWindowClasses; ++c) {
    const std::size_t window = ClassWindow(c);
    if (window > candidate.gl.window_max) break;
    const double seconds = MeasureRequest<Key>(*candidate.gl.sorter, window, budget, Clock::now);
    candidate.request_seconds[kWidth][c] = seconds;
    if (seconds > std::chrono::duration<double>(budget).count() &&
        seconds > kHopeless * CpuSeconds(cpu, kWidth, c)) {
      break;
    }
  }
}

// Adds the candidate's rows; with a table, it is the one that is used where it beats the CPU.
void Report(const GlCandidate& candidate, const CpuChoice& cpu, RouteTable* table,
            std::vector<SorterMeasurement>& rows) {
  for (std::size_t width = 0; width < kGlKeyWidths; ++width) {
    for (std::size_t c = kFirstGlClass; c < kWindowClasses; ++c) {
      const double seconds = candidate.request_seconds[width][c];
      if (std::isinf(seconds)) continue;
      const std::size_t window = ClassWindow(c);
      const bool chosen = table != nullptr && seconds < CpuSeconds(cpu, width, c);
      if (table != nullptr) table->gl_request_seconds[width][c] = seconds;
      for (SorterMeasurement& row : rows) {
        row.chosen =
            row.chosen && !(chosen && row.window == window && row.key_bits == WidthBits(width));
      }
      rows.push_back({WidthBits(width), window, candidate.kind->name, candidate.kind->algorithm,
                      static_cast<double>(kChannels * window) / seconds, chosen});
    }
  }
}

// Whether `a` is the better one to use beside the CPU: by the largest class of 32-bit keys that
// both were measured at.
bool Better(const GlCandidate& a, const GlCandidate& b) {
  for (std::size_t c = kWindowClasses; c-- > kFirstGlClass;) {
    const double of_a = a.request_seconds[0][c];
    const double of_b = b.request_seconds[0][c];
    if (!std::isinf(of_a) || !std::isinf(of_b)) return of_a < of_b;
  }
  return false;
}

RouteTable EmptyTable(const CpuChoice& choice, std::size_t gl_window_max) {
  RouteTable table;
  table.gl_window_max = gl_window_max;
  table.cpu_key_seconds = choice.seconds_per_key;
  for (auto& width : table.gl_request_seconds) {
    width.fill(std::numeric_limits<double>::infinity());
  }
  return table;
}

bool ChosenAnywhere(const SorterReport& report, std::string_view sorter) {
  return std::any_of(
      report.measurements.begin(), report.measurements.end(),
      [&](const SorterMeasurement& row) { return row.sorter == sorter && row.chosen; });
}

// The sorter of the largest class of 32-bit keys: the class that a busy stream uses.
std::string ActiveSorter(const SorterReport& report) {
  for (const SorterMeasurement& row : report.measurements) {
    if (row.chosen && row.key_bits == 32 && row.window == ClassWindow(kWindowClasses - 1)) {
      return row.sorter;
    }
  }
  return "cpu";
}

// What the CPU's rates are: known ones if they are of this machine, else measured now. Says so in
// the report.
CpuChoice CpuRates(const SorterOptions& options, std::vector<std::string> gl_sorters,
                   milliseconds budget, SorterReport& report) {
  report.measured_on = ThisMachine(std::move(gl_sorters), options.measure_budget_ms);
  if (options.known) {
    report.not_cached = WhyUnusable(*options.known, report.measured_on);
    report.cached = report.not_cached.empty();
  }
  report.measured_at_us = report.cached ? options.known->at_us : options.now_us;
  return report.cached ? ChooseCpu(options.known->rows, report.measurements)
                       : MeasureCpu(budget, report.measurements);
}

SorterSelection UseCpu(const CpuChoice& choice, SorterReport report, const char* why,
                       const std::string& cause) {
  report.active = "cpu";
  report.why = why;
  report.reason = "cpu: " + (cause.empty() ? "" : cause + "; ") + Figures(report.measurements);
  return {std::make_unique<CpuSorter>(choice), std::move(report)};
}

SorterSelection MakeCpu(const SorterOptions& options) {
  SorterReport report;
  report.requested = options.name;
  const CpuChoice choice = CpuRates(options, {}, milliseconds(options.measure_budget_ms), report);
  return UseCpu(choice, std::move(report), "asked_for", "");
}

SorterSelection MakeGl(const SorterOptions& options, const GlKind& kind) {
  SorterReport report;
  report.requested = options.name;
  GlSorterOrReason gl = kind.open({true, options.gl_time_limit});
  report.gl = gl.report;
  // The GL sorter is not measured.
  const CpuChoice choice = CpuRates(options, {}, milliseconds(options.measure_budget_ms), report);
  if (gl.sorter == nullptr) {
    return UseCpu(choice, std::move(report), "no_gl",
                  options.name + " cannot run, " + gl.report.error);
  }
  // Nothing is chosen by these figures; the rows stay in the report for comparison.
  for (SorterMeasurement& row : report.measurements) {
    row.chosen = row.chosen && row.key_bits == WidthBits(WidthIndex<Key128>());
  }
  report.active = options.name;
  report.why = "asked_for";
  report.reason = options.name + ": asked for by name; runs on " + gl.report.renderer + " (" +
                  gl.report.version + "); the cpu sorter stands by" + kWideKeysOnCpu;
  RouteTable table = EmptyTable(choice, gl.window_max);
  table.always_gl = true;
  return {std::make_unique<RoutedSorter>(options.name, std::make_unique<CpuSorter>(choice),
                                         std::move(gl.sorter), table, options.on_failure),
          std::move(report)};
}

// The GL sorters for `auto` that can be had; `failed` has the report of the last one that cannot.
std::vector<GlCandidate> OpenCandidates(const GlOpening& how, GlReport& failed) {
  std::vector<GlCandidate> candidates;
  for (const GlKind& kind : kGlKinds) {
    if (!kind.for_auto) continue;
    GlCandidate candidate;
    candidate.kind = &kind;
    candidate.gl = kind.open(how);
    candidate.Forget();
    if (candidate.gl.sorter == nullptr) {
      failed = candidate.gl.report;
    } else {
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

// As MeasuredOn lists them.
std::vector<std::string> Identities(const std::vector<GlCandidate>& candidates) {
  std::vector<std::string> out;
  for (const GlCandidate& candidate : candidates) {
    const GlReport& gl = candidate.gl.report;
    out.push_back(std::string(candidate.kind->name) + " up to " +
                  std::to_string(candidate.gl.window_max) + " keys on " + gl.renderer + " (" +
                  gl.vendor + ", " + gl.version + ")");
  }
  return out;
}

// As they were measured before; the best one. REQUIRES: rates of these candidates, and at least one
// candidate.
GlCandidate* RecallCandidates(std::vector<GlCandidate>& candidates, const MeasuredRates& rates) {
  for (const SorterMeasurement& row : rates.rows) {
    for (GlCandidate& candidate : candidates) {
      if (row.sorter != candidate.kind->name) continue;
      for (std::size_t width = 0; width < kGlKeyWidths; ++width) {
        if (WidthBits(width) != row.key_bits) continue;
        candidate.request_seconds[width][ClassOf(row.window)] =
            static_cast<double>(kChannels * row.window) / row.keys_per_second;
      }
    }
  }
  return &*std::min_element(candidates.begin(), candidates.end(), Better);
}

// Measures the candidates; the best one, or null when all fail, with the report of one that did.
GlCandidate* MeasureCandidates(std::vector<GlCandidate>& candidates, Clock::duration budget,
                               const CpuChoice& choice, GlReport& failed) {
  const Clock::duration share =
      budget / ((kWindowClasses - kFirstGlClass) * kGlKeyWidths * candidates.size());
  GlCandidate* best = nullptr;
  for (GlCandidate& candidate : candidates) {
    try {
      MeasureGlWidth<std::uint32_t>(candidate, share, choice);
      MeasureGlWidth<std::uint64_t>(candidate, share, choice);
      if (best == nullptr || Better(candidate, *best)) best = &candidate;
    } catch (const SorterError& error) {
      candidate.Forget();
      failed = candidate.gl.report;
      failed.available = false;
      failed.error = error.what();
    }
  }
  return best;
}

SorterSelection MakeAuto(const SorterOptions& options) {
  SorterReport report;
  report.requested = options.name;
  GlReport failed;
  std::vector<GlCandidate> candidates =
      OpenCandidates({options.allow_software_gl, options.gl_time_limit}, failed);
  const milliseconds budget(options.measure_budget_ms);
  if (candidates.empty()) {
    report.gl = failed;
    const CpuChoice choice = CpuRates(options, {}, budget, report);
    return UseCpu(choice, std::move(report), "no_gl", failed.error);
  }
  const auto cpu_budget = std::chrono::duration_cast<milliseconds>(budget * kCpuShare);
  const CpuChoice choice = CpuRates(options, Identities(candidates), cpu_budget, report);
  failed = {};  // of those that did open
  GlCandidate* best = report.cached
                          ? RecallCandidates(candidates, *options.known)
                          : MeasureCandidates(candidates, budget - cpu_budget, choice, failed);
  report.worth_keeping = failed.error.empty();
  if (best == nullptr) {
    report.gl = failed;
    return UseCpu(choice, std::move(report), "gl_failed",
                  "GL on " + failed.renderer + " failed while it was measured, " + failed.error);
  }
  report.gl = best->gl.report;
  RouteTable table = EmptyTable(choice, best->gl.window_max);
  for (const GlCandidate& candidate : candidates) {
    Report(candidate, choice, &candidate == best ? &table : nullptr, report.measurements);
  }
  if (!ChosenAnywhere(report, best->kind->name)) {
    // The contexts are closed again: they cost memory and never sort. Of hardware that is not kept:
    // a GPU that was busy with something else at this start is looked at again at the next.
    report.worth_keeping = best->gl.report.software;
    return UseCpu(choice, std::move(report), "measured",
                  "faster than " + best->gl.report.renderer + " at every size");
  }
  report.active = ActiveSorter(report);
  report.why = "measured";
  report.reason = "auto: on " + report.gl.renderer + " and this CPU, " +
                  Figures(report.measurements) + kWideKeysOnCpu;
  return {std::make_unique<RoutedSorter>("auto", std::make_unique<CpuSorter>(choice),
                                         std::move(best->gl.sorter), table, options.on_failure),
          std::move(report)};
}

SorterSelection Make(const SorterOptions& options) {
  if (options.name == "auto") return MakeAuto(options);
  if (options.name == "cpu") return MakeCpu(options);
  for (const GlKind& kind : kGlKinds) {
    if (options.name == kind.name) return MakeGl(options, kind);
  }
  std::string names = "auto, cpu";
  for (const GlKind& kind : kGlKinds) {
    names += (&kind == std::end(kGlKinds) - 1 ? " and " : ", ") + std::string(kind.name);
  }
  throw std::invalid_argument("unknown sorter \"" + options.name + "\"; there are " + names);
}

}  // namespace

SorterSelection MakeSorter(const SorterOptions& options) {
  SorterSelection selection = Make(options);
  if (!BuiltWithVqsort()) selection.report.reason += "; built without Highway, so without vqsort";
  return selection;
}

MeasuredRates RatesOf(const SorterReport& report) {
  return {report.measured_on, report.measured_at_us, report.measurements};
}

std::vector<GlSorterTrial> TryGlSorters() {
  std::vector<GlSorterTrial> trials;
  for (const GlKind& kind : kGlKinds) {
    const GlSorterOrReason gl = kind.open({.allow_software = true});
    const bool runs = gl.sorter != nullptr;
    trials.push_back({kind.name, kind.for_auto, runs ? gl.window_max : 0,
                      runs ? std::string() : gl.report.error});
  }
  return trials;
}

std::unique_ptr<WindowSorter> MakeUnmeasuredCpuSorter() {
  return std::make_unique<CpuSorter>(UseOnly(CpuAlgorithms().front()));
}

}  // namespace tidemark::sort
