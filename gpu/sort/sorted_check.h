// Whether what a device returned can be the sorted form of what it was given: the check before the
// caller's memory is overwritten.
#ifndef TIDEMARK_GPU_SORT_SORTED_CHECK_H_
#define TIDEMARK_GPU_SORT_SORTED_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark::sort {

/// What is said of windows that do not pass.
inline constexpr const char* kNotWhatWasGiven =
    "checking the sorted windows failed: what the GPU returned is not what it was given (a driver "
    "error, or a context lost without notice)";

/// Ascending, and with the same sum (modulo 2^bits) as `original`. It finds what a lost context
/// returns: zeros, untouched windows, those of an earlier request. It is no proof: keys that were
/// changed so that order and sum stay pass. `key_at(i)`: what came back, for every i of `original`.
template <class Key, class KeyAt>
bool LooksSortedAt(KeyAt key_at, std::span<const Key> original) {
  Key before = 0;
  Key after = 0;
  Key previous = 0;
  bool ascending = true;
  for (std::size_t i = 0; i < original.size(); ++i) {
    const Key key = key_at(i);
    before = static_cast<Key>(before + original[i]);
    after = static_cast<Key>(after + key);
    ascending &= previous <= key;
    previous = key;
  }
  return ascending && before == after;
}

/// REQUIRES: equal sizes.
template <class Key>
bool LooksSorted(std::span<const Key> sorted, std::span<const Key> original) {
  return LooksSortedAt<Key>([&](std::size_t i) { return sorted[i]; }, original);
}

/// A key and what lies beside it, for sums that notice a payload beside another key.
template <class Key>
constexpr std::uint64_t MixPair(Key key, std::uint32_t payload) {
  // Odd constants with no pattern in their bits (the golden ratio's, and splitmix64's multiplier).
  const std::uint64_t mixed =
      (std::uint64_t{key} + 0x9e3779b97f4a7c15U) * (std::uint64_t{payload} * 2 + 1);
  return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9U;
}

/// The same for pairs, ascending by key and then by payload.
template <class Key>
bool LooksSorted(std::span<const Key> sorted, std::span<const std::uint32_t> payloads,
                 std::span<const Key> original, std::span<const std::uint32_t> original_payloads) {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  bool ascending = true;
  for (std::size_t i = 0; i < original.size(); ++i) {
    before += MixPair(original[i], original_payloads[i]);
    after += MixPair(sorted[i], payloads[i]);
    if (i == 0) continue;
    ascending &=
        sorted[i - 1] < sorted[i] || (sorted[i - 1] == sorted[i] && payloads[i - 1] <= payloads[i]);
  }
  return ascending && before == after;
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_SORTED_CHECK_H_
