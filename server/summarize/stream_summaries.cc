#include "server/summarize/stream_summaries.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "server/summarize/value_sums.h"

namespace tidemark::server {

namespace {

template <class Key>
QuantileForm<Key> MakeQuantiles(const SummaryOptions& options) {
  switch (options.quantile_form) {
    case QuantileKind::kCompact:
      return QuantileForm<Key>(QuantileFormKind::kCompact, *options.quantile_epsilon);
    case QuantileKind::kTail:
      return QuantileForm<Key>(QuantileFormKind::kCompact, options.tail_epsilon, TailEnd::kUpper);
    case QuantileKind::kHistogram:
      break;
  }
  return QuantileForm<Key>(QuantileFormKind::kHistogram, *options.quantile_epsilon);
}

}  // namespace

template <class Key>
SummarySnapshot<Key> EmptySnapshot(const SummaryOptions& options) {
  SummarySnapshot<Key> snapshot;
  if constexpr (kRankedKeys<Key>) {
    static const auto kNoEntries = std::make_shared<const FrequencyEntries<Key>>();
    if (options.quantile_epsilon) snapshot.quantiles = MakeQuantiles<Key>(options).Snapshot();
    snapshot.frequencies.epsilon = options.frequency_epsilon.value_or(0);
    snapshot.frequencies.entries = kNoEntries;
    if (const auto type = options.summed()) {
      snapshot.sums = CorrelatedSums<Key>(*options.quantile_epsilon, *type).Snapshot();
    }
  } else {  // these have items and nothing else
    snapshot.frequencies = AddressItems(*options.frequency_epsilon).Snapshot();
  }
  snapshot.weights = snapshot.frequencies;
  if (options.frequency_epsilon && !options.hierarchy.prefix_lengths.empty()) {
    snapshot.hierarchy =
        HierarchicalFrequencySummary<Key>(*options.frequency_epsilon,
                                          PrefixLevels<Key>(options.hierarchy.prefix_lengths))
            .Snapshot();
  }
  if (options.frequency_epsilon && options.hierarchy.depth > 0) {
    static const auto kNoTexts = std::make_shared<const FrequencyEntries<std::uint64_t>>();
    FrequencySnapshot<std::uint64_t> level;
    level.epsilon = *options.frequency_epsilon;
    level.entries = kNoTexts;
    snapshot.text_levels.assign(static_cast<std::size_t>(options.hierarchy.depth), level);
  }
  return snapshot;
}

template SummarySnapshot<std::uint32_t> EmptySnapshot(const SummaryOptions&);
template SummarySnapshot<std::uint64_t> EmptySnapshot(const SummaryOptions&);
template SummarySnapshot<Key128> EmptySnapshot(const SummaryOptions&);

template <class Key>
std::vector<KeyWeight<Key>> WeightedItems(std::span<const Key> sorted,
                                          std::span<const std::uint64_t> weights) {
  std::vector<KeyWeight<Key>> items(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) items[i] = {sorted[i], weights[i]};
  items.resize(AggregateEqualKeys<Key>(items));
  return items;
}

std::vector<double> YOf(std::span<const std::uint64_t> payloads) {
  std::vector<double> y(payloads.size());
  std::transform(payloads.begin(), payloads.end(), y.begin(),
                 [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
  return y;
}

template std::vector<KeyWeight<std::uint32_t>> WeightedItems(std::span<const std::uint32_t>,
                                                             std::span<const std::uint64_t>);
template std::vector<KeyWeight<std::uint64_t>> WeightedItems(std::span<const std::uint64_t>,
                                                             std::span<const std::uint64_t>);
template std::vector<KeyWeight<Key128>> WeightedItems(std::span<const Key128>,
                                                      std::span<const std::uint64_t>);

template <class Key>
StreamSummaries<Key>::StreamSummaries(const SummaryOptions& options)
    : options_(options), empty_(EmptySnapshot<Key>(options)) {
  if constexpr (kRankedKeys<Key>) {
    if (options.quantile_epsilon) quantiles_.emplace(MakeQuantiles<Key>(options));
    if (const auto type = options.summed()) sums_.emplace(*options.quantile_epsilon, *type);
  }
  if (options.frequency_epsilon) {
    const double epsilon = *options.frequency_epsilon;
    frequencies_.emplace(epsilon);
    if (options.weights) weights_.emplace(epsilon);
    if (!options.hierarchy.prefix_lengths.empty()) {
      hierarchy_.emplace(epsilon, PrefixLevels<Key>(options.hierarchy.prefix_lengths));
    }
  }
  if (options.frequency_epsilon && options.hierarchy.depth > 0) {
    text_levels_.emplace(std::vector<FrequencySummary<std::uint64_t>>(
        static_cast<std::size_t>(options.hierarchy.depth),
        FrequencySummary<std::uint64_t>(*options.frequency_epsilon)));
  }
}

template <class Key>
std::optional<std::uint64_t> StreamSummaries<Key>::DigestStride(const SummaryOptions& options,
                                                                std::uint64_t count) {
  if (options.quantile_form != QuantileKind::kCompact || !options.quantile_epsilon ||
      options.frequency_epsilon || options.summed() || options.sliding.any()) {
    return std::nullopt;
  }
  if constexpr (kRankedKeys<Key>) {
    return MakeQuantiles<Key>(options).DigestStride(count);
  } else {
    return std::nullopt;
  }
}

template <class Key>
void StreamSummaries<Key>::AddDigest(const WindowDigest<Key>& digest) {
  if constexpr (kRankedKeys<Key>) quantiles_->AddDigest(digest);
  count_ += digest.count;
}

template <class Key>
ReducedNeeds StreamSummaries<Key>::NeedsOf(const SummaryOptions& options, std::uint64_t count) {
  ReducedNeeds needs;
  if (options.weights || options.summed() || options.sliding.any() || options.hierarchy.any()) {
    return needs;
  }
  if constexpr (kRankedKeys<Key>) {
    if (options.quantile_epsilon) {
      const auto stride = MakeQuantiles<Key>(options).SampleStride(count);
      if (!stride) return needs;
      needs.sample_stride = *stride;
    }
    needs.items = options.frequency_epsilon.has_value();
  }
  return needs;
}

template <class Key>
void StreamSummaries<Key>::AddReduced(const ReducedForm<Key>& reduced) {
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) quantiles_->AddSamples(reduced.count, reduced.smallest, reduced.samples);
    if (frequencies_) frequencies_->AddItems(reduced.count, reduced.items);
  }
  count_ += reduced.count;
}

template <class Key>
void StreamSummaries<Key>::AddWindow(std::span<const Key> sorted,
                                     std::span<const std::uint64_t> payloads,
                                     const LevelItems& level_items) {
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) quantiles_->AddWindow(sorted);
    if (sums_) AddSums(sorted, payloads);
  }
  if (frequencies_) frequencies_->AddWindow(sorted);
  std::vector<KeyWeight<Key>> items;
  if (weights_) {
    items = WeightedItems(sorted, payloads);
    weights_->AddWindow(items);
  }
  if (hierarchy_) {
    if (options_.weights) {
      hierarchy_->AddWeighted(items);
    } else {
      hierarchy_->AddWindow(sorted);
    }
  }
  if (text_levels_) {
    const std::uint64_t window =
        options_.weights ? std::accumulate(payloads.begin(), payloads.end(), std::uint64_t{0})
                         : sorted.size();
    text_levels_->AddItems(window, level_items);
  }
  count_ += sorted.size();
}

template <class Key>
void StreamSummaries<Key>::AddSums(std::span<const Key> sorted,
                                   std::span<const std::uint64_t> payloads) {
  if constexpr (kRankedKeys<Key>) {
    const SummedValues values =
        options_.value_sums ? ValuesOf(*options_.value_sums, sorted) : SummedValues(YOf(payloads));
    std::visit(
        [&]<class Y>(const std::vector<Y>& y) { sums_->AddWindow(sorted, std::span<const Y>(y)); },
        values);
  }
}

template <class Key>
SummarySnapshot<Key> StreamSummaries<Key>::Snapshot() const {
  SummarySnapshot<Key> snapshot = empty_;
  snapshot.count = count_;
  if (frequencies_) {
    snapshot.frequencies = frequencies_->Snapshot();
    snapshot.frequency_bytes = frequencies_->bytes();
    snapshot.exact = frequencies_->exact();
  }
  if (weights_) {
    snapshot.weights = weights_->Snapshot();
    snapshot.frequency_bytes += weights_->bytes();
    snapshot.exact = snapshot.exact && weights_->exact();
  }
  if (hierarchy_) {
    snapshot.hierarchy = hierarchy_->Snapshot();
    snapshot.frequency_bytes += hierarchy_->bytes();
    snapshot.exact = snapshot.exact && hierarchy_->exact();
  }
  if (text_levels_) {
    for (std::size_t i = 0; i < text_levels_->size(); ++i) {
      snapshot.text_levels[i] = (*text_levels_)[i].Snapshot();
      snapshot.exact = snapshot.exact && (*text_levels_)[i].exact();
    }
    snapshot.frequency_bytes += text_levels_->bytes();
  }
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) {
      snapshot.quantiles = quantiles_->Snapshot();
      snapshot.quantile_bytes = quantiles_->bytes();
      snapshot.exact = snapshot.exact && quantiles_->exact();
    }
    if (sums_) {
      snapshot.sums = sums_->Snapshot();
      snapshot.sum_bytes = sums_->bytes();
      snapshot.exact = snapshot.exact && sums_->exact();
    }
  }
  return snapshot;
}

template <class Key>
void StreamSummaries<Key>::AddSorted(std::span<const Key> sorted,
                                     std::span<const std::uint64_t> payloads,
                                     const LevelItems& level_items) {
  if (text_levels_ && !sorted.empty()) {  // strings: windows of any number
    AddWindow(sorted, payloads, level_items);
    return;
  }
  // The histogram takes windows of a power of two keys.
  while (!sorted.empty()) {
    const std::size_t size = std::bit_floor(sorted.size());
    AddWindow(sorted.first(size), payloads.first(std::min(payloads.size(), size)));
    sorted = sorted.subspan(size);
    payloads = payloads.subspan(std::min(payloads.size(), size));
  }
}

template <class Key>
void StreamSummaries<Key>::Merge(const StreamSummaries& other) {
  const auto merge = [](auto& mine, const auto& theirs) {
    if (mine.has_value() != theirs.has_value()) {
      throw std::invalid_argument("streams that keep different summaries cannot be merged");
    }
    if (mine) mine->Merge(*theirs);
  };
  merge(quantiles_, other.quantiles_);
  merge(frequencies_, other.frequencies_);
  merge(weights_, other.weights_);
  merge(hierarchy_, other.hierarchy_);
  merge(text_levels_, other.text_levels_);
  merge(sums_, other.sums_);
  count_ += other.count_;
}

template <class Key>
SummaryFrames StreamSummaries<Key>::Frames() const {
  SummaryFrames frames;
  frames.count = count_;
  ForEach(*this, [&](const char* /*name*/, const auto& summary, auto frame) {
    if (summary) frames.*frame = summary->Serialize();
  });
  return frames;
}

// That these summaries, read from bytes, are of the kinds and bounds of `wanted`, and agree.
template <class Key>
void StreamSummaries<Key>::CheckFrames(const StreamSummaries& wanted) const {
  const auto check = [](bool good, const char* what) {
    if (!good) throw std::invalid_argument(std::string(what) + " than the stream's settings say");
  };
  const auto check_count = [&](std::uint64_t count, const char* what) {
    if (count == count_) return;
    throw std::invalid_argument(std::string(what) + " of " + std::to_string(count) +
                                " values, not of " + std::to_string(count_));
  };
  if constexpr (kRankedKeys<Key>) {
    if (quantiles_) {
      check(quantiles_->kind() == wanted.quantiles_->kind() &&
                quantiles_->end() == wanted.quantiles_->end(),
            "quantiles of another form");
      check(quantiles_->epsilon() == wanted.quantiles_->epsilon(), "quantiles of another epsilon");
      check_count(quantiles_->count(), "quantiles");
    }
    if (sums_) {
      check(sums_->epsilon() == wanted.sums_->epsilon() && sums_->type() == wanted.sums_->type(),
            "sums of another epsilon or type");
      check_count(sums_->count(), "sums");
    }
  }
  // That each value has an item is not known to a summary by itself: on a level of texts it has
  // none.
  const auto check_whole = [&](const auto& summary, std::uint64_t total) {
    if constexpr (kRankedKeys<Key>) {
      std::uint64_t held = 0;
      const auto snapshot = summary.Snapshot();
      snapshot.entries->ForEach([&](const auto& entry) { held += entry.count; });
      if (summary.exact() && held != total) {
        throw std::invalid_argument("entries that lack values although nothing was dropped");
      }
    }
  };
  if (frequencies_) {
    check_whole(*frequencies_, count_);
    check(frequencies_->epsilon() == wanted.frequencies_->epsilon(),
          "frequencies of another epsilon");
    check_count(frequencies_->count(), "frequencies");
  }
  if (weights_) {
    check(weights_->epsilon() == wanted.weights_->epsilon(), "weights of another epsilon");
    check_whole(*weights_, weight());
  }
  // Hierarchies count weights where the stream has them.
  const auto check_hierarchy = [&](std::uint64_t count) {
    if (!weights_) {
      check_count(count, "a hierarchy");
    } else if (count != weight()) {
      throw std::invalid_argument("a hierarchy of another total weight than the weights");
    }
  };
  if (hierarchy_) {
    check(hierarchy_->epsilon() == wanted.hierarchy_->epsilon(), "a hierarchy of another epsilon");
    check(hierarchy_->levels() == wanted.hierarchy_->levels(), "a hierarchy of other prefixes");
    check_hierarchy(hierarchy_->count());
  }
  if (text_levels_) {
    check(text_levels_->size() == wanted.text_levels_->size(), "a hierarchy of other levels");
    for (std::size_t i = 0; i < text_levels_->size(); ++i) {
      check((*text_levels_)[i].epsilon() == (*wanted.text_levels_)[i].epsilon(),
            "a hierarchy of another epsilon");
    }
    check_hierarchy(text_levels_->count());
  }
}

template <class Key>
StreamSummaries<Key> StreamSummaries<Key>::FromFrames(const SummaryOptions& options,
                                                      const SummaryFrames& frames) {
  const StreamSummaries wanted(options);
  StreamSummaries read(options);
  read.count_ = frames.count;
  ForEach(read, [&](const char* name, auto& summary, auto frame) {
    const std::string& bytes = frames.*frame;
    if (bytes.empty() && summary) {
      throw std::invalid_argument(std::string("there are no ") + name +
                                  ", which the stream's settings ask for");
    }
    if (!bytes.empty() && !summary) {
      throw std::invalid_argument(std::string("there are ") + name +
                                  ", which the stream's settings do not ask for");
    }
    if (!summary) return;
    using Summary = typename std::decay_t<decltype(summary)>::value_type;
    try {
      summary.emplace(Summary::Deserialize(bytes));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(name) + ": " + error.what());
    }
  });
  read.CheckFrames(wanted);
  return read;
}

template class StreamSummaries<std::uint32_t>;
template class StreamSummaries<std::uint64_t>;
template class StreamSummaries<Key128>;

}  // namespace tidemark::server
