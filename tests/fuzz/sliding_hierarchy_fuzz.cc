// Serialized sliding hierarchies, with the checksum that they came with and with one that fits:
// what is none is refused with a reason; what is accepted serializes to the same bytes, answers
// every width within its epsilon, and goes on taking blocks in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "summaries/sliding_hierarchical_view.h"
#include "summaries/sliding_hierarchy.h"
#include "summaries/sliding_record.h"
#include "tests/fuzz/sliding_windows.h"

namespace tidemark::fuzz {
namespace {

template <class Key>
void CheckView(const SlidingHierarchicalView<Key>& view) {
  for (int level = 0; level < view.levels().size(); ++level) {
    const auto item = view.Count(level, Key{30});
    Require(item.count_low <= item.count_high && item.count_high <= view.n());
  }
  const double support = std::max(0.1, view.MinimumSupport());
  if (view.n() == 0 || support > 1) return;
  std::uint64_t before = view.n();
  for (const auto& item : view.HeavyHitters(support)) {
    const auto count = view.Count(item.level, item.prefix);
    Require(count.count_low <= item.count_low && item.count_high <= count.count_high);
    Require(item.count_low <= item.count_high);
    Require(item.discounted_low <= item.discounted_high && item.discounted_high <= before);
    before = item.discounted_high;
  }
}

template <class Key>
void CheckAnswers(const SlidingHierarchy<Key>& summary, const SlidingRecord<Key>& record) {
  ForRanges(record, [&](const SlidingRange& range) {
    try {
      const SlidingHierarchicalView<Key> view(summary.Cover(range, record), {});
      Require(view.n() == range.n_high());
      Require(range.later > 0 || view.WithinEpsilon());
      CheckView(view);
    } catch (const std::invalid_argument&) {
      Require(false);
    } catch (const std::logic_error&) {  // it let more expire than the record
    }
  });
}

template <class Key>
void Check(std::string_view bytes) {
  AcceptedOrRefusedAs("serialized sliding hierarchy ",
                      [&] { CheckSummary<SlidingHierarchy<Key>, Key>(bytes, CheckAnswers<Key>); });
}

}  // namespace
}  // namespace tidemark::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return tidemark::fuzz::CheckInput<std::uint32_t, std::uint64_t, tidemark::Key128>(
      data, size, []<class Key>(std::string_view bytes) { tidemark::fuzz::Check<Key>(bytes); });
}
