#include <utility>

#include "server/query/answering.h"

namespace tidemark::server {

absl::StatusOr<StreamState> QueryEngine::State(std::string_view name, Deadline deadline) const {
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  return WithKeyed(**stream,
                   [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<StreamState> {
                     absl::StatusOr<KeyedState<Key>> state = keyed.State(Rule<Key>(deadline));
                     if (!state.ok()) return state.status();
                     return *std::move(state);
                   });
}

}  // namespace tidemark::server
