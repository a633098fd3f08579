// How fast each sorter sorts one window, against std::sort in the same run.
//
//   sort_bench                every size from 2^10 to 2^20, all key widths; about two minutes
//   sort_bench --pairs        keys with weights alone, beside std::stable_sort of the pairs
//   sort_bench --smoke        three sizes, one round: does it run, are the results equal
//   sort_bench --software-gl  with the GL sorters even where GL is a software rasteriser, to 2^18
//
// Prints Markdown. In each round every sorter sorts the same keys, one after the other; rates are
// medians over the rounds, ratios are taken within a round and given as least / median / greatest.
// The GL sorters sort four windows at once, upload and read-back included. Exit status 1: two
// sorters differ.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/sort/cpu_sorter.h"
#include "gpu/sort/gl_sorters.h"
#include "gpu/sort/pair_sort.h"
#include "gpu/sort/sorter_factory.h"
#include "tests/bench/measuring.h"

namespace {

using tidemark::bench::CpuModel;
using namespace tidemark::sort;  // NOLINT(google-build-using-namespace)

struct Plan {
  std::vector<std::size_t> log2_windows;
  int rounds = 11;
  std::size_t keys_per_timing = std::size_t{1} << 17;  ///< small windows are timed many at once
};

struct Contender {
  std::string name;
  WindowSorter* sorter = nullptr;
};

// Rates of one contender at one size, one a round.
struct Rates {
  std::vector<double> keys_per_second;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <class Key>
Key Draw(std::mt19937_64& random) {
  auto key = static_cast<Key>(random());
  if constexpr (sizeof(Key) == 16) key = (key << 64) | random();
  return key;
}

// FNV-1a over the keys: equal for equal results, and printed, so that two runs can be compared.
template <class Key>
std::uint64_t Hash(std::span<const Key> keys) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3U; };
  for (const Key key : keys) {
    add(static_cast<std::uint64_t>(key));
    if constexpr (sizeof(Key) == 16) add(static_cast<std::uint64_t>(key >> 64));
  }
  return hash;
}

// Sorts `keys`, window by window, four windows a request as far as they go; returns keys a second.
template <class Key>
double Time(WindowSorter& sorter, std::size_t window, std::span<Key> keys) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < keys.size(); at += kChannels * window) {
    std::vector<std::span<Key>> channels;
    for (std::size_t c = at; c < std::min(at + kChannels * window, keys.size()); c += window) {
      channels.push_back(keys.subspan(c, window));
    }
    sorter.Sort(Channels<Key>(channels));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(keys.size()) / seconds.count();
}

template <class Key>
std::uint64_t RunWidth(const Plan& plan, std::span<const Contender> contenders) {
  std::printf("\n%zu-bit keys, random, million keys a second\n\n| window |", 8 * sizeof(Key));
  for (const Contender& contender : contenders) std::printf(" %s |", contender.name.c_str());
  std::printf(" cpu / std-sort | auto / std-sort |\n|---|");
  for (std::size_t i = 0; i < contenders.size() + 2; ++i) std::printf("---|");
  std::printf("\n");

  std::uint64_t all_hashes = 0;
  for (const std::size_t log2_window : plan.log2_windows) {
    const std::size_t window = std::size_t{1} << log2_window;
    // Whole requests of four windows, so that no channel of a GL sorter is left empty.
    const std::size_t request = kChannels * window;
    const std::size_t count = std::max(request, plan.keys_per_timing / request * request);
    std::vector<Key> original(count);
    std::mt19937_64 random(log2_window);
    for (Key& key : original) key = Draw<Key>(random);

    std::vector<Rates> rates(contenders.size());
    std::uint64_t expected = 0;
    for (int round = 0; round < plan.rounds; ++round) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        std::vector<Key> keys = original;
        rates[i].keys_per_second.push_back(Time<Key>(*contenders[i].sorter, window, keys));
        const std::uint64_t hash = Hash<Key>(keys);
        if (i == 0) expected = hash;
        if (hash != expected) {
          throw std::runtime_error(contenders[i].name + " and " + contenders[0].name +
                                   " differ on windows of 2^" + std::to_string(log2_window) + " " +
                                   std::to_string(8 * sizeof(Key)) + "-bit keys");
        }
      }
    }
    all_hashes = all_hashes * 31 + expected;

    std::printf("| 2^%zu |", log2_window);
    for (const Rates& rate : rates) {
      const double million = Median(rate.keys_per_second) / 1e6;
      std::printf(million < 10 ? " %.1f |" : " %.0f |", million);
    }
    for (const char* name : {"cpu", "auto"}) {
      const auto found = std::find_if(contenders.begin(), contenders.end(),
                                      [&](const Contender& c) { return c.name == name; });
      const Rates& of = rates[static_cast<std::size_t>(found - contenders.begin())];
      std::vector<double> ratios;
      for (std::size_t r = 0; r < of.keys_per_second.size(); ++r) {
        ratios.push_back(of.keys_per_second[r] / rates[0].keys_per_second[r]);
      }
      std::printf(" %.1f / %.1f / %.1f |", *std::min_element(ratios.begin(), ratios.end()),
                  Median(ratios), *std::max_element(ratios.begin(), ratios.end()));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return all_hashes;
}

// Keys with a weight each: SortPairs, and what it must not lose to.
template <class Key>
void RunPairs(const Plan& plan, WindowSorter& sorter) {
  constexpr std::size_t kFewKeys = 1000;
  for (const std::size_t log2_window : plan.log2_windows) {
    for (const bool few : {false, true}) {
      const std::size_t window = std::size_t{1} << log2_window;
      std::mt19937_64 random(log2_window);
      std::vector<Key> different(few ? kFewKeys : window), original(window);
      for (Key& key : different) key = Draw<Key>(random);
      for (Key& key : original) key = different[random() % different.size()];
      std::vector<double> alone, stable, pairs, ratios;
      for (int round = 0; round < plan.rounds; ++round) {
        const auto rate = [&](auto sort) {
          const auto start = std::chrono::steady_clock::now();
          sort();
          const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
          return static_cast<double>(window) / seconds.count();
        };
        std::vector<std::pair<Key, std::uint64_t>> expected(window);
        std::vector<std::uint64_t> weights(window);
        for (std::size_t i = 0; i < window; ++i) expected[i] = {original[i], weights[i] = i};
        std::vector<Key> keys = original;
        alone.push_back(Time<Key>(sorter, window, keys));
        keys = original;
        stable.push_back(rate([&] {
          std::stable_sort(expected.begin(), expected.end(),
                           [](const auto& a, const auto& b) { return a.first < b.first; });
        }));
        pairs.push_back(rate([&] { SortPairs<Key>(keys, weights, sorter); }));
        ratios.push_back(pairs.back() / stable.back());
        for (std::size_t i = 0; i < window; ++i) {
          if (expected[i] != std::pair(keys[i], weights[i])) {
            throw std::runtime_error("pairs and std::stable_sort of them differ on windows of 2^" +
                                     std::to_string(log2_window));
          }
        }
      }
      std::printf("| %zu bits, 2^%zu, %s | %.0f | %.1f | %.1f | %.1f / %.1f / %.1f |\n",
                  8 * sizeof(Key), log2_window, few ? "1000 different" : "random",
                  Median(alone) / 1e6, Median(stable) / 1e6, Median(pairs) / 1e6,
                  *std::min_element(ratios.begin(), ratios.end()), Median(ratios),
                  *std::max_element(ratios.begin(), ratios.end()));
      std::fflush(stdout);
    }
  }
}

void RunPairs(bool smoke) {
  Plan plan;
  plan.log2_windows = {14, 18};
  SorterOptions options;
  options.name = "cpu";
  if (smoke) {
    plan.log2_windows = {10};
    plan.rounds = 1;
    options.measure_budget_ms = 20;
  }
  const std::unique_ptr<WindowSorter> sorter = MakeSorter(options).sorter;
  std::printf(
      "\nKeys with weights, million a second\n\n"
      "| keys | keys alone | std::stable_sort of pairs | pairs | ratio |\n"
      "|---|---|---|---|---|\n");
  RunPairs<std::uint32_t>(plan, *sorter);
  RunPairs<std::uint64_t>(plan, *sorter);
  RunPairs<Key128>(plan, *sorter);
}

void Run(bool smoke, bool software_gl) {
  Plan plan;
  SorterOptions options;
  if (smoke) {
    plan.log2_windows = {10, 13, 16};
    plan.rounds = 1;
    plan.keys_per_timing = 0;
    options.measure_budget_ms = 20;
  } else {
    // llvmpipe needs seconds for a request of 2^18.
    const std::size_t largest = software_gl ? 18 : 20;
    for (std::size_t k = 10; k <= largest; ++k) plan.log2_windows.push_back(k);
    if (software_gl) plan.rounds = 3;
  }

  std::vector<std::unique_ptr<WindowSorter>> owned;
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, std::unique_ptr<WindowSorter> sorter) {
    contenders.push_back({name, sorter.get()});
    owned.push_back(std::move(sorter));
  };
  const std::vector<CpuAlgorithm>& algorithms = CpuAlgorithms();
  add("std-sort", std::make_unique<CpuSorter>(UseOnly(algorithms.back())));
  for (std::size_t i = 0; i + 1 < algorithms.size(); ++i) {
    add(algorithms[i].name, std::make_unique<CpuSorter>(UseOnly(algorithms[i])));
  }
  GlReport gl;
  for (GlSorterOrReason (*open)(const GlOpening&) : {OpenGlCompute, OpenGlBitonic}) {
    GlSorterOrReason opened = open({.allow_software = software_gl});
    gl = opened.report;
    if (opened.sorter == nullptr) continue;
    const std::string name(opened.sorter->name());
    add(name, std::move(opened.sorter));
  }
  options.name = "cpu";
  add("cpu", MakeSorter(options).sorter);
  options.name = "auto";
  options.allow_software_gl = software_gl;
  SorterSelection automatic = MakeSorter(options);
  add("auto", std::move(automatic.sorter));

  std::printf("CPU: %s\ncompiler: %s\nGL: %s\nauto: %s\nrounds: %d, one thread\n",
              CpuModel().c_str(), __VERSION__,
              gl.available ? (gl.renderer + ", " + gl.version).c_str() : gl.error.c_str(),
              automatic.report.reason.c_str(), plan.rounds);
  const std::uint64_t narrow = RunWidth<std::uint32_t>(plan, contenders);
  const std::uint64_t wide = RunWidth<std::uint64_t>(plan, contenders);
  const std::uint64_t widest = RunWidth<Key128>(plan, contenders);
  std::printf("\nresult hash: %016llx\n",
              static_cast<unsigned long long>((narrow * 31 + wide) * 31 + widest));
  RunPairs(smoke);
}

}  // namespace

int main(int argc, char** argv) {
  bool smoke = false;
  bool software_gl = false;
  bool pairs = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0) {
      smoke = true;
    } else if (std::strcmp(argv[i], "--software-gl") == 0) {
      software_gl = true;
    } else if (std::strcmp(argv[i], "--pairs") == 0) {
      pairs = true;
    } else {
      std::fprintf(
          stderr,
          "sort_bench: unknown argument \"%s\"; there are --smoke, --software-gl, --pairs\n",
          argv[i]);
      return 2;
    }
  }
  try {
    if (pairs) {
      RunPairs(smoke);
    } else {
      Run(smoke, software_gl);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sort_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
