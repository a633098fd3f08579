// The stream of one key width: its open window, its summaries, and views of both. See stream.h for
// the whole and its invariants.
#ifndef TIDEMARK_SERVER_WINDOW_KEYED_STREAM_H_
#define TIDEMARK_SERVER_WINDOW_KEYED_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/summarize/sliding_summaries.h"
#include "server/summarize/stream_summaries.h"
#include "server/window/capacity_rule.h"
#include "server/window/dictionary.h"
#include "server/window/key_buffer.h"
#include "server/window/stream.h"
#include "server/window/stream_image.h"
#include "server/window/stream_state.h"
#include "summaries/hierarchy.h"

namespace tidemark::server {

/// A consistent state of a stream: the summaries and, sorted, the values that are not in them yet.
/// Covers a prefix of the stream, except for `unseen` values whose number alone is known: those of
/// windows under way, and of the open window beside them, where the rule tolerates it.
template <class Key>
struct StreamView {
  SummarySnapshot<Key> summaries;
  std::shared_ptr<const KeyBuffer<Key>> open;  ///< ascending; never null
  /// Of a stream with payloads: those of `open`, one for each key. Null otherwise.
  std::shared_ptr<const std::vector<std::uint64_t>> open_payloads;
  std::uint64_t unseen = 0;
};

/// The most recent values of a stream: those in blocks, and those that came later.
template <class Key>
struct RecentView {
  SlidingView<Key> blocks;
  std::vector<Key> later;  ///< ascending; those of the window, all of which are at hand
};

/// The deadline of a view that may neither wait nor sort more than kAtOnceKeys keys: 0.04 ms
/// at the 369 M keys/s measured for 32-bit windows of that size, 0.08 ms for 64-bit ones.
inline constexpr auto kAtOnceDeadline = std::chrono::steady_clock::time_point::min();
inline constexpr std::size_t kAtOnceKeys = 1u << 14;

/// How long a view may wait for windows under way, when it need not, and how it sorts its copy.
template <class Key>
struct ViewRule {
  std::chrono::steady_clock::time_point deadline;
  /// True if an answer whose certificate is widened by `unseen` values is still within ε, given
  /// `open` values that are seen. Asked again whenever a window is published: the view waits only
  /// until it holds. Null: waits for every window under way.
  std::function<bool(const SummarySnapshot<Key>& summaries, std::uint64_t open,
                     std::uint64_t unseen)>
      tolerates;
  std::function<void(std::span<Key>)> sort;
  std::function<void(std::span<Key>, std::span<std::uint64_t>)> sort_pairs;
};

/// Where items of a hierarchy of strings stand, by id.
using TextPlaces = absl::flat_hash_map<std::uint64_t, TextPlace>;

/// A stream whose keys are 32, 64 or 128 bits wide. Ids of strings have 64; what has to do with
/// them does nothing, or is not there, for 128.
template <class Key>
class KeyedStream final : public Stream {
 public:
  KeyedStream(std::string name, StreamSettings settings, StreamContext& context);
  ~KeyedStream() override;

  AppendResult AppendPacked(std::span<const std::byte> values, const BatchStamp& stamp,
                            std::vector<Window>& full) override;
  AppendResult AppendPairs(std::span<const std::byte> values, std::span<const std::byte> payloads,
                           const BatchStamp& stamp, std::vector<Window>& full) override;
  AppendResult AppendNumbers(std::span<const double> values, const BatchStamp& stamp,
                             std::vector<Window>& full) override;
  AppendResult AppendStrings(std::span<const std::string_view> values,
                             std::span<const std::byte> payloads, const BatchStamp& stamp,
                             std::vector<Window>& full) override;
  void Commit(Window window, const std::function<void(std::uint64_t)>& published) override;
  StreamStats Stats() const override;
  std::string SerializeSummaries() const override;
  void TrimStorage() override;
  absl::StatusOr<std::string> Image() const override;
  absl::Status RestoreImage(std::string_view bytes) override;

  /// A view of everything accepted before the call. Errors: DEADLINE_EXCEEDED when windows under
  /// way did not come back in time.
  absl::StatusOr<StreamView<Key>> View(const ViewRule<Key>& rule) const;

  /// The most recent values of everything accepted before the call. Waits for windows under way.
  /// Errors: as View; FAILED_PRECONDITION for a stream without sliding windows, INVALID_ARGUMENT
  /// for a width above the configured one.
  absl::StatusOr<RecentView<Key>> Recent(const SlidingWidth& width,
                                         const ViewRule<Key>& rule) const;

  /// What the summaries hold of everything accepted before the call, and of its open window;
  /// perhaps of more. Waits for windows under way. Errors: DEADLINE_EXCEEDED.
  absl::StatusOr<KeyedState<Key>> State(const ViewRule<Key>& rule) const;

  /// Begins with a state. REQUIRES: no other thread knows the stream yet, nothing was appended, and
  /// the state's settings are this stream's (StateSettings).
  /// Errors: RESOURCE_EXHAUSTED if there is no room for its texts, INVALID_ARGUMENT if these are
  /// not those of its items. The stream is then of no use.
  absl::Status Restore(KeyedState<Key> state);

  /// Of a stream of strings with a hierarchy: the items of each level of a sorted window, or of a
  /// view's open one; nullopt if the text of one was forgotten since (take a new view then).
  std::optional<LevelItems> ItemsOfLevels(std::span<const Key> sorted,
                                          std::span<const std::uint64_t> payloads) const;
  /// What stands right above an item of such a stream; nullopt as above.
  std::optional<TextPlace> ItemPlace(std::uint64_t id) const;

  /// Strings: the id of an item, unless it is unknown (then it is in no summary and no window).
  std::optional<std::uint64_t> FindItem(std::string_view text) const;
  /// The texts behind ids of a view; nullopt if one was forgotten since (take a new view then).
  std::optional<std::vector<std::string>> ItemTexts(std::span<const std::uint64_t> ids) const;

 private:
  /// Smallest allocation of an open window: a stream that sent one value should not hold 2 KB.
  static constexpr std::size_t kFirstKeys = 16;
  /// A stream whose last window was opened so long ago is quiet: those of a busy one are open for
  /// twice CapacityRule::kSlowFill at most.
  static constexpr RecordedTime kQuietAfter = 5 * CapacityRule::kSlowFill;

  struct Waiting {
    std::uint64_t number;
    KeyBuffer<Key> keys;
    std::vector<std::uint64_t> payloads;
    std::shared_ptr<const Key[]> came;  // sliding: as they came
    std::vector<TimedCount> batches;
    WindowDigest<Key> digest;  // of no keys: there is none
    ReducedForm<Key> reduced;  // the same; where there is neither, the keys are sorted
    std::uint64_t weight;
  };

  CapacityLimits Limits() const;
  /// What a value of a hierarchy may add to the dictionary: itself, and all above it.
  std::size_t KeysOfValue() const { return text_levels_ ? text_levels_->size() : 1; }
  AppendResult AppendValues(std::span<const std::byte> values, std::span<const std::byte> payloads,
                            const BatchStamp& stamp, std::vector<Window>& full);
  LevelItems ItemsOfLevels(std::span<const Key> sorted, std::span<const std::uint64_t> payloads,
                           const TextPlaces& places) const;
  // All below: mutex_ held.
  /// False if the item or what stands above it is unknown.
  bool AddPlaces(std::uint64_t id, TextPlaces& places) const;
  /// Of strings with a hierarchy: the prefixes of items, without the items themselves.
  std::vector<std::string_view> PrefixesOf(std::span<const std::string_view> items) const;
  void BeginBatch(RecordedTime time, std::vector<Window>& full);
  void MakeRoom(std::size_t wanted, RecordedTime time);
  void CloseWindow(RecordedTime time, std::vector<Window>& full);
  template <class Value, class ToKey>
  void AppendMapped(const std::byte* values, std::size_t count, ToKey to_key, RecordedTime time,
                    std::vector<Window>& full, AppendResult& result);
  void AppendKeys(std::span<const Key> keys, RecordedTime time, std::vector<Window>& full);
  absl::StatusOr<std::uint64_t> WeightWith(std::size_t values,
                                           std::span<const std::byte> payloads) const;
  /// Whether so many values more, and as many bytes beside them, find room in the memory of the
  /// process.
  absl::Status CheckMemory(std::size_t values, std::size_t beside, RecordedTime time) const;
  bool IsBusy(std::uint64_t count, RecordedTime time) const;
  absl::StatusOr<std::size_t> TakeText(std::span<const std::string_view> items, std::size_t most);
  /// Its id, which the open window is about to hold.
  std::uint64_t InternItem(std::string_view item);
  /// What a new item adds to the dictionary, at most.
  std::size_t EntryBytes(std::string_view item) const;
  void ForgetItems();
  /// Entries of the summaries whose texts must be kept.
  std::size_t ItemsKept() const;
  void CountDictionary(std::size_t taken);
  bool LetStatesBeTaken(std::unique_lock<std::mutex>& lock);
  /// To the image that waits for the summaries as they are now. Nobody else is inside them.
  void HandOver(StreamImage<Key>& image) const;
  void RestoreItems(const StreamImage<Key>& image, const StreamSummaries<Key>* summaries);

  // Null without sliding windows. Has a lock of its own; written by the thread that set
  // committing_.
  const std::unique_ptr<SlidingSummaries<Key>> sliding_;

  // Open window; guarded by mutex_.
  CapacityRule capacity_;
  KeyBuffer<Key> open_;
  std::vector<std::uint64_t> open_payloads_;  // as many as keys, of a stream with payloads
  std::vector<TimedCount> open_batches_;      // sliding: when they came
  std::uint64_t next_number_ = 0;
  std::uint64_t weight_ = 0;                     // of all values, of a stream with weights
  std::unique_ptr<Dictionary> dictionary_;       // strings only
  const std::optional<TextLevels> text_levels_;  // of those with a hierarchy
  std::size_t open_text_bytes_ = 0;              // of the open window's items
  std::size_t open_new_bytes_ = 0;               // that they added to the dictionary
  std::size_t counted_bytes_ = 0;                // of the dictionary, in context_.text
  // When TakeText last looked for items to forget: published_windows_ then; at first, no number of
  // theirs.
  std::uint64_t looked_for_room_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t forgotten_to_ = 0;  // its items after the last look for such to forget
  // Sorted copy of the open window, for views; valid while its size is the window's and the numbers
  // agree. Guarded by mutex_.
  mutable std::shared_ptr<const KeyBuffer<Key>> sorted_open_;
  mutable std::shared_ptr<const std::vector<std::uint64_t>> sorted_payloads_;
  mutable std::uint64_t sorted_open_number_ = 0;

  // Windows under way and what is published; guarded by mutex_.
  std::uint64_t pending_keys_ = 0;
  std::size_t pending_bytes_ = 0;  // of the buffers of those keys
  std::uint64_t published_windows_ = 0;
  SummarySnapshot<Key> published_;
  std::vector<Waiting> arrived_;  // sorted windows that wait for an earlier one
  /// Of each State() that waits: it needs the windows below this number.
  mutable std::vector<std::uint64_t> states_wanted_;
  /// The image that is being made, which needs the summaries when as many windows are published as
  /// it says; null: none.
  mutable StreamImage<Key>* image_wanted_ = nullptr;
  mutable std::condition_variable window_published_;

  // Touched only by the thread that set committing_; made with the first window.
  std::unique_ptr<StreamSummaries<Key>> summaries_;
};

extern template class KeyedStream<std::uint32_t>;
extern template class KeyedStream<std::uint64_t>;
extern template class KeyedStream<Key128>;

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_KEYED_STREAM_H_
