// The daemon's log in its data folder: replayed at start, written to from then on.
#ifndef TIDEMARK_SERVER_DAEMON_STORED_LOG_H_
#define TIDEMARK_SERVER_DAEMON_STORED_LOG_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/durability/durable_log.h"
#include "server/durability/folder_lock.h"
#include "server/pipeline/pipeline.h"

namespace tidemark::server {

/// Thread: one. Lifetime: until the pipeline is used no more.
class StoredLog {
 public:
  StoredLog(FolderLock lock, std::unique_ptr<DurableLog> log)
      : lock_(std::move(lock)), log_(std::move(log)) {}

  /// When no source takes anything in any more. What fails is logged.
  void Stop();

 private:
  FolderLock lock_;
  std::unique_ptr<DurableLog> log_;
};

/// Replays <data_dir>/store into the pipeline, which has started and is not used yet, and has it
/// log there; nullopt if store.durability is none.
/// Errors: FAILED_PRECONDITION if another process uses the folder, or a later version wrote it;
/// DATA_LOSS with file, offset and what is lost; the file system's.
absl::StatusOr<std::optional<StoredLog>> OpenStoredLog(const Config& config, Pipeline& pipeline);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_STORED_LOG_H_
