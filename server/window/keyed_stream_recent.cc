#include <algorithm>
#include <stdexcept>
#include <utility>

#include "server/window/concat.h"
#include "server/window/keyed_stream.h"
#include "server/window/text_rules.h"

namespace tidemark::server {

template <class Key>
absl::StatusOr<RecentView<Key>> KeyedStream<Key>::Recent(const SlidingWidth& width,
                                                         const ViewRule<Key>& rule) const {
  if (!sliding_) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(name()), "\" was created without sliding windows"));
  }
  RecentView<Key> view;
  std::vector<TimedCount> batches;
  std::uint64_t before = 0;  // values in windows that are full
  {
    std::unique_lock lock(mutex_);
    const bool at_once = rule.deadline == kAtOnceDeadline;
    if (at_once && open_.size() > kAtOnceKeys) {
      return absl::DeadlineExceededError(Concat(
          "stream \"", Printable(name()), "\": ", open_.size(), " values were still to be sorted"));
    }
    before = next_number_ * sliding_->block_size();
    view.later.assign(open_.keys().begin(), open_.keys().end());
    batches = open_batches_;
    const auto enough = [&] { return sliding_->end() >= before; };
    if (!enough() && (at_once || !window_published_.wait_until(lock, rule.deadline, enough))) {
      return absl::DeadlineExceededError(
          Concat("stream \"", Printable(name()), "\": ", before - sliding_->end(),
                 " values were still waiting to be sorted when the deadline passed"));
    }
  }
  try {
    view.blocks = sliding_->View(width, before, batches);
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(Concat("stream \"", Printable(name()), "\": ", error.what()));
  }
  // Those of the copy that lie in the window: none of them if it was taken in meanwhile.
  const auto inside = static_cast<std::ptrdiff_t>(view.blocks.range.later);
  view.later.erase(view.later.begin(), view.later.end() - inside);
  if (rule.sort) {
    rule.sort(view.later);
  } else {
    std::sort(view.later.begin(), view.later.end());
  }
  return view;
}

template absl::StatusOr<RecentView<std::uint32_t>> KeyedStream<std::uint32_t>::Recent(
    const SlidingWidth&, const ViewRule<std::uint32_t>&) const;
template absl::StatusOr<RecentView<std::uint64_t>> KeyedStream<std::uint64_t>::Recent(
    const SlidingWidth&, const ViewRule<std::uint64_t>&) const;
template absl::StatusOr<RecentView<Key128>> KeyedStream<Key128>::Recent(
    const SlidingWidth&, const ViewRule<Key128>&) const;

}  // namespace tidemark::server
