// What sliding windows cost beside the sort of their blocks, what they hold, and what answers cost.
//
//   sliding_bench          about a minute
//   sliding_bench --smoke  small, in the test run: does it run, are the answers within their bounds
//
// Prints Markdown. Blocks are sorted four to a request by the `cpu` sorter and then added, on one
// thread, in its CPU time. What is timed: copying a block (it is kept as it came, and sorted
// beside), the sort, and the record, quantiles and frequencies that take it in; least / median /
// greatest of several rounds. Windows are full before the first round. Exit status 1: an answer is
// outside its bound.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/fraction.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "tests/bench/measuring.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::Spread;
using bench::SpreadOf;
using bench::ThreadSeconds;
using bench::ZipfRank;

struct Plan {
  int rounds = 7;
  std::size_t keys_per_round = std::size_t{1} << 24;
  std::vector<std::uint64_t> held{100'000, 1'000'000, 10'000'000, 100'000'000};
  std::uint64_t held_keys_max = 300'000'000;
  int answers = 2000;
};
Plan SmokePlan() {
  Plan plan;
  plan.rounds = 2;
  plan.keys_per_round = std::size_t{1} << 18;
  plan.held = {100'000};
  plan.answers = 20;
  return plan;
}

enum class Data { kRandom, kSorted, kFewDistinct, kZipf };
constexpr std::array kAllData{Data::kRandom, Data::kSorted, Data::kFewDistinct, Data::kZipf};
const char* Name(Data data) {
  constexpr std::array kNames{"random", "sorted", "100 distinct", "Zipf(1.1)"};
  return kNames[static_cast<std::size_t>(data)];
}

// As many values as are fed in turn.
constexpr std::size_t kSourceKeys = std::size_t{1} << 21;

template <class Key>
std::vector<Key> MakeKeys(Data data) {
  std::mt19937_64 random(20);
  std::vector<Key> keys(kSourceKeys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    switch (data) {
      case Data::kRandom:
        keys[i] = static_cast<Key>(random());
        break;
      case Data::kSorted:
        keys[i] = static_cast<Key>(i);
        break;
      case Data::kFewDistinct:
        keys[i] = static_cast<Key>(random() % 100) * 1'000'003;
        break;
      case Data::kZipf: {
        keys[i] = static_cast<Key>(static_cast<Key>(ZipfRank(random)) * Key{0x9E3779B1});
        break;
      }
    }
  }
  return keys;
}

/// Where a round's time goes, seconds.
struct Costs {
  double sort = 0, quantiles = 0, both = 0;
};

/// A stream of `source` over and over again.
template <class Key>
class Stream {
 public:
  Stream(const SlidingOptions& options, const std::vector<Key>& source, sort::WindowSorter& sorter)
      : record(options),
        quantiles(record.shared_rule()),
        frequencies(record.shared_rule()),
        source_(source),
        sorter_(sorter),
        size_(record.rule().block_size()) {
    // Reading the clock costs as much as a hundred keys: not for every block.
    together_ = std::max<std::size_t>(sort::kChannels, 65'536 / size_);
    sorted_.assign(together_, std::vector<Key>(size_));
    arrived_.resize(together_);
    expired_.resize(together_);
  }

  Costs Feed(std::size_t keys) {
    Costs costs;
    for (std::size_t fed = 0; fed < keys; fed += together_ * size_) {
      const double start = ThreadSeconds();
      for (std::size_t i = 0; i < together_; ++i) {
        const Key* block = source_.data() + at_;
        arrived_[i] = std::make_shared_for_overwrite<Key[]>(size_);
        std::copy_n(block, size_, arrived_[i].get());
        std::copy_n(block, size_, sorted_[i].data());
        at_ = (at_ + size_) % source_.size();
      }
      const double copied = ThreadSeconds();
      for (std::size_t i = 0; i < together_; i += sort::kChannels) {
        std::array<std::span<Key>, sort::kChannels> channels;
        for (std::size_t c = 0; c < channels.size(); ++c) channels[c] = sorted_[i + c];
        sorter_.Sort(sort::Channels<Key>(channels));
      }
      const double sorted = ThreadSeconds();
      for (std::size_t i = 0; i < together_; ++i) {
        const TimedCount batch{size_, clock_ += 1000};
        record.AddBlock(std::move(arrived_[i]), {&batch, 1});
        expired_[i] = record.expired();
      }
      for (std::size_t i = 0; i < together_; ++i) quantiles.AddBlock(sorted_[i], expired_[i]);
      const double sampled = ThreadSeconds();
      for (std::size_t i = 0; i < together_; ++i) frequencies.AddBlock(sorted_[i], expired_[i]);
      const double counted = ThreadSeconds();
      costs.sort += sorted - copied;
      costs.quantiles += sampled - start;
      costs.both += counted - start;
      most_quantiles = std::max(most_quantiles, quantiles.bytes());
      most_frequencies = std::max(most_frequencies, frequencies.bytes());
      most_record = std::max(most_record, record.bytes());
    }
    return costs;
  }

  /// The last values that came.
  std::vector<Key> Last(std::uint64_t count) const {
    std::vector<Key> last(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      last[i] = source_[(at_ + source_.size() - 1 - i % source_.size()) % source_.size()];
    }
    return last;
  }

  SlidingRecord<Key> record;
  SlidingQuantiles<Key> quantiles;
  SlidingFrequencies<Key> frequencies;
  std::size_t most_quantiles = 0, most_frequencies = 0, most_record = 0;

 private:
  const std::vector<Key>& source_;
  sort::WindowSorter& sorter_;
  std::size_t size_, together_ = 0, at_ = 0;
  std::int64_t clock_ = 0;
  std::vector<std::vector<Key>> sorted_;
  std::vector<std::shared_ptr<Key[]>> arrived_;
  std::vector<std::uint64_t> expired_;
};

SlidingOptions Last(std::uint64_t values, double epsilon) {
  SlidingOptions options;
  options.epsilon = epsilon;
  options.max_values = values;
  return options;
}

template <class Key>
void TimeBlocks(const Plan& plan, sort::WindowSorter& sorter, Data data, double epsilon) {
  const auto source = MakeKeys<Key>(data);
  Stream<Key> stream(Last(1'000'000, epsilon), source, sorter);
  stream.Feed(2'000'000);
  std::vector<double> sort, quantiles, both;
  for (int round = 0; round < plan.rounds; ++round) {
    const Costs costs = stream.Feed(plan.keys_per_round);
    const auto rate = [&](double seconds) {
      return static_cast<double>(plan.keys_per_round) / seconds / 1e6;
    };
    sort.push_back(rate(costs.sort));
    quantiles.push_back(rate(costs.quantiles));
    both.push_back(rate(costs.both));
  }
  const Spread s = SpreadOf(sort), q = SpreadOf(quantiles), b = SpreadOf(both);
  std::printf(
      "| u%zu | %g | %zu | %s | %.0f / %.0f / %.0f | %.0f / **%.0f** / %.0f | %.0f / **%.0f** / "
      "%.0f |\n",
      8 * sizeof(Key), epsilon, stream.record.rule().block_size(), Name(data), s.least, s.median,
      s.greatest, q.least, q.median, q.greatest, b.least, b.median, b.greatest);
  std::fflush(stdout);
}

template <class Key>
void PrintHeld(const Plan& plan, sort::WindowSorter& sorter, SlidingOptions options, Data data) {
  const auto source = MakeKeys<Key>(data);
  Stream<Key> stream(options, source, sorter);
  // One block every millisecond: so many values are in a window by time.
  const std::uint64_t values = options.max_values > 0
                                   ? options.max_values
                                   : static_cast<std::uint64_t>(options.max_age_us) / 1000 *
                                         stream.record.rule().block_size();
  stream.Feed(std::min(3 * values, plan.held_keys_max));
  const double all = static_cast<double>(stream.most_record + stream.most_quantiles);
  std::printf("| u%zu | %g | %.3g %s| %s | %zu | %zu | %.0f | %.1f %% | %zu |\n", 8 * sizeof(Key),
              options.epsilon, static_cast<double>(values),
              options.max_values > 0 ? "" : "by time ", Name(data), stream.most_record,
              stream.most_quantiles,
              static_cast<double>(stream.record.rule().KeysKept(values) * sizeof(Key)),
              100 * all / (static_cast<double>(values) * sizeof(Key)), stream.most_frequencies);
  std::fflush(stdout);
}

/// Returns whether all answers were within their bounds.
template <class Key>
bool TimeAnswers(const Plan& plan, sort::WindowSorter& sorter, double epsilon) {
  const auto source = MakeKeys<Key>(Data::kZipf);
  constexpr std::uint64_t kValues = 1'000'000;
  Stream<Key> stream(Last(kValues, epsilon), source, sorter);
  stream.Feed(3'000'000);
  bool right = true;
  std::mt19937_64 random(4);
  std::printf("| u%zu | %g |", 8 * sizeof(Key), epsilon);
  for (const std::uint64_t width : {100ul, 1'000ul, 10'000ul, 100'000ul, 300'000ul, 999'000ul}) {
    auto truth = stream.Last(width);
    std::sort(truth.begin(), truth.end());
    const double start = ThreadSeconds();
    for (int i = 0; i < plan.answers; ++i) {
      const auto cover = stream.quantiles.Cover(stream.record.Last(width, 0), stream.record);
      const auto view = cover.View({});
      const auto answer = view.Quantile(std::uniform_real_distribution<double>(0, 1)(random));
      const std::uint64_t bound = FloorFraction(epsilon, width);
      right &=
          answer.rank_low + bound >= answer.target && answer.rank_high <= answer.target + bound;
      const auto at = std::upper_bound(truth.begin(), truth.end(), answer.value) - truth.begin();
      right &= static_cast<std::uint64_t>(at) >= answer.rank_low;
    }
    const double quantile = (ThreadSeconds() - start) / plan.answers;
    const double start_top = ThreadSeconds();
    const int tops = std::max(1, plan.answers / 10);
    for (int i = 0; i < tops; ++i) {
      const auto cover = stream.frequencies.Cover(stream.record.Last(width, 0), stream.record);
      for (const auto& item : cover.View({}).HeavyHitters(0.05)) {
        const auto [first, last] = std::equal_range(truth.begin(), truth.end(), item.key);
        const auto count = static_cast<std::uint64_t>(last - first);
        right &= item.count_low <= count && count <= item.count_high;
      }
    }
    const double top = (ThreadSeconds() - start_top) / tops;
    std::printf(" %.1f, %.1f |", 1e6 * quantile, 1e6 * top);
  }
  std::printf("\n");
  std::fflush(stdout);
  return right;
}

int Run(const Plan& plan) {
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  sort::WindowSorter& sorter = *selection.sorter;
  std::printf("%s, one thread, sorter %s.\n\n", CpuModel().c_str(),
              selection.report.active.c_str());

  std::printf(
      "Windows of the last 10^6 values, million values/s (least / **median** / greatest of %d "
      "rounds). Both: quantiles and frequencies\n\n"
      "| keys | epsilon | block | data | sort alone | copy, sort, quantiles | both |\n"
      "|---|---|---|---|---|---|---|\n",
      plan.rounds);
  for (const double epsilon : {0.01, 0.001}) {
    for (const Data data : kAllData) {
      TimeBlocks<std::uint32_t>(plan, sorter, data, epsilon);
      TimeBlocks<std::uint64_t>(plan, sorter, data, epsilon);
    }
  }

  std::printf(
      "\nBytes held, the most on the way: the record (values as they came, times), quantiles, what "
      "the formula says for both, their share of the window's values, frequencies\n\n"
      "| keys | epsilon | window | data | record | quantiles | formula | of all values | "
      "frequencies |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const double epsilon : {0.01, 0.001}) {
    for (const std::uint64_t values : plan.held) {
      PrintHeld<std::uint32_t>(plan, sorter, Last(values, epsilon), Data::kRandom);
    }
    PrintHeld<std::uint32_t>(plan, sorter, Last(plan.held.back() / 100, epsilon), Data::kZipf);
    PrintHeld<std::uint32_t>(plan, sorter, Last(plan.held.back() / 100, epsilon),
                             Data::kFewDistinct);
    PrintHeld<std::uint64_t>(plan, sorter, Last(plan.held.back() / 100, epsilon), Data::kRandom);
    SlidingOptions by_time;
    by_time.epsilon = epsilon;
    by_time.max_age_us = 1'000'000;
    PrintHeld<std::uint32_t>(plan, sorter, by_time, Data::kRandom);
  }

  std::printf(
      "\nOne answer over the last w of 10^6 values, microseconds: a quantile, the items of 5 %%; "
      "cover, view and sort included\n\n"
      "| keys | epsilon | w = 100 | 1,000 | 10,000 | 100,000 | 300,000 | 999,000 |\n"
      "|---|---|---|---|---|---|---|---|\n");
  bool right = true;
  for (const double epsilon : {0.01, 0.001}) {
    right &= TimeAnswers<std::uint32_t>(plan, sorter, epsilon);
    right &= TimeAnswers<std::uint64_t>(plan, sorter, epsilon);
  }
  if (!right) {
    std::fprintf(stderr, "an answer was outside its bound\n");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  const bool smoke = argc == 2 && std::strcmp(argv[1], "--smoke") == 0;
  if (argc > 1 && !smoke) {
    std::fprintf(stderr, "usage: sliding_bench [--smoke]\n");
    return 2;
  }
  return tidemark::Run(smoke ? tidemark::SmokePlan() : tidemark::Plan());
}
