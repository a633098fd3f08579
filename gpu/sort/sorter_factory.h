// Makes the sorter that was asked for, and the report of what was found, measured and chosen.
#ifndef TIDEMARK_GPU_SORT_SORTER_FACTORY_H_
#define TIDEMARK_GPU_SORT_SORTER_FACTORY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/sort/measured_rates.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

struct SorterOptions {
  /// "auto", "cpu", "gl-compute", "gl-bitonic", "gl-abisort" or "gl-pbsn". `auto` does not try the
  /// last two, faithful forms for comparison.
  std::string name = "auto";
  /// Lets `auto` open a software rasteriser (llvmpipe). It costs about 90 MB and never wins, so it
  /// is off; a GL sorter by name takes a software context where there is no other.
  bool allow_software_gl = false;
  /// Time that the measurement at start may take, milliseconds.
  int measure_budget_ms = 600;
  /// Rates that were measured before; used instead of measuring if they are of this machine.
  std::optional<MeasuredRates> known;
  /// What time it is: when rates are measured, they are of then. Microseconds since 1970.
  std::int64_t now_us = 0;
  /// A request to a GL sorter that takes longer means that the GPU hangs: the CPU sorts it then. A
  /// software rasteriser needs seconds for four windows of 2^20 keys.
  std::chrono::milliseconds gl_time_limit = std::chrono::seconds(60);
  /// Called when a GL sorter fails and the CPU takes over, with the failed step and the driver's
  /// error; on the thread that called Sort. May be empty.
  std::function<void(const std::string& message)> on_failure;
};

/// The GL context that a GL sorter uses or would use.
struct GlReport {
  bool available = false;
  std::string error;  ///< why there is none: step, error, usual cause; empty when there is one or
                      ///< it was not tried
  std::string vendor;
  std::string renderer;
  std::string version;
  bool software = false;
};

struct SorterReport {
  std::string requested;
  std::string active;  ///< name of the sorter that sorts the largest windows: "cpu" or a "gl-…"
  std::string reason;  ///< one sentence with the figures that decided it
  /// The same in a word, for a metric's label: asked_for, by name; no_gl, there is no context that
  /// may be used (none, or a software rasteriser that is not allowed); measured; gl_failed.
  std::string why;
  GlReport gl;
  std::vector<SorterMeasurement> measurements;
  MeasuredOn measured_on;
  std::int64_t measured_at_us = 0;
  /// Whether they were known before.
  bool cached = false;
  /// Why rates that were known before were not used, in one line; empty if they were, or if there
  /// were none.
  std::string not_cached;
  /// False if a sorter failed while it was measured: the next start should try again.
  bool worth_keeping = true;
};

struct SorterSelection {
  std::unique_ptr<WindowSorter> sorter;  ///< never null
  SorterReport report;
};

/// Makes the sorter named in `options`; `auto` measures gl-compute and gl-bitonic and uses
/// the faster one beside the CPU. A GL sorter that cannot be had is not an error: the report says
/// why, and the selection holds the `cpu` sorter. Errors: throws std::invalid_argument for an
/// unknown name, naming those that exist. Thread: any; measures on the calling thread.
SorterSelection MakeSorter(const SorterOptions& options);

/// For SorterOptions::known of a later start.
MeasuredRates RatesOf(const SorterReport& report);

/// Whether a GL sorter can be had, whatever `auto` would choose.
struct GlSorterTrial {
  std::string name;
  bool for_auto = false;       ///< whether `auto` considers it
  std::size_t window_max = 0;  ///< keys of 32 bits in a window; 0: it cannot run
  std::string error;           ///< then why
};

/// Opens every GL sorter and closes it again, on a software rasteriser where there is no hardware.
/// Never throws. Thread: any.
std::vector<GlSorterTrial> TryGlSorters();

/// A CPU sorter at once, without measuring: takes the first of the algorithms that this CPU can
/// run.
std::unique_ptr<WindowSorter> MakeUnmeasuredCpuSorter();

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_SORTER_FACTORY_H_
