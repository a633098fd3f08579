// The papers' sorters beside each other on OpenGL: what each costs, counted and timed.
//
//   papers_bench                four windows of 2^10 to 2^16 32-bit keys
//   papers_bench --largest K    up to 2^K
//   papers_bench --smoke        one small size, one round: does it run, are the results equal
//
// Prints Markdown. The keys are below 2^31, so that gl-pbsn needs the GPU once. Times are of whole
// requests, upload, read-back and the callers' copies included; in each round every sorter sorts
// the same keys, one after the other. On a software rasteriser the times say nothing of a GPU; the
// counts hold anywhere. Exit status 1: no GL, or two sorters differ.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/sort/gl_abisort_sorter.h"
#include "gpu/sort/gl_bitonic_sorter.h"
#include "gpu/sort/gl_pbsn_sorter.h"
#include "tests/bench/measuring.h"

namespace {

using tidemark::bench::CpuModel;
using tidemark::bench::SpreadOf;
using namespace tidemark::sort;  // NOLINT(google-build-using-namespace)

struct Contender {
  std::string name;
  std::unique_ptr<GlTexelSorter> sorter;
  std::vector<double> seconds;
  SortCounts counts;  // of one request
};

Contender Bitonic(const std::string& name, BitonicDrawing drawing) {
  GlBitonicOptions options;
  options.allow_software = true;
  options.drawing = drawing;
  return {name, std::make_unique<GlBitonicSorter>(options), {}, {}};
}

Contender ABiSort(const std::string& name, ABiSortForm form) {
  GlABiSortOptions options;
  options.allow_software = true;
  options.form = form;
  return {name, std::make_unique<GlABiSortSorter>(options), {}, {}};
}

std::vector<Contender> AllContenders() {
  std::vector<Contender> all;
  all.push_back(Bitonic("gl-bitonic", {}));
  for (const std::uint32_t tile : {16U, 64U, 256U}) {
    all.push_back(Bitonic("gl-bitonic, tiles of " + std::to_string(tile), {tile, 8, true}));
  }
  all.push_back(Bitonic("gl-bitonic, tiles of 64, a call each", {64, 8, false}));
  GlTexelOptions pbsn;
  pbsn.allow_software = true;
  all.push_back({"gl-pbsn", std::make_unique<GlPbsnSorter>(pbsn), {}, {}});
  all.push_back(ABiSort("gl-abisort, Z-order", {StreamLayout::kZOrder, true, true}));
  all.push_back(ABiSort("gl-abisort, row-wise", {StreamLayout::kRowWise, true, true}));
  all.push_back(ABiSort("gl-abisort, all adaptive", {StreamLayout::kZOrder, true, false}));
  all.push_back(ABiSort("gl-abisort, stages one by one", {StreamLayout::kZOrder, false, true}));
  return all;
}

using Windows = std::array<std::vector<std::uint32_t>, kChannels>;

void SortOnce(Contender& contender, Windows windows, const Windows& sorted) {
  std::array<std::span<std::uint32_t>, kChannels> channels;
  std::copy(windows.begin(), windows.end(), channels.begin());
  const SortCounts before = contender.sorter->counts();
  const auto start = std::chrono::steady_clock::now();
  contender.sorter->Sort(Channels<std::uint32_t>(channels));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (windows != sorted) throw std::runtime_error(contender.name + " differs from std::sort");
  const SortCounts after = contender.sorter->counts();
  contender.seconds.push_back(seconds.count());
  contender.counts = {after.comparisons - before.comparisons, after.passes - before.passes,
                      after.copies - before.copies, after.draw_calls - before.draw_calls,
                      after.bytes_moved - before.bytes_moved};
}

void RunSize(std::vector<Contender>& contenders, std::uint32_t log2_keys, int rounds) {
  std::mt19937_64 random(2006);
  Windows windows;
  for (std::vector<std::uint32_t>& keys : windows) {
    keys.resize(std::size_t{1} << log2_keys);
    for (std::uint32_t& key : keys) key = static_cast<std::uint32_t>(random() >> 33);
  }
  Windows sorted = windows;
  for (std::vector<std::uint32_t>& keys : sorted) std::sort(keys.begin(), keys.end());
  for (Contender& contender : contenders) contender.seconds.clear();
  // The first round makes textures and is not counted.
  for (int round = 0; round <= rounds; ++round) {
    for (Contender& contender : contenders) {
      SortOnce(contender, windows, sorted);
      if (round == 0) contender.seconds.clear();
    }
  }
  std::printf(
      "\nFour windows of 2^%u 32-bit keys\n\n"
      "| sorter | ms, least / median / greatest | comparisons a key | passes | copies | draw calls "
      "| "
      "bytes moved a key |\n|---|---|---|---|---|---|---|\n",
      log2_keys);
  const double keys = static_cast<double>(kChannels << log2_keys);
  for (const Contender& contender : contenders) {
    const auto spread = SpreadOf(contender.seconds);
    const SortCounts& counts = contender.counts;
    std::printf("| %s | %.2f / %.2f / %.2f | %.1f | %llu | %llu | %llu | %.0f |\n",
                contender.name.c_str(), 1e3 * spread.least, 1e3 * spread.median,
                1e3 * spread.greatest, static_cast<double>(counts.comparisons) / keys,
                static_cast<unsigned long long>(counts.passes),
                static_cast<unsigned long long>(counts.copies),
                static_cast<unsigned long long>(counts.draw_calls),
                static_cast<double>(counts.bytes_moved) / keys);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::uint32_t> sizes = {10, 12, 14, 16};
  int rounds = 3;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0) {
      sizes = {6};
      rounds = 1;
    } else if (std::strcmp(argv[i], "--largest") == 0 && i + 1 < argc) {
      const int largest = std::atoi(argv[++i]);
      sizes.clear();
      for (int log2 = 10; log2 <= std::min(largest, 22); log2 += 2) {
        sizes.push_back(static_cast<std::uint32_t>(log2));
      }
    } else {
      std::fprintf(stderr,
                   "papers_bench: unknown argument \"%s\"; there are --smoke, --largest K\n",
                   argv[i]);
      return 2;
    }
  }
  try {
    std::vector<Contender> contenders = AllContenders();
    const GlReport& gl = contenders.front().sorter->gl();
    std::printf("CPU: %s\nGL: %s, %s\nrounds: %d\n", CpuModel().c_str(), gl.renderer.c_str(),
                gl.version.c_str(), rounds);
    for (const std::uint32_t log2_keys : sizes) RunSize(contenders, log2_keys, rounds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "papers_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
