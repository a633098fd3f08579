#include "gpu/sort/pair_sort.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <limits>
#include <vector>

namespace tidemark::sort {

template <class Key>
std::string_view SortPairs(std::span<Key> keys, std::span<std::uint64_t> payloads,
                           WindowSorter& sorter) {
  assert(keys.size() == payloads.size());
  assert(keys.size() <= std::numeric_limits<std::uint32_t>::max());
  const std::size_t size = keys.size();
  Key least = 0, greatest = 0;
  if (size > 0) {
    const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
    least = *low;
    greatest = *high;
  }
  const int index_bits = size > 1 ? std::bit_width(size - 1) : 0;
  const int key_bits = std::bit_width(std::uint64_t{greatest} - least);
  const int cut = std::max(0, key_bits + index_bits - 64);
  std::vector<std::uint64_t> composites(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t top = (std::uint64_t{keys[i]} - least) >> cut;
    // index_bits = 64 cannot be: an index has 32 bits.
    composites[i] = top << index_bits | i;
  }
  const std::span<std::uint64_t> channel[] = {composites};
  const std::string_view by = sorter.Sort(channel);

  const std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
  if (cut > 0) {
    const auto whole = [&](std::uint64_t composite) { return keys[composite & index_mask]; };
    for (std::size_t begin = 0; begin < size;) {
      const std::uint64_t top = composites[begin] >> index_bits;
      std::size_t end = begin + 1;
      while (end < size && composites[end] >> index_bits == top) ++end;
      if (end - begin > 1) {
        const auto run = std::span(composites).subspan(begin, end - begin);
        std::stable_sort(run.begin(), run.end(),
                         [&](std::uint64_t a, std::uint64_t b) { return whole(a) < whole(b); });
      }
      begin = end;
    }
  }
  std::vector<Key> sorted_keys(size);
  std::vector<std::uint64_t> sorted_payloads(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto from = static_cast<std::size_t>(composites[i] & index_mask);
    sorted_keys[i] = keys[from];
    sorted_payloads[i] = payloads[from];
  }
  std::copy(sorted_keys.begin(), sorted_keys.end(), keys.begin());
  std::copy(sorted_payloads.begin(), sorted_payloads.end(), payloads.begin());
  return by;
}

template <>
std::string_view SortPairs(std::span<Key128> keys, std::span<std::uint64_t> payloads,
                           WindowSorter& /*sorter*/) {
  assert(keys.size() == payloads.size());
  struct Pair {
    Key128 key;
    std::uint64_t payload;
  };
  std::vector<Pair> pairs(keys.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = {keys[i], payloads[i]};
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.key < b.key; });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    keys[i] = pairs[i].key;
    payloads[i] = pairs[i].payload;
  }
  return "cpu";
}

template std::string_view SortPairs(std::span<std::uint32_t>, std::span<std::uint64_t>,
                                    WindowSorter&);
template std::string_view SortPairs(std::span<std::uint64_t>, std::span<std::uint64_t>,
                                    WindowSorter&);

}  // namespace tidemark::sort
