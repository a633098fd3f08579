// Window sizes are grouped into a few classes; sorters are measured and chosen for each.
#ifndef TIDEMARK_GPU_SORT_WINDOW_CLASS_H_
#define TIDEMARK_GPU_SORT_WINDOW_CLASS_H_

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tidemark::sort {

/// Classes 2^8, 2^10, … 2^18: from the smallest window that is worth a choice to the largest usual
/// one. The measured rates change by less than a fifth from one class to the next.
inline constexpr std::size_t kWindowClasses = 6;
inline constexpr std::size_t kSmallestClassLog2 = 8;

constexpr std::size_t ClassWindow(std::size_t window_class) {
  return std::size_t{1} << (kSmallestClassLog2 + 2 * window_class);
}
static_assert(ClassWindow(kWindowClasses - 1) == std::size_t{1} << 18);

/// The class whose window is nearest to n on a logarithmic scale; larger ones use the largest
/// class, smaller ones the smallest.
constexpr std::size_t ClassOf(std::size_t n) {
  const auto log2_ceil = static_cast<std::size_t>(std::bit_width(n == 0 ? 0 : n - 1));
  if (log2_ceil <= kSmallestClassLog2) return 0;
  return std::min((log2_ceil - kSmallestClassLog2) / 2, kWindowClasses - 1);
}
static_assert(ClassOf(0) == 0 && ClassOf(1 << 9) == 0 && ClassOf((1 << 9) + 1) == 1);
static_assert(ClassOf(1 << 18) == 5 && ClassOf(1 << 24) == 5);

/// Index of the tables below: 0 for keys of 32 bits, 1 for 64, 2 for 128.
inline constexpr std::size_t kKeyWidths = 3;
/// GL sorts those of the first two widths alone.
inline constexpr std::size_t kGlKeyWidths = 2;
template <class Key>
constexpr std::size_t WidthIndex() {
  static_assert(sizeof(Key) == 4 || sizeof(Key) == 8 || sizeof(Key) == 16);
  return sizeof(Key) == 4 ? 0 : sizeof(Key) == 8 ? 1 : 2;
}
constexpr int WidthBits(std::size_t width_index) { return 32 << width_index; }

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_WINDOW_CLASS_H_
