#include "server/summarize/sliding_summaries.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace tidemark::server {
namespace {

SlidingOptions OptionsOf(const SlidingSettings& settings) {
  SlidingOptions options;
  options.epsilon = settings.epsilon;
  options.max_values = settings.values_max;
  options.max_age_us = settings.time_max_us;
  return options;
}

}  // namespace

template <class Key>
SlidingSummaries<Key>::SlidingSummaries(const SummaryOptions& options)
    : record_(OptionsOf(options.sliding)) {
  if constexpr (kRankedKeys<Key>) {
    if (options.quantile_epsilon) quantiles_.emplace(record_.shared_rule());
  }
  if (options.frequency_epsilon) {
    if constexpr (kRankedKeys<Key>) {
      frequencies_.emplace(record_.shared_rule());
    } else {
      frequencies_.emplace(record_.shared_rule(), WholeAddresses());
    }
    if (!options.hierarchy.prefix_lengths.empty() && !options.weights) {
      hierarchy_.emplace(record_.shared_rule(),
                         PrefixLevels<Key>(options.hierarchy.prefix_lengths));
    }
    if (options.hierarchy.depth > 0 && !options.weights) {
      text_levels_.emplace(record_.shared_rule(),
                           static_cast<std::size_t>(options.hierarchy.depth));
    }
  }
  Publish();
}

template <class Key>
void SlidingSummaries<Key>::AddBlock(std::shared_ptr<const Key[]> arrived,
                                     std::span<const TimedCount> batches,
                                     std::span<const Key> sorted, const LevelItems& level_items) {
  const std::lock_guard lock(mutex_);
  record_.AddBlock(std::move(arrived), batches);
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) quantiles_->AddBlock(sorted, record_.expired());
  }
  if (frequencies_) frequencies_->AddBlock(sorted, record_.expired());
  if (hierarchy_) hierarchy_->AddBlock(sorted, record_.expired());
  if (text_levels_) text_levels_->AddBlock(level_items, record_.expired());
  Publish();
}

template <class Key>
SlidingView<Key> SlidingSummaries<Key>::View(const SlidingWidth& width, std::uint64_t end,
                                             std::span<const TimedCount> later) const {
  const std::lock_guard lock(mutex_);
  assert(end <= record_.end());
  if (end < record_.end()) later = {};
  const std::uint64_t later_values =
      std::accumulate(later.begin(), later.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const TimedCount& batch) { return sum + batch.count; });
  SlidingView<Key> view;
  view.epsilon = record_.rule().epsilon();
  view.range = width.values != 0 ? record_.Last(width.values, later_values)
                                 : record_.Within(width.time_us, width.now_us, later);
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) view.quantiles = quantiles_->Cover(view.range, record_);
  }
  if constexpr (sizeof(Key) == sizeof(std::uint64_t)) {  // ids of strings
    if (text_levels_) view.text_levels = text_levels_->Cover(view.range, record_);
  }
  if (frequencies_) view.frequencies = frequencies_->Cover(view.range, record_);
  if (hierarchy_) view.hierarchy = hierarchy_->Cover(view.range, record_);
  return view;
}

// mutex_ held.
template <class Key>
void SlidingSummaries<Key>::Publish() {
  const std::uint64_t as_they_came = record_.rule().recent_values() + block_size();
  values_kept_ = std::min(record_.end(), as_they_came);
  keys_kept_ = values_kept_ + (frequencies_ ? frequencies_->entries() : 0) +
               (text_levels_ ? text_levels_->entries() : 0);
  std::size_t bytes = record_.bytes() + (frequencies_ ? frequencies_->bytes() : 0) +
                      (hierarchy_ ? hierarchy_->bytes() : 0) +
                      (text_levels_ ? text_levels_->bytes() : 0);
  if constexpr (kRankedKeys<Key>) bytes += quantiles_ ? quantiles_->bytes() : 0;
  bytes_ = bytes;
  end_ = record_.end();
}

template <class Key>
std::string SlidingSummaries<Key>::Serialize() const {
  const SlidingFrames frames = Frames();
  return frames.record + frames.quantiles + frames.frequencies + frames.hierarchy +
         frames.text_levels;
}

template <class Key>
SlidingFrames SlidingSummaries<Key>::Frames() const {
  const std::lock_guard lock(mutex_);
  SlidingFrames frames;
  frames.record = record_.Serialize();
  if (quantiles_) frames.quantiles = quantiles_->Serialize();
  if (frequencies_) frames.frequencies = frequencies_->Serialize();
  if (hierarchy_) frames.hierarchy = hierarchy_->Serialize();
  if (text_levels_) frames.text_levels = text_levels_->Serialize();
  return frames;
}

template <class Key>
void SlidingSummaries<Key>::Restore(const SlidingFrames& frames, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto check = [](bool good, const std::string& what) {
    if (!good) throw std::invalid_argument("sliding " + what);
  };
  SlidingRecord<Key> record = SlidingRecord<Key>::Deserialize(frames.record);
  check(record.rule().options() == record_.rule().options(),
        "record of other windows than the stream's settings say");
  check(record.end() == count, "record of another number of values than the summaries");
  const auto restore = [&](const std::string& name, auto& summary, const std::string& bytes) {
    check(summary.has_value() != bytes.empty(),
          name + " that the settings do not ask for, or none");
    if (!summary) return;
    using Summary = typename std::decay_t<decltype(summary)>::value_type;
    Summary read = Summary::Deserialize(bytes);
    check(read.rule().options() == record.rule().options(), name + " of other windows");
    check(read.end() == count, name + " of another number of values");
    if constexpr (requires { read.levels(); }) {
      check(read.levels() == summary->levels(), name + " of other prefixes");
    }
    if constexpr (std::is_same_v<Summary, SlidingLevels>) {
      check(read.size() == summary->size(), name + " of other levels");
    }
    summary.emplace(std::move(read));
  };
  if constexpr (kRankedKeys<Key>) restore("quantiles", quantiles_, frames.quantiles);
  restore("frequencies", frequencies_, frames.frequencies);
  restore("hierarchy", hierarchy_, frames.hierarchy);
  restore("prefixes of strings", text_levels_, frames.text_levels);
  record_ = std::move(record);
  Publish();
}

template class SlidingSummaries<std::uint32_t>;
template class SlidingSummaries<std::uint64_t>;
template class SlidingSummaries<Key128>;

}  // namespace tidemark::server
