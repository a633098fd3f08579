// Every sorter at every size and width, and the comparisons of the papers on sorting.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/pair_sort.h"
#include "tests/bench/gpu_bench_sections.h"
#include "tests/bench/gpu_bench_sorting.h"

namespace tidemark::bench {
namespace {

using sort::kChannels;

constexpr int kPairsLog2Max = 22;  // a stable sort of more takes seconds

const std::vector<Column> kTimes = {
    Column::kKeys,        Column::kSubject, Column::kForm,       Column::kEndToEnd, Column::kDevice,
    Column::kTimer,       Column::kRate,    Column::kDeviceRate, Column::kBusRate,  Column::kPasses,
    Column::kDeviceBytes, Column::kRounds,  Column::kResult};
const std::vector<Column> kCounts = {Column::kKeys,       Column::kSubject,     Column::kForm,
                                     Column::kEndToEnd,   Column::kDevice,      Column::kTimer,
                                     Column::kDeviceRate, Column::kComparisons, Column::kPasses,
                                     Column::kDrawCalls,  Column::kDeviceBytes, Column::kRounds,
                                     Column::kResult};

template <class Key>
std::vector<Entrant> CellOf(const std::vector<BenchSorter>& sorters,
                            std::shared_ptr<const Load<Key>> load) {
  const auto copies = std::make_shared<std::vector<FourWindows<Key>>>();
  std::vector<Entrant> cell;
  cell.reserve(sorters.size());
  for (const BenchSorter& sorter : sorters) cell.push_back(SortsFour<Key>(sorter, load, copies));
  return cell;
}

// Sorters of which one size after the other is measured, keys of one width.
template <class Key>
void RunSizes(Report& report, const GpuBenchOptions& options, std::vector<BenchSorter> sorters,
              const std::string& title, const std::vector<Column>& columns) {
  report.Table(title, columns);
  const std::vector<int> sizes = options.Sizes();
  Rounds rounds(report, options.budget, sizes.size());
  for (const int log2_keys : sizes) {
    if (rounds.OutOfTime(log2_keys)) break;
    const auto load = std::make_shared<const Load<Key>>(log2_keys, options.batch_keys);
    rounds.Run(CellOf<Key>(sorters, load), options.growth());
  }
}

template <class Key>
void RunWidth(Report& report, const GpuBenchOptions& options,
              const std::vector<BenchSorter>& sorters, Rounds& rounds) {
  report.Table("Keys of " + std::to_string(8 * sizeof(Key)) + " bits", kTimes);
  for (const int log2_keys : options.Sizes()) {
    if (rounds.OutOfTime(log2_keys)) break;
    const auto load = std::make_shared<const Load<Key>>(log2_keys, options.batch_keys);
    std::vector<Entrant> cell = CellOf<Key>(sorters, load);
    const auto cpu = std::find_if(sorters.begin(), sorters.end(),
                                  [](const BenchSorter& sorter) { return sorter.name == "cpu"; });
    if (cpu != sorters.end()) {
      cell.push_back(SortsOnAllCores<Key>(*cpu, load, report.machine().cores));
    }
    rounds.Run(std::move(cell), options.growth());
  }
}

// Four windows of keys with their places as payloads, so that the order is that of a stable sort.
template <class Key, class Payload>
struct Pairs {
  FourWindows<Key> keys;
  std::array<std::vector<Payload>, kChannels> payloads;

  friend bool operator==(const Pairs&, const Pairs&) = default;
};

template <class Key, class Payload>
Pairs<Key, Payload> PairsOf(const FourWindows<Key>& keys) {
  Pairs<Key, Payload> pairs{keys, {}};
  for (std::vector<Payload>& payloads : pairs.payloads) {
    payloads.resize(keys[0].size());
    std::iota(payloads.begin(), payloads.end(), Payload{0});
  }
  return pairs;
}

template <class Key, class Payload>
void SortStably(Pairs<Key, Payload>& pairs) {
  for (std::size_t c = 0; c < kChannels; ++c) {
    std::vector<std::pair<Key, Payload>> both(pairs.keys[c].size());
    for (std::size_t i = 0; i < both.size(); ++i) {
      both[i] = {pairs.keys[c][i], pairs.payloads[c][i]};
    }
    std::stable_sort(both.begin(), both.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < both.size(); ++i) {
      std::tie(pairs.keys[c][i], pairs.payloads[c][i]) = both[i];
    }
  }
}

// `sort` sorts a Pairs<Key, Payload>.
template <class Key, class Payload, class Sort>
Entrant SortsPairs(Row row, const Load<Key>& load, Sort sort) {
  const auto original =
      std::make_shared<Pairs<Key, Payload>>(PairsOf<Key, Payload>(load.original[0]));
  const auto sorted = std::make_shared<Pairs<Key, Payload>>(*original);
  SortStably(*sorted);
  const auto copy = std::make_shared<Pairs<Key, Payload>>();
  row.payload_bits = 32;
  Entrant entrant;
  entrant.row = std::move(row);
  entrant.prepare = [original, copy] { *copy = *original; };
  entrant.run = [copy, sort] { return Seconds([&] { sort(*copy); }); };
  entrant.check = [sorted, copy] {
    return *copy == *sorted ? std::string() : "differs from std::stable_sort";
  };
  return entrant;
}

template <class Key>
std::vector<Entrant> PairsCell(const BenchSorter& compute, const BenchSorter& cpu, int log2_keys) {
  using Wide = Pairs<Key, std::uint64_t>;  // what the CPU's form takes
  using Narrow = Pairs<Key, std::uint32_t>;
  const Load<Key> load(log2_keys, 0);
  std::vector<Entrant> cell;
  cell.push_back(SortsPairs<Key, std::uint32_t>(RowFor("std::stable_sort", "one core", load), load,
                                                [](Narrow& pairs) { SortStably(pairs); }));
  cell.push_back(SortsPairs<Key, std::uint64_t>(
      RowFor("cpu", "composites, one core", load), load, [cpu](Wide& pairs) {
        for (std::size_t c = 0; c < kChannels; ++c) {
          sort::SortPairs<Key>(pairs.keys[c], pairs.payloads[c], *cpu.sorter);
        }
      }));
  if (compute.sorter == nullptr) return cell;
  Row row = RowFor("gl-compute", "", load);
  const sort::ElementKind kind{8 * sizeof(Key), true};
  row.bus_bytes = 2 * row.keys * 4 * kind.Words();
  row.up_bytes = row.bus_bytes / 2;
  row.counts = ComputeCounts(compute.compute->shape(kind), kind, log2_keys);
  Entrant entrant = SortsPairs<Key, std::uint32_t>(std::move(row), load, [compute](Narrow& pairs) {
    std::array<sort::KeysWithPayloads<Key>, kChannels> channels;
    for (std::size_t c = 0; c < kChannels; ++c) {
      channels[c] = {pairs.keys[c], pairs.payloads[c]};
    }
    compute.compute->SortPairs(sort::PairChannels<Key>(channels));
  });
  entrant.timer = compute.timer.get();
  cell.push_back(std::move(entrant));
  return cell;
}

void RunPairs(Report& report, const GpuBenchOptions& options, const BenchSorter& compute,
              const BenchSorter& cpu, Rounds& rounds) {
  report.Table("Keys with payloads of 32 bits (of the CPU's composites, 64)", kTimes);
  for (const int log2_keys : options.Sizes(kPairsLog2Max)) {
    if (rounds.OutOfTime(log2_keys)) break;
    rounds.Run(PairsCell<std::uint32_t>(compute, cpu, log2_keys), options.growth());
    rounds.Run(PairsCell<std::uint64_t>(compute, cpu, log2_keys), options.growth());
  }
}

template <class Key>
Entrant MergesHalves(const BenchSorter& sorter, std::shared_ptr<const Load<Key>> load) {
  const auto halves = std::make_shared<FourWindows<Key>>(load->original[0]);
  for (std::vector<Key>& keys : *halves) {
    const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    std::sort(keys.begin(), middle);
    std::sort(middle, keys.end());
  }
  const auto copy = std::make_shared<FourWindows<Key>>();
  Entrant entrant;
  entrant.row = RowFor(sorter.name, "sorted halves merged", *load);
  entrant.timer = sorter.timer.get();
  entrant.counted = sorter.counted;
  entrant.prepare = [halves, copy] { *copy = *halves; };
  entrant.run = [copy, merger = std::static_pointer_cast<sort::GlBitonicSorter>(sorter.sorter)] {
    const auto spans = SpansOf(*copy);
    const std::array<std::size_t, kChannels> second = {spans[0].size() / 2, spans[1].size() / 2,
                                                       spans[2].size() / 2, spans[3].size() / 2};
    return Seconds([&] { merger->Merge(sort::Channels<Key>(spans), second); });
  };
  entrant.check = [load, copy] {
    return *copy == load->sorted[0] ? std::string() : "differs from std::sort";
  };
  return entrant;
}

}  // namespace

void BenchSorters(Report& report, const GpuBenchOptions& options) {
  const Machine& machine = report.machine();
  const BenchSorter cpu = CpuSorter(options.smoke);
  const BenchSorter compute = OpenCompute(machine);
  std::vector<BenchSorter> sorters;
  const auto add = [&](const char* name, auto open) {
    if (options.Wants(name)) sorters.push_back(open());
  };
  add("std::sort", [] { return StdSort(); });
  add("cpu", [&] { return BenchSorter(cpu); });
  add("gl-compute", [&] { return BenchSorter(compute); });
  add("gl-bitonic", [&] { return OpenBitonic(machine, "", {}); });
  add("gl-abisort", [&] { return OpenABiSort(machine, "", {}); });
  add("gl-pbsn", [&] { return OpenPbsn(machine); });
  const bool pairs = options.Wants("gl-compute");
  Rounds rounds(report, options.budget,
                2 * (options.Sizes().size() + (pairs ? options.Sizes(kPairsLog2Max).size() : 0)));
  RunWidth<std::uint32_t>(report, options, sorters, rounds);
  RunWidth<std::uint64_t>(report, options, sorters, rounds);
  if (pairs) RunPairs(report, options, compute, cpu, rounds);
}

void BenchPbsn(Report& report, const GpuBenchOptions& options) {
  const Machine& machine = report.machine();
  RunSizes<std::uint32_t>(
      report, options,
      {OpenBitonic(machine, "", {}), OpenPbsn(machine), OpenCompute(machine), StdSort()},
      "PBSN by blending and the improved bitonic network (SIGMOD 2005, figures 3 and 4)", kCounts);
}

void BenchABiSort(Report& report, const GpuBenchOptions& options) {
  const Machine& machine = report.machine();
  using sort::StreamLayout;
  std::vector<BenchSorter> sorters;
  sorters.push_back(OpenBitonic(machine, "", {}));
  sorters.push_back(OpenABiSort(machine, "Z-order", {StreamLayout::kZOrder, true, true}));
  sorters.push_back(OpenABiSort(machine, "row-wise", {StreamLayout::kRowWise, true, true}));
  sorters.push_back(OpenABiSort(machine, "all adaptive", {StreamLayout::kZOrder, true, false}));
  sorters.push_back(
      OpenABiSort(machine, "stages one by one", {StreamLayout::kZOrder, false, true}));
  sorters.push_back(StdSort());
  RunSizes<std::uint32_t>(report, options, std::move(sorters),
                          "Adaptive bitonic and bitonic sorting (GPU-ABiSort, tables 2 and 3)",
                          kCounts);
}

void BenchTiles(Report& report, const GpuBenchOptions& options) {
  const Machine& machine = report.machine();
  std::vector<BenchSorter> sorters;
  std::vector<std::string> edges;
  const auto add = [&](const std::string& form, std::uint32_t tile, bool few_draw_calls) {
    sorters.push_back(OpenBitonic(machine, form, {tile, 8, few_draw_calls}));
    edges.push_back(std::to_string(tile));
  };
  add("no tiles", 0, true);
  for (const std::uint32_t tile : {8U, 16U, 32U, 64U, 128U, 256U, 512U}) {
    if (options.smoke && tile > 16) break;
    add("tiles of " + std::to_string(tile), tile, true);
  }
  const std::uint32_t one_by_one = options.smoke ? 16 : 64;
  add("tiles of " + std::to_string(one_by_one) + ", a call each", one_by_one, false);
  report.Table(
      "Tiles of the bitonic network (Cache-Efficient Sorting, figure 7), and merging (§5.3)",
      kCounts);
  const std::vector<int> sizes = options.Sizes();
  Rounds rounds(report, options.budget, sizes.size());
  for (const int log2_keys : sizes) {
    if (rounds.OutOfTime(log2_keys)) break;
    const auto load = std::make_shared<const Load<std::uint32_t>>(log2_keys, options.batch_keys);
    std::vector<Entrant> cell = CellOf<std::uint32_t>(sorters, load);
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i].row.parameter = edges[i];
    if (sorters[0].sorter != nullptr) {
      cell.push_back(MergesHalves<std::uint32_t>(sorters[0], load));
    }
    rounds.Run(std::move(cell), options.growth());
  }
}

}  // namespace tidemark::bench
