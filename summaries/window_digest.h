// What a quantile summary takes from a window instead of its full order: some keys, with their
// exact positions.
//
// Guarantee: keys ascend; positions[i] is one of the positions (from 1) that keys[i] takes in the
// window's sorted order; the first entry is the minimum at position 1, the last one the maximum at
// position `count`; neighbouring positions lie at most `stride` apart unless the two keys are
// equal. At most 2 + 2 * (count - 1) / (stride + 1) entries. Not guaranteed: entries at equal
// distances.
//
// A digest is a function of the window's multiset of keys and of the stride: the same bits whether
// it was read off a sorted window or counted without sorting one. Which function: digest_rule.h.
//
// Source: Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005) §5.2 take every k-th key of a sorted
// window. Where we deviate: positions are not multiples of k, but the borders of cells of the key
// space, which can be counted without moving a key; hence they are stored.
#ifndef TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_
#define TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {

template <class Key>
struct WindowDigest {
  std::uint64_t count = 0;               ///< keys in the window
  std::uint64_t stride = 1;              ///< see above
  std::vector<Key> keys;                 ///< ascending
  std::vector<std::uint32_t> positions;  ///< as many, ascending
  friend bool operator==(const WindowDigest&, const WindowDigest&) = default;
};

/// Errors: throws std::invalid_argument for stride 0, std::length_error for 2^32 keys or more.
void CheckDigestible(std::uint64_t count, std::uint64_t stride);

/// The digest of a sorted window: the reference definition. No entries for an empty window.
/// Cost: one search among `stride` keys for each entry.
/// Errors: those of CheckDigestible.
template <class Key>
WindowDigest<Key> DigestSorted(std::span<const Key> sorted, std::uint64_t stride);

extern template WindowDigest<std::uint32_t> DigestSorted(std::span<const std::uint32_t>,
                                                         std::uint64_t);
extern template WindowDigest<std::uint64_t> DigestSorted(std::span<const std::uint64_t>,
                                                         std::uint64_t);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_WINDOW_DIGEST_H_
