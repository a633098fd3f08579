// How a step of the improved bitonic network is drawn (Govindaraju et al. (Cache-Efficient Sorting,
// 2005), §4.2.1, §4.2.2 and figure 5) as plain data.
//
// Key i lies at x = i mod W, y = i / W. The keys that keep the smaller of a pair, bit `distance` of
// i 0, fill quads, the others the quads beside them:
//
//   distance < W    columns: quads of `distance` columns and all rows
//   distance >= W   rows: quads of all columns and distance / W rows
//
// A quad that is larger than a tile is cut into tiles, and the tiles of a step are drawn row by
// row, so that what one tile fetches is still cached for the next. Where quads are narrow (the last
// steps of every stage: "improve the common case") one quad covers the screen instead.
#ifndef TIDEMARK_GPU_SORT_BITONIC_TILES_H_
#define TIDEMARK_GPU_SORT_BITONIC_TILES_H_

#include <cstdint>

#include "gpu/sort/network_schedule.h"

namespace tidemark::sort {

struct BitonicDrawing {
  /// Edge of a tile, texels, a power of two: 64 in the paper. 0: every step is one screen-filling
  /// triangle, and the rasteriser's own tiles have to do.
  std::uint32_t tile = 0;
  /// Quads with a shorter edge than this are not drawn: the step is one screen-filling triangle.
  /// The paper uses the stencil buffer there. REQUIRES: a power of two.
  std::uint32_t quad_edge_min = 8;
  /// All quads that keep the smaller keys in one draw call, all others in a second (§4.2.2,
  /// configuration 2). Otherwise one call a quad, of either kind in turn (configuration 1).
  bool few_draw_calls = true;
};

/// Equal quads in a grid: quad (c, r) lies at x = (c / group_columns) group_width +
/// (c mod group_columns) width + x_first, and y likewise.
struct BitonicTiles {
  std::uint32_t width = 0;  ///< of a quad, texels
  std::uint32_t height = 0;
  std::uint32_t columns = 0;  ///< quads in a row of the grid; row by row in order
  std::uint32_t rows = 0;
  std::uint32_t x_first = 0;
  std::uint32_t y_first = 0;
  std::uint32_t group_columns = 1;  ///< tiles that one quad of the paper is cut into
  std::uint32_t group_rows = 1;
  std::uint32_t group_width = 0;  ///< from one quad of the paper to the next
  std::uint32_t group_height = 0;

  constexpr std::uint32_t count() const { return columns * rows; }
  constexpr std::uint32_t X(std::uint32_t quad) const {
    const std::uint32_t c = quad % columns;
    return c / group_columns * group_width + c % group_columns * width + x_first;
  }
  constexpr std::uint32_t Y(std::uint32_t quad) const {
    const std::uint32_t r = quad / columns;
    return r / group_rows * group_height + r % group_rows * height + y_first;
  }
};

/// Whether the step is drawn as quads; if not, as one triangle.
bool DrawnAsTiles(const NetworkStep& step, std::uint32_t width_log2, const BitonicDrawing& drawing);

/// The quads of a step over a texture of 2^width_log2 × 2^height_log2 texels that keep the smaller
/// keys, or the larger ones. REQUIRES: DrawnAsTiles.
BitonicTiles TilesOf(const NetworkStep& step, std::uint32_t width_log2, std::uint32_t height_log2,
                     const BitonicDrawing& drawing, bool smaller);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_BITONIC_TILES_H_
