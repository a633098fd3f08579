#include "summaries/tail_digest.h"

#include <algorithm>
#include <cstddef>

namespace tidemark {

template <class Key>
WindowDigest<Key> TailDigestSorted(std::span<const Key> sorted, const GapLimit& limit,
                                   TailEnd end) {
  WindowDigest<Key> digest;
  const std::uint64_t n = sorted.size();
  digest.count = n;
  if (n == 0) return digest;
  // From the end on, as if it were the upper one: `rank` falls from n to 1.
  const auto take = [&](std::uint64_t rank) {
    const std::uint64_t position = end == TailEnd::kUpper ? rank : n + 1 - rank;
    digest.keys.push_back(sorted[position - 1]);
    digest.positions.push_back(static_cast<std::uint32_t>(position));
  };
  take(n);
  for (std::uint64_t rank = n; rank > 1;) {
    const std::uint64_t step = 1 + limit.Width(rank);
    digest.stride = std::max(digest.stride, std::min(step, rank - 1));
    rank -= std::min(step, rank - 1);
    take(rank);
  }
  if (end == TailEnd::kUpper) {
    std::reverse(digest.keys.begin(), digest.keys.end());
    std::reverse(digest.positions.begin(), digest.positions.end());
  }
  return digest;
}

template WindowDigest<std::uint32_t> TailDigestSorted(std::span<const std::uint32_t>,
                                                      const GapLimit&, TailEnd);
template WindowDigest<std::uint64_t> TailDigestSorted(std::span<const std::uint64_t>,
                                                      const GapLimit&, TailEnd);

}  // namespace tidemark
