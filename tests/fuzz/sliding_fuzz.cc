// Serialized sliding records, quantiles and frequencies, with the checksum that they came with and
// with one that fits: what is none is refused with a reason; what is accepted serializes to the
// same bytes, answers every width within its epsilon, and goes on taking blocks in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/fraction.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "tests/fuzz/sliding_windows.h"

namespace tidemark::fuzz {
namespace {

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

template <class Key>
void CheckQuantiles(const SlidingQuantiles<Key>& summary, const SlidingRecord<Key>& record) {
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
void CheckFrequencies(const SlidingFrequencies<Key>& summary, const SlidingRecord<Key>& record) {
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

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized sliding record ", [&] { CheckRecord<Key>(bytes); });
  AcceptedOrRefusedAs("serialized sliding quantiles ", [&] {
    CheckSummary<SlidingQuantiles<Key>, Key>(bytes, CheckQuantiles<Key>);
  });
  AcceptedOrRefusedAs("serialized sliding frequencies ", [&] {
    CheckSummary<SlidingFrequencies<Key>, Key>(bytes, CheckFrequencies<Key>);
  });
}

}  // namespace
}  // namespace tidemark::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t>(
      data, size, []<class Key>(std::string_view bytes) { tidemark::fuzz::Check<Key>(bytes); });
}
