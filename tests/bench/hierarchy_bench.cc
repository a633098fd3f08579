// What a hierarchical frequency summary costs beside the sort of the same windows, what it holds,
// what answers cost; and the same for one frequency summary for each level, which it replaces.
//
//   hierarchy_bench          about three minutes (--ipv4, --ipv6, --sliding, --texts: a part of it)
//   hierarchy_bench --smoke  small, in the test run: does it run, are answers within their bounds
//
// Prints Markdown. On one thread, in its CPU time; windows are copied in before they are sorted,
// outside the timing. Each figure of time is the median of several rounds after a long history.
//   share = time of the bare sort / (time of sort + summary)
// Keys are sorted by the `cpu` sorter.
// Exit status 1: an answer is outside its bound.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/sort/sorter_factory.h"
#include "summaries/fraction.h"
#include "summaries/frequency_summary.h"
#include "summaries/hierarchical_frequency.h"
#include "summaries/hierarchical_view.h"
#include "summaries/hierarchy.h"
#include "summaries/leveled_summary.h"
#include "summaries/leveled_view.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_hierarchical_view.h"
#include "summaries/sliding_hierarchy.h"
#include "summaries/sliding_levels.h"
#include "summaries/sliding_record.h"
#include "summaries/sorted_runs.h"
#include "tests/bench/measuring.h"

namespace tidemark {
namespace {

using bench::CpuModel;
using bench::SpreadOf;
using bench::ThreadSeconds;
using bench::ZipfRank;

struct Plan {
  std::vector<int> log2_windows{14, 18};
  int rounds = 5;
  std::size_t keys_per_round = std::size_t{1} << 19;
  std::size_t keys_before = std::size_t{1} << 23;  ///< history before the first round
  int answers = 20;
};
Plan SmokePlan() { return {{12}, 1, std::size_t{1} << 15, std::size_t{1} << 16, 2}; }

// What addresses are drawn from.
enum class Data {
  kUniform,  // every address alike: spoofed sources
  kZipf,     // 2^20 hosts anywhere, the r-th one with probability ~ r^-1.1
  kCascade,  // each prefix divides its traffic between its halves by a share of its own: networks
  kMoving,   // another such cascade every 2^21 values
};
constexpr std::array kAllData{Data::kUniform, Data::kZipf, Data::kCascade, Data::kMoving};
const char* Name(Data data) {
  constexpr std::array kNames{"uniform", "Zipf(1.1) hosts", "networks", "moving networks"};
  return kNames[static_cast<std::size_t>(data)];
}

std::uint64_t Mix(std::uint64_t x) {
  x ^= x >> 29;
  x *= 0xBF58'476D'1CE4'E5B9u;
  return x ^ x >> 32;
}

template <class Key>
class Source {
 public:
  explicit Source(Data data) : data_(data) {}

  std::vector<Key> Window(std::size_t size) {
    std::vector<Key> keys(size);
    for (Key& key : keys) key = Next();
    return keys;
  }

 private:
  Key Next() {
    const std::uint64_t epoch = data_ == Data::kMoving ? drawn_++ >> 21 : 0;
    switch (data_) {
      case Data::kUniform:
        return Wide(random_());
      case Data::kZipf: {
        return Wide(Mix((std::uint64_t{ZipfRank(random_)} + 1) * 0x9E37'79B9'7F4A'7C15u));
      }
      default: {
        // 32 bits that branch, the rest of an IPv6 address hangs on them.
        std::uint32_t address = 0;
        std::uint64_t node = 1, coins = random_();
        for (int bit = 0; bit < 32; ++bit) {
          const std::uint64_t draw = Mix(node * 0x9E37'79B9'7F4A'7C15u + epoch);
          double share = static_cast<double>(draw >> 11) * 0x1p-53;
          share = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
          coins = coins * 0x5851'F42D'4C95'7F2Du + 0x1405'7B7E'F767'814Fu;
          const bool one = static_cast<double>(coins >> 11) * 0x1p-53 < share;
          address = address << 1 | (one ? 1u : 0u);
          node = 2 * node + (one ? 1 : 0);
        }
        if constexpr (sizeof(Key) == 4) return address;
        return static_cast<Key>(address) << (8 * sizeof(Key) - 32) |
               static_cast<Key>(Mix(address) & 0xFFFF);
      }
    }
  }
  static Key Wide(std::uint64_t random) {
    if constexpr (sizeof(Key) <= 8) {
      return static_cast<Key>(random);
    } else {
      return static_cast<Key>(random) << 64 | Mix(random);
    }
  }

  Data data_;
  std::mt19937_64 random_{20};
  std::uint64_t drawn_ = 0;
};

/// One frequency summary for each level, fed by the prefixes of each window.
template <class Key>
class EachLevel {
 public:
  EachLevel(double epsilon, const PrefixLevels<Key>& levels)
      : levels_(levels),
        summaries_(static_cast<std::size_t>(levels.size()), FrequencySummary<Key>(epsilon)) {}

  void AddWindow(std::span<const Key> sorted) {
    ForEachLevel(levels_, sorted, [&](int level, std::span<const Key> prefixes) {
      summaries_[static_cast<std::size_t>(level)].AddWindow(prefixes);
    });
  }
  std::size_t entries() const {
    std::size_t sum = 0;
    for (const auto& summary : summaries_) sum += summary.entries();
    return sum;
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& summary : summaries_) sum += summary.bytes();
    return sum;
  }

 private:
  PrefixLevels<Key> levels_;
  std::vector<FrequencySummary<Key>> summaries_;  // the first one, of everything, stays empty
};

template <class Key>
void SortWindow(sort::WindowSorter& sorter, std::vector<Key>& keys) {
  std::array<std::span<Key>, 1> channels{keys};
  sorter.Sort(sort::Channels<Key>(channels));
}

struct Figures {
  double sort_s = 0, joint_s = 0, each_s = 0;  // for each value
  std::size_t entries = 0, bytes = 0, most_bytes = 0, each_entries = 0, each_bytes = 0;
  double answer_us = 0;
  std::size_t reported = 0;
  bool right = true;
};

template <class Key>
Figures Measure(const Plan& plan, sort::WindowSorter& sorter, Data data, int step, double epsilon,
                std::size_t window) {
  const auto levels = PrefixLevels<Key>::Every(step);
  Source<Key> source(data);
  HierarchicalFrequencySummary<Key> joint(epsilon, levels);
  // The peer for keys that a frequency summary has, and not for every history.
  using Peer = std::conditional_t<sizeof(Key) <= 8, Key, std::uint64_t>;
  EachLevel<Peer> each(epsilon, sizeof(Key) <= 8 ? PrefixLevels<Peer>(levels.lengths())
                                                 : PrefixLevels<Peer>::Every(1));
  Figures figures;
  const auto add = [&](std::span<const Key> sorted) {
    joint.AddWindow(sorted);
    if constexpr (sizeof(Key) <= 8) each.AddWindow(sorted);
    figures.most_bytes = std::max(figures.most_bytes, joint.bytes());
  };
  for (std::size_t n = 0; n < plan.keys_before; n += window) {
    auto keys = source.Window(window);
    SortWindow(sorter, keys);
    add(keys);
  }
  std::vector<double> sort_s, joint_s, each_s;
  std::vector<Key> keys;
  for (int round = 0; round < plan.rounds; ++round) {
    double times[3] = {0, 0, 0};
    std::size_t done = 0;
    for (; done < plan.keys_per_round; done += window) {
      keys = source.Window(window);
      const double start = ThreadSeconds();
      SortWindow(sorter, keys);
      const double sorted = ThreadSeconds();
      joint.AddWindow(keys);
      const double joined = ThreadSeconds();
      if constexpr (sizeof(Key) <= 8) each.AddWindow(keys);
      times[0] += sorted - start;
      times[1] += joined - sorted;
      times[2] += ThreadSeconds() - joined;
      figures.most_bytes = std::max(figures.most_bytes, joint.bytes());
    }
    sort_s.push_back(times[0] / static_cast<double>(done));
    joint_s.push_back(times[1] / static_cast<double>(done));
    each_s.push_back(times[2] / static_cast<double>(done));
  }
  figures.sort_s = SpreadOf(sort_s).median;
  figures.joint_s = SpreadOf(joint_s).median;
  figures.each_s = SpreadOf(each_s).median;
  figures.entries = joint.entries();
  figures.bytes = joint.bytes();
  figures.each_entries = each.entries();
  figures.each_bytes = each.bytes();
  // Answers, with an open window as long as the others.
  std::vector<double> answers;
  for (int i = 0; i < plan.answers; ++i) {
    const double start = ThreadSeconds();
    const HierarchicalView<Key> view(joint.Snapshot(), keys);
    const auto items = view.HeavyHitters(0.01);
    answers.push_back(1e6 * (ThreadSeconds() - start));
    figures.reported = items.size();
    for (const auto& item : items) {
      figures.right &= item.count_high - item.count_low <= FloorFraction(epsilon, view.n());
    }
  }
  figures.answer_us = SpreadOf(answers).median;
  return figures;
}

template <class Key>
bool PrintTable(const Plan& plan, sort::WindowSorter& sorter, const std::vector<int>& steps,
                const std::vector<double>& epsilons) {
  bool right = true;
  for (const int log2_window : plan.log2_windows) {
    for (const double epsilon : epsilons) {
      for (const int step : steps) {
        for (const Data data : kAllData) {
          const Figures f =
              Measure<Key>(plan, sorter, data, step, epsilon, std::size_t{1} << log2_window);
          right &= f.right;
          std::printf("| %d | %g | 2^%d | %s | %.0f | %.0f | **%.2f** | %zu | %.1f | %.1f |",
                      PrefixLevels<Key>::Every(step).size(), epsilon, log2_window, Name(data),
                      1e-6 / f.sort_s, 1e-6 / f.joint_s, f.sort_s / (f.sort_s + f.joint_s),
                      f.entries, 1e-3 * static_cast<double>(f.bytes),
                      1e-3 * static_cast<double>(f.most_bytes));
          if (sizeof(Key) <= 8) {
            std::printf(" %.0f | %zu | %.1f |", 1e-6 / f.each_s, f.each_entries,
                        1e-3 * static_cast<double>(f.each_bytes));
          } else {
            std::printf(" – | – | – |");
          }
          std::printf(" %.0f | %zu |\n", f.answer_us, f.reported);
          std::fflush(stdout);
        }
      }
    }
  }
  return right;
}

/// Texts of five components under ids without order: what finding the items of each level costs,
/// and what one frequency summary for each level does.
bool PrintTexts(const Plan& plan, sort::WindowSorter& sorter) {
  constexpr int kDepth = 5;
  std::printf(
      "\nTexts of %d components, 2^17 of them, Zipf(1.1); ids by a hash\n\n"
      "| epsilon | window | sort, M/s | items of the window | items of all levels, M/s | "
      "summaries, M/s "
      "| share | entries | kB | answer, us | reported "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      kDepth);
  // A text is a number; each component but the last has three bits of it.
  const auto id_of = [](int level, std::uint64_t text) {
    const std::uint64_t prefix = level == kDepth ? text : text >> (17 - 3 * level);
    return Mix((prefix * 8 + static_cast<std::uint64_t>(level)) * 0x9E37'79B9'7F4A'7C15u);
  };
  std::unordered_map<std::uint64_t, TextPlace> places;
  for (std::uint64_t text = 0; text < 1 << 17; ++text) {
    for (int level = 1; level <= kDepth; ++level) {
      places[id_of(level, text)] = {level, level == 1 ? 0 : id_of(level - 1, text)};
    }
  }
  const auto place_of = [&](std::uint64_t id) { return places.find(id)->second; };
  bool right = true;
  for (const int log2_window : plan.log2_windows) {
    for (const double epsilon : {1e-3, 1e-4}) {
      using Level = FrequencySummary<std::uint64_t>;
      LeveledSummary<std::uint64_t, Level> summary(std::vector<Level>(kDepth, Level(epsilon)));
      std::mt19937_64 random(20);
      const std::size_t window = std::size_t{1} << log2_window;
      double sort_s = 0, items_s = 0, summary_s = 0;
      std::size_t timed = 0, distinct = 0;
      for (std::size_t n = 0; n < plan.keys_before; n += window) {
        std::vector<std::uint64_t> keys(window);
        for (auto& key : keys) {
          const std::uint64_t rank = ZipfRank(random);
          key = id_of(kDepth, (rank * 0x9E3779B1u) & 0x1'FFFF);
        }
        const double start = ThreadSeconds();
        SortWindow(sorter, keys);
        const double sorted = ThreadSeconds();
        std::vector<KeyWeight<std::uint64_t>> items;
        internal::ForEachRun(std::span<const std::uint64_t>(keys), 1,
                             [&](std::uint64_t key, std::uint64_t count) {
                               items.push_back({key, count});
                             });
        const auto levels =
            TextItems(std::span<const KeyWeight<std::uint64_t>>(items), kDepth, place_of);
        const double found = ThreadSeconds();
        summary.AddItems(window, std::span<const std::vector<KeyWeight<std::uint64_t>>>(levels));
        const double end = ThreadSeconds();
        if (n < plan.keys_before / 2) continue;
        sort_s += sorted - start;
        items_s += found - sorted;
        summary_s += end - found;
        timed += window;
        distinct = items.size();
      }
      std::size_t entries = 0;
      for (std::size_t i = 0; i < summary.size(); ++i) entries += summary[i].entries();
      const double start = ThreadSeconds();
      std::vector<FrequencyView<std::uint64_t>> views;
      for (std::size_t i = 0; i < summary.size(); ++i) views.emplace_back(summary[i].Snapshot());
      const auto reported = LeveledHeavyHitters<std::uint64_t>(
          std::span<const FrequencyView<std::uint64_t>>(views), 0.01,
          [&](int, std::uint64_t id) { return place_of(id).parent; });
      const double answer_us = 1e6 * (ThreadSeconds() - start);
      for (const auto& item : reported) {
        right &= item.count_high - item.count_low <= FloorFraction(epsilon, summary.count());
      }
      const auto rate = [&](double seconds) { return 1e-6 * static_cast<double>(timed) / seconds; };
      std::printf("| %g | 2^%d | %.0f | %zu | %.0f | %.0f | **%.2f** | %zu | %.1f | %.0f | %zu |\n",
                  epsilon, log2_window, rate(sort_s), distinct, rate(items_s), rate(summary_s),
                  sort_s / (sort_s + items_s + summary_s), entries,
                  1e-3 * static_cast<double>(summary.bytes()), answer_us, reported.size());
      std::fflush(stdout);
    }
  }
  return right;
}

/// Texts of five components whose ids are no hashes, but in no order either: what stands above one
/// is told by the id, whatever their number.
struct NumberedTexts {
  static constexpr int kDepth = 5, kBits = 9;  // of a component; the last one has 17
  static constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15u, kInverse = 0xF1DE'83E1'9937'733Du;
  static_assert(kOdd * kInverse == 1);
  static std::uint64_t Id(int level, std::uint64_t text) {
    const std::uint64_t prefix = level == kDepth ? text : text >> (17 + kBits * (4 - level));
    return (static_cast<std::uint64_t>(level) << 56 | prefix) * kOdd;
  }
  static TextPlace Place(std::uint64_t id) {
    const std::uint64_t plain = id * kInverse, prefix = plain & ~(std::uint64_t{255} << 56);
    const int level = static_cast<int>(plain >> 56);
    const std::uint64_t above = level == kDepth ? prefix >> 17 : prefix >> kBits;
    return {level, level == 1 ? 0 : (static_cast<std::uint64_t>(level - 1) << 56 | above) * kOdd};
  }
};

std::vector<std::vector<KeyWeight<std::uint64_t>>> ItemsOfLevels(
    std::span<const std::uint64_t> sorted) {
  std::vector<KeyWeight<std::uint64_t>> items;
  internal::ForEachRun(sorted, 1, [&](std::uint64_t key, std::uint64_t count) {
    items.push_back({key, count});
  });
  return TextItems(std::span<const KeyWeight<std::uint64_t>>(items), NumberedTexts::kDepth,
                   NumberedTexts::Place);
}

/// The last 10^6 texts: sliding counts of each level, and how many texts a dictionary holds for it.
bool PrintSlidingTexts(const Plan& plan, sort::WindowSorter& sorter) {
  std::printf(
      "\nTexts of %d components, the last 10^6\n\n"
      "| epsilon | data | sort, M/s | items of all levels, M/s | summary, M/s | entries | kB | "
      "texts "
      "known | answer of the last 10^6, us | 10^5 | reported |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n",
      NumberedTexts::kDepth);
  bool right = true;
  for (const double epsilon : {1e-2, 1e-3}) {
    for (const bool fresh : {false, true}) {
      SlidingOptions options;
      options.epsilon = epsilon;
      options.max_values = 1'000'000;
      SlidingRecord<std::uint64_t> record(options);
      SlidingLevels summary(record.shared_rule(), NumberedTexts::kDepth);
      std::mt19937_64 random(20);
      const std::size_t size = record.rule().block_size();
      double sort_s = 0, items_s = 0, summary_s = 0;
      std::size_t timed = 0;
      for (std::size_t n = 0; n < plan.keys_before; n += size) {
        std::vector<std::uint64_t> keys(size);
        for (auto& key : keys) {
          // Half of the new ones lie somewhere below one prefix.
          const std::uint64_t text = fresh ? random() : Mix(ZipfRank(random) * NumberedTexts::kOdd);
          key = NumberedTexts::Id(NumberedTexts::kDepth,
                                  fresh && text % 2 == 0 ? text >> 38 : text >> 11);
        }
        auto arrived = std::make_shared_for_overwrite<std::uint64_t[]>(size);
        std::copy(keys.begin(), keys.end(), arrived.get());
        record.AddBlock(std::move(arrived), {});
        const double start = ThreadSeconds();
        SortWindow(sorter, keys);
        const double sorted = ThreadSeconds();
        const auto items = ItemsOfLevels(keys);
        const double found = ThreadSeconds();
        summary.AddBlock(items, record.expired());
        const double end = ThreadSeconds();
        if (n < plan.keys_before / 2) continue;
        sort_s += sorted - start;
        items_s += found - sorted;
        summary_s += end - found;
        timed += size;
      }
      std::unordered_set<std::uint64_t> known;
      const auto know = [&](std::uint64_t id) {
        while (known.insert(id).second && NumberedTexts::Place(id).level > 1) {
          id = NumberedTexts::Place(id).parent;
        }
      };
      record.ForEachKey(know);
      summary.ForEachKey(know);
      std::array<double, 2> answer_us{};
      std::size_t reported = 0;
      for (const std::size_t width : {1'000'000, 100'000}) {
        std::vector<double> answers;
        for (int i = 0; i < plan.answers; ++i) {
          const double start = ThreadSeconds();
          const auto cover = summary.Cover(record.Last(width, 0), record);
          const std::vector<SlidingLevelsCover::Items> later(summary.size());
          const auto items_of = [](std::span<const std::uint64_t> ids) {
            return std::optional(ItemsOfLevels(ids));
          };
          const auto views = cover.Views(items_of, later, 0).value();
          const auto items = LeveledHeavyHitters<std::uint64_t>(
              std::span<const FrequencyView<std::uint64_t>>(views), 0.05,
              [](int, std::uint64_t id) { return NumberedTexts::Place(id).parent; });
          answers.push_back(1e6 * (ThreadSeconds() - start));
          for (const auto& view : views) right &= view.WithinEpsilon();
          if (width == 1'000'000) reported = items.size();
        }
        answer_us[width == 1'000'000 ? 0 : 1] = SpreadOf(answers).median;
      }
      const auto rate = [&](double seconds) { return 1e-6 * static_cast<double>(timed) / seconds; };
      std::printf("| %g | %s | %.0f | %.1f | %.1f | %zu | %.1f | %zu | %.0f | %.0f | %zu |\n",
                  epsilon, fresh ? "ever new" : "Zipf(1.1)", rate(sort_s), rate(items_s),
                  rate(summary_s), summary.entries(), 1e-3 * static_cast<double>(summary.bytes()),
                  known.size(), answer_us[0], answer_us[1], reported);
      std::fflush(stdout);
    }
  }
  return right;
}

/// The last 10^6 addresses: one sliding hierarchy, and sliding frequencies for each level.
bool PrintSliding(const Plan& plan, sort::WindowSorter& sorter, const std::vector<int>& steps) {
  std::printf(
      "\nIPv4, the last 10^6\n\n"
      "| levels | epsilon | data | sort, M/s | summary, M/s | share | entries | kB | each level: "
      "M/s "
      "| kB | answer of the last 10^6, us | 10^5 | reported |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  bool right = true;
  using Key = std::uint32_t;
  for (const double epsilon : {1e-2, 1e-3}) {
    for (const int step : steps) {
      for (const Data data : kAllData) {
        const auto levels = PrefixLevels<Key>::Every(step);
        SlidingOptions options;
        options.epsilon = epsilon;
        options.max_values = 1'000'000;
        SlidingRecord<Key> record(options);
        SlidingHierarchy<Key> joint(record.shared_rule(), levels);
        std::vector<SlidingFrequencies<Key>> each(static_cast<std::size_t>(levels.size()),
                                                  SlidingFrequencies<Key>(record.shared_rule()));
        Source<Key> source(data);
        const std::size_t size = record.rule().block_size();
        double sort_s = 0, joint_s = 0, each_s = 0;
        std::size_t timed = 0;
        for (std::size_t n = 0; n < plan.keys_before; n += size) {
          auto keys = source.Window(size);
          auto arrived = std::make_shared_for_overwrite<Key[]>(size);
          std::copy(keys.begin(), keys.end(), arrived.get());
          record.AddBlock(std::move(arrived), {});
          const double start = ThreadSeconds();
          SortWindow(sorter, keys);
          const double sorted = ThreadSeconds();
          joint.AddBlock(keys, record.expired());
          const double joined = ThreadSeconds();
          ForEachLevel(levels, std::span<const Key>(keys),
                       [&](int level, std::span<const Key> prefixes) {
                         each[static_cast<std::size_t>(level)].AddBlock(prefixes, record.expired());
                       });
          const double end = ThreadSeconds();
          if (n < plan.keys_before / 2) continue;
          sort_s += sorted - start;
          joint_s += joined - sorted;
          each_s += end - joined;
          timed += size;
        }
        std::size_t each_bytes = 0;
        for (const auto& summary : each) each_bytes += summary.bytes();
        std::array<double, 2> answer_us{};
        std::size_t reported = 0;
        for (const std::size_t width : {1'000'000, 100'000}) {
          std::vector<double> answers;
          for (int i = 0; i < plan.answers; ++i) {
            const double start = ThreadSeconds();
            const auto range = record.Last(width, 0);
            const SlidingHierarchicalView<Key> view(joint.Cover(range, record), {});
            const auto items = view.HeavyHitters(0.05);
            answers.push_back(1e6 * (ThreadSeconds() - start));
            right &= view.WithinEpsilon();
            if (width == 1'000'000) reported = items.size();
          }
          answer_us[width == 1'000'000 ? 0 : 1] = SpreadOf(answers).median;
        }
        const auto rate = [&](double seconds) {
          return 1e-6 * static_cast<double>(timed) / seconds;
        };
        std::printf(
            "| %d | %g | %s | %.0f | %.0f | **%.2f** | %zu | %.1f | %.0f | %.1f | %.0f | %.0f | "
            "%zu "
            "|\n",
            levels.size(), epsilon, Name(data), rate(sort_s), rate(joint_s),
            sort_s / (sort_s + joint_s), joint.entries(), 1e-3 * static_cast<double>(joint.bytes()),
            rate(each_s), 1e-3 * static_cast<double>(each_bytes), answer_us[0], answer_us[1],
            reported);
        std::fflush(stdout);
      }
    }
  }
  return right;
}

int Run(const Plan& plan, const std::string& part) {
  sort::SorterOptions options;
  options.name = "cpu";
  const auto selection = sort::MakeSorter(options);
  std::printf("%s, one thread, sorter %s, after %.1f million values.\n", CpuModel().c_str(),
              selection.report.active.c_str(), 1e-6 * static_cast<double>(plan.keys_before));
  const auto head = [](const char* keys) {
    std::printf(
        "\n%s\n\n"
        "| levels | epsilon | window | data | sort, M/s | summary, M/s | share | entries | kB | "
        "most "
        "kB | each level: M/s | entries | kB | answer, us | reported |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        keys);
  };
  bool right = true;
  if (part.empty() || part == "--ipv4") {
    head("IPv4");
    right &= PrintTable<std::uint32_t>(plan, *selection.sorter, {8, 1}, {1e-3, 1e-4});
  }
  if (part.empty() || part == "--ipv6") {
    head("IPv6");
    right &= PrintTable<Key128>(plan, *selection.sorter, {8, 1}, {1e-3});
  }
  if (part.empty() || part == "--sliding") right &= PrintSliding(plan, *selection.sorter, {8, 1});
  if (part.empty() || part == "--texts") {
    right &= PrintTexts(plan, *selection.sorter);
    right &= PrintSlidingTexts(plan, *selection.sorter);
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
  const std::string part = argc > 1 ? argv[1] : "";
  const bool known = part.empty() || part == "--smoke" || part == "--ipv4" || part == "--ipv6" ||
                     part == "--sliding" || part == "--texts";
  if (argc > 2 || !known) {
    std::fprintf(stderr,
                 "usage: hierarchy_bench [--smoke | --ipv4 | --ipv6 | --sliding | --texts]\n");
    return 2;
  }
  return part == "--smoke" ? tidemark::Run(tidemark::SmokePlan(), "")
                           : tidemark::Run(tidemark::Plan(), part);
}
