#include "summaries/key_range.h"

#include <algorithm>
#include <array>
#include <cstddef>

// The compiler vectorises the loop below for the instruction set that a function is compiled for,
// and the plainest x86-64 has no vector minimum of unsigned integers.
#if defined(__x86_64__) && defined(__GNUC__)
#define TIDEMARK_HAS_X86_TARGETS 1
#else
#define TIDEMARK_HAS_X86_TARGETS 0
#endif

namespace tidemark::internal {
namespace {

/// Two of the widest vectors of lanes, so that one need not wait for the other.
template <class Key>
[[gnu::always_inline]] inline KeyRange<Key> ScanRange(std::span<const Key> keys) {
  constexpr std::size_t kLanes = 128 / sizeof(Key);
  std::array<Key, kLanes> low, high;
  low.fill(keys[0]);
  high.fill(keys[0]);
  const Key* at = keys.data();
  const Key* const end = at + keys.size();
  for (; static_cast<std::size_t>(end - at) >= kLanes; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      low[lane] = at[lane] < low[lane] ? at[lane] : low[lane];
      high[lane] = at[lane] > high[lane] ? at[lane] : high[lane];
    }
  }
  KeyRange<Key> range{*std::min_element(low.begin(), low.end()),
                      *std::max_element(high.begin(), high.end())};
  for (; at < end; ++at) {
    range.min = std::min(range.min, *at);
    range.max = std::max(range.max, *at);
  }
  return range;
}

#if TIDEMARK_HAS_X86_TARGETS

template <class Key>
[[gnu::target("avx512f")]] KeyRange<Key> ScanAvx512(std::span<const Key> keys) {
  return ScanRange(keys);
}
template <class Key>
[[gnu::target("avx2")]] KeyRange<Key> ScanAvx2(std::span<const Key> keys) {
  return ScanRange(keys);
}

template <class Key>
KeyRange<Key> Scan(std::span<const Key> keys) {
  static const auto scan = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return ScanAvx512<Key>;
    if (__builtin_cpu_supports("avx2")) return ScanAvx2<Key>;
    return ScanRange<Key>;
  }();
  return scan(keys);
}

#else

template <class Key>
KeyRange<Key> Scan(std::span<const Key> keys) {
  return ScanRange(keys);
}

#endif

}  // namespace

KeyRange<std::uint32_t> RangeOf(std::span<const std::uint32_t> keys) { return Scan(keys); }
KeyRange<std::uint64_t> RangeOf(std::span<const std::uint64_t> keys) { return Scan(keys); }

}  // namespace tidemark::internal
