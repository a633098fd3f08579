// What a quantile summary takes from a window instead of its full order: some keys, with their
// exact positions.
//
// Guarantee: keys ascend; positions[i] is one of the positions (from 1) that keys[i] takes in the
// window's sorted order; the first entry is the minimum at position 1, the last one the maximum at
// position `count`; neighbouring positions lie at most `stride` apart unless the two keys are
// equal.
//
// A digest is a function of the window's multiset of keys and of the stride: the same bits whether
// it was read off a sorted window or counted without sorting one.
#ifndef TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_
#define TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark {

template <class Key>
struct WindowDigest {
  std::uint64_t count = 0;               ///< keys in the window
  std::uint64_t stride = 1;              ///< see above
  std::vector<Key> keys;                 ///< ascending
  std::vector<std::uint32_t> positions;  ///< as many, ascending
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_
