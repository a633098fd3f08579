#include "summaries/merge_sorted.h"

#include <cstdint>

namespace tidemark {

template <class Key>
void MergeEqualLengths(const Key* a, const Key* b, std::size_t n, Key* out) {
  if (n == 0) return;
  std::size_t front_a = 0, front_b = 0;  // front_a + front_b == step
  std::ptrdiff_t back_a = static_cast<std::ptrdiff_t>(n) - 1;
  std::ptrdiff_t back_b = back_a;
  Key* top = out + 2 * n - 1;
  for (std::size_t step = 0; step < n; ++step) {
    const Key low_a = a[front_a], low_b = b[front_b];
    const bool from_b = low_b < low_a;
    out[step] = from_b ? low_b : low_a;
    front_b += from_b;
    front_a += !from_b;

    const Key high_a = a[back_a], high_b = b[back_b];
    const bool from_a = high_b < high_a;
    *top-- = from_a ? high_a : high_b;
    back_a -= from_a;
    back_b -= !from_a;
  }
}

template void MergeEqualLengths(const std::uint32_t*, const std::uint32_t*, std::size_t,
                                std::uint32_t*);
template void MergeEqualLengths(const std::uint64_t*, const std::uint64_t*, std::size_t,
                                std::uint64_t*);

}  // namespace tidemark
