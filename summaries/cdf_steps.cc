#include "summaries/cdf_steps.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace tidemark {

template <class Key>
CountBounds CdfSteps<Key>::AtMost(Key v) const {
  const auto at =
      static_cast<std::size_t>(std::upper_bound(keys.begin(), keys.end(), v) - keys.begin());
  return at == 0 ? CountBounds{0, below} : CountBounds{low[at - 1], high[at - 1]};
}

template <class Key>
std::vector<CountBounds> CdfSteps<Key>::AtMost(std::span<const Key> ascending) const {
  if (!std::is_sorted(ascending.begin(), ascending.end())) {
    throw std::invalid_argument("the points of a distribution do not ascend");
  }
  std::vector<CountBounds> bounds;
  bounds.reserve(ascending.size());
  std::size_t at = 0;  // steps at or below the point
  for (const Key v : ascending) {
    while (at < keys.size() && keys[at] <= v) ++at;
    bounds.push_back(at == 0 ? CountBounds{0, below} : CountBounds{low[at - 1], high[at - 1]});
  }
  return bounds;
}

// Fewer than `rank` values lie at or below any key before the first step whose upper bound reaches
// it; at least `rank` at or below the first whose lower bound does.
template <class Key>
KeyBounds<Key> CdfSteps<Key>::ValueAt(std::uint64_t rank) const {
  KeyBounds<Key> bounds{0, std::numeric_limits<Key>::max()};
  if (rank > below) {
    const auto reached = std::lower_bound(high.begin(), high.end(), rank) - high.begin();
    bounds.low = keys[static_cast<std::size_t>(reached)];
  }
  const auto surely = std::lower_bound(low.begin(), low.end(), rank);
  if (surely != low.end()) bounds.high = keys[static_cast<std::size_t>(surely - low.begin())];
  return bounds;
}

template struct CdfSteps<std::uint32_t>;
template struct CdfSteps<std::uint64_t>;

}  // namespace tidemark
