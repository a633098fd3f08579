// A smaller input with which a property still fails.
#ifndef TIDEMARK_TESTS_SUMMARIES_SHRINK_H_
#define TIDEMARK_TESTS_SUMMARIES_SHRINK_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tidemark::testing {

/// `items` with pieces taken away, large ones first, as long as fails(items) holds; at most `tries`
/// calls of it, counted down.
template <class T, class Fails>
std::vector<T> Shrunk(std::vector<T> items, int& tries, Fails fails) {
  for (std::size_t size = std::max<std::size_t>(1, items.size() / 2); size > 0; size /= 2) {
    for (std::size_t at = 0; at + size <= items.size();) {
      if (tries-- <= 0) return items;
      std::vector<T> smaller = items;
      const auto first = smaller.begin() + static_cast<std::ptrdiff_t>(at);
      smaller.erase(first, first + static_cast<std::ptrdiff_t>(size));
      if (fails(smaller)) {
        items = std::move(smaller);
      } else {
        at += size;
      }
    }
  }
  return items;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_SHRINK_H_
