// The `cpu` sorter: sorts each channel on the calling thread, with the algorithm that was the
// fastest on this machine for its key width and window size.
#ifndef TIDEMARK_GPU_SORT_CPU_SORTER_H_
#define TIDEMARK_GPU_SORT_CPU_SORTER_H_

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "gpu/sort/cpu_algorithms.h"
#include "gpu/sort/measured_rates.h"
#include "gpu/sort/window_class.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// The algorithm for each key width and window class. Pointers into CpuAlgorithms().
struct CpuChoice {
  std::array<std::array<const CpuAlgorithm*, kWindowClasses>, kKeyWidths> algorithm{};
  /// Measured seconds a key; 0 where not measured.
  std::array<std::array<double, kWindowClasses>, kKeyWidths> seconds_per_key{};
};

/// The same algorithm everywhere.
CpuChoice UseOnly(const CpuAlgorithm& algorithm);

/// Measures the algorithms on random keys and chooses the fastest for each width and class: by the
/// smallest of several timings that lie apart (interleaved_rounds.h), in time that the thread
/// itself ran, so that other programs do not decide. std::sort is measured only where there is no
/// vqsort target. Takes at most about `budget`, or one round if that is longer. Appends what was
/// measured.
CpuChoice MeasureCpu(std::chrono::milliseconds budget, std::vector<SorterMeasurement>& measured);

/// The choice that follows from measured rates, and their rows of the CPU appended to `measured`.
/// REQUIRES: WhyUnusable finds nothing wrong with them.
CpuChoice ChooseCpu(const std::vector<SorterMeasurement>& rates,
                    std::vector<SorterMeasurement>& measured);

/// Never throws SorterError. Holds no state that changes: any number of threads.
class CpuSorter final : public WindowSorter {
 public:
  explicit CpuSorter(const CpuChoice& choice) : choice_(choice) {}

  std::string_view name() const override { return "cpu"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override { return SortAll(channels); }
  std::string_view Sort(Channels<std::uint64_t> channels) override { return SortAll(channels); }
  std::string_view Sort(Channels<Key128> channels) override { return SortAll(channels); }

 private:
  template <class Key>
  std::string_view SortAll(Channels<Key> channels) const {
    for (const std::span<Key> keys : channels) {
      choice_.algorithm[WidthIndex<Key>()][ClassOf(keys.size())]->Sort(keys.data(), keys.size());
    }
    return name();
  }

  const CpuChoice choice_;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_CPU_SORTER_H_
