// Elements of a multiset, each with bounds of its rank: what every compact form of a quantile
// summary comes down to.
//
// In one fixed order of equal values, keys[i] is an element of rank r_i with low[i] <= r_i <=
// high[i], and r_0 < r_1 < … are ranks of different elements. So of `count` values, those < v
// number at least low[i] for the last i with keys[i] < v, and at most high[j] - 1 for the first j
// with keys[j] >= v; and alike for those <= v.
#ifndef TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_
#define TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark {

template <class Key>
struct RankedSamples {
  std::uint64_t count = 0;          ///< values it stands for
  std::vector<Key> keys;            ///< ascending; the minimum first and the maximum last
  std::vector<std::uint64_t> low;   ///< strictly ascending, from 1 to count
  std::vector<std::uint64_t> high;  ///< strictly ascending, from 1 to count; low[i] <= high[i]

  /// At least so many of the values come no later than the `samples`-th sample.
  std::uint64_t Low(std::size_t samples) const { return samples == 0 ? 0 : low[samples - 1]; }
  /// At most so many of the values come before the sample behind the `samples`-th.
  std::uint64_t High(std::size_t samples) const {
    return samples == high.size() ? count : high[samples] - 1;
  }

  /// By how much the bounds of a rank between two samples may differ: the most that
  /// High(i) - Low(i) comes to, but for an i between equal samples, where nothing else lies. 0:
  /// every rank is known. Cost: one pass.
  std::uint64_t Width() const {
    std::uint64_t width = 0;
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const bool apart = keys[i - 1] != keys[i];
      width = std::max(width, apart ? high[i] - 1 - low[i - 1] : 0);
    }
    return width;
  }

  /// What is said above of keys and bounds, as far as it can be seen from them. Cost: one pass.
  bool Consistent() const {
    const std::size_t size = keys.size();
    if (low.size() != size || high.size() != size || (size == 0) != (count == 0)) return false;
    if (size == 0) return true;
    bool right =
        low.front() == 1 && high.front() == 1 && low.back() == count && high.back() == count;
    for (std::size_t i = 0; i < size; ++i) {
      right &= low[i] <= high[i];
      if (i > 0) right &= keys[i - 1] <= keys[i] && low[i - 1] < low[i] && high[i - 1] < high[i];
    }
    return right;
  }
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_
