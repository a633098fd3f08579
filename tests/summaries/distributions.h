// Input sequences that summaries and sorters find hard, as keys, from a seed.
#ifndef TIDEMARK_TESTS_SUMMARIES_DISTRIBUTIONS_H_
#define TIDEMARK_TESTS_SUMMARIES_DISTRIBUTIONS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "summaries/key_codec.h"

namespace tidemark::testing {

enum class Distribution {
  kUniform,
  kLognormal,
  kZipf,
  kSorted,
  kReversed,
  kAllEqual,
  kFewDistinct,
  kSawtooth,
  kFloatExtremes,  // ±infinity, ±0, denormals, ordinary numbers
  kZoomIn,         // ever closer to a point from both sides: the adversary of sampled summaries
  kKeyExtremes,    // the smallest and the largest keys
};
inline constexpr Distribution kDistributions[] = {
    Distribution::kUniform,     Distribution::kLognormal,   Distribution::kZipf,
    Distribution::kSorted,      Distribution::kReversed,    Distribution::kAllEqual,
    Distribution::kFewDistinct, Distribution::kSawtooth,    Distribution::kFloatExtremes,
    Distribution::kZoomIn,      Distribution::kKeyExtremes,
};
inline const char* Name(Distribution distribution) {
  static constexpr const char* kNames[] = {"uniform",        "lognormal", "zipf",        "sorted",
                                           "reversed",       "all equal", "few",         "sawtooth",
                                           "float extremes", "zoom in",   "key extremes"};
  return kNames[static_cast<int>(distribution)];
}

/// Ranks 1 … 2^16 with probability proportional to rank^-1.1, as a table of cumulated weights.
inline const std::vector<double>& ZipfTable() {
  static const std::vector<double> table = [] {
    std::vector<double> sums;
    double sum = 0;
    for (int rank = 1; rank <= 1 << 16; ++rank) sums.push_back(sum += std::pow(rank, -1.1));
    return sums;
  }();
  return table;
}

template <class Key>
std::vector<Key> Generate(Distribution distribution, std::size_t n, std::uint64_t seed) {
  using Float = std::conditional_t<sizeof(Key) == 4, float, double>;
  std::mt19937_64 random(seed);
  std::vector<Key> keys(n);
  const auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  std::lognormal_distribution<double> lognormal(0, 2);
  for (std::size_t i = 0; i < n; ++i) {
    switch (distribution) {
      case Distribution::kUniform:
        keys[i] = static_cast<Key>(random());
        break;
      case Distribution::kLognormal:
        keys[i] = EncodeKey(static_cast<Float>(lognormal(random)));
        break;
      case Distribution::kZipf: {
        const auto& table = ZipfTable();
        const auto rank =
            std::lower_bound(table.begin(), table.end(), real(0, table.back())) - table.begin();
        keys[i] = static_cast<Key>(static_cast<Key>(rank) * Key{0x9E3779B1});
        break;
      }
      case Distribution::kSorted:
        keys[i] = static_cast<Key>(i);
        break;
      case Distribution::kReversed:
        keys[i] = static_cast<Key>(n - i);
        break;
      case Distribution::kAllEqual:
        keys[i] = 77;
        break;
      case Distribution::kFewDistinct:
        keys[i] = static_cast<Key>(random() % 9);
        break;
      case Distribution::kSawtooth:
        keys[i] = static_cast<Key>(i % 1000);
        break;
      case Distribution::kFloatExtremes: {
        using Limits = std::numeric_limits<Float>;
        const Float values[] = {Limits::infinity(),
                                -Limits::infinity(),
                                Limits::denorm_min(),
                                -Limits::denorm_min(),
                                Limits::max(),
                                Limits::lowest(),
                                Float{0},
                                -Float{0},
                                Limits::min()};
        keys[i] = EncodeKey(random() % 2 == 0 ? values[random() % std::size(values)]
                                              : static_cast<Float>(real(-1, 1)));
        break;
      }
      case Distribution::kZoomIn: {
        const Key middle = Key{1} << (8 * sizeof(Key) - 1);
        const auto away = static_cast<Key>(n - i);
        keys[i] = static_cast<Key>(i % 2 == 0 ? middle + away : middle - away);
        break;
      }
      case Distribution::kKeyExtremes:
        keys[i] = static_cast<Key>(random() % 2 == 0 ? random() % 3 : ~(random() % 3));
        break;
    }
  }
  return keys;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_DISTRIBUTIONS_H_
