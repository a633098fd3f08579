// Random inputs that change their mind: stretches of several distributions after one another, as
// streams have them that drift, restart or turn against what was seen before.
#ifndef TIDEMARK_TESTS_SUMMARIES_MIXED_INPUT_H_
#define TIDEMARK_TESTS_SUMMARIES_MIXED_INPUT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/summaries/distributions.h"

namespace tidemark::testing {

/// Keys, the parts of 1 that epsilon is, and a seed for what else a check draws.
template <class Key>
struct MixedInput {
  std::vector<Key> keys;
  std::uint64_t parts = 1;
  std::uint64_t seed = 0;
};

/// Up to `most` keys, as often few as many, in one to four stretches; some of them start again at
/// small keys, shuffle blocks, or zoom out.
template <class Key>
MixedInput<Key> DrawMixed(std::mt19937_64& random, std::size_t most) {
  static constexpr std::uint64_t kParts[] = {2, 3, 10, 20, 50, 100, 1000};
  MixedInput<Key> input;
  input.parts = kParts[random() % std::size(kParts)];
  input.seed = random();
  const std::uint64_t bits = random() % (static_cast<std::uint64_t>(std::bit_width(most)));
  const std::size_t size = 1 + random() % std::min<std::size_t>(most, std::size_t{2} << bits);
  while (input.keys.size() < size) {
    const std::size_t stretch = std::min(size - input.keys.size(), 1 + random() % size);
    const auto distribution = kDistributions[random() % std::size(kDistributions)];
    auto keys = Generate<Key>(distribution, stretch, random());
    switch (random() % 6) {
      case 0:  // zoom in becomes zoom out, sorted reversed
        std::reverse(keys.begin(), keys.end());
        break;
      case 1: {  // shuffled blocks
        const std::size_t block = 1 + random() % (stretch / 2 + 1);
        for (std::size_t at = 0; at + 2 * block <= stretch; at += block) {
          const auto first = keys.begin() + static_cast<std::ptrdiff_t>(at);
          if (random() % 2 == 0) {
            std::swap_ranges(first, first + static_cast<std::ptrdiff_t>(block),
                             first + static_cast<std::ptrdiff_t>(block));
          }
        }
        break;
      }
      case 2:  // drifting
        for (std::size_t i = 0; i < stretch; ++i) keys[i] = static_cast<Key>(keys[i] / 8 + i);
        break;
      default:
        break;
    }
    input.keys.insert(input.keys.end(), keys.begin(), keys.end());
  }
  return input;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_MIXED_INPUT_H_
