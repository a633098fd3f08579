// The store's log as streams and sources see it: what streams take in becomes records, and those
// who wait are told how far the log is, once for each sync.
#ifndef TIDEMARK_SERVER_DURABILITY_DURABLE_LOG_H_
#define TIDEMARK_SERVER_DURABILITY_DURABLE_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/store/file_system.h"
#include "server/store/log_reader.h"
#include "server/store/log_thread.h"
#include "server/store/log_writer.h"
#include "server/window/call_back.h"
#include "server/window/stream_log.h"

namespace tidemark::server {

/// An image is cut into records of so many bytes, or of a segment if that is less: a reader holds a
/// segment in memory.
inline constexpr std::size_t kStatePartBytes = std::size_t{1} << 20;
/// Of an image: twice what an export may have (256 MiB).
inline constexpr std::size_t kStateBytesMax = std::size_t{512} << 20;

/// Thread: any; Stop and the destructor one, when no stream takes anything in any more. Lifetime:
/// files outlives it.
/// Costs: a batch is copied once and summed once, under its stream's lock. An image is copied once
/// and summed once without a lock, but for its last kStatePartBytes.
class DurableLog final : public StreamLog {
 public:
  /// Told when the log begins to refuse, and with OK when it takes records again; by the log's
  /// thread. May be empty.
  using Trouble = std::function<void(const absl::Status&)>;

  /// `end` and `next_stream_id`: from ReplayLog. `new_log_id`: random, not 0.
  DurableLog(store::FileSystem& files, store::LogOptions options, store::LogEnd end,
             std::uint64_t new_log_id, std::uint64_t next_stream_id, Trouble trouble);
  ~DurableLog() override;

  absl::StatusOr<LoggedStream> Created(std::string_view name,
                                       const StreamSettings& settings) override;
  absl::StatusOr<std::unique_ptr<PreparedState>> Prepare(std::string_view image) override;
  absl::StatusOr<LoggedStream> CreatedFrom(std::string_view name, const StreamSettings& settings,
                                           std::unique_ptr<PreparedState> state) override;
  absl::Status Deleted(std::uint64_t stream_id) override;
  absl::StatusOr<std::uint64_t> Batch(const LoggedBatch& batch) override;
  absl::StatusOr<std::uint64_t> Subscribed(std::uint64_t stream_id, std::string_view name,
                                           std::string_view request) override;
  absl::StatusOr<std::uint64_t> Unsubscribed(std::uint64_t stream_id,
                                             std::string_view name) override;
  /// The next stream's id.
  std::uint64_t next_stream_id() {
    const std::lock_guard lock(mutex_);
    return next_stream_id_;
  }
  /// A snapshot holds what the records up to this one did.
  void ReleaseThrough(std::uint64_t sequence) { thread_.log().ReleaseThrough(sequence); }
  bool failing() const override { return !thread_.log().Stats().status.ok(); }
  /// With half of pending_bytes_max: the other half is for the batches of sources that read on
  /// before they ask.
  bool behind() const override {
    return thread_.log().pending_bytes() >= behind_at_ && takes_.load(std::memory_order_relaxed);
  }
  /// Caught up: three quarters of that are left.
  void WhenCaughtUp(std::function<void()> resume) override;
  std::uint64_t last_sequence() const override { return thread_.log().Stats().last_sequence; }
  void WhenDurable(std::uint64_t sequence, IngestSink::Durable done) override;

  /// Those that are kept to be told or resumed: while the disk hangs they may come and go.
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size() + paused_.size();
  }

  store::LogStats Stats() const { return thread_.log().Stats(); }

  /// Syncs all that is pending, tells those who wait, and refuses more. Errors: UNAVAILABLE.
  absl::Status Stop();

 private:
  absl::StatusOr<std::uint64_t> Append(const store::LogEntry& entry);
  std::uint64_t NextStreamId();
  void Progress(std::uint64_t durable, const absl::Status& status);
  void CallPaused();

  const Trouble trouble_;
  const std::size_t behind_at_;     // bytes
  std::atomic<bool> takes_ = true;  // neither fails nor has ended
  const std::size_t part_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::multimap<std::uint64_t, IngestSink::Durable> waiting_;  // by the sequence waited for
  GoneAskers gone_waiting_;
  std::vector<std::function<void()>> paused_;  // WhenCaughtUp
  GoneAskers gone_paused_;
  std::uint64_t durable_;
  absl::Status status_;
  std::uint64_t next_stream_id_;

  mutable store::LogThread thread_;  // last: it calls Progress from its first moment on
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DURABILITY_DURABLE_LOG_H_
