// What a summary of pairs is made of in a test: streams of windows, merged in a random tree, and an
// open window.
#ifndef TIDEMARK_TESTS_SUMMARIES_PAIR_TRIAL_H_
#define TIDEMARK_TESTS_SUMMARIES_PAIR_TRIAL_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "summaries/correlated_sums.h"
#include "tests/summaries/pair_cases.h"

namespace tidemark::testing {

/// What a summary is made of: streams of windows, in their order of arrival, that are merged in a
/// random tree, and an open window.
template <class Key, class Y>
struct Trial {
  std::uint64_t parts = 100;  ///< epsilon = 1 / parts
  std::vector<std::vector<Pairs<Key, Y>>> streams;
  Pairs<Key, Y> open;
  std::uint64_t merge_seed = 0;

  double epsilon() const { return 1.0 / static_cast<double>(parts); }
  Pairs<Key, Y> All() const {
    Pairs<Key, Y> all = open;
    for (const auto& windows : streams) {
      for (const auto& window : windows) all.insert(all.end(), window.begin(), window.end());
    }
    return all;
  }
  std::string Print() const {
    std::ostringstream out;
    out.precision(17);
    out << "epsilon 1/" << parts << " merge seed " << merge_seed << '\n';
    const auto print = [&](const char* what, const Pairs<Key, Y>& window) {
      out << "  " << what;
      for (std::size_t i = 0; i < std::min<std::size_t>(window.size(), 40); ++i) {
        out << " (" << window[i].first << ", " << window[i].second << ')';
      }
      out << (window.size() > 40 ? " …\n" : "\n");
    };
    for (const auto& windows : streams) {
      out << "stream\n";
      for (const auto& window : windows) print("window", window);
    }
    print("open", open);
    return out.str();
  }
};

/// Sorted by x alone; equal x stay in their order.
template <class Key, class Y>
struct Window {
  explicit Window(Pairs<Key, Y> pairs) {
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, value] : pairs) {
      x.push_back(key);
      y.push_back(value);
    }
  }
  std::vector<Key> x;
  std::vector<Y> y;
};

template <class Key, class Y>
CorrelatedSums<Key> Summarize(const Trial<Key, Y>& trial) {
  std::vector<CorrelatedSums<Key>> sums;
  for (const auto& windows : trial.streams) {
    sums.emplace_back(trial.epsilon(), SumTypeOf<Y>::value);
    for (const auto& pairs : windows) {
      const Window<Key, Y> window(pairs);
      sums.back().AddWindow(std::span<const Key>(window.x), std::span<const Y>(window.y));
    }
  }
  if (sums.empty()) return CorrelatedSums<Key>(trial.epsilon(), SumTypeOf<Y>::value);
  std::mt19937_64 random(trial.merge_seed);
  while (sums.size() > 1) {
    std::swap(sums[random() % sums.size()], sums.back());
    const auto other = std::move(sums.back());
    sums.pop_back();
    sums[random() % sums.size()].Merge(other);
  }
  return sums.front();
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_PAIR_TRIAL_H_
