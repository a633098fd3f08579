#include "gpu/reduce/stream_reduction.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace tidemark::reduce {

std::optional<std::uint32_t> FindElement(std::span<const std::uint32_t> sums, std::uint32_t i,
                                         std::uint64_t& steps) {
  const auto size = static_cast<std::uint32_t>(sums.size());
  std::uint32_t lower = i + sums[i];
  std::uint32_t upper = i + sums[size - 1];
  if (upper > size - 1) return std::nullopt;
  while (true) {
    const std::uint32_t j = (lower + upper) / 2;
    const auto found = static_cast<std::int32_t>(j - sums[j]) - static_cast<std::int32_t>(i);
    const bool unwanted = sums[j] != (j == 0 ? 0 : sums[j - 1]);
    if (found == 0 && !unwanted) return j;
    ++steps;
    if (found < 0) {
      lower = j + static_cast<std::uint32_t>(-found);
    } else {
      upper = j - static_cast<std::uint32_t>(std::max(1, found));
    }
  }
}

std::vector<Segment> ConcatenatingSegments(std::span<const std::uint32_t> block_sums,
                                           std::uint32_t block_log2, std::uint32_t width_log2) {
  assert(block_log2 <= width_log2);
  std::vector<Segment> segments;
  const std::uint32_t block = std::uint32_t{1} << block_log2;
  const std::uint32_t width = std::uint32_t{1} << width_log2;
  for (std::uint32_t b = 0; b < block_sums.size(); ++b) {
    const std::uint32_t before = b == 0 ? 0 : block_sums[b - 1];
    const std::uint32_t length = block - (block_sums[b] - before);
    const std::uint32_t begin = b * block - before;
    const std::uint32_t x = begin & (width - 1);
    const std::uint32_t in_row = std::min(length, width - x);
    if (in_row > 0) segments.push_back({x, begin >> width_log2, in_row, b * block});
    if (length > in_row) {
      segments.push_back({0, (begin >> width_log2) + 1, length - in_row, b * block + in_row});
    }
  }
  return segments;
}

std::vector<std::uint32_t> ReduceByHorn(std::span<const std::uint32_t> unwanted, ScanMethod method,
                                        ReductionCounts& counts) {
  const auto log2_size = static_cast<std::uint32_t>(std::bit_width(unwanted.size()) - 1);
  std::vector<std::uint32_t> sums(unwanted.begin(), unwanted.end());
  counts.additions += RunScan(ScanSchedule(method, log2_size), log2_size, sums);
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < sums.size(); ++i) {
    if (const auto place = FindElement(sums, i, counts.search_steps)) places.push_back(*place);
  }
  return places;
}

std::vector<std::uint32_t> ReduceByBlocks(std::span<const std::uint32_t> unwanted,
                                          ScanMethod method, std::uint32_t block_log2,
                                          std::uint32_t width_log2, ReductionCounts& counts) {
  const std::size_t block = std::size_t{1} << block_log2;
  const std::size_t blocks = unwanted.size() >> block_log2;
  std::vector<std::uint32_t> sums(unwanted.begin(), unwanted.end());
  counts.additions += RunScan(ScanSchedule(method, block_log2), block_log2, sums);

  std::vector<std::uint32_t> reduced(sums.size());
  std::vector<std::uint32_t> block_sums(blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto of_block = std::span<const std::uint32_t>(sums).subspan(b * block, block);
    for (std::uint32_t i = 0; i < block; ++i) {
      const auto place = FindElement(of_block, i, counts.search_steps);
      if (!place) break;  // nor at any later place
      reduced[b * block + i] = static_cast<std::uint32_t>(b * block) + *place;
    }
    block_sums[b] = of_block.back();
  }
  const auto log2_blocks = static_cast<std::uint32_t>(std::bit_width(blocks) - 1);
  counts.additions += RunScan(ScanSchedule(method, log2_blocks), log2_blocks, block_sums);

  std::vector<std::uint32_t> places(sums.size() - block_sums.back());
  for (const Segment& line : ConcatenatingSegments(block_sums, block_log2, width_log2)) {
    ++counts.lines;
    const std::size_t to = (std::size_t{line.y} << width_log2) + line.x;
    std::copy_n(reduced.begin() + line.source, line.length,
                places.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return places;
}

}  // namespace tidemark::reduce
