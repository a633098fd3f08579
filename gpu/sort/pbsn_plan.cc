#include "gpu/sort/pbsn_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace tidemark::sort {
namespace {

constexpr std::uint64_t kTexel = 16;

// Keeps the smaller or larger keys of the texture and the frame buffer in the texels of the quads.
void Blend(const PbsnQuads& quads, const PbsnSize& size, bool smaller,
           std::span<const std::uint32_t> texture, std::span<std::uint32_t> frame) {
  const auto along = [](std::uint32_t from, std::uint32_t to, std::uint32_t at) {
    return to > from ? from + at : from - 1 - at;
  };
  for (std::uint32_t k = 0; k < quads.count; ++k) {
    const std::uint32_t left = k * quads.distance_x;
    const std::uint32_t below = k * quads.distance_y;
    for (std::uint32_t row = 0; row < quads.height; ++row) {
      for (std::uint32_t column = 0; column < quads.width; ++column) {
        const std::uint32_t x = left + along(quads.from_x, quads.to_x, column);
        const std::uint32_t y = below + along(quads.from_y, quads.to_y, row);
        const std::uint32_t key = texture[(y << size.width_log2) + x];
        std::uint32_t& kept =
            frame[((below + quads.y + row) << size.width_log2) + left + quads.x + column];
        kept = smaller ? std::min(kept, key) : std::max(kept, key);
      }
    }
  }
}

}  // namespace

std::vector<PbsnStep> PbsnPlan(std::uint32_t log2_keys) {
  assert(log2_keys <= kPbsnMaxLog2);
  std::vector<PbsnStep> plan;
  plan.reserve(std::size_t{log2_keys} * log2_keys);
  for (std::uint32_t stage = 1; stage <= log2_keys; ++stage) {
    for (std::uint32_t block = log2_keys; block > 0; --block) plan.push_back({stage, block});
  }
  return plan;
}

PbsnQuads QuadsOf(const PbsnStep& step, const PbsnSize& size, bool smaller) {
  const std::uint32_t columns = std::uint32_t{1} << size.width_log2;
  const std::uint32_t rows = std::uint32_t{1} << size.height_log2;
  PbsnQuads quads;
  if (step.log2_block <= size.width_log2) {
    const std::uint32_t block = std::uint32_t{1} << step.log2_block;
    quads.x = smaller ? 0 : block / 2;
    quads.width = block / 2;
    quads.height = rows;
    quads.from_x = smaller ? block : block / 2;
    quads.to_x = quads.from_x - block / 2;
    quads.to_y = rows;
    quads.distance_x = block;
    quads.count = columns / block;
  } else {
    const std::uint32_t block_height = std::uint32_t{1} << (step.log2_block - size.width_log2);
    quads.y = smaller ? 0 : block_height / 2;
    quads.width = columns;
    quads.height = block_height / 2;
    quads.from_x = columns;
    quads.from_y = smaller ? block_height : block_height / 2;
    quads.to_y = quads.from_y - block_height / 2;
    quads.distance_y = block_height;
    quads.count = rows / block_height;
  }
  return quads;
}

SortCounts PbsnCounts(std::uint32_t log2_keys) {
  const std::uint64_t keys = std::uint64_t{1} << log2_keys;
  const std::uint64_t steps = std::uint64_t{log2_keys} * log2_keys;
  SortCounts counts;
  counts.comparisons = 4 * keys * steps;
  counts.passes = steps;
  counts.copies = steps + 1;
  counts.draw_calls = 2 * steps + 1;
  counts.bytes_moved = steps * keys * (3 * kTexel + 2 * kTexel) + keys * 2 * kTexel;
  return counts;
}

void RunPbsn(std::span<const PbsnStep> plan, std::span<std::uint32_t> keys) {
  const PbsnSize size = PbsnSizeOf(static_cast<std::uint32_t>(std::bit_width(keys.size()) - 1));
  std::vector<std::uint32_t> texture(keys.begin(), keys.end());
  for (const PbsnStep& step : plan) {
    for (const bool smaller : {true, false}) {
      Blend(QuadsOf(step, size, smaller), size, smaller, texture, keys);
    }
    std::copy(keys.begin(), keys.end(), texture.begin());
  }
}

}  // namespace tidemark::sort
