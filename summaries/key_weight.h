// An item with its part of a window: how often it came there, or the sum of its weights.
//
// Lists of items ("ascending items") are in ascending order of keys, no key twice. Where a window
// of weighted values is meant, keys may be equal, and each pair is one value.
#ifndef TIDEMARK_SUMMARIES_KEY_WEIGHT_H_
#define TIDEMARK_SUMMARIES_KEY_WEIGHT_H_

#include <cstdint>

namespace tidemark {

template <class Key>
struct KeyWeight {
  Key key = 0;
  std::uint64_t weight = 0;
  friend bool operator==(const KeyWeight&, const KeyWeight&) = default;
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_KEY_WEIGHT_H_
