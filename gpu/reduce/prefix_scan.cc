#include "gpu/reduce/prefix_scan.h"

namespace tidemark::reduce {

std::vector<ScanPass> ScanSchedule(ScanMethod method, std::uint32_t block_log2) {
  std::vector<ScanPass> passes;
  const std::uint32_t block = std::uint32_t{1} << block_log2;
  const bool all = method == ScanMethod::kHillisSteele;
  for (std::uint32_t distance = 1; distance < block; distance *= 2) {
    passes.push_back({distance, all ? ScanActive::kAll : ScanActive::kLast});
  }
  if (!all) {
    for (std::uint32_t distance = block / 4; distance > 0; distance /= 2) {
      passes.push_back({distance, ScanActive::kMiddle});
    }
  }
  return passes;
}

std::uint64_t RunScan(std::span<const ScanPass> schedule, std::uint32_t block_log2,
                      std::span<std::uint32_t> sums) {
  std::uint64_t additions = 0;
  std::vector<std::uint32_t> before(sums.begin(), sums.end());
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << block_log2) - 1);
  for (const ScanPass& pass : schedule) {
    for (std::uint32_t i = 0; i < sums.size(); ++i) {
      if (!pass.IsActive(i & mask)) continue;
      sums[i] = before[i] + before[i - pass.distance];
      ++additions;
    }
    before.assign(sums.begin(), sums.end());
  }
  return additions;
}

}  // namespace tidemark::reduce
