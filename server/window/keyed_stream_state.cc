#include <algorithm>
#include <utility>

#include "server/window/concat.h"
#include "server/window/keyed_stream.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"

namespace tidemark::server {

template <class Key>
absl::StatusOr<KeyedState<Key>> KeyedStream<Key>::State(const ViewRule<Key>& rule) const {
  const StreamSettings settings = StateSettings(settings_);
  KeyedState<Key> state{settings, StreamSummaries<Key>(settings.summaries()), {}};
  std::vector<Key> open;
  std::vector<std::uint64_t> payloads;
  TextPlaces places;  // of the open window
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = next_number_;
    open.assign(open_.keys().begin(), open_.keys().end());
    payloads = open_payloads_;
    // Nobody is inside the summaries between two windows.
    const auto ready = [&] { return published_windows_ >= number && !committing_; };
    states_wanted_.push_back(number);
    const bool in_time = window_published_.wait_until(lock, rule.deadline, ready);
    states_wanted_.erase(std::find(states_wanted_.begin(), states_wanted_.end(), number));
    window_published_.notify_all();  // the publisher may go on once the lock is free
    if (!in_time) {
      return absl::DeadlineExceededError(
          Concat("stream \"", Printable(name()), "\": ", pending_keys_,
                 " values were still waiting to be sorted when the deadline passed"));
    }
    // If later windows are published meanwhile they hold the copy's values, too: what is then
    // covered is a longer prefix of the stream.
    if (published_windows_ > number) {
      open.clear();
      payloads.clear();
    }
    if (summaries_) state.summaries = *summaries_;
    if constexpr (kRankedKeys<Key>) {
      if (dictionary_) {
        std::vector<Key> ids = NamedKeys(state.summaries);
        ids.insert(ids.end(), open.begin(), open.end());
        if (text_levels_) {
          for (const Key id : open) AddPlaces(id, places);
          for (const auto& [id, place] : places) ids.push_back(static_cast<Key>(id));
        }
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        for (const Key id : ids) state.items.emplace_back(id, *dictionary_->Text(id));
      }
    }
  }
  if (payloads.empty()) {
    rule.sort(open);
  } else {
    rule.sort_pairs(open, payloads);
  }
  state.summaries.AddSorted(open, payloads,
                            text_levels_ ? ItemsOfLevels(open, payloads, places) : LevelItems());
  KeepNamedItems(state);
  return state;
}

template <class Key>
absl::Status KeyedStream<Key>::Restore(KeyedState<Key> state) {
  const std::lock_guard lock(mutex_);
  if (dictionary_) {
    std::size_t needed = 0;
    for (const auto& [id, text] : state.items) {
      const std::string_view item = text;
      needed += EntryBytes(item);
      for (const std::string_view prefix : PrefixesOf({&item, 1})) needed += EntryBytes(prefix);
    }
    if (!context_.text.TryTake(needed)) {
      return WithRefusal(absl::ResourceExhaustedError(Concat(
                             "the stream's items need ", needed, " bytes; the string streams hold ",
                             context_.text.held(), " of at most ", context_.text.limit(),
                             " bytes of text (limits.max_text_bytes)")),
                         Refusal::kTextLimit);
    }
    std::vector<Key> ids;
    for (const auto& [id, text] : state.items) {
      absl::Status status = CheckItem(text, context_.item_bytes_max);
      if (status.ok() && InternItem(text) != id) {
        status = absl::InvalidArgumentError(
            Concat("item \"", Printable(text), "\" has not the id that the summaries know it by"));
      }
      if (!status.ok()) {
        CountDictionary(needed);
        return status;
      }
      ids.push_back(static_cast<Key>(id));
    }
    CountDictionary(needed);
    if constexpr (kRankedKeys<Key>) {
      if (NamedKeys(state.summaries) != ids) {
        return absl::InvalidArgumentError("the texts are not those of the items in the summaries");
      }
    }
  }
  weight_ = state.summaries.weight();
  published_ = state.summaries.Snapshot();
  summaries_ = std::make_unique<StreamSummaries<Key>>(std::move(state.summaries));
  return absl::OkStatus();
}

template absl::StatusOr<KeyedState<std::uint32_t>> KeyedStream<std::uint32_t>::State(
    const ViewRule<std::uint32_t>&) const;
template absl::StatusOr<KeyedState<std::uint64_t>> KeyedStream<std::uint64_t>::State(
    const ViewRule<std::uint64_t>&) const;
template absl::StatusOr<KeyedState<Key128>> KeyedStream<Key128>::State(
    const ViewRule<Key128>&) const;
template absl::Status KeyedStream<std::uint32_t>::Restore(KeyedState<std::uint32_t>);
template absl::Status KeyedStream<std::uint64_t>::Restore(KeyedState<std::uint64_t>);
template absl::Status KeyedStream<Key128>::Restore(KeyedState<Key128>);

}  // namespace tidemark::server
