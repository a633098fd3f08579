// What the sliding summaries share where they take in a block and where they say which blocks cover
// a window.
#ifndef TIDEMARK_SUMMARIES_SLIDING_COVER_H_
#define TIDEMARK_SUMMARIES_SLIDING_COVER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "summaries/fraction.h"
#include "summaries/key_weight.h"
#include "summaries/sliding_blocks.h"
#include "summaries/sliding_record.h"

namespace tidemark::internal {

/// Errors: throws std::invalid_argument unless a block has so many keys. `what` takes them in.
inline void CheckSlidingBlock(std::size_t keys, const SlidingRule& rule, const char* what) {
  if (keys == rule.block_size()) return;
  throw std::invalid_argument("a block of " + std::to_string(keys) + " keys was given to " + what +
                              ", expected " + std::to_string(rule.block_size()));
}

/// Errors: throws std::invalid_argument unless the items ascend and add up to at most `values`.
template <class Key>
void CheckSlidingItems(std::span<const KeyWeight<Key>> items, std::uint64_t values) {
  std::uint64_t left = values;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].weight > left || (i > 0 && items[i].key <= items[i - 1].key)) {
      throw std::invalid_argument(
          "the items of a sliding block are more than its values or not ascending");
    }
    left -= items[i].weight;
  }
}

/// Errors: throws std::logic_error unless record and blocks took in the same, and hold the range.
template <class Kind, class Key>
void CheckSlidingRange(const SlidingRange& range, const SlidingBlocks<Kind>& blocks,
                       const SlidingRecord<Key>& record) {
  if (range.end == blocks.end() && record.end() == blocks.end() &&
      range.begin >= blocks.expired()) {
    return;
  }
  throw std::logic_error("a sliding window was asked of values that are not the summary's");
}

/// The cover of a summary that counts, where the step of a block is what it dropped at most. A part
/// of `Cover` is {blocks, which of them, what was dropped}.
/// Errors: as CheckSlidingRange.
template <class Cover, class Kind, class Key>
Cover CoverOfCounts(const SlidingBlocks<Kind>& blocks, const SlidingRange& range,
                    const SlidingRecord<Key>& record) {
  CheckSlidingRange(range, blocks, record);
  const SlidingRule& rule = blocks.rule();
  Cover cover;
  cover.epsilon = rule.epsilon();
  cover.range = range;
  const SlidingCover parts = blocks.Cover(range.begin);
  const auto part = [&](const BlockName& name) {
    const auto [chunk, place] = blocks.Find(name);
    return typename Cover::Part{chunk->data, place, chunk->step};
  };
  std::uint64_t dropped = 0;
  for (const BlockName& name : parts.whole) {
    cover.whole.push_back(part(name));
    dropped += cover.whole.back().dropped;
  }
  const std::uint64_t values = range.end - range.begin;
  if (dropped > FloorFraction(rule.epsilon(), values) && values < rule.recent_values()) {
    cover.whole.clear();
    cover.recent = record.Recent(range.begin, range.end);
  } else if (parts.cut_as_came) {
    cover.recent = record.Recent(range.begin, range.begin + parts.cut_values);
  } else if (parts.cut_values > 0) {
    cover.cut = part(parts.cut);
    cover.cut_size = rule.BlockValues(parts.cut.level);
    cover.cut_values = parts.cut_values;
  }
  return cover;
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_SLIDING_COVER_H_
