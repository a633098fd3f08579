#include "tests/bench/gpu_bench_sorting.h"

#include <barrier>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "gpu/sort/cpu_sorter.h"
#include "gpu/sort/gl_abisort_sorter.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/gl_pbsn_sorter.h"
#include "gpu/sort/sorter_factory.h"

namespace tidemark::bench {
namespace {

// Longer than any request that a cell's budget allows for; shorter than a run may hang.
constexpr std::chrono::seconds kTimeLimit{30};

template <class Sorter, class Options>
BenchSorter OpenTexel(const Machine& machine, const std::string& name, const std::string& form,
                      Options options) {
  BenchSorter out;
  out.name = name;
  out.form = form;
  out.timer = std::make_shared<StepTimer>(machine.has_timer);
  options.allow_software = machine.software;
  options.time_limit = kTimeLimit;
  options.observer = out.timer->Observer();
  try {
    auto sorter = std::make_shared<Sorter>(options);
    out.counted = sorter.get();
    out.sorter = std::move(sorter);
  } catch (const std::exception& error) {
    out.why_not = error.what();
  }
  return out;
}

}  // namespace

BenchSorter OpenBitonic(const Machine& machine, const std::string& form,
                        const sort::BitonicDrawing& drawing) {
  sort::GlBitonicOptions options;
  options.drawing = drawing;
  return OpenTexel<sort::GlBitonicSorter>(machine, "gl-bitonic", form, options);
}
BenchSorter OpenPbsn(const Machine& machine) {
  return OpenTexel<sort::GlPbsnSorter>(machine, "gl-pbsn", "", sort::GlTexelOptions{});
}
BenchSorter OpenABiSort(const Machine& machine, const std::string& form,
                        const sort::ABiSortForm& how) {
  sort::GlABiSortOptions options;
  options.form = how;
  return OpenTexel<sort::GlABiSortSorter>(machine, "gl-abisort", form, options);
}

BenchSorter OpenCompute(const Machine& machine) {
  BenchSorter out;
  out.name = "gl-compute";
  out.timer = std::make_shared<StepTimer>(machine.has_timer);
  sort::GlComputeOptions options;
  options.allow_software = machine.software;
  options.time_limit = kTimeLimit;
  options.observer = out.timer->Observer();
  try {
    auto sorter = std::make_shared<sort::GlComputeSorter>(options);
    out.compute = sorter.get();
    out.sorter = std::move(sorter);
  } catch (const std::exception& error) {
    out.why_not = error.what();
  }
  return out;
}

BenchSorter StdSort() {
  BenchSorter out;
  out.name = "std::sort";
  out.form = "one core";
  out.sorter = std::make_shared<sort::CpuSorter>(sort::UseOnly(sort::CpuAlgorithms().back()));
  return out;
}

BenchSorter CpuSorter(bool smoke) {
  sort::SorterOptions options;
  options.name = "cpu";
  if (smoke) options.measure_budget_ms = 20;
  BenchSorter out;
  out.name = "cpu";
  out.form = "one core";
  out.sorter = sort::MakeSorter(options).sorter;
  return out;
}

// Every comparator is counted once: one invocation leaves both of its ends.
sort::SortCounts ComputeCounts(const sort::ComputeShape& shape, sort::ElementKind kind,
                               int log2_keys) {
  const auto k = static_cast<std::uint32_t>(log2_keys);
  const std::uint64_t keys = std::uint64_t{sort::kChannels} << k;
  const std::uint64_t passes = sort::MakeComputePlan(shape, k).passes.size();
  return {keys / 2 * k * (k + 1) / 2, passes, 0, passes, 2 * passes * keys * 4 * kind.Words()};
}

template <class Key>
Entrant SortsFour(const BenchSorter& sorter, std::shared_ptr<const Load<Key>> load,
                  std::shared_ptr<std::vector<FourWindows<Key>>> copies) {
  Entrant entrant;
  entrant.row = RowFor(sorter.name, sorter.form, *load);
  if (sorter.sorter == nullptr) {
    entrant.prepare = [why = sorter.why_not] { throw sort::SorterError(why); };
    return entrant;
  }
  const std::size_t requests = load->requests();
  entrant.requests = static_cast<double>(requests);
  entrant.timer = sorter.timer.get();
  entrant.counted = sorter.counted;
  if (sorter.timer != nullptr) entrant.row.bus_bytes = 2 * sizeof(Key) * entrant.row.keys;
  entrant.row.up_bytes = entrant.row.bus_bytes / 2;
  if (sorter.compute != nullptr) {
    const sort::ElementKind kind{8 * sizeof(Key), false};
    entrant.row.counts = ComputeCounts(sorter.compute->shape(kind), kind, entrant.row.log2_keys);
  }
  entrant.prepare = [load, copies] { *copies = load->original; };
  entrant.run = [sorter, copies, requests] {
    return Seconds([&] {
             for (FourWindows<Key>& windows : *copies) {
               const auto spans = SpansOf(windows);
               sorter.sorter->Sort(sort::Channels<Key>(spans));
             }
           }) /
           static_cast<double>(requests);
  };
  entrant.check = [load, copies] {
    return *copies == load->sorted ? std::string() : "differs from std::sort";
  };
  return entrant;
}
template Entrant SortsFour(const BenchSorter&, std::shared_ptr<const Load<std::uint32_t>>,
                           std::shared_ptr<std::vector<FourWindows<std::uint32_t>>>);
template Entrant SortsFour(const BenchSorter&, std::shared_ptr<const Load<std::uint64_t>>,
                           std::shared_ptr<std::vector<FourWindows<std::uint64_t>>>);

double OnThreads(unsigned threads, const std::function<void(unsigned thread)>& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> begins(threads), ends(threads);
  std::vector<std::exception_ptr> faults(threads);
  std::barrier together(static_cast<std::ptrdiff_t>(threads));
  {
    std::vector<std::jthread> running;
    for (unsigned thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        together.arrive_and_wait();
        begins[thread] = Clock::now();
        try {
          work(thread);
        } catch (...) {
          faults[thread] = std::current_exception();
        }
        ends[thread] = Clock::now();
      });
    }
  }
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  const std::chrono::duration<double> seconds =
      *std::max_element(ends.begin(), ends.end()) - *std::min_element(begins.begin(), begins.end());
  return seconds.count();
}

template <class Key>
Entrant SortsOnAllCores(const BenchSorter& sorter, std::shared_ptr<const Load<Key>> load,
                        unsigned cores) {
  const std::size_t each = std::max<std::size_t>(1, (std::size_t{1} << 18) / load->window());
  const auto windows = std::make_shared<std::vector<std::vector<Key>>>(each * cores);
  Entrant entrant;
  entrant.row = RowFor(sorter.name, std::to_string(cores) + " cores", *load);
  entrant.requests = static_cast<double>(cores * each) / sort::kChannels;
  entrant.prepare = [load, windows] {
    for (std::size_t i = 0; i < windows->size(); ++i) {
      (*windows)[i] = load->Original(i);
    }
  };
  entrant.run = [sorter, windows, cores, each, requests = entrant.requests] {
    return OnThreads(cores,
                     [&](unsigned core) {
                       for (std::size_t i = core * each; i < (core + 1) * each; ++i) {
                         const std::array<std::span<Key>, 1> one = {(*windows)[i]};
                         sorter.sorter->Sort(sort::Channels<Key>(one));
                       }
                     }) /
           requests;
  };
  entrant.check = [load, windows] {
    for (std::size_t i = 0; i < windows->size(); ++i) {
      if ((*windows)[i] != load->Sorted(i)) return std::string("differs from std::sort");
    }
    return std::string();
  };
  return entrant;
}
template Entrant SortsOnAllCores(const BenchSorter&, std::shared_ptr<const Load<std::uint32_t>>,
                                 unsigned);
template Entrant SortsOnAllCores(const BenchSorter&, std::shared_ptr<const Load<std::uint64_t>>,
                                 unsigned);

}  // namespace tidemark::bench
