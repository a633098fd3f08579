// One named stream: its open window, its windows on their way, and its summaries.
//
//   Append ──► open window ──full──► Window (numbered) ──► sort stage ──► Commit ──► summaries
//                   │                                                                   │
//                   └───────────────────────── View ◄───────────── published snapshot ──┘
//
// Invariants
//   1. Every value that was accepted is in exactly one of: the published summaries, a numbered
//      window that is not published yet (pending), the open window. Their sizes add up to count().
//   2. Windows are published in the order of their numbers, whichever was sorted first; so the
//      bytes of the summaries depend on the sequence of batches and their times alone.
//   3. At most one thread is inside the summaries (the one that set `committing_`), without holding
//      the lock: appends and views go on meanwhile.
#ifndef TIDEMARK_SERVER_WINDOW_STREAM_H_
#define TIDEMARK_SERVER_WINDOW_STREAM_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/summarize/stream_summaries.h"
#include "server/window/capacity_rule.h"
#include "server/window/dictionary.h"
#include "server/window/ingest_sink.h"
#include "server/window/key_buffer.h"
#include "server/window/text_budget.h"

namespace tidemark::server {

/// Smallest ε of a stream, for both summaries. Below it a summary would keep every value of any
/// stream that it could meet: 4/ε samples, 1/ε items.
inline constexpr double kEpsilonMin = 1e-6;
inline constexpr double kEpsilonMax = 0.5;

struct StreamSettings {
  ValueType type = ValueType::kFloat64;
  double quantile_epsilon = 0.001;
  double frequency_epsilon = 0.0001;
  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};

/// A full window of one stream, on its way to the sort and from there back to the stream.
struct Window {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;  ///< 0, 1, 2, ... within its stream
  std::variant<KeyBuffer<std::uint32_t>, KeyBuffer<std::uint64_t>> keys;
  std::size_t text_bytes = 0;  ///< strings: what its items added to the dictionary

  bool wide() const { return keys.index() == 1; }
  std::size_t size() const {
    return std::visit([](const auto& buffer) { return buffer.size(); }, keys);
  }
  /// What it counts for while it waits: its keys, and its text as if it were keys of eight bytes.
  std::uint64_t weight() const { return size() + text_bytes / sizeof(std::uint64_t); }
};

/// What is the same for every stream of a daemon. Outlives them.
struct StreamContext {
  CapacityLimits window_limits;
  /// Strings: each distinct item of a window is held as text, so that windows end earlier: at so
  /// many items, or with so many bytes of text. (Frequencies take windows of any length.)
  std::uint32_t string_window_max = 1u << 16;
  std::size_t string_window_bytes_max = std::size_t{4} << 20;
  std::size_t item_bytes_max = 1024;
  TextBudget text;  ///< of all dictionaries
  BufferPools pools;
  /// Told, for each window, how long it took to sample it and merge it into its summaries; by the
  /// thread that did it, without a lock. May be empty.
  std::function<void(std::chrono::duration<double>)> merged = nullptr;
};

struct StreamStats {
  std::uint64_t count = 0;
  std::uint64_t refused = 0;
  std::uint64_t pending = 0;  ///< values in windows that are not published, and in the open window
  std::uint64_t window_capacity = 0;
  std::uint64_t window_fill = 0;
  std::uint64_t windows_summarized = 0;
  std::size_t quantile_bytes = 0;
  std::size_t frequency_bytes = 0;
  std::size_t window_bytes = 0;  ///< open, under way, and the sorted copy kept for views
  std::size_t dictionary_bytes = 0;
  bool exact = true;
};

/// A consistent state of a stream: the summaries and, sorted, the values that are not in them yet.
/// Covers a prefix of the stream, except for `unseen` values whose number alone is known: those of
/// windows under way, and of the open window beside them, where the rule tolerates it.
template <class Key>
struct StreamView {
  SummarySnapshot<Key> summaries;
  std::shared_ptr<const KeyBuffer<Key>> open;  ///< ascending; never null
  std::uint64_t unseen = 0;
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
};

/// Thread: every method from any thread. Streams are owned by shared handles (StreamHandle);
/// windows under way hold one, so a deleted stream lives until its last window came back.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& name() const { return name_; }
  ValueType type() const { return settings_.type; }
  const StreamSettings& settings() const { return settings_; }

  /// See IngestSink. Windows that filled up are added to `full`, in order.
  virtual AppendResult AppendPacked(std::span<const std::byte> values, RecordedTime time,
                                    std::vector<Window>& full) = 0;
  virtual AppendResult AppendNumbers(std::span<const double> values, RecordedTime time,
                                     std::vector<Window>& full) = 0;
  virtual AppendResult AppendStrings(std::span<const std::string_view> values, RecordedTime time,
                                     std::vector<Window>& full) = 0;

  /// Takes a sorted window back. Publishes it and every later one that waited for it; nothing if an
  /// earlier window is still missing. `published(weight)` is called for each with its
  /// Window::weight(), without the lock.
  virtual void Commit(Window window, const std::function<void(std::uint64_t)>& published) = 0;

  virtual StreamStats Stats() const = 0;

  /// Serialized summaries, quantile then frequency, after every window under way is published:
  /// equal for equal batches and times. For comparisons; not a public format.
  virtual std::string SerializeSummaries() const = 0;

  /// Gives back memory of the open window that its keys do not use, and of items that nothing holds
  /// any more, if no batch came since the call before. Changes no answer.
  virtual void TrimStorage() = 0;

  /// From now on appends answer NOT_FOUND.
  void MarkDeleted();

 protected:
  Stream(std::string name, StreamSettings settings, StreamContext& context)
      : context_(context), name_(std::move(name)), settings_(settings) {}

  absl::Status DeletedStatus() const;

  StreamContext& context_;
  const std::string name_;
  const StreamSettings settings_;

  mutable std::mutex mutex_;
  bool deleted_ = false;  // guarded by mutex_
};

/// A stream whose keys are 32 or 64 bits wide.
template <class Key>
class KeyedStream final : public Stream {
 public:
  KeyedStream(std::string name, StreamSettings settings, StreamContext& context);
  ~KeyedStream() override;

  AppendResult AppendPacked(std::span<const std::byte> values, RecordedTime time,
                            std::vector<Window>& full) override;
  AppendResult AppendNumbers(std::span<const double> values, RecordedTime time,
                             std::vector<Window>& full) override;
  AppendResult AppendStrings(std::span<const std::string_view> values, RecordedTime time,
                             std::vector<Window>& full) override;
  void Commit(Window window, const std::function<void(std::uint64_t)>& published) override;
  StreamStats Stats() const override;
  std::string SerializeSummaries() const override;
  void TrimStorage() override;

  /// A view of everything accepted before the call. Errors: DEADLINE_EXCEEDED when windows under
  /// way did not come back in time.
  absl::StatusOr<StreamView<Key>> View(const ViewRule<Key>& rule) const;

  /// Strings: the id of an item, unless it is unknown (then it is in no summary and no window).
  std::optional<std::uint64_t> FindItem(std::string_view text) const;
  /// The texts behind ids of a view; nullopt if one was forgotten since (take a new view then).
  std::optional<std::vector<std::string>> ItemTexts(std::span<const std::uint64_t> ids) const;

 private:
  struct Waiting {
    std::uint64_t number;
    KeyBuffer<Key> keys;
    std::uint64_t weight;
  };

  CapacityLimits Limits() const;
  // All below: mutex_ held.
  void BeginBatch(RecordedTime time, std::vector<Window>& full);
  void MakeRoom(std::size_t wanted, RecordedTime time);
  void CloseWindow(RecordedTime time, std::vector<Window>& full);
  template <class Value, class ToKey>
  void AppendMapped(const std::byte* values, std::size_t count, ToKey to_key, RecordedTime time,
                    std::vector<Window>& full, AppendResult& result);
  void AppendKeys(std::span<const Key> keys, RecordedTime time, std::vector<Window>& full);
  absl::StatusOr<std::size_t> TakeText(std::span<const std::string_view> items, std::size_t most);
  void ForgetItems();
  void CountDictionary(std::size_t taken);

  // Open window; guarded by mutex_.
  CapacityRule capacity_;
  KeyBuffer<Key> open_;
  std::uint64_t next_number_ = 0;
  std::uint64_t refused_ = 0;
  bool active_ = false;                     // a batch came since the last TrimStorage
  std::unique_ptr<Dictionary> dictionary_;  // strings only
  std::size_t open_text_bytes_ = 0;         // of the open window's items
  std::size_t open_new_bytes_ = 0;          // that they added to the dictionary
  std::size_t counted_bytes_ = 0;           // of the dictionary, in context_.text
  // Sorted copy of the open window, for views; valid while its size is the window's and the numbers
  // agree. Guarded by mutex_.
  mutable std::shared_ptr<const KeyBuffer<Key>> sorted_open_;
  mutable std::uint64_t sorted_open_number_ = 0;

  // Windows under way and what is published; guarded by mutex_.
  std::uint64_t pending_keys_ = 0;
  std::size_t pending_bytes_ = 0;  // of the buffers of those keys
  std::uint64_t published_windows_ = 0;
  SummarySnapshot<Key> published_;
  std::vector<Waiting> arrived_;  // sorted windows that wait for an earlier one
  bool committing_ = false;
  mutable std::condition_variable window_published_;

  // Touched only by the thread that set committing_; made with the first window.
  std::unique_ptr<StreamSummaries<Key>> summaries_;
};

extern template class KeyedStream<std::uint32_t>;
extern template class KeyedStream<std::uint64_t>;

/// Makes a stream whose key width follows from its type.
std::shared_ptr<Stream> MakeStream(std::string name, StreamSettings settings,
                                   StreamContext& context);

/// Whether keys of this type are 64 bits wide.
constexpr bool WideKeys(ValueType type) {
  return type != ValueType::kFloat32 && type != ValueType::kUint32 && type != ValueType::kIpv4;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_H_
