#include "gpu/sort/compute_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <ostream>
#include <sstream>
#include <stdexcept>

namespace tidemark::sort {
namespace {

// Keys side by side that one memory access of a strided pass takes: a cache line of 128 bytes.
constexpr std::uint32_t kRunBytes = 128;
// Keys in an invocation's registers: 16 of one word, 8 of two or three, so that they take 24
// registers at most. Devices with 2^16 registers for 1,024 invocations have 64 for each.
constexpr std::uint32_t kRegistersLog2OneWord = 4;
constexpr std::uint32_t kRegistersLog2 = 3;

std::uint32_t FloorLog2(std::size_t n) { return static_cast<std::uint32_t>(std::bit_width(n)) - 1; }

// The schedule with a mark for how far it has been dealt out.
class Dealer {
 public:
  explicit Dealer(std::uint32_t log2_keys) : schedule_(BitonicSchedule(log2_keys)) {}

  bool done() const { return at_ == schedule_.size(); }
  const NetworkStep& next() const { return schedule_[at_]; }
  std::vector<NetworkStep> Take(std::size_t count) {
    const auto from = schedule_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += count;
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  std::vector<NetworkStep> schedule_;
  std::size_t at_ = 0;
};

// Rounds for the next `steps` steps, all of one stage, the first of them at local bit `top_bit`.
// The round that is not full comes first, so that the registers of the others end where their steps
// do.
void AddRounds(std::uint32_t registers_log2, std::uint32_t top_bit, std::uint32_t steps,
               Dealer& dealer, std::vector<ComputeRound>& rounds) {
  while (steps > 0) {
    const std::uint32_t count = (steps - 1) % registers_log2 + 1;
    assert(top_bit + 1 >= registers_log2);
    ComputeRound round;
    round.first_bit = top_bit + 1 - registers_log2;
    round.mirrored = dealer.next().mirrored;
    round.steps = dealer.Take(count);
    rounds.push_back(std::move(round));
    top_bit -= count;
    steps -= count;
  }
}

// Stages 1 to min(b, k), which need no key from outside the block.
ComputePass FirstPass(const ComputeShape& shape, std::uint32_t log2_keys, Dealer& dealer) {
  ComputePass pass;
  pass.column_bits = pass.row_shift = shape.block_log2;
  ComputeRound first;
  first.whole_stages = true;
  first.steps = dealer.Take(std::size_t{shape.registers_log2} * (shape.registers_log2 + 1) / 2);
  pass.rounds.push_back(std::move(first));
  const std::uint32_t last = std::min(shape.block_log2, log2_keys);
  for (std::uint32_t stage = shape.registers_log2 + 1; stage <= last; ++stage) {
    AddRounds(shape.registers_log2, stage - 1, stage, dealer, pass.rounds);
  }
  return pass;
}

// Stage > b: strided passes down to distance 2^b, as even as can be, then a block pass.
void AddStage(const ComputeShape& shape, std::uint32_t stage, Dealer& dealer,
              std::vector<ComputePass>& passes) {
  const std::uint32_t rows_max = shape.block_log2 - shape.columns_log2;
  std::uint32_t steps = stage - shape.block_log2;
  for (std::uint32_t left = (steps + rows_max - 1) / rows_max; left > 0; --left) {
    const std::uint32_t rows = (steps + left - 1) / left;
    ComputePass pass;
    pass.row_bits = rows;
    pass.column_bits = shape.block_log2 - rows;
    pass.row_shift = shape.block_log2 + steps - rows;
    pass.mirrored = dealer.next().mirrored;
    AddRounds(shape.registers_log2, shape.block_log2 - 1, rows, dealer, pass.rounds);
    passes.push_back(std::move(pass));
    steps -= rows;
  }
  ComputePass block;
  block.column_bits = block.row_shift = shape.block_log2;
  AddRounds(shape.registers_log2, shape.block_log2 - 1, shape.block_log2, dealer, block.rounds);
  passes.push_back(std::move(block));
}

const char* Plural(std::size_t n) { return n == 1 ? "" : "s"; }

}  // namespace

ComputeShape ChooseShape(ElementKind kind, ComputeLimits limits) {
  ComputeShape shape;
  shape.words = kind.Words();
  shape.registers_log2 = shape.words == 1 ? kRegistersLog2OneWord : kRegistersLog2;
  shape.columns_log2 = FloorLog2(kRunBytes / kind.KeyBytes());
  const std::size_t fitting = limits.shared_bytes / (std::size_t{4} * shape.words);
  const std::uint32_t by_memory = fitting == 0 ? 0 : FloorLog2(fitting);
  const std::uint32_t by_invocations =
      limits.invocations_max == 0 ? 0 : FloorLog2(limits.invocations_max) + shape.registers_log2;
  shape.block_log2 = std::min({by_memory, by_invocations, kBlockLog2Max});
  const std::uint32_t least = shape.columns_log2 + 1;
  if (shape.block_log2 < least) {
    shape.block_log2 = least;
    std::ostringstream message;
    message << "sorting " << kind.key_bits << "-bit keys" << (kind.payload ? " with payloads" : "")
            << " in compute shaders needs " << shape.SharedBytes() << " bytes of shared memory and "
            << shape.Invocations() << " invocations a workgroup; the device allows "
            << limits.shared_bytes << " and " << limits.invocations_max;
    throw std::invalid_argument(message.str());
  }
  return shape;
}

std::uint32_t ComputeRound::Code() const {
  return first_bit | static_cast<std::uint32_t>(steps.size()) << 8 | (mirrored ? 1U << 16 : 0) |
         (whole_stages ? 1U << 17 : 0);
}

std::uint32_t ComputePass::IndexOf(std::uint32_t group, std::uint32_t local) const {
  const std::uint32_t middle_bits = row_shift - column_bits;
  const std::uint32_t middle_mask = (1U << middle_bits) - 1;
  const std::uint32_t column = local & ((1U << column_bits) - 1);
  const std::uint32_t row = local >> column_bits;
  std::uint32_t middle = group & middle_mask;
  if (mirrored && (row >> (row_bits - 1) & 1) != 0) middle ^= middle_mask;
  return (group >> middle_bits) << (row_shift + row_bits) | row << row_shift |
         middle << column_bits | column;
}

std::uint32_t ComputePass::Groups(std::uint32_t length) const {
  const std::uint32_t span_bits = row_shift + row_bits;
  const std::uint32_t spans =
      static_cast<std::uint32_t>((std::uint64_t{length} + (1ULL << span_bits) - 1) >> span_bits);
  return spans << (row_shift - column_bits);
}

ComputePlan MakeComputePlan(const ComputeShape& shape, std::uint32_t log2_keys) {
  assert(log2_keys <= kMaxLog2Keys);
  assert(shape.registers_log2 >= 1 && shape.registers_log2 <= shape.block_log2);
  assert(shape.columns_log2 < shape.block_log2 && shape.block_log2 <= kBlockLog2Max);
  ComputePlan plan;
  plan.shape = shape;
  plan.log2_keys = std::max(log2_keys, shape.registers_log2);
  Dealer dealer(plan.log2_keys);
  plan.passes.push_back(FirstPass(shape, plan.log2_keys, dealer));
  for (std::uint32_t stage = shape.block_log2 + 1; stage <= plan.log2_keys; ++stage) {
    AddStage(shape, stage, dealer, plan.passes);
  }
  assert(dealer.done());
  return plan;
}

std::uint32_t Log2Keys(std::size_t length) {
  return length < 2 ? 0 : static_cast<std::uint32_t>(std::bit_width(length - 1));
}

std::uint32_t LocalOf(const ComputeRound& round, std::uint32_t registers_log2,
                      std::uint32_t invocation, std::uint32_t j) {
  const std::uint32_t mask = (1U << round.first_bit) - 1;
  std::uint32_t low = invocation & mask;
  if (round.mirrored && (j >> (registers_log2 - 1) & 1) != 0) low ^= mask;
  return (invocation >> round.first_bit) << (round.first_bit + registers_log2) |
         j << round.first_bit | low;
}

std::ostream& operator<<(std::ostream& out, const ComputePlan& plan) {
  std::size_t number = 0;
  for (const ComputePass& pass : plan.passes) {
    std::size_t steps = 0;
    for (const ComputeRound& round : pass.rounds) steps += round.steps.size();
    const NetworkStep& first = pass.rounds.front().steps.front();
    const NetworkStep& last = pass.rounds.back().steps.back();
    out << "pass " << ++number << ": ";
    if (pass.row_bits == 0) {
      out << "block of 2^" << pass.column_bits << " keys: ";
    } else {
      out << "strided, " << (1U << pass.row_bits) << " rows of 2^" << pass.column_bits << " keys: ";
    }
    out << "stage " << first.stage << " step " << first.step;
    if (steps > 1) out << " to stage " << last.stage << " step " << last.step;
    out << " (" << steps << " step" << Plural(steps) << ", " << pass.rounds.size() << " round"
        << Plural(pass.rounds.size()) << ")\n";
  }
  return out;
}

}  // namespace tidemark::sort
