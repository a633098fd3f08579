// All streams by name, and the subscriptions that are kept with them.
#ifndef TIDEMARK_SERVER_WINDOW_STREAM_REGISTRY_H_
#define TIDEMARK_SERVER_WINDOW_STREAM_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "server/window/stream.h"
#include "server/window/stream_state.h"

namespace tidemark::server {

/// INVALID_ARGUMENT for settings that contradict themselves or lie out of range.
absl::Status CheckSettings(const StreamSettings& settings);

struct RegistryLimits {
  std::size_t streams_max = 100'000;
  std::size_t name_bytes_max = 512;
  std::size_t subscriptions_max = 1000;
};

/// A subscription that two streams keep under one name.
struct KeptTwice {
  std::string name;
  StreamHandle earlier;
  StreamHandle later;
};

/// Thread: any. Readers do not wait for one another.
class StreamRegistry {
 public:
  StreamRegistry(StreamSettings defaults, RegistryLimits limits, StreamContext& context)
      : context_(context), defaults_(defaults), limits_(limits) {}

  const RegistryLimits& limits() const { return limits_; }
  StreamSettings defaults() const;
  void set_defaults(StreamSettings defaults);

  /// Creates the stream, or finds it if it exists with the same settings. Errors: INVALID_ARGUMENT
  /// (name, ε outside [1e-6, 0.5]), ALREADY_EXISTS with other settings, RESOURCE_EXHAUSTED (too
  /// many streams, too much memory), the log's.
  absl::StatusOr<StreamHandle> Create(std::string_view name, StreamSettings settings);
  /// Creates a stream that begins with a state. Errors: as Create's, ALREADY_EXISTS whatever the
  /// settings; those of KeyedStream::Restore. Where there is a log, the state is in it before
  /// anyone finds the stream, and durable when the stream's last_logged() is.
  absl::StatusOr<StreamHandle> Restore(std::string_view name, StreamState state);

  /// Creates a stream that goes on where another one was (Stream::Image), under this id of the log.
  /// The log is not told, and the subscriptions in the image have no names yet: NameSubscriptions.
  /// Errors: as Create; DATA_LOSS for bytes that are no image of one.
  absl::StatusOr<StreamHandle> RestoreImage(std::string_view name, const StreamSettings& settings,
                                            std::uint64_t log_id, std::string_view image);
  /// Names the subscriptions that the streams keep, anew: when streams were restored and what the
  /// log says of them is done, which Stream::Subscribe and Unsubscribe do. Until then nothing else
  /// asks for names: images are of different moments, so that two may have one. Limits are not
  /// looked at. `streams`: all that there are. Of a name that two keep, the later one's counts; all
  /// such are returned. REQUIRES: nothing else uses the subscriptions.
  std::vector<KeptTwice> NameSubscriptions(const std::vector<StreamHandle>& streams);
  /// Keeps a subscription, or finds it if it is kept already and the same. What its answer waits
  /// for, as WhenDurable takes it. Errors: NOT_FOUND for its stream, ALREADY_EXISTS for another
  /// one's name, INVALID_ARGUMENT for none that is a name, RESOURCE_EXHAUSTED, the log's.
  absl::StatusOr<std::uint64_t> Subscribe(const Subscription& subscription);
  /// NOT_FOUND names the subscription: one of another stream than `stream` is none; empty: of any.
  /// Unsubscribe's errors also: the log's. It answers as Subscribe.
  absl::StatusOr<std::uint64_t> Unsubscribe(std::string_view name, std::string_view stream = {});
  absl::StatusOr<Subscription> FindSubscription(std::string_view name) const;
  /// As List.
  std::vector<Subscription> ListSubscriptions(std::string_view after, std::string_view prefix,
                                              std::size_t limit) const;
  std::size_t subscriptions() const;

  /// See IngestSink::Open.
  absl::StatusOr<StreamHandle> FindOrCreate(std::string_view name, std::optional<ElementType> type);
  /// NOT_FOUND names the stream. Delete's errors also: the log's.
  absl::StatusOr<StreamHandle> Find(std::string_view name) const;
  absl::Status Delete(std::string_view name);
  /// Deletes every stream that got no batch between the last so many calls of TrimStorage, nor
  /// since; returns their number.
  std::size_t DeleteIdle(std::uint32_t trims);

  /// Up to `limit` streams in order of name, those after `after` (empty: from the first) that begin
  /// with `prefix`.
  std::vector<StreamHandle> List(std::string_view after, std::string_view prefix,
                                 std::size_t limit) const;
  std::vector<StreamHandle> All() const;
  std::size_t size() const;
  /// Streams deleted so far.
  std::uint64_t deletions() const { return deletions_.load(std::memory_order_relaxed); }

 private:
  // mutex_ held, for reading at least.
  absl::Status CheckNew(std::string_view name, const StreamSettings& settings) const;
  absl::Status CheckAbsent(std::string_view name) const;
  absl::Status CheckSubscription(std::string_view name, std::string_view request) const;
  // mutex_ held for writing.
  void ForgetSubscriptions(const Stream& stream);
  absl::StatusOr<StreamHandle> Insert(std::string_view name, const StreamSettings& settings);

  StreamContext& context_;
  mutable std::shared_mutex mutex_;
  StreamSettings defaults_;
  const RegistryLimits limits_;
  std::atomic<std::uint64_t> deletions_{0};
  absl::btree_map<std::string_view, StreamHandle> streams_;  // the key is the stream's own name
  // The stream that each is of, by its name.
  std::map<std::string, StreamHandle, std::less<>> subscriptions_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_REGISTRY_H_
