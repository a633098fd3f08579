// Requests to sorters as entrants of a round.
#ifndef TIDEMARK_TESTS_BENCH_GPU_BENCH_SORTING_H_
#define TIDEMARK_TESTS_BENCH_GPU_BENCH_SORTING_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu/sort/bitonic_tiles.h"
#include "gpu/sort/gl_abisort_engine.h"
#include "gpu/sort/gl_compute_sorter.h"
#include "gpu/sort/gl_texel_sorter.h"
#include "gpu/sort/window_sorter.h"
#include "tests/bench/gpu_bench_report.h"
#include "tests/bench/gpu_bench_rounds.h"

namespace tidemark::bench {

template <class Key>
using FourWindows = std::array<std::vector<Key>, sort::kChannels>;

template <class Windows>
auto SpansOf(Windows& windows) {
  std::array<std::span<typename Windows::value_type::value_type>, sort::kChannels> spans;
  std::copy(windows.begin(), windows.end(), spans.begin());
  return spans;
}

/// Runs `work` on that many threads at once; seconds from the first beginning to the last end.
/// Rethrows what one of them throws.
double OnThreads(unsigned threads, const std::function<void(unsigned thread)>& work);

/// Requests of four windows of random keys each, as they come and sorted by std::sort. Keys of 32
/// bits are below 2^31, so that gl-pbsn needs the GPU once; `different` of them, or any (0). Small
/// requests are timed many at once, as many as have `batch_keys`, and all of them differ: a
/// processor's branch prediction would learn a few thousand keys by heart.
template <class Key>
struct Load {
  std::vector<FourWindows<Key>> original, sorted;

  explicit Load(int log2_keys, std::size_t batch_keys, std::size_t different = 0) {
    const std::uint64_t seed = 2006 + static_cast<std::uint64_t>(log2_keys);
    std::mt19937_64 random(seed);
    std::vector<Key> drawn(different);
    for (Key& key : drawn) key = Draw(random);
    original.resize(std::max<std::size_t>(1, batch_keys / (sort::kChannels << log2_keys)));
    sorted.resize(original.size());
    // A thread for each channel: std::sort of 2^26 keys takes six seconds on one.
    OnThreads(sort::kChannels, [&](unsigned c) {
      std::mt19937_64 of_channel(seed * sort::kChannels + c);
      for (std::size_t request = 0; request < original.size(); ++request) {
        std::vector<Key>& keys = original[request][c];
        keys.resize(std::size_t{1} << log2_keys);
        for (Key& key : keys) {
          key = drawn.empty() ? Draw(of_channel) : drawn[of_channel() % drawn.size()];
        }
        sorted[request][c] = keys;
        std::sort(sorted[request][c].begin(), sorted[request][c].end());
      }
    });
  }
  static Key Draw(std::mt19937_64& random) {
    return static_cast<Key>(sizeof(Key) == 4 ? random() >> 33 : random());
  }
  std::size_t window() const { return original[0][0].size(); }
  std::size_t requests() const { return original.size(); }
  /// Window i of all.
  const std::vector<Key>& Original(std::size_t i) const {
    return original[i / sort::kChannels % requests()][i % sort::kChannels];
  }
  const std::vector<Key>& Sorted(std::size_t i) const {
    return sorted[i / sort::kChannels % requests()][i % sort::kChannels];
  }
};

template <class Key>
Row RowFor(const std::string& subject, const std::string& form, const Load<Key>& load) {
  Row row;
  row.subject = subject;
  row.form = form;
  row.key_bits = 8 * static_cast<int>(sizeof(Key));
  row.windows = static_cast<int>(sort::kChannels);
  row.log2_keys = static_cast<int>(std::bit_width(load.window()) - 1);
  row.keys = static_cast<double>(sort::kChannels * load.window());
  return row;
}

/// A sorter and what gpu_bench knows beside of it.
struct BenchSorter {
  std::string name, form;
  std::shared_ptr<sort::WindowSorter> sorter;  ///< null where it could not be opened
  std::shared_ptr<StepTimer> timer;            ///< of a GL sorter
  sort::GlTexelSorter* counted = nullptr;      ///< where requests are counted
  sort::GlComputeSorter* compute = nullptr;    ///< where they follow from the plan
  std::string why_not;
};

/// Opened on whatever GL there is; `form` as shown.
BenchSorter OpenBitonic(const Machine& machine, const std::string& form,
                        const sort::BitonicDrawing& drawing);
BenchSorter OpenPbsn(const Machine& machine);
BenchSorter OpenABiSort(const Machine& machine, const std::string& form,
                        const sort::ABiSortForm& how);
BenchSorter OpenCompute(const Machine& machine);
/// std::sort, on one core.
BenchSorter StdSort();
/// The CPU's sorter as the service has it, on one core.
BenchSorter CpuSorter(bool smoke);

/// The counts of one request of four windows of 2^log2_keys keys by gl-compute.
sort::SortCounts ComputeCounts(const sort::ComputeShape& shape, sort::ElementKind kind,
                               int log2_keys);

/// Requests of four windows, one after the other; each result is compared with std::sort's.
template <class Key>
Entrant SortsFour(const BenchSorter& sorter, std::shared_ptr<const Load<Key>> load,
                  std::shared_ptr<std::vector<FourWindows<Key>>> copies);
extern template Entrant SortsFour(const BenchSorter&, std::shared_ptr<const Load<std::uint32_t>>,
                                  std::shared_ptr<std::vector<FourWindows<std::uint32_t>>>);
extern template Entrant SortsFour(const BenchSorter&, std::shared_ptr<const Load<std::uint64_t>>,
                                  std::shared_ptr<std::vector<FourWindows<std::uint64_t>>>);

/// The sorter on every core at once, each with windows of its own. Times are for four windows.
template <class Key>
Entrant SortsOnAllCores(const BenchSorter& sorter, std::shared_ptr<const Load<Key>> load,
                        unsigned cores);
extern template Entrant SortsOnAllCores(const BenchSorter&,
                                        std::shared_ptr<const Load<std::uint32_t>>, unsigned);
extern template Entrant SortsOnAllCores(const BenchSorter&,
                                        std::shared_ptr<const Load<std::uint64_t>>, unsigned);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_GPU_BENCH_SORTING_H_
