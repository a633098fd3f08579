// Streams of pairs (x, y) that correlated sums find hard, from a seed, and the exact truth about
// them.
#ifndef TIDEMARK_TESTS_SUMMARIES_PAIR_CASES_H_
#define TIDEMARK_TESTS_SUMMARIES_PAIR_CASES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/summaries/distributions.h"
#include "tests/summaries/wide_sum.h"

namespace tidemark::testing {

enum class Ys {
  kOnes,
  kSmall,         // both signs
  kAlternating,   // great, of alternating signs: the sums cancel
  kFewHuge,       // all but every hundredth nothing beside it
  kHugeAtBorder,  // the least and the greatest x carry nearly everything
  kHeavyTailed,
  kGrowing,   // by the time: the unit of doubles rises again and again
  kExtremes,  // the largest, the smallest, denormals, 0
  kLikeX,
};
inline constexpr Ys kAllYs[] = {Ys::kOnes,    Ys::kSmall,        Ys::kAlternating,
                                Ys::kFewHuge, Ys::kHugeAtBorder, Ys::kHeavyTailed,
                                Ys::kGrowing, Ys::kExtremes,     Ys::kLikeX};
inline const char* Name(Ys ys) {
  static constexpr const char* kNames[] = {"ones",     "small",    "alternating",
                                           "few huge", "border",   "heavy-tailed",
                                           "growing",  "extremes", "like x"};
  return kNames[static_cast<int>(ys)];
}

template <class Key, class Y>
using Pairs = std::vector<std::pair<Key, Y>>;

template <class Key, class Y>
Y DrawY(Ys kind, Key x, std::size_t i, std::size_t n, bool border, std::mt19937_64& random) {
  using Limits = std::numeric_limits<Y>;
  const auto real = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto cast = [](double value) {  // saturating, sign dropped where there is none
    if constexpr (std::is_floating_point_v<Y>) {
      return value;
    } else {
      if (std::is_unsigned_v<Y>) value = std::abs(value);
      if (value >= std::ldexp(1.0, Limits::digits)) return Limits::max();
      if (value < -std::ldexp(1.0, Limits::digits)) return Limits::min();
      return static_cast<Y>(value);
    }
  };
  switch (kind) {
    case Ys::kOnes:
      return 1;
    case Ys::kSmall:
      return cast(std::floor(real() * 200) - 100);
    case Ys::kAlternating:
      return cast((i % 2 == 0 ? 1 : -1) * (1e15 + std::floor(real() * 100)));
    case Ys::kFewHuge:
      return random() % 100 == 0 ? cast(1e18) : cast(real() * 10);
    case Ys::kHugeAtBorder:
      return border ? cast(random() % 2 == 0 ? 9e18 : -9e18) : cast(real() * 10);
    case Ys::kHeavyTailed:
      return cast((random() % 2 == 0 ? 1 : -1) * std::pow(real() + 1e-12, -1.2));
    case Ys::kGrowing:
      return cast(std::ldexp(real() + 1, static_cast<int>(60 * i / n)));
    case Ys::kExtremes: {
      const Y values[] = {Limits::max(), Limits::lowest(),      Limits::min(), Limits::denorm_min(),
                          Y{0},          static_cast<Y>(-Y{0}), Y{1},          Limits::max() / 3};
      return values[random() % std::size(values)];
    }
    case Ys::kLikeX:
      return cast(static_cast<double>(x));
  }
  return 0;
}

template <class Key, class Y>
Pairs<Key, Y> GeneratePairs(Distribution xs, Ys ys, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto keys = Generate<Key>(xs, n, seed);
  Pairs<Key, Y> pairs(n);
  if (n == 0) return pairs;
  const auto [least, greatest] = std::minmax_element(keys.begin(), keys.end());
  for (std::size_t i = 0; i < n; ++i) {
    const bool border = keys[i] == *least || keys[i] == *greatest;
    pairs[i] = {keys[i], DrawY<Key, Y>(ys, keys[i], i, n, border, random)};
  }
  return pairs;
}

/// Everything, sorted by x, with exact sums of all that come before.
template <class Key, class Y>
class PairOracle {
 public:
  struct Sums {
    std::uint64_t count = 0;
    WideSum positive, negative;
    WideSum sum() const { return positive - negative; }
    WideSum weight() const { return positive + negative; }
  };

  explicit PairOracle(Pairs<Key, Y> pairs) {
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Sums sums;
    for (const auto& [x, y] : pairs) {
      if (y < 0) {
        sums.negative -= WideSum::Of(y);
      } else {
        sums.positive += WideSum::Of(y);
      }
      ++sums.count;
      // A sum for each distinct x alone: they are large.
      if (!x_.empty() && x == x_.back()) {
        through_.back() = sums;
      } else {
        x_.push_back(x);
        through_.push_back(sums);
      }
    }
  }
  std::uint64_t n() const { return through_.empty() ? 0 : through_.back().count; }
  const std::vector<Key>& distinct() const { return x_; }
  const Sums& all() const { return through_.empty() ? none_ : through_.back(); }
  /// Of the pairs with x <= v.
  const Sums& AtMost(Key v) const {
    const auto after = std::upper_bound(x_.begin(), x_.end(), v) - x_.begin();
    return after == 0 ? none_ : through_[static_cast<std::size_t>(after - 1)];
  }
  const Sums& Less(Key v) const { return v == 0 ? none_ : AtMost(static_cast<Key>(v - 1)); }
  bool Contains(Key v) const { return std::binary_search(x_.begin(), x_.end(), v); }
  /// The x of rank t, from 1.
  Key AtRank(std::uint64_t t) const {
    const auto at =
        std::lower_bound(through_.begin(), through_.end(), t,
                         [](const Sums& sums, std::uint64_t rank) { return sums.count < rank; });
    return x_[static_cast<std::size_t>(at - through_.begin())];
  }

 private:
  std::vector<Key> x_;
  std::vector<Sums> through_;
  Sums none_;
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_PAIR_CASES_H_
