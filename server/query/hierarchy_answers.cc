#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "server/query/answering.h"
#include "summaries/hierarchical_view.h"

namespace tidemark::server {

absl::StatusOr<PrefixesAnswer> QueryEngine::HierarchicalHeavyHitters(std::string_view name,
                                                                     double support,
                                                                     Deadline deadline) const {
  using Key = std::uint32_t;  // of ipv4, the one type that has a hierarchy
  if (!(support > 0 && support <= 1)) {
    return absl::InvalidArgumentError(Concat("support ", support, " is outside (0, 1]"));
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  const StreamSettings& settings = (*stream)->settings();
  if (settings.hierarchy.prefix_lengths.empty()) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(name), "\" was created without a hierarchy"));
  }
  const auto& keyed = static_cast<const KeyedStream<Key>&>(**stream);
  const absl::StatusOr<StreamView<Key>> view = keyed.View(Rule<Key>(deadline));
  if (!view.ok()) return view.status();
  const auto answer = [&](const HierarchicalView<Key>& prefixes) -> absl::StatusOr<PrefixesAnswer> {
    PrefixesAnswer found{{prefixes.n(), settings.frequency_epsilon}, support, {}};
    if (prefixes.n() == 0) return found;
    if (!prefixes.Serves(support)) {
      return absl::InvalidArgumentError(
          Concat("support ", support, " is below what this stream can answer; expected at least ",
                 prefixes.MinimumSupport(), " (its frequency epsilon is ",
                 settings.frequency_epsilon, ")"));
    }
    for (const HierarchyItem<Key>& item : prefixes.HeavyHitters(support)) {
      found.rows.push_back({Ipv4{item.prefix}, prefixes.levels().length(item.level), item.count_low,
                            item.count_high, item.discounted_low, item.discounted_high});
    }
    if (found.rows.size() > kRowsMax) {
      return absl::ResourceExhaustedError(Concat(found.rows.size(), " prefixes have a support of ",
                                                 support, "; an answer holds ", kRowsMax,
                                                 ": ask for a larger support"));
    }
    return found;
  };
  const std::span<const Key> open = view->open->keys();
  if (settings.payload != PayloadType::kWeight) {
    return answer(HierarchicalView<Key>(view->summaries.hierarchy, open));
  }
  std::vector<std::uint64_t> sums{0};
  if (view->open_payloads) {
    std::partial_sum(view->open_payloads->begin(), view->open_payloads->end(),
                     std::back_inserter(sums));
  }
  return answer(HierarchicalView<Key>(view->summaries.hierarchy, open, sums));
}

}  // namespace tidemark::server
