#include "summaries/sliding_levels.h"

#include <stdexcept>
#include <utility>

#include "summaries/sliding_cover.h"

namespace tidemark {

SlidingLevels::SlidingLevels(const std::shared_ptr<const SlidingRule>& rule, std::size_t levels)
    : levels_(std::vector<SlidingFrequencies<std::uint64_t>>(
          levels, SlidingFrequencies<std::uint64_t>(rule))) {}

void SlidingLevels::AddBlock(std::span<const SlidingLevelsCover::Items> items,
                             std::uint64_t expired) {
  if (items.size() != size()) {
    throw std::invalid_argument("a block of " + std::to_string(items.size()) +
                                " levels was given to sliding counts of " + std::to_string(size()));
  }
  for (const auto& of_level : items) {
    internal::CheckSlidingItems(std::span<const KeyWeight<std::uint64_t>>(of_level),
                                rule().block_size());
  }
  levels_.AddItems(rule().block_size(), items, expired);
}

void SlidingLevels::Expire(std::uint64_t expired) {
  levels_.ForEach([&](auto& level) { level.Expire(expired); });
}

SlidingLevelsCover SlidingLevels::Cover(const SlidingRange& range,
                                        const SlidingRecord<std::uint64_t>& record) const {
  SlidingLevelsCover cover;
  for (std::size_t i = 0; i < size(); ++i) cover.levels.push_back(levels_[i].Cover(range, record));
  return cover;
}

std::size_t SlidingLevels::entries() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < size(); ++i) sum += levels_[i].entries();
  return sum;
}

SlidingLevels SlidingLevels::Deserialize(std::string_view bytes) {
  SlidingLevels read(Levels::Deserialize(bytes));
  for (std::size_t i = 1; i < read.size(); ++i) {
    if (!(read.levels_[i].rule().options() == read.rule().options())) {
      throw std::invalid_argument("serialized summary of levels has levels of different windows");
    }
  }
  return read;
}

}  // namespace tidemark
