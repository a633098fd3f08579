#include <algorithm>
#include <cstring>
#include <utility>

#include "server/window/concat.h"
#include "server/window/keyed_stream.h"
#include "server/window/text_rules.h"

namespace tidemark::server {

template <class Key>
absl::StatusOr<StreamView<Key>> KeyedStream<Key>::View(const ViewRule<Key>& rule) const {
  StreamView<Key> view;
  KeyBuffer<Key> copy;
  std::vector<std::uint64_t> payloads;
  std::uint64_t number = 0;
  {
    std::unique_lock lock(mutex_);
    number = next_number_;
    const std::uint64_t open_size = open_.size();
    // Windows under way mean that the sorting threads are busy. The answer is widened by them in
    // any case; where it may be by the open window too, it costs no sort of its own.
    const auto without_open = [&](std::uint64_t missing) {
      return missing > 0 && rule.tolerates && rule.tolerates(published_, 0, missing + open_size);
    };
    if (without_open(pending_keys_)) {
      view.open = std::make_shared<const KeyBuffer<Key>>();
      view.unseen = pending_keys_ + open_size;
      view.summaries = published_;
      return view;
    }
    // Everything accepted so far is published, in windows below `number`, or in the copy. Waits
    // until the windows are published, or those that are not are few enough for the rule. If later
    // windows are published meanwhile they hold the copy's values too, and the copy is dropped:
    // what is then covered is a longer prefix of the stream.
    const std::uint64_t covered = published_.count + pending_keys_;
    const auto missing = [&] {
      return covered > published_.count ? covered - published_.count : 0;
    };
    const auto enough = [&] {
      return published_windows_ >= number ||
             (rule.tolerates && rule.tolerates(published_, open_size, missing()));
    };
    const auto overdue = [&] {
      return absl::DeadlineExceededError(
          Concat("stream \"", Printable(name()), "\": ", missing(),
                 " values were still waiting to be sorted when the deadline passed"));
    };
    const bool at_once = rule.deadline == kAtOnceDeadline;
    if (at_once && !enough()) return overdue();
    if (sorted_open_ && sorted_open_number_ == number && sorted_open_->size() == open_.size()) {
      view.open = sorted_open_;
      view.open_payloads = sorted_payloads_;
    } else if (at_once && open_size > kAtOnceKeys) {
      return absl::DeadlineExceededError(Concat("stream \"", Printable(name()), "\": ", open_size,
                                                " values were still to be sorted"));
    } else {
      copy = KeyBuffer<Key>(open_.size());
      if (!open_.empty()) {
        std::memcpy(copy.tail(), open_.keys().data(), open_.size() * sizeof(Key));
        copy.Extend(open_.size());
      }
      payloads = open_payloads_;
    }
    if (!enough() && !window_published_.wait_until(lock, rule.deadline, enough)) return overdue();
    const auto drop_copy = [&] {
      copy = KeyBuffer<Key>();
      view.open = std::make_shared<const KeyBuffer<Key>>();
      view.open_payloads.reset();
    };
    if (published_windows_ > number) {
      drop_copy();
    } else {
      view.unseen = missing();
      if (without_open(view.unseen)) {
        drop_copy();
        view.unseen += open_size;
      }
    }
    view.summaries = published_;
  }
  if (!view.open) {
    if (!payloads.empty()) {
      rule.sort_pairs(copy.keys(), payloads);
      view.open_payloads = std::make_shared<const std::vector<std::uint64_t>>(std::move(payloads));
    } else if (rule.sort) {
      rule.sort(copy.keys());
    } else {
      std::sort(copy.keys().begin(), copy.keys().end());
    }
    view.open = std::make_shared<const KeyBuffer<Key>>(std::move(copy));
    const std::lock_guard lock(mutex_);
    if (next_number_ == number && view.open->size() == open_.size()) {
      sorted_open_ = view.open;
      sorted_payloads_ = view.open_payloads;
      sorted_open_number_ = number;
    }
  }
  return view;
}

template absl::StatusOr<StreamView<std::uint32_t>> KeyedStream<std::uint32_t>::View(
    const ViewRule<std::uint32_t>&) const;
template absl::StatusOr<StreamView<std::uint64_t>> KeyedStream<std::uint64_t>::View(
    const ViewRule<std::uint64_t>&) const;
template absl::StatusOr<StreamView<Key128>> KeyedStream<Key128>::View(
    const ViewRule<Key128>&) const;

}  // namespace tidemark::server
