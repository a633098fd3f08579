#include "gpu/sort/abisort_streams.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tidemark::sort {
namespace {

constexpr std::uint32_t kEight = 1 << kABiSortLocalLog2;

}  // namespace

ABiSortStreams::ABiSortStreams(std::span<const std::uint64_t> keys)
    : size_(static_cast<std::uint32_t>(keys.size())),
      trees_(2 * keys.size()),
      out_(keys.size()),
      pq_in_(keys.size() / 2),
      pq_out_(keys.size() / 2),
      values_(keys.size()),
      values_out_(keys.size()) {
  for (std::uint32_t i = 0; i < size_; ++i) loaded_.push_back({keys[i], i});
}

bool ABiSortStreams::Greater(const Value& a, const Value& b) {
  ++comparisons_;
  return a.key != b.key ? a.key > b.key : a.id > b.id;
}

// Node i of trees that are stored in order: a node at height h, h trailing ones in i, has its sons
// 2^(h-1) to either side (listing 2).
ABiSortStreams::Node ABiSortStreams::InOrderNode(std::uint32_t i, const Value& value) const {
  const std::uint32_t half = ((i + 1) & ~i) / 2;
  return {value, size_ + i - half, size_ + i + half};
}

void ABiSortStreams::Run(const ABiSortOperation& operation) {
  switch (operation.kernel) {
    case ABiSortKernel::kLoad:
      for (std::uint32_t i = 0; i < size_; ++i) trees_[size_ + i] = InOrderNode(i, loaded_[i]);
      break;
    case ABiSortKernel::kRelink:
      for (std::uint32_t i = 0; i < size_; ++i) trees_[size_ + i] = InOrderNode(i, out_[i].value);
      break;
    case ABiSortKernel::kLink:
      for (std::uint32_t i = 0; i < size_; ++i) trees_[size_ + i] = InOrderNode(i, values_[i]);
      break;
    case ABiSortKernel::kStep:
      Step(operation);
      break;
    case ABiSortKernel::kLocalSort:
      for (std::uint32_t i = 0; i < operation.instances; ++i) LocalSort(i, i % 2 == 1);
      break;
    case ABiSortKernel::kTraverse:
      for (std::uint32_t i = 0; i < operation.instances; ++i) Traverse(operation, i);
      break;
    case ABiSortKernel::kMerge:
      for (std::uint32_t i = 0; i < operation.instances; ++i) Merge(operation, i);
      break;
  }
  const bool values = operation.kernel == ABiSortKernel::kLocalSort ||
                      operation.kernel == ABiSortKernel::kTraverse ||
                      operation.kernel == ABiSortKernel::kMerge;
  if (values) std::swap(values_, values_out_);
  result_in_nodes_ = !values;
}

std::vector<ABiSortStreams::Value> ABiSortStreams::Values() const {
  if (!result_in_nodes_) return values_;
  std::vector<Value> values;
  for (const Node& node : out_) values.push_back(node.value);
  return values;
}

void ABiSortStreams::Step(const ABiSortOperation& operation) {
  for (const ABiSortBlock& block : operation.blocks) {
    for (std::uint32_t i = 0; i < block.pairs; ++i) StepInstance(operation, block, i);
  }
  std::swap(pq_in_, pq_out_);
  pairs_written_ += operation.instances;
  if (!operation.copied_back) return;
  for (const ABiSortBlock& block : operation.blocks) {
    std::copy_n(out_.begin() + 2 * block.first, 2 * block.pairs, trees_.begin() + 2 * block.first);
  }
}

void ABiSortStreams::StepInstance(const ABiSortOperation& operation, const ABiSortBlock& block,
                                  std::uint32_t instance) {
  const bool descending = operation.alternating && ((instance >> block.stage) & 1) != 0;
  const std::uint32_t place = block.first + instance;
  const std::uint32_t son = 2 * (block.next + instance);
  if (block.phase == 0) {
    const std::uint32_t tree = size_ + (instance << operation.level);
    const std::uint32_t half = std::uint32_t{1} << (operation.level - 1);
    Node root = trees_[block.stage == 0 ? tree + half - 1 : block.pairs + instance];
    Node spare = trees_[block.stage == 0 ? tree + 2 * half - 1 : instance];
    if (Greater(root.value, spare.value) != descending) {
      std::swap(root.value, spare.value);
      std::swap(root.left, root.right);
    }
    pq_out_[place] = {root.left, root.right};
    out_[2 * place] = root;
    out_[2 * place + 1] = spare;
    return;
  }
  const Pq from = pq_in_[block.previous + instance];
  Node p = trees_[from.p];
  Node q = trees_[from.q];
  if (Greater(p.value, q.value) != descending) {
    std::swap(p.value, q.value);
    std::swap(p.left, q.left);
    pq_out_[place] = {p.right, q.right};
    p.right = son;
    q.right = son + 1;
  } else {
    pq_out_[place] = {p.left, q.left};
    p.left = son;
    q.left = son + 1;
  }
  out_[2 * place] = p;
  out_[2 * place + 1] = q;
}

void ABiSortStreams::LocalSort(std::uint32_t instance, bool descending) {
  std::array<Value, kEight> values;
  std::copy_n(loaded_.begin() + kEight * instance, kEight, values.begin());
  for (std::uint32_t round = 0; round < kEight; ++round) {
    for (std::uint32_t i = round % 2; i + 1 < kEight; i += 2) {
      if (Greater(values[i], values[i + 1]) != descending) std::swap(values[i], values[i + 1]);
    }
  }
  std::copy(values.begin(), values.end(), values_out_.begin() + kEight * instance);
}

// Subtree m of the stage that would come next: its root is node (subtrees + m), written by phase 1
// of the last stage, and its spare is node m, written by phase 0. Instance 2 m writes the left
// son's values and the root's, instance 2 m + 1 the right son's and the spare's.
void ABiSortStreams::Traverse(const ABiSortOperation& operation, std::uint32_t instance) {
  const std::uint32_t subtrees = operation.instances / 2;
  const std::uint32_t subtree = instance / 2;
  const Node root = trees_[subtrees + subtree];
  const bool upper = instance % 2 == 1;
  const Node& top = trees_[upper ? root.right : root.left];
  Value* out = values_out_.data() + kEight * instance;
  for (const std::uint32_t side : {top.left, top.right}) {
    const Node& middle = trees_[side];
    *out++ = trees_[middle.left].value;
    *out++ = middle.value;
    *out++ = trees_[middle.right].value;
    if (side == top.left) *out++ = top.value;
  }
  *out = upper ? trees_[subtree].value : root.value;
}

// Instance 2 m writes the lower half of the sorted sequence m, instance 2 m + 1 the upper half.
void ABiSortStreams::Merge(const ABiSortOperation& operation, std::uint32_t instance) {
  const std::uint32_t first = instance / 2 * 2 * kEight;
  const bool descending = operation.alternating && ((first >> operation.level) & 1) != 0;
  const bool upper = instance % 2 == 1;
  std::array<Value, kEight> values;
  for (std::uint32_t i = 0; i < kEight; ++i) {
    const Value& low = values_[first + i];
    const Value& high = values_[first + kEight + i];
    values[i] = (Greater(low, high) != descending) != upper ? high : low;
  }
  for (std::uint32_t distance = kEight / 2; distance > 0; distance /= 2) {
    for (std::uint32_t i = 0; i < kEight; ++i) {
      if ((i & distance) != 0) continue;
      if (Greater(values[i], values[i + distance]) != descending) {
        std::swap(values[i], values[i + distance]);
      }
    }
  }
  std::copy(values.begin(), values.end(), values_out_.begin() + kEight * instance);
}

}  // namespace tidemark::sort
