// Stream reduction by blocks against Horn's, and beside compute shaders and the CPU.
//
// What is reduced is what the service reduces: four sorted windows, whose last keys of runs are
// wanted. As many keys as the paper's 60 % of valid elements end a run, unless varied.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/buffer.h"
#include "gpu/gl/texture.h"
#include "gpu/reduce/gl_compute_reducer.h"
#include "gpu/reduce/gl_raster_reducer.h"
#include "tests/bench/gpu_bench_sections.h"

namespace tidemark::bench {
namespace {

using reduce::kReducedChannels;
using reduce::ScanMethod;
using Runs = std::array<std::vector<reduce::KeyRun<std::uint32_t>>, kReducedChannels>;

constexpr int kUsualValid = 60;  // %, §V-A
constexpr int kValid[] = {10, 30, 50, 60, 70, 80, 90};
constexpr int kLog2Max = 22;  // the paper's 4 M elements
constexpr int kSweepLog2Max = 20;
constexpr int kStepRounds = 3;

/// Four sorted windows of 2^log2_keys keys, and their runs.
struct SortedKeys {
  int log2_keys;
  std::uint32_t width_log2;  ///< of the texture that they fill
  std::array<std::vector<std::uint32_t>, kReducedChannels> keys;
  Runs runs;

  /// So many of a hundred keys are the last of their run.
  SortedKeys(int log2, int valid)
      : log2_keys(log2), width_log2(static_cast<std::uint32_t>((log2 + 1) / 2)) {
    std::mt19937 random(static_cast<unsigned>(log2));
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      keys[c].resize(std::size_t{1} << log2);
      std::uint32_t key = 0;
      for (std::uint32_t& next : keys[c]) {
        key += static_cast<int>(random() % 100) < valid ? 1 : 0;
        next = key;
      }
      runs[c] = reduce::RunsOf(std::span<const std::uint32_t>(keys[c]));
    }
  }
};

/// The same on the device, in both forms' memory.
struct SortedWindows : SortedKeys {
  gl::Texture texture;
  gl::Buffer buffer;
  reduce::SortedTexels texels;
  reduce::SortedBuffer packed;

  SortedWindows(const SortedWindows&) = delete;
  SortedWindows& operator=(const SortedWindows&) = delete;
  SortedWindows(int log2, int valid)
      : SortedKeys(log2, valid),
        texture(1 << ((log2 + 1) / 2), 1 << (log2 / 2)),
        buffer((std::size_t{16} << log2), gl::Buffer::Use::kDevice) {
    const std::size_t n = std::size_t{1} << log2;
    std::vector<std::uint32_t> words(kReducedChannels * n);
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      for (std::size_t i = 0; i < n; ++i) words[kReducedChannels * i + c] = keys[c][i];
      buffer.Write(reinterpret_cast<const std::byte*>(keys[c].data()), 4 * n, c * 4 * n);
      texels.lengths[c] = packed.lengths[c] = static_cast<std::uint32_t>(n);
      packed.key_at[c] = c * 4 * n;
    }
    texels.width_log2 = width_log2;
    texels.height_log2 = static_cast<std::uint32_t>(log2 / 2);
    texture.Upload(1 << texels.width_log2, 1 << texels.height_log2, words.data());
    texels.high = &texture;
    packed.keys = &buffer;
  }
};
using Windows = std::shared_ptr<const SortedWindows>;

Entrant NewEntrant(const SortedKeys& windows, const std::string& subject, const std::string& form) {
  Entrant entrant;
  entrant.row.subject = subject;
  entrant.row.form = form;
  entrant.row.key_bits = 32;
  entrant.row.windows = static_cast<int>(kReducedChannels);
  entrant.row.log2_keys = windows.log2_keys;
  entrant.row.keys = static_cast<double>(kReducedChannels * windows.keys[0].size());
  entrant.prepare = [] {};
  return entrant;
}

// `reduce` returns Runs.
template <class Reduce>
void RunsBy(Entrant& entrant, const Windows& windows, Reduce reduce) {
  const auto found = std::make_shared<Runs>();
  entrant.prepare = [found] { *found = {}; };
  entrant.run = [found, reduce] { return Seconds([&] { *found = reduce(); }); };
  entrant.check = [found, windows] {
    return *found == windows->runs ? std::string() : "differs from the CPU's runs";
  };
}

// The elements of each channel by the paper's steps without GL: what they count.
reduce::ReductionCounts CountsOf(const SortedKeys& windows, const reduce::RasterReduction& how) {
  reduce::ReductionCounts counts;
  for (const std::vector<std::uint32_t>& keys : windows.keys) {
    std::vector<std::uint32_t> unwanted(keys.size());
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) unwanted[i] = keys[i] == keys[i + 1] ? 1 : 0;
    if (how.by_blocks) {
      reduce::ReduceByBlocks(unwanted, how.scan, std::min(how.block_log2, windows.width_log2),
                             windows.width_log2, counts);
    } else {
      const std::uint64_t before = counts.search_steps;
      const std::size_t kept = reduce::ReduceByHorn(unwanted, how.scan, counts).size();
      // The plain search's loops are all of one length.
      counts.search_steps = before + kept * static_cast<std::uint64_t>(windows.log2_keys);
    }
  }
  return counts;
}

sort::SortCounts PassesOf(const SortedKeys& windows, const reduce::RasterReduction& how) {
  const auto log2_keys = static_cast<std::uint32_t>(windows.log2_keys);
  const std::uint32_t block_log2 =
      how.by_blocks ? std::min(how.block_log2, windows.width_log2) : log2_keys;
  sort::SortCounts counts;
  // Flags, search, last elements of the blocks, and the scans.
  counts.passes = 3 + reduce::ScanSchedule(how.scan, block_log2).size() +
                  reduce::ScanSchedule(how.scan, log2_keys - block_log2).size();
  counts.draw_calls = counts.passes;
  if (how.by_blocks) {
    counts.passes += 1;
    counts.draw_calls += kReducedChannels;  // lines, a channel each
  }
  return counts;
}

/// A context, both reducers and their clock. The context outlives them.
struct Reducers {
  egl::HeadlessContext context;
  StepTimer timer;
  reduce::GlRasterReducer raster;
  std::optional<reduce::GlComputeReducer> compute;
  std::string no_compute;

  explicit Reducers(const Machine& machine)
      : context(egl::HeadlessContext::Open(machine.software)),
        timer(machine.has_timer),
        raster(timer.Observer()) {
    try {
      compute.emplace();
    } catch (const std::runtime_error& error) {
      no_compute = error.what();
    }
  }
};

// What follows from the keys alone.
Entrant Counted(const SortedKeys& windows, const std::string& form,
                const reduce::RasterReduction& how) {
  Entrant entrant = NewEntrant(windows, how.by_blocks ? "raster, by blocks" : "raster, Horn", form);
  entrant.row.reduction = CountsOf(windows, how);
  entrant.row.counts = PassesOf(windows, how);
  return entrant;
}

Entrant Raster(Reducers& reducers, const Windows& windows, const std::string& form,
               const reduce::RasterReduction& how) {
  Entrant entrant = Counted(*windows, form, how);
  entrant.timer = &reducers.timer;
  RunsBy(entrant, windows, [&reducers, windows, how] {
    const reduce::ReducedWords words = reducers.raster.Runs(windows->texels, how);
    Runs runs;
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      runs[c] = reduce::RunsOf<std::uint32_t>(words, c);
    }
    return runs;
  });
  return entrant;
}

std::vector<std::uint32_t> ReadWords(const gl::Buffer& buffer, std::size_t first,
                                     std::size_t count) {
  std::vector<std::uint32_t> words(count);
  if (count > 0) {
    buffer.Read(reinterpret_cast<std::byte*>(words.data()), 4 * count, 4 * first);
  }
  return words;
}

Runs ReadFound(const reduce::FoundRuns& found) {
  const std::vector<std::uint32_t> counts = ReadWords(found.counts, 0, kReducedChannels);
  Runs runs;
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    const std::vector<std::uint32_t> keys = ReadWords(found.keys, c * found.room, counts[c]);
    const std::vector<std::uint32_t> ends = ReadWords(found.ends, c * found.room, counts[c]);
    for (std::size_t i = 0; i < counts[c]; ++i) runs[c].push_back({keys[i], ends[i]});
  }
  return runs;
}

Entrant Compute(Reducers& reducers, const Windows& windows) {
  Entrant entrant = NewEntrant(*windows, "compute", "scattered writes");
  if (!reducers.compute) {
    entrant.prepare = [why = reducers.no_compute] { throw std::runtime_error(why); };
    return entrant;
  }
  entrant.timer = &reducers.timer;
  const auto found = std::make_shared<reduce::FoundRuns>();
  // The compute reducer is told what to do by its caller, who so knows its steps.
  RunsBy(entrant, windows, [&reducers, windows, found, observe = reducers.timer.Observer()] {
    observe("reduce");
    reducers.compute->WriteRuns<std::uint32_t>(windows->packed, *found);
    observe("read back");
    return ReadFound(*found);
  });
  return entrant;
}

Entrant OnCpu(const Windows& windows) {
  Entrant entrant = NewEntrant(*windows, "cpu", "one core, figure 1");
  RunsBy(entrant, windows, [windows] {
    Runs runs;
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      runs[c] = reduce::RunsOf(std::span<const std::uint32_t>(windows->keys[c]));
    }
    return runs;
  });
  return entrant;
}

reduce::RasterReduction ByBlocks(std::uint32_t block_log2, ScanMethod scan) {
  return {true, block_log2, scan};
}
reduce::RasterReduction Horn(ScanMethod scan) { return {false, 0, scan}; }

const std::vector<Column> kColumns = {
    Column::kKeys,        Column::kSubject, Column::kForm,   Column::kParameter, Column::kEndToEnd,
    Column::kDevice,      Column::kTimer,   Column::kPasses, Column::kDrawCalls, Column::kAdditions,
    Column::kSearchSteps, Column::kLines,   Column::kRounds, Column::kResult};

void RunOverSizes(Report& report, const GpuBenchOptions& options, Reducers& reducers,
                  Rounds& rounds) {
  report.Table("Reduction over n, 60 % valid (Roger et al., figure 13, table I)", kColumns);
  for (const int log2_keys : options.Sizes(kLog2Max)) {
    if (rounds.OutOfTime(log2_keys)) break;
    const auto windows = std::make_shared<const SortedWindows>(log2_keys, kUsualValid);
    rounds.Run(
        {Raster(reducers, windows, "Hillis–Steele", Horn(ScanMethod::kHillisSteele)),
         Raster(reducers, windows, "Blelloch", Horn(ScanMethod::kBlelloch)),
         Raster(reducers, windows, "64, Hillis–Steele", ByBlocks(6, ScanMethod::kHillisSteele)),
         Raster(reducers, windows, "64, Blelloch", ByBlocks(6, ScanMethod::kBlelloch)),
         Compute(reducers, windows), OnCpu(windows)},
        options.growth());
  }
}

void RunOverBlocks(Report& report, Reducers& reducers, Rounds& rounds, int log2_keys) {
  const auto windows = std::make_shared<const SortedWindows>(log2_keys, kUsualValid);
  report.Table("Sizes of blocks (figures 10 and 11)", kColumns);
  std::vector<Entrant> cell;
  for (std::uint32_t block_log2 = 2; block_log2 <= 10; ++block_log2) {
    if (block_log2 > windows->width_log2) break;
    cell.push_back(Raster(reducers, windows, "Hillis–Steele",
                          ByBlocks(block_log2, ScanMethod::kHillisSteele)));
    cell.back().row.parameter = std::to_string(1U << block_log2);
  }
  rounds.Run(std::move(cell), 1);

  report.Table(
      "The steps of each (figure 10), between fences",
      {Column::kKeys, Column::kForm, Column::kParameter, Column::kEndToEnd, Column::kTimer});
  for (std::uint32_t block_log2 = 2; block_log2 <= std::min(10U, windows->width_log2);
       ++block_log2) {
    Entrant entrant =
        Raster(reducers, windows, "", ByBlocks(block_log2, ScanMethod::kHillisSteele));
    std::map<std::string, Row> rows;
    for (int round = 0; round <= kStepRounds; ++round) {
      reducers.timer.Arm();
      entrant.run();
      const StepTimer::Times times = reducers.timer.Disarm();
      if (round == 0) continue;  // it makes textures
      for (const auto& [step, seconds] : times.by_clock) rows[step].seconds.push_back(seconds);
      for (const auto& [step, seconds] : times.by_timer) rows[step].by_timer.push_back(seconds);
    }
    for (auto& [step, times] : rows) {
      Row row = NewEntrant(*windows, "raster, by blocks, step by step", step).row;
      row.parameter = std::to_string(1U << block_log2);
      row.seconds = std::move(times.seconds);
      row.by_timer = std::move(times.by_timer);
      report.Add(row);
    }
  }
}

void RunOverValid(Report& report, Reducers& reducers, Rounds& rounds, int log2_keys) {
  report.Table("Share of valid elements (figure 9); blocks of 64", kColumns);
  for (const int valid : kValid) {
    const auto windows = std::make_shared<const SortedWindows>(log2_keys, valid);
    std::vector<Entrant> cell;
    cell.push_back(
        Raster(reducers, windows, "64, Hillis–Steele", ByBlocks(6, ScanMethod::kHillisSteele)));
    cell.push_back(Compute(reducers, windows));
    for (Entrant& entrant : cell) entrant.row.parameter = std::to_string(valid) + " %";
    rounds.Run(std::move(cell), 1);
  }
}

}  // namespace

void CountReduction(Report& report, const GpuBenchOptions& options) {
  const std::vector<Column> columns = {Column::kKeys,      Column::kSubject,     Column::kForm,
                                       Column::kParameter, Column::kPasses,      Column::kDrawCalls,
                                       Column::kAdditions, Column::kSearchSteps, Column::kLines};
  const auto add = [&](const SortedKeys& keys, const char* form, const std::string& parameter,
                       const reduce::RasterReduction& how) {
    Row row = Counted(keys, form, how).row;
    row.parameter = parameter;
    report.Add(row);
  };
  report.Table("Reduction, 60 % valid", columns);
  for (const int log2_keys : options.Sizes(kLog2Max)) {
    const SortedKeys keys(log2_keys, kUsualValid);
    add(keys, "Hillis–Steele", "", Horn(ScanMethod::kHillisSteele));
    add(keys, "Blelloch", "", Horn(ScanMethod::kBlelloch));
    add(keys, "64, Hillis–Steele", "", ByBlocks(6, ScanMethod::kHillisSteele));
    add(keys, "64, Blelloch", "", ByBlocks(6, ScanMethod::kBlelloch));
  }
  const int log2_keys = options.Sizes(kSweepLog2Max).back();
  report.Table("Reduction, sizes of blocks", columns);
  const SortedKeys keys(log2_keys, kUsualValid);
  for (std::uint32_t block_log2 = 2; block_log2 <= std::min(10U, keys.width_log2); ++block_log2) {
    add(keys, "Hillis–Steele", std::to_string(1U << block_log2),
        ByBlocks(block_log2, ScanMethod::kHillisSteele));
  }
  report.Table("Reduction, share of valid elements", columns);
  for (const int valid : kValid) {
    add(SortedKeys(log2_keys, valid), "64, Hillis–Steele", std::to_string(valid) + " %",
        ByBlocks(6, ScanMethod::kHillisSteele));
  }
}

void BenchReduction(Report& report, const GpuBenchOptions& options) {
  Reducers reducers(report.machine());
  Rounds rounds(report, options.budget, options.Sizes(kLog2Max).size() + 1 + std::size(kValid));
  RunOverSizes(report, options, reducers, rounds);
  const int log2_keys = options.Sizes(kSweepLog2Max).back();
  RunOverBlocks(report, reducers, rounds, log2_keys);
  RunOverValid(report, reducers, rounds, log2_keys);
}

}  // namespace tidemark::bench
