// Serialized sliding records, quantiles and frequencies, with the checksum that they came with and
// with one that fits: what is none is refused with a reason; what is accepted serializes to the
// same bytes, answers every width within its epsilon, and goes on taking blocks in.
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

#include "summaries/fraction.h"
#include "summaries/quantile_rule.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "tests/support/fix_checksum.h"

namespace {

using tidemark::FloorFraction;
using tidemark::SlidingFrequencies;
using tidemark::SlidingOptions;
using tidemark::SlidingQuantiles;
using tidemark::SlidingRange;
using tidemark::SlidingRecord;
using tidemark::TimedCount;

constexpr std::size_t kBlockMax = 1024;  // larger blocks are read, and not added to: too slow
constexpr std::uint64_t kBlocksMax = 128;

void Require(bool property) {
  if (!property) std::abort();
}

template <class Key>
std::shared_ptr<Key[]> Block(std::size_t size, std::uint64_t seed) {
  auto keys = std::make_shared_for_overwrite<Key[]>(size);
  for (std::size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(i * i * seed % 31);
  return keys;
}

std::vector<TimedCount> Times(const SlidingOptions& options, std::int64_t time) {
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

template <class Key>
void CheckRecord(std::string_view bytes) {
  auto record = SlidingRecord<Key>::Deserialize(bytes);
  Require(record.Serialize() == bytes);
  const auto check = [&](const SlidingRange& range) {
    Require(range.low <= range.begin && range.begin <= range.end && range.end == record.end());
    Require(range.low >= record.expired());
    Require(range.uncertain() <= FloorFraction(record.rule().epsilon(), range.n_low()));
    const std::uint64_t recent = std::min(range.end - range.begin, std::uint64_t{5});
    if (recent > 0) Require(record.Recent(range.end - recent, range.end).count() == recent);
  };
  ForRanges(record, check);
  const SlidingOptions& options = record.rule().options();
  if (options.block_size > kBlockMax) return;
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::uint64_t before = record.end();
    try {
      record.AddBlock(Block<Key>(options.block_size, 3), Times(options, i));
      Require(record.end() == before + options.block_size);
    } catch (const std::length_error&) {
      Require(record.end() == before);
    }
  }
  ForRanges(record, check);
  const std::string after = record.Serialize();
  Require(SlidingRecord<Key>::Deserialize(after).Serialize() == after);
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

template <class Key>
void CheckAnswers(const SlidingQuantiles<Key>& summary, const SlidingRecord<Key>& record) {
  ForRanges(record, [&](const SlidingRange& range) {
    try {
      const auto view = summary.Cover(range, record).View({});
      Require(view.n() == range.n_high());
      if (range.later > 0) return;
      Require(view.worst_gap() <= FloorFraction(record.rule().epsilon(), range.n_low()));
      if (range.n_low() == 0) return;
      for (const auto& answer : view.Quantiles(std::vector{0.0, 0.3, 0.9, 1.0})) {
        Require(answer.rank_low <= answer.rank_high && answer.rank_high <= view.n());
      }
    } catch (const std::logic_error&) {  // it let more expire than the record
    }
  });
}

template <class Key>
void CheckAnswers(const SlidingFrequencies<Key>& summary, const SlidingRecord<Key>& record) {
  ForRanges(record, [&](const SlidingRange& range) {
    try {
      const auto view = summary.Cover(range, record).View({});
      Require(view.n() == range.n_high());
      Require(range.later > 0 || view.WithinEpsilon());
      std::uint64_t before = view.n();
      for (const auto& item : view.TopK(7).items) {
        Require(item.count_low <= item.count_high && item.count_high <= before);
        Require(item == view.Count(item.key));
        before = item.count_high;
      }
    } catch (const std::logic_error&) {  // it let more expire than the record
    }
  });
}

template <class Key, class Summary>
void CheckSummary(std::string_view bytes) {
  auto summary = Summary::Deserialize(bytes);
  Require(summary.Serialize() == bytes);
  const SlidingOptions options = summary.rule().options();
  auto record = RecordOf<Key>(options, summary.end());
  if (!record) return;
  CheckAnswers(summary, *record);
  for (std::int64_t i = 0; i < 20; ++i) {
    auto block = Block<Key>(options.block_size, 3);
    record->AddBlock(block, Times(options, i));
    std::vector<Key> sorted(block.get(), block.get() + options.block_size);
    std::sort(sorted.begin(), sorted.end());
    summary.AddBlock(sorted, record->expired());
  }
  CheckAnswers(summary, *record);
  const std::string after = summary.Serialize();
  Require(Summary::Deserialize(after).Serialize() == after);
}

template <class Read>
void RefusedAs(std::string_view name, Read read) {
  try {
    read();
  } catch (const std::invalid_argument& refusal) {
    Require(std::string_view(refusal.what()).starts_with(name));
  }
}

template <class Key>
void Check(std::string_view bytes) {
  RefusedAs("serialized sliding record ", [&] { CheckRecord<Key>(bytes); });
  RefusedAs("serialized sliding quantiles ",
            [&] { CheckSummary<Key, SlidingQuantiles<Key>>(bytes); });
  RefusedAs("serialized sliding frequencies ",
            [&] { CheckSummary<Key, SlidingFrequencies<Key>>(bytes); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Check<std::uint32_t>(bytes);
  Check<std::uint64_t>(bytes);
  if (tidemark::testing::FixChecksum(bytes)) {
    Check<std::uint32_t>(bytes);
    Check<std::uint64_t>(bytes);
  }
  return 0;
}
