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

#include <atomic>
#include <chrono>
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
#include "server/summarize/reduced_form.h"
#include "server/summarize/summary_options.h"
#include "server/window/capacity_rule.h"
#include "server/window/ingest_sink.h"
#include "server/window/key_buffer.h"
#include "server/window/memory_guard.h"
#include "server/window/producers.h"
#include "server/window/stream_log.h"
#include "server/window/subscriptions.h"
#include "server/window/text_budget.h"
#include "summaries/sliding_times.h"
#include "summaries/window_digest.h"
#include "summaries/window_grid.h"

namespace tidemark::server {

/// Smallest ε of a stream, for both summaries. Below it a summary would keep every value of any
/// stream that it could meet: 4/ε samples, 1/ε items.
inline constexpr double kEpsilonMin = 1e-6;
inline constexpr double kEpsilonMax = 0.5;

struct StreamSettings {
  ValueType type = ValueType::kFloat64;
  double quantile_epsilon = 0.001;
  double frequency_epsilon = 0.0001;
  PayloadType payload = PayloadType::kNone;
  QuantileKind quantile_form = QuantileKind::kHistogram;
  double tail_epsilon = 0.005;  ///< of QuantileKind::kTail
  bool frequencies = true;      ///< false: no counts of items
  bool sums = false;            ///< of the values themselves: see CanSumValues
  SlidingSettings sliding;
  HierarchySettings hierarchy;

  ElementType element() const { return {type, payload}; }
  SummaryOptions summaries() const;
  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};
/// What the values of a type are when they are summed themselves; unset for those that are no
/// numbers.
std::optional<SumType> ValueSumType(ValueType type);
/// Numbers with nothing beside them.
inline bool CanSumValues(ElementType element) {
  return element.payload == PayloadType::kNone && ValueSumType(element.value).has_value();
}
/// For people: "type float64, quantile epsilon 0.001 (histogram), ...".
std::string Describe(const StreamSettings& settings);

/// A full window of one stream, on its way to the sort and from there back to the stream.
struct Window {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;  ///< 0, 1, 2, ... within its stream
  std::variant<KeyBuffer<std::uint32_t>, KeyBuffer<std::uint64_t>, KeyBuffer<Key128>> keys;
  std::size_t text_bytes = 0;  ///< strings: what its items added to the dictionary
  /// Of a stream with payloads: one for each key, in the same order; a y as its bits.
  std::vector<std::uint64_t> payloads;
  /// Of a stream with sliding windows: its keys in the order in which they came, and in what
  /// batches.
  std::variant<std::shared_ptr<const std::uint32_t[]>, std::shared_ptr<const std::uint64_t[]>,
               std::shared_ptr<const Key128[]>>
      arrived;
  std::vector<TimedCount> batches;
  /// Where the stream's summaries take digests: the stride of the one that may be made in place of
  /// the sort; 0 where they need the keys sorted.
  std::uint64_t digest_stride = 0;
  std::variant<WindowDigest<std::uint32_t>, WindowDigest<std::uint64_t>, WindowDigest<Key128>>
      digest;
  /// What the stream's summaries take in place of the sorted keys, and that, if it was made: the
  /// keys are then of no use any more.
  ReducedNeeds reduced_needs;
  std::variant<ReducedForm<std::uint32_t>, ReducedForm<std::uint64_t>, ReducedForm<Key128>> reduced;

  /// 0 for keys of 32 bits, 1 for 64, 2 for 128.
  std::size_t width_index() const { return keys.index(); }
  std::size_t size() const {
    return std::visit([](const auto& buffer) { return buffer.size(); }, keys);
  }
  bool has_payloads() const { return !payloads.empty(); }
  /// What it counts for while it waits: its keys, one of 128 bits as two, its payloads, and its
  /// text as if it were keys of eight bytes.
  std::uint64_t weight() const {
    return size() * (width_index() == 2 ? 2 : 1) + payloads.size() +
           text_bytes / sizeof(std::uint64_t);
  }
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
  MemoryGuard memory;
  ProducerMemory producers;  ///< of all streams
  BufferPools pools;
  /// Told, for each window, how long it took to sample it and merge it into its summaries; by the
  /// thread that did it, without a lock. May be empty.
  std::function<void(std::chrono::duration<double>)> merged = nullptr;
  /// Of StreamLosses; may be empty.
  std::function<std::uint64_t()> dropped_datagrams = nullptr;
  /// Told what streams take in; null: nobody is. Set while no other thread uses a stream.
  StreamLog* log = nullptr;
  /// The log's last record when `log` was set: what was replayed is durable when that is.
  std::uint64_t replayed_sequence = 0;
  /// What is taken in was taken in before, within the limits of then: limits that many streams
  /// share, and those of names and items, are not looked at. Set as `log` is.
  bool replaying = false;
};

/// What of what came for a stream, or may have, its n does not count.
struct StreamLosses {
  std::uint64_t refused = 0;  ///< values refused one by one, since it began
  /// Values of batches refused whole, each time that one came, since the daemon began or the stream
  /// did. Of one that was sent again n may count them.
  std::uint64_t refused_whole = 0;
  /// Datagrams of which nothing was read, of all streams together, since the daemon began.
  std::uint64_t dropped_datagrams = 0;
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
  std::size_t sum_bytes = 0;
  std::size_t sliding_bytes = 0;
  std::size_t window_bytes = 0;  ///< open, under way, and the sorted copy kept for views
  std::size_t dictionary_bytes = 0;
  /// Every answer is; with sliding windows known of values before the first block alone.
  bool exact = true;
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
  virtual AppendResult AppendPacked(std::span<const std::byte> values, const BatchStamp& stamp,
                                    std::vector<Window>& full) = 0;
  virtual AppendResult AppendPairs(std::span<const std::byte> values,
                                   std::span<const std::byte> payloads, const BatchStamp& stamp,
                                   std::vector<Window>& full) = 0;
  virtual AppendResult AppendNumbers(std::span<const double> values, const BatchStamp& stamp,
                                     std::vector<Window>& full) = 0;
  /// `payloads` is empty for a stream without any.
  virtual AppendResult AppendStrings(std::span<const std::string_view> values,
                                     std::span<const std::byte> payloads, const BatchStamp& stamp,
                                     std::vector<Window>& full) = 0;

  /// Takes a window back that was sorted, or of which a digest or the reduced form was made.
  /// Publishes it and every later one that waited for it; nothing if an earlier window is still
  /// missing. `published(weight)` is called for each with its Window::weight(), without the lock.
  virtual void Commit(Window window, const std::function<void(std::uint64_t)>& published) = 0;

  virtual StreamStats Stats() const = 0;
  StreamLosses Losses() const;
  /// See IngestSink::CountRefused.
  void CountRefusedWhole(std::uint64_t values) {
    refused_whole_.fetch_add(values, std::memory_order_relaxed);
  }

  /// Serialized summaries, sliding ones last, after every window under way is published:
  /// equal for equal batches and times. For comparisons; not a public format.
  virtual std::string SerializeSummaries() const = 0;

  /// All of it at one moment, as stream_image.h says: after every batch so far, and no later one.
  /// Waits for the windows under way. The open window's copy, and the dictionary's, are what its
  /// lock is held for; where no window is under way, the bytes of its summaries, too.
  /// Errors: NOT_FOUND if it was deleted.
  virtual absl::StatusOr<std::string> Image() const = 0;
  /// Goes on where the stream was of which these bytes are. REQUIRES: nothing was taken in.
  /// Errors: DATA_LOSS for bytes that are no image of a stream with these settings; the stream is
  /// then of no use.
  virtual absl::Status RestoreImage(std::string_view bytes) = 0;

  /// Gives back memory of the open window that its keys do not use, and of items that nothing holds
  /// any more, if no batch came since the call before. Changes no answer.
  virtual void TrimStorage() = 0;

  /// What its last windows showed of digests without sorting. Written by several threads, and of
  /// two that meet one is lost: it changes what a digest costs, nothing else.
  std::atomic<GridMemory>& grid_memory() { return grid_memory_; }

  /// Under what id the log knows it; 0: there is none. REQUIRES: no other thread knows the stream.
  void set_log_id(std::uint64_t id) { log_id_ = id; }
  /// The same for a new stream, by its record in the log.
  void set_logged(const LoggedStream& logged) {
    log_id_ = logged.id;
    last_logged_ = logged.sequence;
  }
  std::uint64_t log_id() const { return log_id_; }
  /// Its last record in the log since the start; 0: none.
  std::uint64_t last_logged() const {
    const std::lock_guard lock(mutex_);
    return last_logged_;
  }

  /// Keeps a subscription with the stream, or forgets it: for the registry, which sees that a name
  /// is one stream's, and for a replay. The record's sequence number; 0 without a log. Errors:
  /// NOT_FOUND if the stream was deleted, or the subscription is not there; the log's.
  absl::StatusOr<std::uint64_t> Subscribe(std::string_view name, std::string_view request);
  absl::StatusOr<std::uint64_t> Unsubscribe(std::string_view name);
  StreamSubscriptions subscriptions() const;
  std::optional<std::string> FindSubscription(std::string_view name) const;

  /// Calls of TrimStorage since the last batch, whether it was taken in or refused.
  std::uint32_t idle_trims() const;
  /// Counts them from here: nobody could send.
  void RestartIdle();
  /// From now on appends answer NOT_FOUND. Errors: the log's; the stream is then as before.
  absl::Status MarkDeleted();
  /// The same if no batch came between the last so many calls of TrimStorage, nor since. Whether it
  /// was; false also if the log fails.
  bool MarkDeletedIfIdle(std::uint32_t trims);

 protected:
  Stream(std::string name, StreamSettings settings, StreamContext& context)
      : context_(context), name_(std::move(name)), settings_(settings) {}

  absl::Status DeletedStatus() const;
  absl::Status MarkDeletedLocked();  // mutex_ held
  /// That there are as many payloads as the stream's type wants.
  absl::Status CheckPayloads(std::size_t values, std::size_t payload_bytes) const;
  /// The answer to a batch that cannot be taken in for what it holds, `why`, or NOT_FOUND if the
  /// stream was deleted: whoever sends it keeps the stream, all the same. Takes mutex_.
  AppendResult RefuseUnread(absl::Status why);
  /// Tells the log, if there is one, what the stream is about to take in: see stream_log.h. Its id
  /// and type are set here. What the acknowledgement waits for. mutex_ held.
  absl::StatusOr<std::uint64_t> LogBatch(LoggedBatch batch);
  /// True: nothing is to be taken in, and the result says why: deleted, taken in before, or it
  /// cannot be known. mutex_ held.
  bool Answered(const ProducerBatch& from, AppendResult& result);
  /// Of a batch that was taken in. mutex_ held.
  void Remember(const ProducerBatch& from, const AppendResult& result);
  /// Made with the first numbered batch. mutex_ held.
  StreamProducers& Producers();

  StreamContext& context_;
  const std::string name_;
  const StreamSettings settings_;

  mutable std::mutex mutex_;
  // Guarded by mutex_, and in one word: there may be a million streams.
  bool active_ : 1 = true;  // a batch came since TrimStorage, taken in or not; or it is new
  bool deleted_ : 1 = false;
  bool committing_ : 1 = false;        // a thread is inside the summaries
  std::uint32_t idle_trims_ : 29 = 0;  // calls of TrimStorage since the last batch
  // Not guarded; here because it is as small.
  std::atomic<GridMemory> grid_memory_;
  // Guarded by mutex_.
  std::uint64_t refused_ = 0;                   // values refused one by one
  std::unique_ptr<StreamProducers> producers_;  // null: none has sent
  std::uint64_t last_logged_ = 0;               // its last record's number in the log
  std::uint64_t log_id_ = 0;
  std::unique_ptr<StreamSubscriptions> subscriptions_;  // null: none was kept

 private:
  // mutex_ held. Of a record that is not of a batch.
  absl::StatusOr<std::uint64_t> Logged(absl::StatusOr<std::uint64_t> sequence);

  std::atomic<std::uint64_t> refused_whole_ = 0;
};

/// Makes a stream whose key width follows from its type.
std::shared_ptr<Stream> MakeStream(std::string name, StreamSettings settings,
                                   StreamContext& context);

/// Calls function(Key{}) with the key of this type: of 32, 64 or 128 bits.
template <class Function>
decltype(auto) WithKeyOf(ValueType type, Function function) {
  switch (type) {
    case ValueType::kFloat32:
    case ValueType::kUint32:
    case ValueType::kIpv4:
      return function(std::uint32_t{});
    case ValueType::kIpv6:
      return function(Key128{});
    default:
      return function(std::uint64_t{});
  }
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_H_
