// Runs the operations of abisort_plan.h on the CPU: the reference for the programs that run them on
// a GPU, with the same streams, and with their rule that an operation sees nothing of what it
// writes.
#ifndef TIDEMARK_GPU_SORT_ABISORT_STREAMS_H_
#define TIDEMARK_GPU_SORT_ABISORT_STREAMS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/sort/abisort_plan.h"

namespace tidemark::sort {

/// Sorts keys, as many as the plan's shape says.
///
/// Streams of one level (N values): nodes 0 … N - 1 are what its steps wrote (table 1), nodes
/// N … 2 N - 1 are the trees in order that it started from. The id of a value is its place in the
/// input and the second key of every comparison, so that no two values are equal (§4: the algorithm
/// needs that, for p_i = q_i would not say on which side to go down).
/// Cost: 220 to 720 ns a key at 2^10 to 2^16: a reference, not a sorter. Thread: any one.
class ABiSortStreams {
 public:
  struct Value {
    std::uint64_t key = 0;
    std::uint32_t id = 0;
  };

  explicit ABiSortStreams(std::span<const std::uint64_t> keys);

  /// REQUIRES: the operations of one plan for keys.size() keys, in order.
  void Run(const ABiSortOperation& operation);

  /// What the last operation left: the result after the plan's last one.
  std::vector<Value> Values() const;
  std::uint64_t comparisons() const { return comparisons_; }
  std::uint64_t pairs_written() const { return pairs_written_; }

 private:
  struct Node {
    Value value;
    std::uint32_t left = 0;
    std::uint32_t right = 0;
  };
  struct Pq {
    std::uint32_t p = 0;
    std::uint32_t q = 0;
  };

  bool Greater(const Value& a, const Value& b);
  Node InOrderNode(std::uint32_t i, const Value& value) const;
  void Step(const ABiSortOperation& operation);
  void StepInstance(const ABiSortOperation& operation, const ABiSortBlock& block,
                    std::uint32_t instance);
  void LocalSort(std::uint32_t instance, bool descending);
  void Traverse(const ABiSortOperation& operation, std::uint32_t instance);
  void Merge(const ABiSortOperation& operation, std::uint32_t instance);

  const std::uint32_t size_;  // N
  std::vector<Value> loaded_;
  std::vector<Node> trees_;  // 2 N nodes; read by the steps
  std::vector<Node> out_;    // N nodes; written by the steps
  std::vector<Pq> pq_in_;    // N / 2, at the places of the pairs
  std::vector<Pq> pq_out_;
  std::vector<Value> values_;
  std::vector<Value> values_out_;
  bool result_in_nodes_ = false;
  std::uint64_t comparisons_ = 0;
  std::uint64_t pairs_written_ = 0;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_ABISORT_STREAMS_H_
