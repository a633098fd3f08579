// The schedule of the improved bitonic network (Govindaraju et al. (Cache-Efficient Sorting, 2005),
// §4.1.1, §4.2 and figure 4) as plain data.
//
// n = 2^k keys pass through k stages; stage s has s steps. A step compares key i with one partner:
//
//   first step of stage s     i and its mirror image in its block of 2^s keys      "mirrored"
//   every later step          i and the key at half the previous distance          "plain"
//
// for n = 8 (a pair is joined by a line, the smaller key goes up):
//
//   stage 1   stage 2         stage 3
//   0 ┐       0 ┐    0 ┐      0 ┐       0 ┐     0 ┐
//   1 ┘       1 │┐   1 ┘      1 │┐      1 │┐    1 ┘
//   2 ┐       2 │┘   2 ┐      2 ││┐     2 ┘│    2 ┐
//   3 ┘       3 ┘    3 ┘      3 │││┐    3  ┘    3 ┘
//   …         …      …        4 │││┘    …       …
//                             5 ││┘
//
// Batcher's network reverses the direction of every second block in all steps of a stage; here the
// reversal is in the first step alone, so that in every step the lower index keeps the smaller key.
// Both kinds of partner are i XOR a mask that is the same for all i, which is all that a fragment
// program needs to know of a step.
//
// Deviation from the paper: it numbers the steps of stage s from s down to 1; `step` counts up from
// 1, in the order of execution.
#ifndef TIDEMARK_GPU_SORT_NETWORK_SCHEDULE_H_
#define TIDEMARK_GPU_SORT_NETWORK_SCHEDULE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

namespace tidemark::sort {

/// One step: every key is compared with exactly one other. All numbers fit 32 bits, as the index of
/// a texel does.
struct NetworkStep {
  std::uint32_t stage = 0;     ///< 1 … k; after it, blocks of 2^stage keys are sorted
  std::uint32_t step = 0;      ///< 1 … stage
  std::uint32_t distance = 0;  ///< a power of two: 2^(stage - step)
  bool mirrored = false;       ///< true in the first step of a stage

  /// Index XOR this is the partner's index.
  constexpr std::uint32_t PartnerMask() const { return mirrored ? 2 * distance - 1 : distance; }
  constexpr std::uint32_t Partner(std::uint32_t index) const { return index ^ PartnerMask(); }
  /// Whether this index keeps the smaller key of the pair: it is the lower index of the two.
  constexpr bool KeepsSmaller(std::uint32_t index) const { return (index & distance) == 0; }

  friend bool operator==(const NetworkStep&, const NetworkStep&) = default;
};

/// The largest k: indices of 2^31 keys still fit 32 bits with room for 2 * distance.
inline constexpr std::uint32_t kMaxLog2Keys = 30;

/// The steps that sort 2^log2_keys keys ascending, in order; k (k + 1) / 2 of them.
/// REQUIRES: log2_keys <= kMaxLog2Keys.
std::vector<NetworkStep> BitonicSchedule(std::uint32_t log2_keys);

/// The steps that merge two ascending halves of 2^(log2_keys - 1) keys, in order: the last stage of
/// BitonicSchedule, log2_keys steps (§5.3: n log n comparisons where sorting takes n log^2 n). Its
/// first step compares with the mirror image, so that neither half need be reversed.
/// REQUIRES: log2_keys <= kMaxLog2Keys.
std::vector<NetworkStep> BitonicMergeSchedule(std::uint32_t log2_keys);

/// One line a step: "stage 3 step 1: distance 4 mirrored".
std::ostream& operator<<(std::ostream& out, const NetworkStep& step);

/// Runs the schedule on the CPU: the reference for the programs that run it on a GPU.
/// REQUIRES: keys.size() is the power of two that the schedule was made for.
template <class Key>
void RunSchedule(std::span<const NetworkStep> schedule, std::span<Key> keys) {
  for (const NetworkStep& step : schedule) {
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if (!step.KeepsSmaller(i)) continue;
      Key& low = keys[i];
      Key& high = keys[step.Partner(i)];
      if (high < low) std::swap(low, high);
    }
  }
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_NETWORK_SCHEDULE_H_
