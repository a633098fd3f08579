// What the fuzz targets of the sliding summaries share: blocks, windows that can be asked for, and
// a record to ask them of.
#ifndef TIDEMARK_TESTS_FUZZ_SLIDING_WINDOWS_H_
#define TIDEMARK_TESTS_FUZZ_SLIDING_WINDOWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/sliding_record.h"
#include "tests/fuzz/summary_bytes.h"

namespace tidemark::fuzz {

inline constexpr std::size_t kBlockMax =
    1024;  // larger blocks are read, and not added to: too slow
inline constexpr std::uint64_t kBlocksMax = 128;

template <class Key>
std::shared_ptr<Key[]> Block(std::size_t size, std::uint64_t seed) {
  auto keys = std::make_shared_for_overwrite<Key[]>(size);
  for (std::size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(i * i * seed % 31);
  return keys;
}

inline std::vector<TimedCount> Times(const SlidingOptions& options, std::int64_t time) {
  if (options.max_age_us == 0) return {};
  return {{options.block_size / 2, time}, {options.block_size - options.block_size / 2, time + 1}};
}

/// Windows that the record can be asked for.
template <class Key, class Check>
void ForRanges(const SlidingRecord<Key>& record, Check check) {
  const SlidingOptions& options = record.rule().options();
  for (std::uint64_t width = 1; width <= options.max_values && width != 0; width *= 3) {
    check(record.Last(width, 0));
  }
  if (options.max_values > 0) check(record.Last(options.max_values, 3));
  for (std::int64_t age = 1; age < options.max_age_us / 7; age *= 7) {
    check(record.Within(age, record.now_us(), {}));
  }
  if (options.max_age_us > 0) check(record.Within(options.max_age_us, record.now_us(), {}));
}

/// A record that took in as much as a summary did; none if that is too much.
template <class Key>
std::optional<SlidingRecord<Key>> RecordOf(const SlidingOptions& options, std::uint64_t end) {
  if (options.block_size > kBlockMax || end / options.block_size > kBlocksMax) return std::nullopt;
  SlidingRecord<Key> record(options);
  while (record.end() < end) {
    const auto block = record.end() / options.block_size;
    record.AddBlock(Block<Key>(options.block_size, block),
                    Times(options, static_cast<std::int64_t>(block)));
  }
  return record;
}

/// What holds of any bytes. `answers`(summary, record): what holds of its answers.
template <class Summary, class Key, class Answers>
void CheckSummary(std::string_view bytes, Answers answers) {
  auto summary = Summary::Deserialize(bytes);
  Require(summary.Serialize() == bytes);
  const SlidingOptions options = summary.rule().options();
  auto record = RecordOf<Key>(options, summary.end());
  if (!record) return;
  answers(summary, *record);
  for (std::int64_t i = 0; i < 20; ++i) {
    auto block = Block<Key>(options.block_size, 3);
    record->AddBlock(block, Times(options, i));
    std::vector<Key> sorted(block.get(), block.get() + options.block_size);
    std::sort(sorted.begin(), sorted.end());
    summary.AddBlock(sorted, record->expired());
  }
  answers(summary, *record);
  const std::string after = summary.Serialize();
  Require(Summary::Deserialize(after).Serialize() == after);
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_SLIDING_WINDOWS_H_
