// How answers get at the state of a stream: shared by the files that implement QueryEngine.
#ifndef TIDEMARK_SERVER_QUERY_ANSWERING_H_
#define TIDEMARK_SERVER_QUERY_ANSWERING_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/pipeline/pipeline.h"
#include "server/query/query_engine.h"
#include "server/query/value.h"
#include "server/summarize/value_sums.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"
#include "summaries/correlated_view.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_view.h"
#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_hierarchical_view.h"

namespace tidemark::server {

inline absl::Status NeedsNumbers(const Stream& stream) {
  if (HasRanks(stream.type())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      Concat("stream \"", Printable(stream.name()), "\" holds ",
             stream.type() == ValueType::kIpv6 ? "addresses of ipv6" : "strings",
             ", which have counts but no ranks"));
}

// Values that surely lie inside.
inline std::uint64_t SurelyIn(const Coverage& coverage) { return coverage.n - coverage.uncertain; }

/// For answers that are of at least one value.
inline absl::Status NeedsValues(const Stream& stream, const Ask& ask, const Coverage& coverage) {
  if (SurelyIn(coverage) > 0) return absl::OkStatus();
  if (ask.whole() || coverage.n == 0) {
    return absl::FailedPreconditionError(Concat("stream \"", Printable(stream.name()),
                                                "\" has no values",
                                                ask.whole() ? "" : " in the window asked"));
  }
  return absl::FailedPreconditionError(
      Concat("stream \"", Printable(stream.name()), "\": of ", coverage.n,
             " values that may lie in the window asked none surely does"));
}

inline absl::Status NeedsFrequencies(const Stream& stream) {
  if (stream.settings().frequencies) return absl::OkStatus();
  return absl::FailedPreconditionError(
      Concat("stream \"", Printable(stream.name()), "\" was created without counts of items"));
}

/// The streams of all key widths, for a generic lambda over the keyed stream.
template <class Function>
auto WithKeyed(const Stream& stream, Function function) {
  return WithKeyOf(stream.type(), [&]<class Key>(Key) {
    return function(static_cast<const KeyedStream<Key>&>(stream));
  });
}

/// Those whose keys may have ranks. REQUIRES: NeedsNumbers is content.
template <class Function>
auto WithRanked(const Stream& stream, Function function) {
  return WithKeyOf(stream.type(), [&]<class Key>(Key) {
    using Ranked = std::conditional_t<kRankedKeys<Key>, Key, std::uint64_t>;
    return function(static_cast<const KeyedStream<Ranked>&>(stream));
  });
}

/// Of the first i weights, for every i.
inline std::vector<std::uint64_t> SumsOf(const std::vector<std::uint64_t>* weights) {
  std::vector<std::uint64_t> sums{0};
  if (weights != nullptr) {
    std::partial_sum(weights->begin(), weights->end(), std::back_inserter(sums));
  }
  return sums;
}

/// Calls function(sums) with the CorrelatedView of a view without unseen values.
/// REQUIRES: the stream sums y or its values.
template <class Key>
auto WithSums(const Stream& stream, const StreamView<Key>& view, const auto& function) {
  const SummaryOptions options = stream.settings().summaries();
  SummedValues y;
  if (options.value_sums) {
    y = ValuesOf<Key>(*options.value_sums, view.open->keys());
  } else if (view.open_payloads) {
    y = YOf(*view.open_payloads);
  }
  return std::visit(
      [&]<class Y>(const std::vector<Y>& held) {
        return function(CorrelatedView<Key>(view.summaries.sums,
                                            {view.open->keys(), std::span<const Y>(held)}));
      },
      y);
}

template <class Key>
Key KeyOf(const KeyPosition& position) {
  return static_cast<Key>(position.key);
}

/// An answer from quantiles need not wait for windows under way while they are few against ε n.
template <class Key>
bool QuantilesTolerate(const SummarySnapshot<Key>& summaries, std::uint64_t /*open*/,
                       std::uint64_t unseen) {
  return summaries.quantiles.count > 0 &&
         QuantileView<Key>(summaries.quantiles, {}, unseen).WithinEpsilon();
}

template <class Key>
Coverage CoverageOf(const Stream& stream, const RecentView<Key>& recent) {
  return {recent.blocks.range.n_high(), recent.blocks.epsilon, recent.blocks.range.uncertain(),
          stream.Losses()};
}

template <class Key>
ViewRule<Key> QueryEngine::Rule(Deadline deadline) const {
  ViewRule<Key> rule;
  rule.deadline = deadline;
  if (deadline == kAtOnce) {
    rule.sort = [this](std::span<Key> keys) { pipeline_.sort_stage().SortFewNow(keys); };
    rule.sort_pairs = [this](std::span<Key> keys, std::span<std::uint64_t> payloads) {
      pipeline_.sort_stage().SortFewPairsNow(keys, payloads);
    };
  } else {
    rule.sort = [this](std::span<Key> keys) { pipeline_.sort_stage().SortNow(keys); };
    rule.sort_pairs = [this](std::span<Key> keys, std::span<std::uint64_t> payloads) {
      pipeline_.sort_stage().SortPairsNow(keys, payloads);
    };
  }
  return rule;
}

template <class Answer>
absl::StatusOr<Answer> QueryEngine::WithQuantiles(std::string_view name, const Ask& ask,
                                                  bool ends_matter, const auto& answer) const {
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (absl::Status status = NeedsNumbers(**stream); !status.ok()) return status;
  return WithRanked(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<Answer> {
        ViewRule<Key> rule = Rule<Key>(ask.deadline);
        if (!ask.whole()) {
          const absl::StatusOr<RecentView<Key>> recent = keyed.Recent(ask.width, rule);
          if (!recent.ok()) return recent.status();
          return answer(recent->blocks.quantiles->View(recent->later),
                        static_cast<const Stream&>(keyed), CoverageOf(keyed, *recent));
        }
        if (!ends_matter) rule.tolerates = QuantilesTolerate<Key>;
        absl::StatusOr<StreamView<Key>> view = keyed.View(rule);
        if (!view.ok()) return view.status();
        const QuantileView<Key> quantiles(std::move(view->summaries.quantiles), view->open->keys(),
                                          view->unseen);
        return answer(quantiles, static_cast<const Stream&>(keyed),
                      Coverage{quantiles.n(), quantiles.epsilon(), 0, keyed.Losses()});
      });
}

template <class Answer, class Key>
absl::StatusOr<Answer> QueryEngine::WithItems(const KeyedStream<Key>& stream, const Ask& ask,
                                              bool by_weight, const auto& answer) const {
  const ViewRule<Key> rule = Rule<Key>(ask.deadline);
  if (by_weight && stream.settings().payload != PayloadType::kWeight) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(stream.name()), "\" has no weights"));
  }
  if (by_weight && !ask.whole()) {
    return absl::UnimplementedError(
        "weights are summed over the whole history alone: ask without last_values and last_time");
  }
  if (!ask.whole()) {
    const absl::StatusOr<RecentView<Key>> recent = stream.Recent(ask.width, rule);
    if (!recent.ok()) return recent.status();
    if constexpr (kRankedKeys<Key>) {
      return answer(recent->blocks.frequencies->View(recent->later), CoverageOf(stream, *recent));
    } else {
      const AddressItemsView<SlidingHierarchicalView<Key>> items(*recent->blocks.frequencies,
                                                                 recent->later);
      return answer(items, CoverageOf(stream, *recent));
    }
  }
  const absl::StatusOr<StreamView<Key>> view = stream.View(rule);
  if (!view.ok()) return view.status();
  const double epsilon = stream.settings().frequency_epsilon;
  const std::span<const Key> keys = view->open->keys();
  if constexpr (!kRankedKeys<Key>) {
    using View = AddressItemsView<HierarchicalView<Key>>;
    const std::vector<std::uint64_t> sums = SumsOf(view->open_payloads.get());
    const View items =
        by_weight ? View(view->summaries.weights, keys, std::span<const std::uint64_t>(sums))
                  : View(view->summaries.frequencies, keys, view->unseen);
    return answer(items, Coverage{items.n(), epsilon, 0, stream.Losses()});
  } else if (by_weight) {
    std::vector<KeyWeight<Key>> open;
    if (view->open_payloads) open = WeightedItems(keys, *view->open_payloads);
    const auto items = FrequencyView<Key>::OfItems(view->summaries.weights, open, 0, epsilon);
    return answer(items, Coverage{items.n(), epsilon, 0, stream.Losses()});
  } else {
    const FrequencyView<Key> items(view->summaries.frequencies, keys, view->unseen, epsilon);
    return answer(items, Coverage{items.n(), epsilon, 0, stream.Losses()});
  }
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_QUERY_ANSWERING_H_
