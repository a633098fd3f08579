// Builders and the naive reference that all tests of sorters share.
#ifndef TIDEMARK_TESTS_GPU_SORT_CASES_H_
#define TIDEMARK_TESTS_GPU_SORT_CASES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu/sort/window_sorter.h"

namespace tidemark::sort::testing {

inline const std::vector<std::string>& Distributions() {
  static const std::vector<std::string> all = {
      "random",         "few distinct",  "all equal",     "all zero",   "all max",
      "zero and max",   "sorted",        "reversed",      "organ pipe", "sawtooth",
      "float patterns", "low bits only", "high bits only"};
  return all;
}

/// Order-preserving keys of floats, as summaries/key_codec.h makes them: the bit patterns at which
/// sorters of floats go wrong (infinities, denormals, zero, the largest finite numbers).
template <class Key>
Key FloatPattern(std::uint64_t pick) {
  if constexpr (sizeof(Key) == 16) {  // no floats have so many bits: the patterns of two doubles
    return Key{FloatPattern<std::uint64_t>(pick)} << 64 | FloatPattern<std::uint64_t>(pick >> 8);
  } else {
    using Float = std::conditional_t<sizeof(Key) == 4, float, double>;
    using Limits = std::numeric_limits<Float>;
    const std::array<Float, 12> values = {Limits::infinity(),
                                          -Limits::infinity(),
                                          Limits::denorm_min(),
                                          -Limits::denorm_min(),
                                          Limits::min(),
                                          -Limits::min(),
                                          Limits::max(),
                                          Limits::lowest(),
                                          Float{0},
                                          Float{1},
                                          Float{-1},
                                          Limits::epsilon()};
    const Key bits = std::bit_cast<Key>(values[pick % values.size()]);
    const Key sign = Key{1} << (std::numeric_limits<Key>::digits - 1);
    return (bits & sign) != 0 ? static_cast<Key>(~bits) : static_cast<Key>(bits | sign);
  }
}

template <class Key>
std::vector<Key> MakeKeys(const std::string& distribution, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Key max = static_cast<Key>(~Key{0});
  std::vector<Key> keys(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t r = random();
    Key key = static_cast<Key>(r);
    if constexpr (sizeof(Key) == 16) key |= Key{random()} << 64;
    if (distribution == "few distinct") key = static_cast<Key>((r % 7) * 0x9e3779b97f4a7c15U);
    if (distribution == "all equal") key = static_cast<Key>(0x8123456789abcdefU);
    if (distribution == "all zero") key = 0;
    if (distribution == "all max") key = max;
    if (distribution == "zero and max") key = (r & 1) != 0 ? max : 0;
    if (distribution == "organ pipe") key = static_cast<Key>(std::min(i, n - i));
    if (distribution == "sawtooth") key = static_cast<Key>(i % 37);
    if (distribution == "float patterns") key = FloatPattern<Key>(r);
    if (distribution == "low bits only") key = static_cast<Key>(r & 0xffff);
    if (distribution == "high bits only") {
      key = static_cast<Key>(static_cast<Key>(r) & ~(max >> (sizeof(Key) * 4)));
    }
    keys[i] = key;
  }
  if (distribution == "sorted" || distribution == "reversed") std::sort(keys.begin(), keys.end());
  if (distribution == "reversed") std::reverse(keys.begin(), keys.end());
  return keys;
}

/// Sorts the windows with `sorter` and with std::sort and compares them to the bit.
template <class Key>
void ExpectSortsLikeStdSort(WindowSorter& sorter, std::vector<std::vector<Key>> windows,
                            const std::string& what) {
  std::vector<std::vector<Key>> expected = windows;
  for (std::vector<Key>& keys : expected) std::sort(keys.begin(), keys.end());
  std::vector<std::span<Key>> channels(windows.begin(), windows.end());
  try {
    sorter.Sort(Channels<Key>(channels));
  } catch (const SorterError& error) {
    ADD_FAILURE() << what << ": " << error.what();
    return;
  }
  for (std::size_t c = 0; c < windows.size(); ++c) {
    // Not EXPECT_EQ, which would print every key.
    EXPECT_TRUE(windows[c] == expected[c])
        << sorter.name() << ", " << 8 * sizeof(Key) << "-bit keys, " << what << ": channel " << c
        << " of " << windows[c].size() << " keys is not what std::sort makes of it";
  }
}

/// Lengths 0 to 66, then both sides of every power of two up to `last`.
inline std::vector<std::size_t> Ladder(std::size_t last) {
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n <= 66; ++n) lengths.push_back(n);
  for (std::size_t power = 128; power <= last; power *= 2) {
    lengths.insert(lengths.end(), {power - 1, power, power + 1});
  }
  return lengths;
}

}  // namespace tidemark::sort::testing

#endif  // TIDEMARK_TESTS_GPU_SORT_CASES_H_
