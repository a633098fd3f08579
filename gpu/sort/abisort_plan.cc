#include "gpu/sort/abisort_plan.h"

#include <algorithm>
#include <cassert>
#include <ostream>
#include <utility>

namespace tidemark::sort {
namespace {

constexpr std::uint32_t kOne = 1;

// Bytes: a node is a key word, an id and two sons; a value a key word and an id; p and q two sons.
constexpr std::uint64_t kNode = 16;
constexpr std::uint64_t kValue = 8;
constexpr std::uint64_t kKey = 4;
constexpr std::uint64_t kPq = 8;

std::uint32_t FirstOf(std::uint32_t log2_trees, std::uint32_t stage, std::uint32_t phase) {
  const std::uint32_t width = kOne << (stage + log2_trees);
  if (phase == 0) return 0;
  if (phase == 1) return width;
  return (kOne << (stage + phase - 1 + log2_trees)) + width;
}

class Planner {
 public:
  explicit Planner(const ABiSortShape& shape) : shape_(shape) {}

  std::vector<ABiSortOperation> Make() {
    const std::uint32_t last = shape_.log2_keys;
    if (last == 0) return {};
    if (!shape_.small_kernels) {
      Add(ABiSortKernel::kLoad, 1, 1);
      for (std::uint32_t level = 1; level <= last; ++level) {
        AddSteps(level, level);
        plan_.back().copied_back = false;  // read from where it was written
        if (level < last) Add(ABiSortKernel::kRelink, level + 1, 1);
      }
      return std::move(plan_);
    }
    assert(last >= kABiSortMergeLog2);
    Add(ABiSortKernel::kLocalSort, kABiSortLocalLog2, kABiSortLocalLog2);
    for (std::uint32_t level = kABiSortMergeLog2; level <= last; ++level) {
      if (level > kABiSortMergeLog2) {
        Add(ABiSortKernel::kLink, level, 1);
        AddSteps(level, level - kABiSortMergeLog2);
        Add(ABiSortKernel::kTraverse, level, kABiSortLocalLog2);
      }
      Add(ABiSortKernel::kMerge, level, kABiSortLocalLog2);
    }
    return std::move(plan_);
  }

 private:
  void Add(ABiSortKernel kernel, std::uint32_t level, std::uint32_t log2_values_an_instance) {
    ABiSortOperation operation;
    operation.kernel = kernel;
    operation.level = level;
    operation.instances = kOne << (shape_.log2_all() - log2_values_an_instance);
    // A window alone on a level is sorted ascending, whichever of the four it is.
    operation.alternating = level < shape_.log2_keys;
    plan_.push_back(std::move(operation));
  }

  // The first `stages` of the level's stages.
  void AddSteps(std::uint32_t level, std::uint32_t stages) {
    if (!shape_.overlapped) {
      for (std::uint32_t stage = 0; stage < stages; ++stage) {
        for (std::uint32_t phase = 0; phase < level - stage; ++phase) {
          AddStep(level, {{stage, phase}});
        }
      }
      return;
    }
    for (std::uint32_t step = 0;; ++step) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> active;
      for (std::uint32_t stage = 0; stage < stages && 2 * stage <= step; ++stage) {
        if (step - 2 * stage < level - stage) active.emplace_back(stage, step - 2 * stage);
      }
      if (active.empty()) return;
      AddStep(level, active);
    }
  }

  void AddStep(std::uint32_t level,
               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& active) {
    ABiSortOperation operation;
    operation.level = level;
    operation.alternating = level < shape_.log2_keys;
    operation.copied_back = true;
    for (const auto& [stage, phase] : active) {
      operation.blocks.push_back(BlockOf(shape_.log2_all() - level, level, stage, phase));
      operation.instances += operation.blocks.back().pairs;
    }
    plan_.push_back(std::move(operation));
  }

  const ABiSortShape shape_;
  std::vector<ABiSortOperation> plan_;
};

std::uint64_t StepBytes(const ABiSortOperation& operation) {
  std::uint64_t bytes = 0;
  for (const ABiSortBlock& block : operation.blocks) {
    // Two nodes and, after phase 0, p and q are read; two nodes, p and q are written.
    bytes += block.pairs * ((block.phase == 0 ? 0 : kPq) + 2 * kNode + 2 * kNode + kPq);
  }
  return bytes;
}

}  // namespace

ABiSortBlock BlockOf(std::uint32_t log2_trees, std::uint32_t level, std::uint32_t stage,
                     std::uint32_t phase) {
  assert(phase < level - stage);
  ABiSortBlock block;
  block.stage = stage;
  block.phase = phase;
  block.first = FirstOf(log2_trees, stage, phase);
  block.pairs = kOne << (stage + log2_trees);
  if (phase > 0) block.previous = FirstOf(log2_trees, stage, phase - 1);
  if (phase + 1 < level - stage) block.next = FirstOf(log2_trees, stage, phase + 1);
  return block;
}

std::vector<ABiSortOperation> ABiSortPlan(const ABiSortShape& shape) {
  assert(shape.log2_all() <= kABiSortMaxLog2);
  return Planner(shape).Make();
}

SortCounts CountsOf(const std::vector<ABiSortOperation>& plan) {
  constexpr std::uint64_t kEight = 1 << kABiSortLocalLog2;
  SortCounts counts;
  for (const ABiSortOperation& operation : plan) {
    const std::uint64_t instances = operation.instances;
    ++counts.passes;
    ++counts.draw_calls;
    switch (operation.kernel) {
      case ABiSortKernel::kLoad:
        counts.bytes_moved += instances * (2 * kKey + 2 * kNode);
        break;
      case ABiSortKernel::kStep:
        counts.comparisons += instances;
        counts.bytes_moved += StepBytes(operation);
        break;
      case ABiSortKernel::kRelink:
        counts.bytes_moved += instances * 4 * kNode;
        break;
      case ABiSortKernel::kLocalSort:
        counts.comparisons += instances * 28;  // eight rounds of four and of three in turn
        counts.bytes_moved += instances * (kEight * kKey + kEight * kValue);
        break;
      case ABiSortKernel::kTraverse:
        // The lower half: the root and seven nodes; the upper half: the spare beside them.
        counts.bytes_moved += instances / 2 * (8 + 9) * kNode + instances * kEight * kValue;
        break;
      case ABiSortKernel::kMerge:
        counts.comparisons += instances * 20;  // 8 with the other half, then 3 rounds of 4
        counts.bytes_moved += instances * 3 * kEight * kValue;
        break;
      case ABiSortKernel::kLink:
        counts.bytes_moved += instances * (2 * kValue + 2 * kNode);
        break;
    }
    if (operation.copied_back) {
      ++counts.copies;
      ++counts.draw_calls;
      counts.bytes_moved += instances * 4 * kNode;
    }
  }
  return counts;
}

std::ostream& operator<<(std::ostream& out, const ABiSortOperation& operation) {
  static constexpr const char* kNames[] = {"load",     "step",  "relink", "local sort",
                                           "traverse", "merge", "link"};
  out << "level " << operation.level << ' ' << kNames[static_cast<int>(operation.kernel)];
  const char* separator = ": ";
  for (const ABiSortBlock& block : operation.blocks) {
    out << separator << "stage " << block.stage << " phase " << block.phase << " at " << block.first
        << '+' << block.pairs;
    separator = ", ";
  }
  return out;
}

}  // namespace tidemark::sort
