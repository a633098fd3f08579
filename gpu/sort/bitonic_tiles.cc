#include "gpu/sort/bitonic_tiles.h"

#include <algorithm>

namespace tidemark::sort {

bool DrawnAsTiles(const NetworkStep& step, std::uint32_t width_log2,
                  const BitonicDrawing& drawing) {
  if (drawing.tile == 0) return false;
  const std::uint32_t columns = std::uint32_t{1} << width_log2;
  const std::uint32_t edge = step.distance < columns ? step.distance : step.distance >> width_log2;
  return edge >= drawing.quad_edge_min;
}

BitonicTiles TilesOf(const NetworkStep& step, std::uint32_t width_log2, std::uint32_t height_log2,
                     const BitonicDrawing& drawing, bool smaller) {
  const std::uint32_t columns = std::uint32_t{1} << width_log2;
  const std::uint32_t rows = std::uint32_t{1} << height_log2;
  const bool by_columns = step.distance < columns;
  // A quad of the paper, and from one to the next of its kind.
  const std::uint32_t width = by_columns ? step.distance : columns;
  const std::uint32_t height = by_columns ? rows : step.distance >> width_log2;
  BitonicTiles tiles;
  tiles.width = std::min(width, drawing.tile);
  tiles.height = std::min(height, drawing.tile);
  tiles.group_columns = width / tiles.width;
  tiles.group_rows = height / tiles.height;
  tiles.group_width = by_columns ? 2 * width : width;
  tiles.group_height = by_columns ? height : 2 * height;
  tiles.columns = columns / tiles.group_width * tiles.group_columns;
  tiles.rows = rows / tiles.group_height * tiles.group_rows;
  if (!smaller && by_columns) tiles.x_first = width;
  if (!smaller && !by_columns) tiles.y_first = height;
  return tiles;
}

}  // namespace tidemark::sort
