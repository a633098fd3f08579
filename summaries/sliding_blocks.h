// The blocks of a sliding summary: which there are, when two become one, when they grow coarser and
// when they go. What a block holds is the summary's business; why this is enough is
// sliding_rule.h's.
//
// Several neighbours of one level are kept in one piece of memory (a chunk), once they are small:
// chunks of 2^k blocks that begin at a multiple of 2^k. Chunks are immutable and shared, so that an
// answer keeps what it reads while the summary goes on.
//
// Upper levels are made, and old blocks looked at, whenever kTogether blocks of level 0 have come:
// several merges can then run side by side, as each waits for itself. Up to then a cover takes the
// newest blocks one by one, which costs it nothing: what new blocks miss is a share of their
// values.
#ifndef TIDEMARK_SUMMARIES_SLIDING_BLOCKS_H_
#define TIDEMARK_SUMMARIES_SLIDING_BLOCKS_H_

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/sliding_rule.h"

namespace tidemark {

/// Which values an answer covers, as numbers of values from the stream's first (0).
struct SlidingRange {
  std::uint64_t low = 0;    ///< values before it are outside
  std::uint64_t begin = 0;  ///< values from it on are inside; of those between it is not known
  std::uint64_t end = 0;    ///< so many values are in blocks
  std::uint64_t later = 0;  ///< and so many that came after them are inside: the open window's

  std::uint64_t uncertain() const { return begin - low; }
  std::uint64_t n_low() const { return end - begin + later; }
  std::uint64_t n_high() const { return n_low() + uncertain(); }
};

/// A block, by its level and its number there: it stands for the values from base + number * B_l
/// on.
struct BlockName {
  int level = 0;
  std::uint64_t number = 0;
};

/// The blocks that cover the values from `begin` to `end` (sliding_rule.h).
struct SlidingCover {
  std::vector<BlockName> whole;
  /// How many values of the block `cut`, its last ones, are covered; 0: none is cut.
  std::uint64_t cut_values = 0;
  BlockName cut;
  bool cut_as_came = false;  ///< they are among the newest values that are kept as they came
};

template <class Data>
struct SlidingChunk {
  std::uint64_t first = 0;   ///< number of its first block
  std::uint64_t blocks = 1;  ///< a power of two; `first` is a multiple of it
  std::uint64_t step = 0;    ///< how coarse its blocks are: weight, or most that was dropped
  Data data;
};

/// `Kind` says what blocks are:
///   using Data                                                a handle to immutable shared blocks
///   std::vector<Data> Merge(int level, std::span<const Chunk> children)
///                                                             new blocks of `level`, two by two
///   std::uint64_t YoungStep(int level)
///   bool MayStep(int level, std::uint64_t step, std::uint64_t age)
///   Data Coarsen(int level, const Chunk&, std::uint64_t step)
///   Data Join(const Chunk&, const Chunk&)                     two chunks, in order
///   std::size_t Size(const Data&)                             samples or entries
///   std::size_t Bytes(const Data&)
///   void Write(ByteWriter&, const Data&)
///   Data Read(ByteReader&, int level, std::uint64_t blocks, std::uint64_t step)   checks it
/// Thread: one writer.
template <class Kind>
class SlidingBlocks {
 public:
  using Data = typename Kind::Data;
  using Chunk = SlidingChunk<Data>;

  SlidingBlocks(std::shared_ptr<const SlidingRule> rule, Kind kind)
      : rule_(std::move(rule)), kind_(std::move(kind)), levels_(1) {}

  const SlidingRule& rule() const { return *rule_; }
  const Kind& kind() const { return kind_; }
  /// Values added.
  std::uint64_t end() const { return end_; }

  /// Values before it are in no window from now on.
  std::uint64_t expired() const { return expired_; }

  /// Adds a block of level 0. `expired` as above; it does not fall.
  void Add(Data data, std::uint64_t expired) {
    expired_ = std::max(expired_, expired);
    const std::uint64_t size = rule_->block_size();
    levels_[0].push_back({end_ / size, 1, kind_.YoungStep(0), std::move(data)});
    end_ += size;
    if (end_ % (kTogether * size) != 0) return;
    Settle();
    DropOld();
  }

  /// Drops what no window needs any more. `expired` as for Add.
  void Expire(std::uint64_t expired) {
    expired_ = std::max(expired_, expired);
    DropOld();
  }

  /// What covers the values from `begin` to the end. REQUIRES: begin >= expired().
  SlidingCover Cover(std::uint64_t begin) const;

  /// The chunk that holds a block, and the block's place in it. REQUIRES: it is kept.
  std::pair<const Chunk*, std::size_t> Find(const BlockName& name) const {
    const auto& chunks = levels_[At(name.level)];
    const auto after = std::upper_bound(
        chunks.begin(), chunks.end(), name.number,
        [](std::uint64_t number, const Chunk& chunk) { return number < chunk.first; });
    assert(after != chunks.begin());
    const Chunk& chunk = *std::prev(after);
    assert(name.number < chunk.first + chunk.blocks);
    return {&chunk, static_cast<std::size_t>(name.number - chunk.first)};
  }

  const std::vector<std::vector<Chunk>>& levels() const { return levels_; }

  std::size_t bytes() const {
    std::size_t total = levels_.capacity() * sizeof(std::vector<Chunk>);
    for (const auto& chunks : levels_) {
      total += chunks.capacity() * sizeof(Chunk);
      for (const auto& chunk : chunks) total += kind_.Bytes(chunk.data);
    }
    return total;
  }
  std::size_t Size() const {
    std::size_t total = 0;
    for (const auto& chunks : levels_) {
      for (const auto& chunk : chunks) total += kind_.Size(chunk.data);
    }
    return total;
  }

  /// Part of a frame:
  ///   8  values added   8  expired   1  number of levels
  ///   then for each level, from 0:
  ///   4  number of chunks, and for each of them, oldest first:
  ///   8  number of its first block
  ///   1  log2 of the number of blocks
  ///   8  step
  ///      what the kind writes of its blocks
  void Write(ByteWriter& writer) const;
  static SlidingBlocks Read(ByteReader& reader, std::shared_ptr<const SlidingRule> rule, Kind kind);

 private:
  void ReadLevel(ByteReader& reader, int level);
  void CheckWhole(const ByteReader& reader) const;
  static std::size_t At(int level) { return static_cast<std::size_t>(level); }

  /// A power of two. Of 4, 8 and 16 tried the fastest.
  static constexpr std::uint64_t kTogether = 16;
  static constexpr std::uint64_t kMostBlocks = 64;  ///< in a chunk

  // Blocks of level 0 that came when upper levels were made for the last time.
  std::uint64_t Settled() const { return end_ / rule_->block_size() / kTogether * kTogether; }
  // Blocks that a level can have had by then.
  std::uint64_t Made(int level) const {
    return level == 0 ? end_ / rule_->block_size() : Settled() >> level;
  }
  // Those of them whose block of the next level was due.
  std::uint64_t Complete(int level) const { return Settled() >> (level + 1) << 1; }
  bool Exists(const BlockName& name) const {
    if (At(name.level) >= levels_.size()) return false;
    const auto& chunks = levels_[At(name.level)];
    return !chunks.empty() && name.number >= chunks.front().first && name.number < Made(name.level);
  }

  // Makes the upper levels of the last kTogether blocks, but for a block that begins before the
  // oldest value of any window: it could only ever be cut, and then the finer one will do, which is
  // therefore kept (AreOld).
  void Settle() {
    const std::uint64_t settled = Settled(), before = settled - kTogether;
    int level = 0;
    for (; level + 1 < rule_->levels(); ++level) {
      const std::uint64_t values = rule_->BlockValues(level + 1);
      const std::uint64_t first = std::max(before >> (level + 1), (expired_ + values - 1) / values);
      const std::uint64_t last = settled >> (level + 1);
      if (first >= last) break;
      if (At(level + 1) == levels_.size()) levels_.emplace_back();
      const auto& chunks = levels_[At(level)];
      const std::size_t extra = Made(level) - 2 * last, count = 2 * (last - first);
      const std::span<const Chunk> children(&chunks[chunks.size() - extra - count], count);
      auto merged = kind_.Merge(level, children);
      // Blocks before one that was not made have expired.
      if (first > before >> (level + 1)) levels_[At(level + 1)].clear();
      for (std::size_t i = 0; i < merged.size(); ++i) {
        levels_[At(level + 1)].push_back(
            {first + i, 1, kind_.YoungStep(level + 1), std::move(merged[i])});
      }
    }
    // Only where a block has come others may have become two old ones.
    for (int changed = 0; changed <= level && At(changed) < levels_.size(); ++changed) Age(changed);
  }

  void DropOld() {
    for (int level = 0; level < static_cast<int>(levels_.size()); ++level) {
      auto& chunks = levels_[At(level)];
      std::size_t gone = 0;
      while (gone < chunks.size() &&
             AreOld(level, chunks[gone].first, chunks[gone].first + chunks[gone].blocks - 1)) {
        ++gone;
      }
      chunks.erase(chunks.begin(), chunks.begin() + static_cast<std::ptrdiff_t>(gone));
      if (chunks.empty()) chunks.shrink_to_fit();
    }
    while (levels_.size() > 1 && levels_.back().empty()) levels_.pop_back();
  }

  // Whether no window needs the blocks from `first` to `last` of a level: none of their values is
  // in one, or (where they can only be whole parts of one) not all are, or what is cut where they
  // lie is a block of the next level.
  bool AreOld(int level, std::uint64_t first, std::uint64_t last) const {
    const std::uint64_t values = rule_->BlockValues(level);
    const std::uint64_t begin = last * values, end = begin + values;
    if (end <= expired_) return true;
    if (last >= Complete(level)) return false;
    if (rule_->NeverCut(level) && begin < expired_) return true;
    const std::uint64_t first_inside = std::max(first, expired_ / values);
    return end_ - end >= rule_->KeptFor(level) && Exists({level + 1, first_inside / 2});
  }

  // Makes the blocks of a level as coarse as their age allows, and puts small neighbours together.
  void Age(int level) {
    auto& chunks = levels_[At(level)];
    const std::uint64_t values = rule_->BlockValues(level);
    const std::uint64_t complete = Complete(level);  // the others are still to be merged
    for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
      const std::uint64_t last = chunk->first + chunk->blocks - 1;
      if (last >= complete) continue;
      const std::uint64_t age = end_ - last * values;
      std::uint64_t step = chunk->step;
      while (kind_.MayStep(level, NextStep(step), age)) step = NextStep(step);
      if (step == chunk->step) continue;
      chunk->data = kind_.Coarsen(level, *chunk, step);
      chunk->step = step;
    }
    std::size_t kept = 0;
    for (std::size_t i = 1; i < chunks.size(); ++i) {
      Chunk &left = chunks[kept], &right = chunks[i];
      if (CanJoin(left, right) && right.first < complete) {
        left = {left.first, 2 * left.blocks, left.step, kind_.Join(left, right)};
      } else if (++kept != i) {
        chunks[kept] = std::move(right);
      }
    }
    chunks.resize(std::min(chunks.size(), kept + 1));
  }
  static std::uint64_t NextStep(std::uint64_t step) { return step == 0 ? 1 : 2 * step; }

  bool CanJoin(const Chunk& left, const Chunk& right) const {
    // Pieces of about 2 KB are large against what the allocation of one costs, and of 64 blocks
    // few linger because one of them is needed.
    constexpr std::size_t kMostTogether = 256;
    return left.step == right.step && left.blocks == right.blocks && left.blocks < kMostBlocks &&
           left.first % (2 * left.blocks) == 0 && left.first + left.blocks == right.first &&
           kind_.Size(left.data) + kind_.Size(right.data) <= kMostTogether;
  }

  // levels_[l]: chunks in the order of their blocks, which follow one another without a gap up to
  // number Made(l) - 1, or none. The last level is empty only if it is level 0.
  std::shared_ptr<const SlidingRule> rule_;
  Kind kind_;
  std::uint64_t end_ = 0, expired_ = 0;
  std::vector<std::vector<Chunk>> levels_;
};

template <class Kind>
SlidingCover SlidingBlocks<Kind>::Cover(std::uint64_t begin) const {
  SlidingCover cover;
  if (begin >= end_) return cover;
  const int cut = rule_->CutLevel(end_ - begin);
  const std::uint64_t settled = Settled() * rule_->block_size();
  std::uint64_t at = begin;
  BlockName name{std::max(cut, 0), 0};
  for (;; --name.level) {
    name.number = at / rule_->BlockValues(name.level);
    if (name.level == 0 || Exists(name)) break;
  }
  const std::uint64_t size = rule_->BlockValues(name.level);
  if (at % size != 0) {
    cover.cut = name;
    cover.cut_values = size - at % size;
    cover.cut_as_came = cut < 0;
    at += cover.cut_values;
  }
  while (at < end_) {
    // The largest block that begins here.
    name.level = 0;
    if (at < settled) {
      const std::uint64_t number = at / rule_->block_size();
      const auto aligned = number == 0 ? rule_->levels() : std::countr_zero(number);
      const auto fits = std::bit_width((settled - at) / rule_->block_size()) - 1;
      name.level = static_cast<int>(std::min<std::uint64_t>(
          {static_cast<std::uint64_t>(aligned), fits, At(rule_->levels() - 1)}));
    }
    while (name.level > 0 && !Exists({name.level, at / rule_->BlockValues(name.level)})) {
      --name.level;
    }
    name.number = at / rule_->BlockValues(name.level);
    cover.whole.push_back(name);
    at += rule_->BlockValues(name.level);
  }
  return cover;
}

template <class Kind>
void SlidingBlocks<Kind>::Write(ByteWriter& writer) const {
  writer.Put(end_);
  writer.Put(expired_);
  writer.Put(static_cast<std::uint8_t>(levels_.size()));
  for (const auto& chunks : levels_) {
    writer.Put(static_cast<std::uint32_t>(chunks.size()));
    for (const auto& chunk : chunks) {
      writer.Put(chunk.first);
      writer.Put(static_cast<std::uint8_t>(std::countr_zero(chunk.blocks)));
      writer.Put(chunk.step);
      kind_.Write(writer, chunk.data);
    }
  }
}

template <class Kind>
SlidingBlocks<Kind> SlidingBlocks<Kind>::Read(ByteReader& reader,
                                              std::shared_ptr<const SlidingRule> rule, Kind kind) {
  SlidingBlocks blocks(std::move(rule), std::move(kind));
  const std::uint64_t size = blocks.rule_->block_size();
  blocks.end_ = reader.Get<std::uint64_t>();
  blocks.expired_ = reader.Get<std::uint64_t>();
  if (blocks.end_ > kMaxSummaryCount || blocks.end_ % size != 0 || blocks.expired_ > blocks.end_) {
    reader.Fail("has values that do not come in blocks of " + std::to_string(size));
  }
  const auto levels = reader.Get<std::uint8_t>();
  if (levels == 0 || levels > blocks.rule_->levels()) {
    reader.Fail("has " + std::to_string(levels) + " levels");
  }
  blocks.levels_.resize(levels);
  for (int level = 0; level < levels; ++level) blocks.ReadLevel(reader, level);
  if (levels > 1 && blocks.levels_.back().empty()) reader.Fail("has a last level without blocks");
  blocks.CheckWhole(reader);
  return blocks;
}

template <class Kind>
void SlidingBlocks<Kind>::ReadLevel(ByteReader& reader, int level) {
  const std::uint64_t values = rule_->BlockValues(level);
  const std::uint64_t made = Made(level), complete = Complete(level);
  auto& chunks = levels_[At(level)];
  const auto count = reader.Get<std::uint32_t>();
  const std::string name = "level " + std::to_string(level);
  for (std::uint32_t i = 0; i < count; ++i) {
    Chunk chunk;
    chunk.first = reader.Get<std::uint64_t>();
    const auto log2_blocks = reader.Get<std::uint8_t>();
    if (log2_blocks > std::countr_zero(kMostBlocks))
      reader.Fail("has too large a chunk in " + name);
    chunk.blocks = std::uint64_t{1} << log2_blocks;
    chunk.step = reader.Get<std::uint64_t>();
    const bool follows =
        chunks.empty() || chunk.first == chunks.back().first + chunks.back().blocks;
    if (chunk.first % chunk.blocks != 0 || !follows || chunk.first > made ||
        chunk.blocks > made - chunk.first) {
      reader.Fail("has blocks out of place in " + name);
    }
    const std::uint64_t behind = chunk.first + chunk.blocks;
    const std::uint64_t age = end_ - (behind - 1) * values;
    std::uint64_t step = kind_.YoungStep(level);
    while (step < chunk.step && behind <= complete && kind_.MayStep(level, NextStep(step), age)) {
      step = NextStep(step);
    }
    if (step != chunk.step || (behind > complete && chunk.blocks > 1)) {
      reader.Fail("has blocks coarser than their age allows in " + name);
    }
    chunk.data = kind_.Read(reader, level, chunk.blocks, chunk.step);
    chunks.push_back(std::move(chunk));
  }
  if (!chunks.empty() && chunks.back().first + chunks.back().blocks != made) {
    reader.Fail("lacks the newest blocks of " + name);
  }
}

// What a cover or the next merge may look for is there: all that could not be old yet, and finer
// blocks from the first value of the widest window on, where one that it begins in was not made.
template <class Kind>
void SlidingBlocks<Kind>::CheckWhole(const ByteReader& reader) const {
  for (int level = 0; level < rule_->levels(); ++level) {
    const std::uint64_t values = rule_->BlockValues(level), kept = rule_->KeptFor(level);
    const std::uint64_t young = end_ < kept ? 0 : (end_ - kept) / values;
    const std::uint64_t first =
        std::max((expired_ + values - 1) / values, std::min(young, Complete(level)));
    if (first < Made(level) && !Exists({level, first})) {
      reader.Fail("lacks blocks that its windows need in level " + std::to_string(level));
    }
  }
  const SlidingCover widest = Cover(expired_);
  const bool whole = std::all_of(widest.whole.begin(), widest.whole.end(),
                                 [this](const BlockName& name) { return Exists(name); });
  // What is cut as it came now may be cut as a block when more has come.
  const bool cut =
      widest.cut_values == 0 || Exists(widest.cut) || (widest.cut_as_came && rule_->NeverCut(0));
  if (!whole || !cut) {
    reader.Fail("lacks blocks of its widest window");
  }
}

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_BLOCKS_H_
