// How the bitonic network (network_schedule.h) is cut into passes of a compute shader, as plain
// data.
//
// A pass reads every key from memory once and writes it once. In between, a workgroup holds 2^b
// keys in shared memory, its local array, and its invocations take 2^r of them at a time into
// registers (a round), run up to r steps there and put them back. So memory is crossed once for
// many steps, and shared memory and its barrier once for r of them. The tiles by which Govindaraju
// et al. (Cache-Efficient Sorting, 2005), §4.2.1, keep a step's reads in the texture cache become
// the workgroup's local array here, which spans several steps instead of one.
//
// Local arrays, n = 2^k keys, index i of a key in its window, from high bits to low:
//
//   block     | group          | local: b bits |             stages 1 to b; the last b steps of
//   each strided   | group | rows: t bits | middle | columns |    up to t steps at the distances of
//   the rows
//             local = rows, then columns: t + c = b bits     2^c keys side by side are read at once
//
// 1. A strided local array is closed under its steps. Plain ones change one row bit. The first step
//    of a stage, the mirrored one, has the stage's top bit as its top row and inverts all bits from
//    there down, the middle among them. So in such a pass the rows of the upper half hold the keys
//    of the inverted middle: (0, rows, m, columns) and (1, ~rows, ~m, ~columns) are in the array of
//    m, and steps below the top bit stay in their half. In local terms the step is still "invert
//    all bits from the top down".
// 2. The same once more for the registers of an invocation, which hold the r local bits from
//    first_bit up: in a round with a mirrored step, which is always its first and at its top bit,
//    the registers of the upper half are read from where the bits below first_bit are inverted.
//    The first round of all has first_bit = 0 and no bits below: it runs r whole stages.
// 3. Padding costs nothing. Every step leaves the smaller key at the lower index. Take the window
// to
//    be followed by largest keys up to 2^k: those compare greater or equal with what is below them
//    and equal to each other, so that none ever moves. They need not exist: what lies behind the
//    window's length is read as the largest key and not written, and groups that hold nothing else
//    are not started.
//
// Passes: 1 + the sum over s = b+1 … k of 1 + ceil((s - b) / (b - c)). With b = 13 and c = 5 (32
// KiB of shared memory, 32-bit keys, runs of 128 bytes): 15 at k = 20, 26 at k = 24; the network
// has 210 and 300 steps. Each pass moves n keys in and out: 2 * 15 * 4 bytes a key at k = 20.
//
// Windows are planar (each lies by itself), not interleaved as texels: an interleaved key has four
// times the bytes, so that 32 KiB hold a quarter of the index bits' range, b = 11 (20 passes at
// k = 20); and windows need no reordering on the way in and out.
#ifndef TIDEMARK_GPU_SORT_COMPUTE_PLAN_H_
#define TIDEMARK_GPU_SORT_COMPUTE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <utility>
#include <vector>

#include "gpu/sort/network_schedule.h"

namespace tidemark::sort {

/// What is sorted: keys of 32 or 64 bits, alone or with 32 bits beside them, which then decide
/// between equal keys.
struct ElementKind {
  std::uint32_t key_bits = 32;
  bool payload = false;

  /// 32-bit words of shared memory and registers for one.
  constexpr std::uint32_t Words() const { return key_bits / 32 + (payload ? 1 : 0); }
  constexpr std::size_t KeyBytes() const { return key_bits / 8; }
};

/// What a device lets one workgroup have. OpenGL 4.3 promises 32 KiB and 1024.
struct ComputeLimits {
  std::size_t shared_bytes = 0;
  std::uint32_t invocations_max = 0;
};

/// The sizes that a shader is compiled for, as powers of two.
struct ComputeShape {
  std::uint32_t words = 1;           ///< of an element: ElementKind::Words()
  std::uint32_t block_log2 = 0;      ///< b: keys in shared memory
  std::uint32_t registers_log2 = 0;  ///< r: keys in an invocation's registers; 1 <= r <= b
  std::uint32_t columns_log2 = 0;    ///< c: least keys side by side in a strided pass; c < b

  constexpr std::uint32_t Invocations() const {
    return std::uint32_t{1} << (block_log2 - registers_log2);
  }
  constexpr std::size_t SharedBytes() const { return (std::size_t{4} * words) << block_log2; }
  friend bool operator==(const ComputeShape&, const ComputeShape&) = default;
};

/// More rounds than the largest block needs (38 at b = 14, r = 3): the length of the shader's
/// table.
inline constexpr std::uint32_t kRoundsMax = 64;
/// The largest b: 2^14 keys of one word are 64 KiB, the most shared memory that GL drivers offer.
inline constexpr std::uint32_t kBlockLog2Max = 14;

/// The largest block that fits the limits, and what goes with it.
/// Errors: throws std::invalid_argument where not even a block of two rows fits, with what is
/// needed and what there is.
ComputeShape ChooseShape(ElementKind kind, ComputeLimits limits);

/// Steps between two exchanges through shared memory. An invocation holds the local indices
/// LocalOf(round, invocation, 0 … 2^r - 1).
struct ComputeRound {
  std::uint32_t first_bit = 0;  ///< registers are numbered by the local bits first_bit … + r - 1
  bool mirrored = false;        ///< the first step inverts all bits from the top register bit down
  bool whole_stages = false;    ///< stages 1 to r: first_bit is 0
  std::vector<NetworkStep> steps;

  /// As the shader reads it: first_bit, steps << 8, mirrored << 16, whole_stages << 17.
  std::uint32_t Code() const;
};

/// A dispatch: `Groups` workgroups a window. A block pass has row_bits 0 and row_shift =
/// column_bits = b.
struct ComputePass {
  std::uint32_t column_bits = 0;
  std::uint32_t row_shift = 0;  ///< the lowest row bit of an index
  std::uint32_t row_bits = 0;
  bool mirrored = false;  ///< of a strided pass: it starts with a mirrored step
  std::vector<ComputeRound> rounds;

  /// Index in the window of a key of a group's local array.
  std::uint32_t IndexOf(std::uint32_t group, std::uint32_t local) const;
  /// Workgroups for a window of `length` keys.
  std::uint32_t Groups(std::uint32_t length) const;
};

struct ComputePlan {
  ComputeShape shape;
  std::uint32_t log2_keys = 0;  ///< k, at least r
  std::vector<ComputePass> passes;
};

/// The passes that sort up to 2^log2_keys keys; a larger network, of 2^r keys, where log2_keys < r.
/// REQUIRES: log2_keys <= kMaxLog2Keys and a shape within the bounds given at its members.
ComputePlan MakeComputePlan(const ComputeShape& shape, std::uint32_t log2_keys);

/// Log2 of the network that sorts this many keys.
std::uint32_t Log2Keys(std::size_t length);

/// One line a pass: "pass 2: strided, 2 rows of 2^12 keys: stage 14 step 1 (1 step, 1 round)".
std::ostream& operator<<(std::ostream& out, const ComputePlan& plan);

/// Local index of register j of an invocation. The bits of `invocation` below first_bit stay there,
/// the others go above the register bits.
std::uint32_t LocalOf(const ComputeRound& round, std::uint32_t registers_log2,
                      std::uint32_t invocation, std::uint32_t j);

/// Where a local index lies in shared memory: a permutation within each 32 words by the bits above
/// them. Linear over XOR, and such that in every round the 32 invocations that run together touch
/// 32 different banks of 4 bytes, for r from 1 to 4. In order, the local indices of a round with
/// first_bit = 0 would be 2^r apart and meet in 32 / 2^r banks. (Found by trying all maps of bits 5
/// to 8; the test tries all rounds.)
constexpr std::uint32_t SharedPlace(std::uint32_t local) {
  return local ^ ((local >> 5 & 1) * 31) ^ ((local >> 6 & 1) * 21) ^ ((local >> 7 & 1) * 25) ^
         ((local >> 8 & 1) * 17);
}

/// Runs the steps of one round on the registers of one invocation, as the shader does: from the
/// round's code alone. `exchange(a, b)` leaves the smaller of two elements in a.
template <class Element, class Exchange>
void RunRound(const ComputeRound& round, std::uint32_t registers_log2, std::span<Element> registers,
              Exchange exchange) {
  const auto size = static_cast<std::uint32_t>(registers.size());
  const auto step = [&](std::uint32_t bit, bool mirrored) {
    const std::uint32_t mask = mirrored ? (2U << bit) - 1 : 1U << bit;
    for (std::uint32_t a = 0; a < size; ++a) {
      if ((a >> bit & 1) == 0) exchange(registers[a], registers[a ^ mask]);
    }
  };
  if (round.whole_stages) {
    for (std::uint32_t stage = 1; stage <= registers_log2; ++stage) {
      step(stage - 1, true);
      for (std::uint32_t bit = stage - 1; bit-- > 0;) step(bit, false);
    }
    return;
  }
  for (std::uint32_t s = 0; s < round.steps.size(); ++s) {
    step(registers_log2 - 1 - s, s == 0 && round.mirrored);
  }
}

/// Runs a plan on the CPU, group by group and invocation by invocation: the reference for the
/// shader and what shows the plan to sort. `largest` is not smaller than any element. REQUIRES:
/// keys.size() <= 2^plan.log2_keys.
template <class Element, class Exchange>
void RunPlan(const ComputePlan& plan, std::span<Element> keys, const Element& largest,
             Exchange exchange) {
  const std::uint32_t r = plan.shape.registers_log2;
  const auto length = static_cast<std::uint32_t>(keys.size());
  std::vector<Element> local(std::size_t{1} << plan.shape.block_log2);
  std::vector<Element> registers(std::size_t{1} << r);
  for (const ComputePass& pass : plan.passes) {
    for (std::uint32_t group = 0; group < pass.Groups(length); ++group) {
      for (std::uint32_t l = 0; l < local.size(); ++l) {
        const std::uint32_t index = pass.IndexOf(group, l);
        local[l] = index < length ? keys[index] : largest;
      }
      for (const ComputeRound& round : pass.rounds) {
        for (std::uint32_t invocation = 0; invocation < plan.shape.Invocations(); ++invocation) {
          for (std::uint32_t j = 0; j < registers.size(); ++j) {
            registers[j] = local[LocalOf(round, r, invocation, j)];
          }
          RunRound<Element>(round, r, registers, exchange);
          for (std::uint32_t j = 0; j < registers.size(); ++j) {
            local[LocalOf(round, r, invocation, j)] = registers[j];
          }
        }
      }
      for (std::uint32_t l = 0; l < local.size(); ++l) {
        const std::uint32_t index = pass.IndexOf(group, l);
        if (index < length) keys[index] = local[l];
      }
    }
  }
}

/// The same for elements that have an order.
template <class Element>
void RunPlan(const ComputePlan& plan, std::span<Element> keys, const Element& largest) {
  RunPlan(plan, keys, largest, [](Element& a, Element& b) {
    if (b < a) std::swap(a, b);
  });
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_COMPUTE_PLAN_H_
