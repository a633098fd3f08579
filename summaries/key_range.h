// The smallest and the largest of many keys, as fast as memory gives them.
#ifndef TIDEMARK_SUMMARIES_KEY_RANGE_H_
#define TIDEMARK_SUMMARIES_KEY_RANGE_H_

#include <cstdint>
#include <span>

namespace tidemark::internal {

template <class Key>
struct KeyRange {
  Key min, max;
};

/// REQUIRES: `keys` is not empty.
KeyRange<std::uint32_t> RangeOf(std::span<const std::uint32_t> keys);
KeyRange<std::uint64_t> RangeOf(std::span<const std::uint64_t> keys);

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_KEY_RANGE_H_
