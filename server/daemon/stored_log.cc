#include "server/daemon/stored_log.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "server/durability/replay.h"
#include "server/store/file_system.h"
#include "server/telemetry/log.h"

namespace tidemark::server {
namespace {

std::uint64_t RandomLogId() {
  std::random_device device;
  std::uint64_t id = 0;
  while (id == 0) id = std::uint64_t{device()} << 32 | device();
  return id;
}

void LogTrouble(const absl::Status& status) {
  if (status.ok()) {
    Log(LogLevel::kInfo, "the log takes batches again");
  } else {
    Log(LogLevel::kError, "batches are refused", {{"error", std::string(status.message())}});
  }
}

}  // namespace

void StoredLog::Stop() {
  if (const absl::Status status = log_->Stop(); !status.ok()) {
    Log(LogLevel::kError, "not all that was taken in is in the log",
        {{"error", std::string(status.message())}});
  }
}

absl::StatusOr<std::optional<StoredLog>> OpenStoredLog(const Config& config, Pipeline& pipeline) {
  const std::string folder = config.daemon.data_dir + "/store";
  if (config.store.durability != "log") {
    std::error_code ignored;
    if (!config.daemon.data_dir.empty() && std::filesystem::exists(folder, ignored)) {
      Log(LogLevel::kWarn, "there is a log, which is not read: store.durability is none",
          {{"folder", folder}});
    }
    return std::nullopt;
  }
  absl::StatusOr<FolderLock> lock = FolderLock::Take(config.daemon.data_dir);
  if (!lock.ok()) return lock.status();
  store::FileSystem& files = store::PosixFileSystem();
  if (absl::Status status = files.MakeFolder(folder); !status.ok()) return status;
  // The folder's own name must outlive a loss of power, too.
  if (absl::Status status = files.SyncFolder(config.daemon.data_dir); !status.ok()) return status;

  const auto begun = std::chrono::steady_clock::now();
  absl::StatusOr<Replayed> replayed = ReplayLog(files, folder, pipeline);
  if (!replayed.ok()) return replayed.status();
  const auto took = std::chrono::steady_clock::now() - begun;
  for (const std::string& note : replayed->end.notes) {
    Log(LogLevel::kWarn, "log", {{"detail", note}});
  }
  Log(LogLevel::kInfo, "log replayed",
      {{"streams", static_cast<std::uint64_t>(pipeline.streams().size())},
       {"batches", replayed->batches},
       {"values", replayed->values},
       {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});

  store::LogOptions options;
  options.folder = folder;
  options.segment_bytes_max = config.store.segment_bytes;
  options.sync_interval = std::chrono::microseconds(config.store.sync_interval_us);
  options.pending_bytes_max = config.store.max_pending_bytes;
  auto log = std::make_unique<DurableLog>(files, std::move(options), std::move(replayed->end),
                                          RandomLogId(), replayed->next_stream_id, LogTrouble);
  pipeline.UseLog(log.get());
  return StoredLog(*std::move(lock), std::move(log));
}

}  // namespace tidemark::server
