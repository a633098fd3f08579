#include "gpu/sort/pair_sort.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <limits>
#include <vector>

namespace tidemark::sort {

namespace {

template <class Word>
int WidthOf(Word word) {
  if constexpr (sizeof(Word) <= sizeof(std::uint64_t)) {
    return std::bit_width(std::uint64_t{word});
  } else {
    const auto high = static_cast<std::uint64_t>(word >> 64);
    return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(word));
  }
}

/// Composites whose keys agree in all that was not cut off are in the order of their indices.
/// `whole(composite)`: its key.
template <class Composite, class Whole>
void SortRunsOfTops(std::span<Composite> composites, int index_bits, Whole whole) {
  const auto before = [&](Composite a, Composite b) { return whole(a) < whole(b); };
  for (std::size_t begin = 0; begin < composites.size();) {
    const Composite top = composites[begin] >> index_bits;
    std::size_t end = begin + 1;
    while (end < composites.size() && composites[end] >> index_bits == top) ++end;
    const auto run = composites.subspan(begin, end - begin);
    // Most often one key that comes many times.
    if (!std::is_sorted(run.begin(), run.end(), before)) {
      std::stable_sort(run.begin(), run.end(), before);
    }
    begin = end;
  }
}

/// `least`: of the keys; `key_bits`: that the greatest one exceeds it by.
template <class Composite, class Key>
std::string_view SortByComposites(std::span<Key> keys, std::span<std::uint64_t> payloads, Key least,
                                  int key_bits, int index_bits, WindowSorter& sorter) {
  const std::size_t size = keys.size();
  const int cut = std::max(0, key_bits + index_bits - static_cast<int>(8 * sizeof(Composite)));
  std::vector<Composite> composites(size);
  for (std::size_t i = 0; i < size; ++i) {
    const Composite top = static_cast<Composite>(keys[i] - least) >> cut;
    // index_bits = 64 cannot be: an index has 32 bits.
    composites[i] = top << index_bits | i;
  }
  const std::span<Composite> channel[] = {composites};
  const std::string_view by = sorter.Sort(Channels<Composite>(channel));

  const Composite index_mask = (Composite{1} << index_bits) - 1;
  const auto index_of = [&](Composite composite) {
    return static_cast<std::size_t>(composite & index_mask);
  };
  if (cut > 0) {
    SortRunsOfTops(std::span<Composite>(composites), index_bits,
                   [&](Composite composite) { return keys[index_of(composite)]; });
  }
  std::vector<Key> sorted_keys(size);
  std::vector<std::uint64_t> sorted_payloads(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from = index_of(composites[i]);
    sorted_keys[i] = keys[from];
    sorted_payloads[i] = payloads[from];
  }
  std::copy(sorted_keys.begin(), sorted_keys.end(), keys.begin());
  std::copy(sorted_payloads.begin(), sorted_payloads.end(), payloads.begin());
  return by;
}

}  // namespace

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
  const int key_bits = WidthOf<Key>(greatest - least);
  if constexpr (sizeof(Key) > sizeof(std::uint64_t)) {
    if (key_bits + index_bits > 64) {
      return SortByComposites<Key>(keys, payloads, least, key_bits, index_bits, sorter);
    }
  }
  return SortByComposites<std::uint64_t>(keys, payloads, least, key_bits, index_bits, sorter);
}

template std::string_view SortPairs(std::span<std::uint32_t>, std::span<std::uint64_t>,
                                    WindowSorter&);
template std::string_view SortPairs(std::span<std::uint64_t>, std::span<std::uint64_t>,
                                    WindowSorter&);
template std::string_view SortPairs(std::span<Key128>, std::span<std::uint64_t>, WindowSorter&);

}  // namespace tidemark::sort
