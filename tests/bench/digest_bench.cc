// Digests without sorting against the full sort of the same windows, on one thread, in CPU time.
//
//   digest_bench          about two minutes
//   digest_bench --smoke  small, in the test run: does it run, are the digests equal
//   digest_bench u32 18 0.001  keys, log2 of the window, epsilon: one table alone
//
// Prints Markdown. The stride is what a compact quantile summary asks for at that epsilon. In each
// round four different windows are digested by every way, one after the other, in changing order:
// sorted by the `cpu` sorter and read; counted, as windows of a stream (GridMemory); counted, each
// on its own. Windows are copied in before (not timed). Rates: medians of the rounds. Ratios are
// taken within a round: least / median / greatest. Exit status 1: two digests differ.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/compact_quantiles.h"
#include "summaries/key_codec.h"
#include "summaries/window_digest.h"
#include "summaries/window_grid.h"
#include "tests/bench/measuring.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::SpreadOf;
using bench::ThreadSeconds;

constexpr std::size_t kSources = 4;

/// Keys of one window; `first` counts the keys of the windows before.
template <class Key>
class Input {
 public:
  Input(std::size_t size, std::size_t window)
      : size_(size), first_(window * size), random_(window) {}

  static constexpr std::array kNames{
      "uniform",         "uniform float", "normal float", "lognormal float", "lognormal integer",
      "wide float",      "sorted",        "reversed",     "sawtooth",        "random walk",
      "shuffled blocks", "3 distinct",    "100 distinct", "1,000 distinct",  "10,000 distinct",
      "Zipf(1.1)",       "a third is 0",  "outliers",     "nested clusters", "changes late",
      "planted sample",  "one value"};

  std::vector<Key> Make(std::string_view name) {
    std::vector<Key> keys(size_);
    const auto each = [&](auto value) {
      for (std::size_t i = 0; i < size_; ++i) keys[i] = static_cast<Key>(value(i));
      return keys;
    };
    const auto real = [&](auto value) {
      return each([&](std::size_t) { return EncodeKey(static_cast<Float>(value())); });
    };
    const auto distinct = [&](std::uint64_t count) {
      return each([&](std::size_t) { return random_() % count * (kMost / count); });
    };
    const auto cluster = [&] {
      return kMost / 3 + static_cast<Key>(random_() >> (8 * kHalf)) / 16;
    };
    if (name == "uniform") return each([&](std::size_t) { return random_(); });
    if (name == "uniform float") return real([&] { return unit_(random_); });
    if (name == "normal float") return real([&] { return 100 + 10 * normal_(random_); });
    if (name == "lognormal float") return real([&] { return std::exp(normal_(random_)); });
    if (name == "lognormal integer") {
      return each([&](std::size_t) { return std::exp(2 * normal_(random_)) * 1e5; });
    }
    if (name == "wide float") {
      return real(
          [&] { return std::exp(160 * unit_(random_) - 80) * (random_() % 2 == 0 ? 1 : -1); });
    }
    if (name == "sorted") return each([&](std::size_t i) { return first_ + i; });
    if (name == "reversed") return each([&](std::size_t i) { return kMost - first_ - i; });
    if (name == "sawtooth") return each([&](std::size_t i) { return i % 1000 * (kMost / 1000); });
    if (name == "random walk") {
      Key at = kMost / 2;
      return each([&](std::size_t) {
        return at += static_cast<Key>(random_()) / 2048 - static_cast<Key>(random_()) / 2048;
      });
    }
    if (name == "shuffled blocks") {
      const Key block = static_cast<Key>(random_());
      return each([&](std::size_t) { return block + static_cast<Key>(random_()) / 4096; });
    }
    if (name == "3 distinct") return distinct(3);
    if (name == "100 distinct") return distinct(100);
    if (name == "1,000 distinct") return distinct(1000);
    if (name == "10,000 distinct") return distinct(10'000);
    if (name == "Zipf(1.1)")
      return each([&](std::size_t) { return Zipf() * 0x9E37'79B9'7F4A'7C15; });
    if (name == "a third is 0") {
      return real([&] { return random_() % 3 == 0 ? 0 : std::exp(normal_(random_)); });
    }
    if (name == "outliers") {
      return each([&](std::size_t) { return random_() % 1000 == 0 ? Key(random_()) : cluster(); });
    }
    if (name == "nested clusters") {
      return each([&](std::size_t) {
        int depth = 0;
        while (depth < 8 * kBytes - 4 && random_() % 2 == 0) depth += 4;
        return kMost / 3 + (static_cast<Key>(random_()) >> depth);
      });
    }
    if (name == "changes late") {
      return each([&](std::size_t i) { return i < size_ * 3 / 8 ? Key(random_()) : cluster(); });
    }
    if (name == "planted sample") return Planted(each([&](std::size_t) { return cluster(); }));
    return each([](std::size_t) { return 7; });
  }

 private:
  using Float = std::conditional_t<sizeof(Key) == 4, float, double>;
  static constexpr Key kMost = std::numeric_limits<Key>::max();
  static constexpr int kBytes = sizeof(Key);
  static constexpr int kHalf = 8 - kBytes / 2;  // shifts 64 random bits to half a key

  /// Uniform where WindowGrid looks first, whatever the size of its sample.
  std::vector<Key> Planted(std::vector<Key> keys) {
    for (const std::size_t sample : {32, 256, 2048, 4096}) {
      const std::size_t part = keys.size() / sample;
      for (std::size_t i = 0; part > 0 && i < sample; ++i) {
        const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
        keys[i * part + static_cast<std::size_t>(((mixed >> 32) * part) >> 32)] =
            static_cast<Key>(random_());
      }
    }
    return keys;
  }

  /// Of 2^24 ranks, from a continuous distribution of the same tail.
  std::uint64_t Zipf() {
    const double most = 1 - std::pow(2.0, -2.4);  // rank^-0.1 from 1 down to 2^-2.4
    return static_cast<std::uint64_t>(std::pow(1 - most * unit_(random_), -10));
  }

  std::size_t size_;
  std::uint64_t first_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> unit_{0, 1};
  std::normal_distribution<double> normal_{0, 1};
};

struct Plan {
  int rounds = 9;
  int unmeasured = 16;  ///< rounds before: what a stream's memory has settled to
};

enum Way : std::size_t { kSort, kStream, kOwn, kWays };

template <class Key>
class Contest {
 public:
  Contest(sort::WindowSorter& sorter, const Plan& plan, std::size_t window, double epsilon)
      : plan_(plan),
        window_(window),
        stride_(*CompactQuantiles<Key>(epsilon).DigestStride(window)),
        sort_([&sorter](std::span<Key> keys) {
          const std::array<std::span<Key>, 1> channels{keys};
          sorter.Sort(sort::Channels<Key>(channels));
        }),
        grid_(sort_) {}

  std::uint64_t stride() const { return stride_; }

  /// Whether all digests were equal.
  bool Run(const char* name) {
    std::vector<std::vector<Key>> sources;
    for (std::size_t i = 0; i < kSources; ++i) sources.push_back(Input<Key>(window_, i).Make(name));
    memory_ = {};
    std::array<std::vector<double>, kWays> seconds;
    bool equal = true;
    for (int round = -plan_.unmeasured; round < plan_.rounds; ++round) {
      std::array<double, kWays> took{};
      std::array<std::vector<WindowDigest<Key>>, kWays> digests;
      for (std::size_t turn = 0; turn < kWays; ++turn) {
        const auto way = static_cast<Way>((turn + static_cast<std::size_t>(round + 99)) % kWays);
        for (const auto& source : sources) {
          keys_ = source;
          const double start = ThreadSeconds();
          auto digest = Digest(way);
          took[way] += ThreadSeconds() - start;
          digests[way].push_back(std::move(digest));
        }
      }
      equal &= digests[kSort] == digests[kStream] && digests[kSort] == digests[kOwn];
      entries_ = digests[kSort].back().keys.size();
      for (std::size_t way = 0; round >= 0 && way < kWays; ++way) seconds[way].push_back(took[way]);
    }
    Print(name, seconds);
    return equal;
  }

 private:
  WindowDigest<Key> Digest(Way way) {
    if (way == kStream) return grid_.Digest(keys_, stride_, memory_);
    if (way == kOwn) return grid_.Digest(keys_, stride_);
    sort_(keys_);
    return DigestSorted<Key>(keys_, stride_);
  }

  void Print(const char* name, const std::array<std::vector<double>, kWays>& seconds) const {
    const auto rate = [&](Way way) {
      return static_cast<double>(kSources * window_) / SpreadOf(seconds[way]).median / 1e6;
    };
    const auto ratio = [&](Way way) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < seconds[way].size(); ++i) {
        ratios.push_back(seconds[kSort][i] / seconds[way][i]);
      }
      return bench::Print(SpreadOf(ratios), 2);
    };
    std::printf("| %s | %.0f | %.0f | %s | %s | %zu |\n", name, rate(kSort), rate(kStream),
                ratio(kStream).c_str(), ratio(kOwn).c_str(), entries_);
    std::fflush(stdout);
  }

  const Plan plan_;
  const std::size_t window_;
  const std::uint64_t stride_;
  const std::function<void(std::span<Key>)> sort_;
  WindowGrid<Key> grid_;
  GridMemory memory_;
  std::vector<Key> keys_;
  std::size_t entries_ = 0;
};

template <class Key>
bool RunTable(sort::WindowSorter& sorter, const Plan& plan, int log2_window, double epsilon) {
  Contest<Key> contest(sorter, plan, std::size_t{1} << log2_window, epsilon);
  std::printf(
      "\nu%zu, windows of 2^%d, epsilon %g: stride %llu\n\n"
      "| keys | sorted, M/s | counted, M/s | counted / sorted | each window on its own / sorted | "
      "entries |\n|---|---|---|---|---|---|\n",
      8 * sizeof(Key), log2_window, epsilon, static_cast<unsigned long long>(contest.stride()));
  bool equal = true;
  for (const char* name : Input<Key>::kNames) equal &= contest.Run(name);
  return equal;
}

int Run(int argc, char** argv) {
  const bool smoke = argc == 2 && std::string_view(argv[1]) == "--smoke";
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  auto& sorter = *selection.sorter;
  std::printf("%s, one thread, sorter %s\n", CpuModel().c_str(), selection.report.active.c_str());
  bool equal = true;
  if (argc == 4) {
    const int log2_window = std::atoi(argv[2]);
    const double epsilon = std::atof(argv[3]);
    equal = std::string_view(argv[1]) == "u64"
                ? RunTable<std::uint64_t>(sorter, Plan(), log2_window, epsilon)
                : RunTable<std::uint32_t>(sorter, Plan(), log2_window, epsilon);
  } else if (smoke) {
    const Plan plan{.rounds = 1, .unmeasured = 1};
    equal &= RunTable<std::uint32_t>(sorter, plan, 15, 0.01);
    equal &= RunTable<std::uint64_t>(sorter, plan, 15, 0.01);
  } else if (argc == 1) {
    for (const double epsilon : {0.01, 0.001}) {
      for (const int log2_window : {18, 20}) {
        equal &= RunTable<std::uint32_t>(sorter, Plan(), log2_window, epsilon);
        equal &= RunTable<std::uint64_t>(sorter, Plan(), log2_window, epsilon);
      }
    }
  } else {
    std::fprintf(stderr, "usage: digest_bench [--smoke | u32|u64 LOG2_WINDOW EPSILON]\n");
    return 2;
  }
  if (!equal)
    std::fprintf(stderr, "a digest that was counted differs from that of the sorted window\n");
  return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) { return tidemark::Run(argc, argv); }
