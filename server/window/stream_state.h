// A stream's summaries by themselves: what leaves a daemon, comes in, or is merged.
#ifndef TIDEMARK_SERVER_WINDOW_STREAM_STATE_H_
#define TIDEMARK_SERVER_WINDOW_STREAM_STATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/summarize/stream_summaries.h"
#include "server/window/stream.h"

namespace tidemark::server {

/// Sliding windows are not part of it: `settings` has none.
template <class Key>
struct KeyedState {
  StreamSettings settings;
  StreamSummaries<Key> summaries;
  /// Strings: the text of every item that the summaries name, by ascending id.
  std::vector<std::pair<std::uint64_t, std::string>> items;
};
using StreamState =
    std::variant<KeyedState<std::uint32_t>, KeyedState<std::uint64_t>, KeyedState<Key128>>;

/// The ids of the items that summaries of strings name, ascending.
template <class Key>
std::vector<Key> NamedKeys(const StreamSummaries<Key>& summaries);
/// Drops the texts of items that the summaries no longer name.
template <class Key>
void KeepNamedItems(KeyedState<Key>& state);

/// The settings that two states must share to be merged: without what makes no difference to them.
StreamSettings StateSettings(const StreamSettings& settings);

/// Takes `other` into `state`: the guarantees then hold for the union.
/// Errors: INVALID_ARGUMENT if their settings differ, or if two items share an id (their hashes
/// collide); OUT_OF_RANGE for 2^63 values, or weights, or more. `state` is then of no further use.
absl::Status MergeInto(StreamState& state, const StreamState& other);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_STATE_H_
