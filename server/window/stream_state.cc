#include "server/window/stream_state.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

using Items = std::vector<std::pair<std::uint64_t, std::string>>;

absl::Status OneId(std::string_view a, std::string_view b) {
  return absl::InvalidArgumentError(
      Concat("the items \"", Printable(a), "\" and \"", Printable(b),
             "\" have the same hash: their counts cannot be told apart in one stream"));
}

// The union by id; ids name one text and texts have one id.
absl::Status MergeItems(Items& items, const Items& other) {
  Items merged;
  merged.reserve(items.size() + other.size());
  std::merge(items.begin(), items.end(), other.begin(), other.end(), std::back_inserter(merged));
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  absl::flat_hash_map<std::string_view, std::uint64_t> ids;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const auto& [id, text] = merged[i];
    if (i > 0 && merged[i - 1].first == id) return OneId(merged[i - 1].second, text);
    if (!ids.emplace(text, id).second) {
      return absl::InvalidArgumentError(
          Concat("the item \"", Printable(text),
                 "\" has two ids: its hash is that of another item of one of the streams"));
    }
  }
  items = std::move(merged);
  return absl::OkStatus();
}

}  // namespace

template <class Key>
std::vector<Key> NamedKeys(const StreamSummaries<Key>& summaries) {
  std::vector<Key> keys;
  const auto add = [&](Key key) { keys.push_back(key); };
  const SummarySnapshot<Key> snapshot = summaries.Snapshot();
  snapshot.frequencies.ForEachKey(add);
  snapshot.weights.ForEachKey(add);
  for (const auto& level : snapshot.text_levels) {
    level.ForEachKey([&](std::uint64_t key) { add(static_cast<Key>(key)); });
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}
template std::vector<std::uint32_t> NamedKeys(const StreamSummaries<std::uint32_t>&);
template std::vector<std::uint64_t> NamedKeys(const StreamSummaries<std::uint64_t>&);

template <class Key>
void KeepNamedItems(KeyedState<Key>& state) {
  if constexpr (kRankedKeys<Key>) {
    if (state.items.empty()) return;
    const std::vector<Key> named = NamedKeys(state.summaries);
    std::erase_if(state.items, [&](const auto& item) {
      return !std::binary_search(named.begin(), named.end(), static_cast<Key>(item.first));
    });
  }
}
template void KeepNamedItems(KeyedState<std::uint32_t>&);
template void KeepNamedItems(KeyedState<std::uint64_t>&);
template void KeepNamedItems(KeyedState<Key128>&);

StreamSettings StateSettings(const StreamSettings& settings) {
  const StreamSettings usual;
  StreamSettings state = settings;
  state.sliding = {};
  if (state.quantile_form != QuantileKind::kTail) state.tail_epsilon = usual.tail_epsilon;
  if (state.quantile_form == QuantileKind::kTail && !state.summaries().summed()) {
    state.quantile_epsilon = usual.quantile_epsilon;
  }
  if (!state.frequencies) state.frequency_epsilon = usual.frequency_epsilon;
  if (!HasRanks(state.type)) {
    state.quantile_epsilon = usual.quantile_epsilon;
    state.quantile_form = usual.quantile_form;
    state.tail_epsilon = usual.tail_epsilon;
  }
  return state;
}

absl::Status MergeInto(StreamState& state, const StreamState& other) {
  return std::visit(
      [&]<class Key>(KeyedState<Key>& mine) -> absl::Status {
        const auto* theirs = std::get_if<KeyedState<Key>>(&other);
        if (theirs == nullptr || !(mine.settings == theirs->settings)) {
          const StreamSettings& settings = std::visit(
              [](const auto& held) -> const StreamSettings& { return held.settings; }, other);
          return absl::InvalidArgumentError(
              Concat("streams with different settings cannot be merged: ", Describe(mine.settings),
                     "; and ", Describe(settings)));
        }
        try {
          mine.summaries.Merge(theirs->summaries);
        } catch (const std::length_error& error) {
          return absl::OutOfRangeError(error.what());
        } catch (const std::invalid_argument& error) {
          return absl::InvalidArgumentError(error.what());
        }
        if (absl::Status status = MergeItems(mine.items, theirs->items); !status.ok()) {
          return status;
        }
        KeepNamedItems(mine);
        return absl::OkStatus();
      },
      state);
}

}  // namespace tidemark::server
