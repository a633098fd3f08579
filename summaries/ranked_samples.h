// Elements of a multiset, each with bounds of its rank: what every compact form of a quantile
// summary comes down to.
//
// In one fixed order of equal values, keys[i] is an element of rank r with low[i] <= r <= high[i].
// So of `count` values, those < v number at least low[i] for the last i with keys[i] < v, and at
// most high[j] - 1 for the first j with keys[j] >= v; and alike for those <= v.
#ifndef TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_
#define TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_

#include <cstdint>
#include <vector>

namespace tidemark {

template <class Key>
struct RankedSamples {
  std::uint64_t count = 0;          ///< values it stands for
  std::vector<Key> keys;            ///< ascending; the minimum first and the maximum last
  std::vector<std::uint64_t> low;   ///< ascending, from 1
  std::vector<std::uint64_t> high;  ///< ascending, to count; low[i] <= high[i]
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_RANKED_SAMPLES_H_
