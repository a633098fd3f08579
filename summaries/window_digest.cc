#include "summaries/window_digest.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>

#include "summaries/digest_rule.h"

namespace tidemark {
namespace {

/// Walks the entries of a sorted window's digest without looking at every leaf: the furthest
/// border within reach is the begin of the leaf that holds the first key out of reach.
template <class Key>
class SortedWalk {
 public:
  SortedWalk(std::span<const Key> sorted, std::uint64_t stride, WindowDigest<Key>& digest)
      : sorted_(sorted),
        reach_(static_cast<std::size_t>(std::min<std::uint64_t>(stride, sorted.size()))),
        digest_(digest) {
    nodes_.push_back(NodeOf(0, sorted.size()));
  }

  void Run() {
    Emit(0, 1);
    while (at_ + reach_ < sorted_.size()) Step();
    if (at_ < sorted_.size()) Emit(sorted_.size() - 1, sorted_.size());
  }

 private:
  struct Node {
    std::size_t begin, end;
    int level;
  };

  Node NodeOf(std::size_t begin, std::size_t end) const {
    return {begin, end, internal::CellLevel(sorted_[begin], sorted_[end - 1], end - begin, reach_)};
  }

  void Emit(std::size_t index, std::size_t position) {
    digest_.keys.push_back(sorted_[index]);
    digest_.positions.push_back(static_cast<std::uint32_t>(position));
    at_ = position;
  }

  /// From the last entry to the next, or over a run.
  void Step() {
    const std::size_t out = at_ + reach_;  // index of the first key out of reach
    while (out >= nodes_.back().end) nodes_.pop_back();
    for (;;) {
      const Node node = nodes_.back();
      const std::size_t begin = CellBegin(node, out);
      if (IsLight(node, begin, out)) return Emit(begin - 1, begin);
      const std::size_t end = CellEnd(node, out);
      if (sorted_[begin] == sorted_[end - 1]) return EmitRun(begin, end);
      nodes_.push_back(NodeOf(begin, end));
    }
  }

  bool IsLight(const Node& node, std::size_t begin, std::size_t out) const {
    return begin + reach_ >= node.end ||
           (sorted_[begin + reach_] >> node.level) != (sorted_[out] >> node.level);
  }

  /// Index of the first key of the cell of sorted_[out]. Not before the last entry: a cell that
  /// begins earlier is heavy, and was made a node, or passed over as a run, when that entry was
  /// made. Only the very first entry stands behind a key of its cell.
  std::size_t CellBegin(const Node& node, std::size_t out) const {
    const Key least = (sorted_[out] >> node.level) << node.level;
    const Key* base = sorted_.data() + std::max(node.begin, at_ == 1 ? 0 : at_);
    std::size_t length = static_cast<std::size_t>(sorted_.data() + out - base) + 1;
    while (length > 1) {  // sorted_[out] is not below `least`, so that one is left
      const std::size_t half = length / 2;
      base += base[half - 1] < least ? half : 0;
      length -= half;
    }
    return static_cast<std::size_t>(base - sorted_.data());
  }

  /// Index behind its last key, by doubling steps.
  std::size_t CellEnd(const Node& node, std::size_t out) const {
    const Key cell = sorted_[out] >> node.level;
    std::size_t low = out, step = reach_;
    while (low + step < node.end && (sorted_[low + step] >> node.level) == cell) {
      low += step;
      step *= 2;
    }
    const auto first = sorted_.begin() + static_cast<std::ptrdiff_t>(low);
    const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(std::min(low + step, node.end));
    const auto border =
        std::partition_point(first, last, [&](Key key) { return (key >> node.level) == cell; });
    return static_cast<std::size_t>(border - sorted_.begin());
  }

  void EmitRun(std::size_t begin, std::size_t end) {
    if (begin + 1 > at_) {  // else the run is the window's first, and its begin is there
      if (begin + 1 > at_ + reach_) Emit(begin - 1, begin);
      Emit(begin, begin + 1);
    }
    Emit(end - 1, end);
  }

  const std::span<const Key> sorted_;
  const std::size_t reach_;
  WindowDigest<Key>& digest_;
  std::size_t at_ = 0;       // position of the last entry
  std::vector<Node> nodes_;  // that of the window, and within each the heavy cell walked through
};

}  // namespace

template <class Key>
WindowDigest<Key> DigestSorted(std::span<const Key> sorted, std::uint64_t stride) {
  if (stride == 0) throw std::invalid_argument("the stride of a digest is 0, expected 1 or more");
  if (sorted.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("a window of " + std::to_string(sorted.size()) +
                            " keys has no digest: the limit is 2^32 - 1");
  }
  WindowDigest<Key> digest;
  digest.count = sorted.size();
  digest.stride = stride;
  if (sorted.empty()) return digest;
  const std::size_t strides = sorted.size() / stride + 1;
  digest.keys.reserve(strides + strides / 8 + 2);
  digest.positions.reserve(strides + strides / 8 + 2);
  SortedWalk<Key>(sorted, stride, digest).Run();
  return digest;
}

template WindowDigest<std::uint32_t> DigestSorted(std::span<const std::uint32_t>, std::uint64_t);
template WindowDigest<std::uint64_t> DigestSorted(std::span<const std::uint64_t>, std::uint64_t);

}  // namespace tidemark
