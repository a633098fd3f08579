// What one stream keeps of its most recent values: a record of what came when, and sliding quantile
// and frequency summaries over the same blocks.
#ifndef TIDEMARK_SERVER_SUMMARIZE_SLIDING_SUMMARIES_H_
#define TIDEMARK_SERVER_SUMMARIZE_SLIDING_SUMMARIES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "server/summarize/kept_kinds.h"
#include "server/summarize/stream_summaries.h"
#include "server/summarize/summary_options.h"
#include "summaries/sliding_hierarchy.h"
#include "summaries/sliding_levels.h"
#include "summaries/sliding_record.h"

namespace tidemark::server {

/// Which of a stream's most recent values an answer is about.
struct SlidingWidth {
  std::uint64_t values = 0;  ///< the last so many; 0: by time
  std::int64_t time_us = 0;  ///< those of the last so much time
  std::int64_t now_us = 0;   ///< the asker's time, for a width by time
};

/// Everything that answers for one width; immutable. The values in blocks, that is: those that came
/// later are at the stream.
template <class Key>
struct SlidingView {
  double epsilon = 0;
  SlidingRange range;
  std::optional<typename KeptKinds<Key>::RecentQuantileCover> quantiles;
  std::optional<typename KeptKinds<Key>::RecentItemCover> frequencies;
  std::optional<SlidingHierarchyCover<Key>> hierarchy;
  std::optional<SlidingLevelsCover> text_levels;
};

/// The bytes of each part in a frame of its own (byte_io.h); empty where there is none.
struct SlidingFrames {
  std::string record, quantiles, frequencies, hierarchy, text_levels;
};

/// Thread: one writer; every other method from any thread.
template <class Key>
class SlidingSummaries {
 public:
  /// REQUIRES: options.sliding.any(). Errors: throws std::invalid_argument for settings that no
  /// sliding summary can have.
  explicit SlidingSummaries(const SummaryOptions& options);

  /// How many values the next window must have.
  std::size_t block_size() const { return record_.rule().block_size(); }
  /// Most values that it keeps as they came.
  std::uint64_t recent_values() const { return record_.rule().recent_values(); }

  /// Takes in the next window, in the order in which its values came and sorted. `level_items`: of
  /// strings with a hierarchy and without weights, what it comes to on each level.
  void AddBlock(std::shared_ptr<const Key[]> arrived, std::span<const TimedCount> batches,
                std::span<const Key> sorted, const LevelItems& level_items = {});

  /// Values taken in. Like bytes() and keys_kept(), known without a wait for a block under way.
  std::uint64_t end() const { return end_; }

  /// `later`: the batches of the values that came after the first `end` ones; if windows with them
  /// were taken in since, they are left out. REQUIRES: end <= end().
  /// Errors: throws std::invalid_argument for a width above the configured one, or none.
  SlidingView<Key> View(const SlidingWidth& width, std::uint64_t end,
                        std::span<const TimedCount> later) const;

  std::size_t bytes() const { return bytes_; }
  std::string Serialize() const;
  SlidingFrames Frames() const;
  /// What Frames() of others with these options gave, of `count` values; goes on as they would.
  /// Errors: throws std::invalid_argument, naming what is wrong, for frames that are damaged, that
  /// are not what the options say, or that do not agree. REQUIRES: no block was added.
  void Restore(const SlidingFrames& frames, std::uint64_t count);
  /// Calls visit(key) for every key that an answer may name or that stands below such a key, for
  /// some several times: keys_kept() times at most.
  template <class Visit>
  void ForEachKey(Visit visit) const {
    const std::lock_guard lock(mutex_);
    record_.ForEachKey(visit);
    if (frequencies_) frequencies_->ForEachKey(visit);
    if (text_levels_) text_levels_->ForEachKey(visit);
  }
  std::size_t keys_kept() const { return keys_kept_; }
  /// Those of them that are values as they came, at most.
  std::size_t values_kept() const { return values_kept_; }

 private:
  void Publish();

  std::atomic<std::uint64_t> end_{0};
  std::atomic<std::size_t> bytes_{0}, keys_kept_{0}, values_kept_{0};
  mutable std::mutex mutex_;  // guards all below
  SlidingRecord<Key> record_;
  std::optional<typename KeptKinds<Key>::RecentQuantiles> quantiles_;
  std::optional<typename KeptKinds<Key>::RecentItems> frequencies_;
  std::optional<SlidingHierarchy<Key>> hierarchy_;  // of addresses without weights
  std::optional<SlidingLevels> text_levels_;        // of strings without weights
};

extern template class SlidingSummaries<std::uint32_t>;
extern template class SlidingSummaries<std::uint64_t>;
extern template class SlidingSummaries<Key128>;

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_SLIDING_SUMMARIES_H_
