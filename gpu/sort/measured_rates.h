// What was measured at start, on what, and whether it still holds.
#ifndef TIDEMARK_GPU_SORT_MEASURED_RATES_H_
#define TIDEMARK_GPU_SORT_MEASURED_RATES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::sort {

/// One line of the table measured at start.
struct SorterMeasurement {
  int key_bits = 0;
  std::size_t window = 0;
  std::string sorter;     ///< "cpu", "gl-compute", "gl-bitonic"
  std::string algorithm;  ///< e.g. "vqsort-avx2", "radix-lsd-11", "bitonic-compute"
  double keys_per_second = 0;
  bool chosen = false;
};

/// What rates were measured on. Where any of it differs, they say nothing.
struct MeasuredOn {
  std::string cpu;         ///< the processor's model, as the system names it
  std::string algorithms;  ///< of the CPU that can run: what was built in, and what it has
  /// The GL sorters that were measured: name, longest window, vendor, renderer, version of the GL.
  std::vector<std::string> gl_sorters;
  int budget_ms = 0;
  friend bool operator==(const MeasuredOn&, const MeasuredOn&) = default;
};

/// All that the choice of a sorter follows from. Plain data: who keeps it from one start to the
/// next is not known here.
struct MeasuredRates {
  MeasuredOn on;
  std::int64_t at_us = 0;               ///< microseconds since 1970
  std::vector<SorterMeasurement> rows;  ///< `chosen` says nothing
};

/// This machine, now.
MeasuredOn ThisMachine(std::vector<std::string> gl_sorters, int budget_ms);

/// Why these rates cannot be used here, in one line; empty if they can: they are of this machine,
/// and complete and possible where the choice needs them.
std::string WhyUnusable(const MeasuredRates& rates, const MeasuredOn& now);

/// The first model in text like /proc/cpuinfo: "model name" of x86; of ARM "CPU implementer" and
/// "CPU part"; empty if neither is there.
std::string CpuModelIn(std::string_view cpuinfo);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_MEASURED_RATES_H_
