// What outlives the daemon, in its data folder: loaded at start, written to from then on.
#ifndef TIDEMARK_SERVER_DAEMON_STORED_LOG_H_
#define TIDEMARK_SERVER_DAEMON_STORED_LOG_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/durability/durable_log.h"
#include "server/durability/snapshots.h"
#include "server/pipeline/pipeline.h"
#include "server/store/folder_lock.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// Thread: Stop one; UpdateMetrics any one at a time. Lifetime: until the pipeline is used no more.
class StoredLog {
 public:
  /// `log`: null in mode snapshot.
  StoredLog(store::FolderLock lock, std::unique_ptr<DurableLog> log, Metrics& metrics)
      : lock_(std::move(lock)), metrics_(metrics), log_(std::move(log)) {}

  /// From now on. Call once.
  void TakeSnapshots(const Config& config, Pipeline& pipeline, const LoadedSnapshot& loaded);
  /// Whether Stop takes a snapshot, which is as long as the disk needs: in mode snapshot.
  bool SavesAtStop() const { return snapshots_ && !log_; }
  /// When no source takes anything in any more, and the pipeline still runs. Errors: not all that
  /// was taken in is in the log or in the snapshot; it has been logged.
  absl::Status Stop();
  /// Before a scrape.
  void UpdateMetrics();

 private:
  absl::Status OnSnapshot(const absl::StatusOr<SnapshotReport>& taken);

  store::FolderLock lock_;
  Metrics& metrics_;
  std::unique_ptr<DurableLog> log_;
  store::LogStats told_;  // to the metrics
  std::optional<Snapshots> snapshots_;
};

/// Loads the newest snapshot of <data_dir>/store and replays the log behind it into the pipeline,
/// which has started and is not used yet, and has it written there from now on; null if
/// store.durability is none. `metrics` outlives it.
/// Errors: FAILED_PRECONDITION if another process uses the folder, a later version wrote it, or
/// there is a log in mode snapshot; DATA_LOSS with file, offset, what is lost, and the commands
/// that look at it and repair it; the file system's.
absl::StatusOr<std::unique_ptr<StoredLog>> OpenStoredLog(const Config& config, Pipeline& pipeline,
                                                         Metrics& metrics);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_STORED_LOG_H_
