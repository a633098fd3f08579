// What every sorter does, counted, from the plans that its GL side runs: the same on every device.
// Tests hold the plans to the papers' formulas, and the GL side to the plans.
#include <string>

#include "gpu/sort/abisort_plan.h"
#include "gpu/sort/compute_plan.h"
#include "gpu/sort/pbsn_plan.h"
#include "tests/bench/gpu_bench_sections.h"
#include "tests/bench/gpu_bench_sorting.h"

namespace tidemark::bench {
namespace {

using sort::kChannels;
using sort::SortCounts;

// What OpenGL 4.3 promises.
constexpr sort::ComputeLimits kLeastLimits{32 * 1024, 1024};

Row NewRow(const char* subject, const char* form, int log2_keys, const SortCounts& counts) {
  Row row;
  row.subject = subject;
  row.form = form;
  row.key_bits = 32;
  row.windows = static_cast<int>(kChannels);
  row.log2_keys = log2_keys;
  row.keys = static_cast<double>(kChannels << log2_keys);
  row.counts = counts;
  return row;
}

// Every fragment reads its own key and its partner's, and writes one.
SortCounts BitonicCounts(std::uint64_t keys, std::uint64_t steps) {
  return {keys * steps, steps, 0, steps, 3 * 4 * keys * steps};
}

SortCounts ABiSortCounts(std::uint32_t k, bool overlapped, bool small_kernels) {
  return sort::CountsOf(sort::ABiSortPlan({k, 2, overlapped, small_kernels}));
}

}  // namespace

void BenchCounts(Report& report, const GpuBenchOptions& options) {
  report.Table("Sorters, four windows of 32-bit keys",
               {Column::kKeys, Column::kSubject, Column::kForm, Column::kComparisons,
                Column::kPasses, Column::kDrawCalls, Column::kDeviceBytes});
  GpuBenchOptions all = options;
  if (!options.smoke) all.log2_max = 24;
  for (const int log2_keys : all.Sizes()) {
    const auto k = static_cast<std::uint32_t>(log2_keys);
    const std::uint64_t keys = kChannels << k;
    const auto add = [&](const char* subject, const char* form, const SortCounts& counts) {
      report.Add(NewRow(subject, form, log2_keys, counts));
    };
    add("gl-pbsn", "", sort::PbsnCounts(k));
    add("gl-bitonic", "", BitonicCounts(keys, std::uint64_t{k} * (k + 1) / 2));
    add("gl-bitonic", "sorted halves merged", BitonicCounts(keys, k));
    add("gl-abisort", "", ABiSortCounts(k, true, true));
    add("gl-abisort", "all adaptive", ABiSortCounts(k, true, false));
    add("gl-abisort", "stages one by one", ABiSortCounts(k, false, true));
    const sort::ElementKind kind{32, false};
    add("gl-compute", "32 KiB",
        ComputeCounts(sort::ChooseShape(kind, kLeastLimits), kind, log2_keys));
  }
  CountReduction(report, all);
}

}  // namespace tidemark::bench
