// A property tried on many random inputs; one that breaks it is made small before it is shown.
//
//   ForSeeds<Input>(Cases(2000), draw, check);
//
// draws an input from each seed and checks it with ordinary assertions. Input has `keys`, a vector
// that is not empty, and whatever else the check needs. When a check fails, keys are taken out, and
// then replaced by their ranks, as long as it still fails; then it runs once more, and its failures
// are reported beside the seed and what is left of the input.
#ifndef TIDEMARK_TESTS_SUMMARIES_PROPERTY_H_
#define TIDEMARK_TESTS_SUMMARIES_PROPERTY_H_

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <vector>

namespace tidemark::testing {

/// Whether `check(input)` fails an assertion or throws. Nothing is reported.
template <class Input, class Check>
bool Breaks(const Input& input, Check& check) {
  ::testing::TestPartResultArray results;
  {
    ::testing::ScopedFakeTestPartResultReporter silent(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    try {
      check(input);
    } catch (const std::exception&) {
      return true;
    }
  }
  for (int i = 0; i < results.size(); ++i) {
    if (results.GetTestPartResult(i).failed()) return true;
  }
  return false;
}

/// Takes out keys, half of them at first and at last one at a time, while the check still fails.
template <class Input, class Check>
Input Shrunk(Input input, Check& check) {
  int tries = 3000;  // of a check that takes milliseconds: some seconds
  for (std::size_t part = (input.keys.size() + 1) / 2; part > 0; part /= 2) {
    for (std::size_t at = 0; at < input.keys.size() && tries > 0;) {
      Input less = input;
      const auto first = less.keys.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t end = std::min(at + part, input.keys.size());
      less.keys.erase(first, less.keys.begin() + static_cast<std::ptrdiff_t>(end));
      --tries;
      if (!less.keys.empty() && Breaks(less, check)) {
        input = less;
      } else {
        at += part;
      }
    }
  }
  auto sorted = input.keys;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Input ranks = input;
  for (auto& key : ranks.keys) {
    key = static_cast<typename decltype(input.keys)::value_type>(
        std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin());
  }
  return Breaks(ranks, check) ? ranks : input;
}

/// `draw(random)` gives an Input, `check(input)` asserts. Stops at the first seed that fails.
template <class Input, class Draw, class Check>
void ForSeeds(int cases, Draw draw, Check check) {
  for (int seed = 0; seed < cases; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const Input input = draw(random);
    if (!Breaks(input, check)) continue;
    const Input least = Shrunk(input, check);
    ::testing::Message keys;
    for (std::size_t i = 0; i < std::min<std::size_t>(least.keys.size(), 300); ++i) {
      const auto key = least.keys[i];
      if constexpr (sizeof(key) > 8) {  // no stream takes 128 bits: both halves
        keys << ' ' << static_cast<std::uint64_t>(key >> 64) << ':';
      }
      keys << (sizeof(key) > 8 ? "" : " ") << static_cast<std::uint64_t>(key);
    }
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << input.keys.size()
                                      << " keys, shrunk to " << least.keys.size() << ':' << keys);
    check(least);
    ADD_FAILURE() << "a property does not hold";
    return;
  }
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_PROPERTY_H_
