// Makes a window's digest from its leaves, given in ascending order: one by one where they were
// counted, or as stretches of sorted keys. digest_rule.h says what leaves and entries are.
#ifndef TIDEMARK_SUMMARIES_DIGEST_BUILDER_H_
#define TIDEMARK_SUMMARIES_DIGEST_BUILDER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summaries/digest_rule.h"
#include "summaries/window_digest.h"

namespace tidemark::internal {

/// For one window of `count` keys, at least one and less than 2^32. First() once; then leaves and
/// stretches until all keys are accounted for; then Last().
template <class Key>
class DigestBuilder {
 public:
  DigestBuilder(std::uint64_t count, std::uint64_t stride, WindowDigest<Key>& digest)
      : reach_(static_cast<std::size_t>(std::min(stride, count))), digest_(digest) {
    digest.count = count;
    digest.stride = stride;
    const std::size_t strides = count / stride + 1;
    digest.keys.reserve(strides + strides / 8 + 2);
    digest.positions.reserve(strides + strides / 8 + 2);
  }

  /// Keys in the window.
  std::uint64_t count() const { return digest_.count; }
  /// A leaf longer than this is a run.
  std::size_t reach() const { return reach_; }
  /// Keys accounted for.
  std::size_t border() const { return border_; }

  void First(Key min) { Emit(min, 1); }

  /// The next leaf, a light cell, ends at `border`; `key` is its largest key.
  void AddLight(std::size_t border, Key key) {
    if (border > at_ + reach_) Emit(border_key_, border_);
    border_ = border;
    border_key_ = key;
  }

  /// The next leaves are `cells`, one each unless it is empty, up to the first heavy one. Returns
  /// how many cells there are before that. Without branches: one light cell in four or five ends an
  /// entry, and to guess which costs more than the rest.
  template <class Cell>
  std::size_t AddLights(std::span<const Cell> cells) {
    constexpr std::size_t kChunk = 128;
    std::array<Key, kChunk> keys;
    std::array<std::uint32_t, kChunk> positions;
    std::size_t next = 0;
    while (next < cells.size() && cells[next].count <= reach_) {
      const std::size_t end = std::min(cells.size(), next + kChunk);
      std::size_t border = border_, limit = at_ + reach_, entries = 0;
      Key key = border_key_;
      for (; next < end && cells[next].count <= reach_; ++next) {
        const Cell cell = cells[next];
        const std::size_t sum = border + cell.count;
        keys[entries] = key;
        positions[entries] = static_cast<std::uint32_t>(border);
        const bool ends = sum > limit;
        entries += ends ? 1 : 0;
        limit = ends ? border + reach_ : limit;
        border = sum;
        key = cell.count > 0 ? cell.max : key;
      }
      digest_.keys.insert(digest_.keys.end(), keys.data(), keys.data() + entries);
      digest_.positions.insert(digest_.positions.end(), positions.data(),
                               positions.data() + entries);
      at_ = limit - reach_;
      border_ = border;
      border_key_ = key;
    }
    return next;
  }

  /// The next leaf is a run that ends at `border`.
  void AddRun(std::size_t border, Key key) {
    const std::size_t first = border_ + 1;
    if (first > at_) {  // else the run is the window's first, and First() has made this entry
      if (first > at_ + reach_) Emit(border_key_, border_);
      Emit(key, first);
    }
    Emit(key, border);
    border_ = border;
    border_key_ = key;
  }

  /// The next leaves are those of all cells of `level` that these keys, ascending, are in: they
  /// are all the keys of these cells. Costs one search among `stride` keys for each entry: the
  /// furthest border within reach is the begin of the leaf that holds the first key out of reach,
  /// so that others are not looked at.
  void AddSorted(std::span<const Key> sorted, int level) {
    if (sorted.empty()) return;
    sorted_ = sorted;
    offset_ = border_;
    nodes_.clear();
    nodes_.push_back({0, sorted.size(), level});
    while (at_ + reach_ < offset_ + sorted.size()) Step();
    border_ = offset_ + sorted.size();
    border_key_ = sorted.back();
  }

  void Last() {
    if (border_ > at_) Emit(border_key_, border_);
  }

 private:
  struct Node {
    std::size_t begin, end;  // in sorted_
    int level;               // of the cells that it is divided into
  };

  void Emit(Key key, std::size_t position) {
    digest_.keys.push_back(key);
    digest_.positions.push_back(static_cast<std::uint32_t>(position));
    at_ = position;
  }

  /// From the last entry to the next, or over a run.
  void Step() {
    const std::size_t out = at_ + reach_ - offset_;  // index of the first key out of reach
    while (out >= nodes_.back().end) nodes_.pop_back();
    for (;;) {
      const Node node = nodes_.back();
      const std::size_t begin = CellBegin(node, out);
      if (begin > 0) {
        border_ = offset_ + begin;
        border_key_ = sorted_[begin - 1];
      }  // else the border is that of the leaf before these keys
      const bool light = begin + reach_ >= node.end ||
                         (sorted_[begin + reach_] >> node.level) != (sorted_[out] >> node.level);
      if (light) return Emit(border_key_, border_);
      const std::size_t end = CellEnd(node, out);
      if (sorted_[begin] == sorted_[end - 1]) return AddRun(offset_ + end, sorted_[begin]);
      nodes_.push_back({begin, end, RefinedLevel(node.level, end - begin, reach_)});
    }
  }

  /// Index of the first key of the cell of sorted_[out]. Not before the last entry: a cell that
  /// begins earlier is heavy, and was made a node, or passed over as a run, when that entry was
  /// made. Only the window's very first entry stands behind a key of its own cell.
  std::size_t CellBegin(const Node& node, std::size_t out) const {
    const Key least = (sorted_[out] >> node.level) << node.level;
    const std::size_t from = std::max(node.begin, at_ > 1 && at_ > offset_ ? at_ - offset_ : 0);
    return FirstNotBelow(least, from, out);
  }

  /// The first index in [from, to] whose key is at least `least`. REQUIRES: that of `to` is. Keys
  /// that lie close together are spread about evenly: looks where the key would then be, at several
  /// places at once, and searches only if it is not there.
  std::size_t FirstNotBelow(Key least, std::size_t from, std::size_t to) const {
    constexpr std::size_t kBlock = 64 / sizeof(Key);
    const Key* const keys = sorted_.data();
    if (to - from >= 4 * kBlock && keys[from] < least) {
      const double share =
          static_cast<double>(least - keys[from]) / static_cast<double>(keys[to] - keys[from]);
      const auto guess = from + static_cast<std::size_t>(share * static_cast<double>(to - from));
      const std::size_t block = std::min(guess - std::min(guess - from, kBlock / 2), to - kBlock);
      std::size_t below = 0;
      for (std::size_t i = 0; i < kBlock; ++i) below += keys[block + i] < least ? 1 : 0;
      if (below == 0) {
        to = block;
      } else if (below == kBlock) {
        from = block + kBlock;
      } else {
        return block + below;
      }
    }
    const Key* base = keys + from;
    std::size_t length = to - from + 1;
    while (length > 1) {  // the key of `to` is not below `least`, so that one is left
      const std::size_t half = length / 2;
      base += base[half - 1] < least ? half : 0;
      length -= half;
    }
    return static_cast<std::size_t>(base - keys);
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

  const std::size_t reach_;
  WindowDigest<Key>& digest_;
  std::size_t at_ = 0;      // position of the last entry
  std::size_t border_ = 0;  // of the last leaf so far; within reach of at_
  Key border_key_ = 0;

  // While sorted keys are walked through:
  std::span<const Key> sorted_;
  std::size_t offset_ = 0;   // keys before them
  std::vector<Node> nodes_;  // all of them, and within each the heavy cell under way
};

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_DIGEST_BUILDER_H_
