// How a stream of one dimension lies in a texture of two (Greß, Zachmann (GPU-ABiSort, 2006),
// §6.2).
//
//   row-wise   a -> (a mod w, a / w)            w a power of two
//   Z-order    a -> (even bits of a, odd bits)  a cache block holds a square of the stream
//
// In both, a block whose length l is a power of two and whose start is a multiple of l is a
// rectangle, so that one quad draws it. Row-wise: with l <= w it lies within one row, and with
// l >= w it is whole rows. Z-order: l = 2^b fixes the bits from b on and frees those below, of
// which x has ceil(b / 2) and y floor(b / 2): the rectangle is square or twice as wide as high.
#ifndef TIDEMARK_GPU_SORT_STREAM_LAYOUT_H_
#define TIDEMARK_GPU_SORT_STREAM_LAYOUT_H_

#include <cstdint>

namespace tidemark::sort {

enum class StreamLayout : std::uint8_t { kRowWise, kZOrder };

struct StreamPoint {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  friend bool operator==(const StreamPoint&, const StreamPoint&) = default;
};

struct StreamRectangle {
  StreamPoint at;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const StreamRectangle&, const StreamRectangle&) = default;
};

/// log2 of the width of the texture for a stream of 2^log2_length elements; of the height it is the
/// rest. The same for both layouts: square, or twice as wide as high.
constexpr std::uint32_t StreamWidthLog2(std::uint32_t log2_length) { return (log2_length + 1) / 2; }

/// The even bits of a, packed: bits 0, 2, 4, … become bits 0, 1, 2, …
constexpr std::uint32_t EvenBits(std::uint32_t a) {
  a &= 0x55555555U;
  a = (a | (a >> 1)) & 0x33333333U;
  a = (a | (a >> 2)) & 0x0f0f0f0fU;
  a = (a | (a >> 4)) & 0x00ff00ffU;
  return (a | (a >> 8)) & 0x0000ffffU;
}

/// `width_log2` matters row-wise alone.
constexpr StreamPoint PointOf(StreamLayout layout, std::uint32_t width_log2, std::uint32_t a) {
  if (layout == StreamLayout::kZOrder) return {EvenBits(a), EvenBits(a >> 1)};
  return {a & ((std::uint32_t{1} << width_log2) - 1), a >> width_log2};
}

/// REQUIRES: length is a power of two, and first a multiple of it.
constexpr StreamRectangle RectangleOf(StreamLayout layout, std::uint32_t width_log2,
                                      std::uint32_t first, std::uint32_t length) {
  const StreamPoint begin = PointOf(layout, width_log2, first);
  const StreamPoint last = PointOf(layout, width_log2, first + length - 1);
  return {begin, last.x - begin.x + 1, last.y - begin.y + 1};
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_STREAM_LAYOUT_H_
