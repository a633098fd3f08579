// The sections of gpu_bench, one for each question.
#ifndef TIDEMARK_TESTS_BENCH_GPU_BENCH_SECTIONS_H_
#define TIDEMARK_TESTS_BENCH_GPU_BENCH_SECTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/gpu_bench_report.h"
#include "tests/bench/gpu_bench_rounds.h"

namespace tidemark::bench {

struct GpuBenchOptions {
  int log2_min = 10;
  int log2_max = 0;  ///< 0: 24 on hardware, 16 on a software rasteriser
  int log2_step = 2;
  std::vector<std::string> sorters;   ///< empty: all
  std::vector<std::string> sections;  ///< empty: all
  bool smoke = false;
  std::size_t batch_keys = std::size_t{1} << 16;  ///< small requests are timed so many at once
  Budget budget;

  bool Wants(const std::string& sorter) const;
  /// From log2_min to log2_max or `most`, whichever is less; log2_max at least.
  std::vector<int> Sizes(int most = 24) const;
  /// What the work of the next size is times that of the one before.
  double growth() const { return 1 << log2_step; }
};

/// What every sorter and reduction does, counted, from the plans alone: the same on every device.
void BenchCounts(Report& report, const GpuBenchOptions& options);
void CountReduction(Report& report, const GpuBenchOptions& options);
/// What the bus carries, and how near to it gl-compute comes with whole and with reduced windows.
void BenchBus(Report& report, const GpuBenchOptions& options);
/// Every sorter at every size and width; keys with payloads.
void BenchSorters(Report& report, const GpuBenchOptions& options);
/// Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005): PBSN against bitonic and quicksort.
void BenchPbsn(Report& report, const GpuBenchOptions& options);
/// Greß, Zachmann (GPU-ABiSort, 2006): adaptive bitonic against bitonic, Z-order against rows.
void BenchABiSort(Report& report, const GpuBenchOptions& options);
/// Roger, Assarson, Holzschuch (2007): reduction by blocks against Horn's, sizes of blocks.
void BenchReduction(Report& report, const GpuBenchOptions& options);
/// Govindaraju et al. (Cache-Efficient Sorting, 2005): tiles, few draw calls, merging.
void BenchTiles(Report& report, const GpuBenchOptions& options);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_GPU_BENCH_SECTIONS_H_
