// Appends to the log with group commit: any thread appends, one writes and syncs for all.
//
//   Append ──► pending chunks ──Step: write──► segment ──Step: sync──► durable, done(OK)
//                   ▲                             │ error
//                   └──────── kept ◄──────────────┘  done(UNAVAILABLE); Append refuses until a Step
//                                                    has all of them synced in a new segment
//
// Invariants
//   1. A record keeps its sequence number from Append on, and stays in memory until a sync that
//      covered it succeeded. So what a reader finds, whenever the machine stops, is a prefix of
//      what was appended, and holds every record whose done() was called with OK.
//   2. A segment in which a write or a sync failed is never written again. The next one says how
//   many
//      bytes of it count (those that were synced), and begins with the records behind them.
//   3. A segment's header, and of a log that is opened again the records that it takes over from
//      another segment, are synced before it gets its name; the name is synced before it takes
//      more.
//   4. Pending bytes stay below pending_bytes_max plus one record, or plus records that were
//      appended together.
//
// A record whose done() was called with UNAVAILABLE is not lost: it becomes durable when the disk
// recovers, if the process lives so long. Whoever sent it may not be told that it is, and asks
// again; a producer's sequence number tells that it is the same batch.
//
// Thread: Append, Stats, ReleaseThrough from any; Step and Close from one at a time (LogThread is
// one). Nothing here reads a clock or sleeps: time comes in with Step.
// Errors: see Append. Lifetime: files outlives it. Costs: a record is copied once, and summed once
// outside the lock.
#ifndef TIDEMARK_SERVER_STORE_LOG_WRITER_H_
#define TIDEMARK_SERVER_STORE_LOG_WRITER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"
#include "server/store/log_reader.h"

namespace tidemark::store {

struct LogOptions {
  std::string folder;  ///< exists
  /// A segment ends before the record that would make it longer. A reader holds one in memory.
  std::uint64_t segment_bytes_max = std::uint64_t{64} << 20;
  /// From the beginning of one sync to that of the next. A record that comes when none was for so
  /// long is synced at once. 0: one sync after the other, as long as records come.
  std::chrono::microseconds sync_interval{5'000};
  /// Appended and not yet synced. At 2 GB/s a disk has 32 ms to sync these.
  std::size_t pending_bytes_max = std::size_t{64} << 20;
  /// So much is written without waiting for the sync's turn, so that the disk has work.
  std::size_t write_bytes = std::size_t{1} << 20;
  /// After an error, before the next attempt.
  std::chrono::microseconds retry_interval{100'000};
  /// Told, after each sync and each failure, up to which record the log is durable; and whether it
  /// takes records: after a failure that is OK once all that was kept is durable, and an Append in
  /// the call itself is taken. By the thread of Step, without a lock. Cheap, as `Done`; may be
  /// empty.
  std::function<void(std::uint64_t durable_sequence, const absl::Status& status)> progress = {};
};

struct LogStats {
  absl::Status status;  ///< OK, or UNAVAILABLE with the error for which records are refused
  std::uint64_t last_sequence = 0;
  std::uint64_t durable_sequence = 0;
  std::size_t pending_bytes = 0;
  std::size_t segments = 0;
  std::uint64_t bytes_written = 0;  ///< to segments, since the start
  std::uint64_t syncs = 0;          ///< of segments, that succeeded
  std::uint64_t failures = 0;       ///< of writes and syncs
};

class LogWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// OK: the record is durable. UNAVAILABLE: see above. Called once, by the thread of Step, without
  /// a lock, in the order of the records. Cheap: post to your own executor.
  using Done = std::function<void(const absl::Status&)>;

  /// `end`: from ReadLog of the same folder. `new_log_id`: of a log that does not exist yet;
  /// random, not 0. `wake` is called by Append when Step has something to do before the time that
  /// it asked for; may be empty.
  LogWriter(FileSystem& files, LogOptions options, LogEnd end, std::uint64_t new_log_id,
            std::function<void()> wake);
  /// What is pending is not written: Close.
  ~LogWriter();

  /// The record's sequence number. `done` may be empty. The order of the records is that of the
  /// calls. Errors, after which nothing was appended and `done` is not called: UNAVAILABLE (to be
  /// tried again) while the disk fails or pending_bytes_max is reached, INVALID_ARGUMENT for an
  /// entry that contradicts itself or is too large, FAILED_PRECONDITION after Close.
  absl::StatusOr<std::uint64_t> Append(const LogEntry& entry, Done done);

  /// A record for AppendAll, made ready without the log's lock. Errors: INVALID_ARGUMENT, as
  /// Append's.
  absl::StatusOr<UnnumberedRecord> Prepare(const LogEntry& entry) const {
    return EncodeEntry(entry, log_id_);
  }
  /// Records one right after the other: no other record, and no last_sequence of Stats, comes
  /// between. The last one's sequence number. REQUIRES: at least one, all from Prepare. Errors: as
  /// Append's; it is all of them or none.
  absl::StatusOr<std::uint64_t> AppendAll(std::vector<UnnumberedRecord> records, Done done);

  /// Writes, syncs, tries again, removes segments: whatever is due. Returns when there will be more
  /// to do if nothing is appended before: Time::max() for never.
  Time Step(Time now);

  /// Writes and syncs all that is pending, now, and refuses more. Errors: UNAVAILABLE; `done` of
  /// what is not durable was called with it.
  absl::Status Close();

  /// Segments that hold no record above `sequence` are removed by a later Step: a snapshot holds
  /// what they did.
  void ReleaseThrough(std::uint64_t sequence);

  LogStats Stats() const;
  /// As in Stats, at the cost of a load.
  std::size_t pending_bytes() const { return pending_bytes_.load(std::memory_order_relaxed); }

 private:
  // Records one after the other, as they will be in the file.
  struct Chunk {
    std::string bytes;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::vector<Done> done;
  };

  // What both appends do.
  absl::StatusOr<std::uint64_t> AppendRecords(std::span<UnnumberedRecord> records, Done done);
  // With the lock. Whether Step has something to do. If memory is exhausted midway the process
  // ends, and reads the log again: going on would leave a gap in the numbers of records.
  bool KeepRecords(std::span<UnnumberedRecord> records, Done done) noexcept;
  // Of the thread of Step. Not OK: the error; what was synced before it is confirmed.
  absl::Status WritePending(bool sync);
  absl::Status BeginSegment(std::uint64_t first_sequence);
  absl::Status SyncSegment();
  absl::Status WriteMark();
  // Chunks at the front of the queue are durable.
  void Confirm(std::size_t chunks);
  void Fail(const absl::Status& error, Time now);
  // What could not be written is durable: records are taken again, and who waits is told.
  void Recover();
  void AbandonSegment();
  void RemoveReleased();
  // The next chunk to write, up to the record `last`; null if there is none. No Append touches it
  // any more.
  const Chunk* NextChunk(std::uint64_t last);

  FileSystem& files_;
  const LogOptions options_;
  const std::uint64_t log_id_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  // Guarded by mutex_. Chunks in front of the last are never changed.
  std::deque<Chunk> chunks_;
  bool last_chunk_open_ = false;                // may take more records
  std::atomic<std::size_t> pending_bytes_ = 0;  // read without it
  std::size_t unwritten_bytes_ = 0;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t durable_sequence_ = 0;
  std::uint64_t release_through_ = 0;
  absl::Status failed_;
  bool closed_ = false;
  LogStats stats_;

  // Of the thread of Step.
  std::unique_ptr<WritableFile> file_;  // null: the next record begins a segment
  std::uint64_t file_number_ = 0;
  std::uint64_t file_bytes_ = 0;
  // At the front: read from another segment, perhaps confirmed there by a process before this one.
  std::size_t inherited_chunks_ = 0;
  std::size_t written_chunks_ = 0;  // at the front: in file_, not synced
  bool mark_due_ = false;           // records were synced and no mark says so
  LogPosition durable_;
  std::vector<SegmentPlace> segments_;
  std::vector<std::uint64_t> abandoned_;
  std::uint64_t next_number_ = 1;
  Time next_sync_ = Time::min();
  Time next_try_ = Time::min();
};

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_LOG_WRITER_H_
