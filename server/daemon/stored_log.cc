#include "server/daemon/stored_log.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/durability/replay.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"
#include "server/store/store_check.h"
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

std::int64_t Milliseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

// What the folder holds, into the pipeline.
struct Loaded {
  LoadedSnapshot snapshot;
  Replayed log;
};
// `has_log`: there are segments; else `with_log` begins a log.
absl::StatusOr<Loaded> Load(store::FileSystem& files, const std::string& folder, bool has_log,
                            bool with_log, Pipeline& pipeline) {
  const auto begun = std::chrono::steady_clock::now();
  Loaded loaded;
  absl::StatusOr<LoadedSnapshot> snapshot =
      has_log ? LoadSnapshot(files, folder, pipeline) : LoadSnapshotAlone(files, folder, pipeline);
  if (!snapshot.ok()) return snapshot.status();
  loaded.snapshot = *std::move(snapshot);
  if (with_log) {
    absl::StatusOr<Replayed> replayed = ReplayLog(files, folder, pipeline, loaded.snapshot);
    if (!replayed.ok()) return replayed.status();
    loaded.log = *std::move(replayed);
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  for (const std::string& note : loaded.snapshot.notes) {
    Log(LogLevel::kWarn, "snapshot", {{"detail", note}});
  }
  for (const std::string& note : loaded.log.end.notes) {
    Log(LogLevel::kWarn, "log", {{"detail", note}});
  }
  Log(LogLevel::kInfo, "streams loaded",
      {{"snapshot", loaded.snapshot.header ? loaded.snapshot.header->number : std::uint64_t{0}},
       {"streams", static_cast<std::uint64_t>(pipeline.streams().size())},
       {"batches", loaded.log.batches},
       {"values", loaded.log.values},
       {"ms", Milliseconds(took)}});
  return loaded;
}

// What to do about a folder that is damaged. Not about records that are whole and contradict one
// another: no repair finds fault with them.
absl::Status WithCommands(const absl::Status& status, store::FileSystem& files,
                          const std::string& data_dir) {
  if (!absl::IsDataLoss(status)) return status;
  const absl::StatusOr<store::StoreReport> report = store::VerifyStore(files, data_dir + "/store");
  if (!report.ok() || report->ok()) return status;
  return absl::Status(status.code(), std::string(status.message()) + "; \"tidemark store verify " +
                                         data_dir +
                                         "\" says what is whole, \"tidemark store repair " +
                                         data_dir + "\" makes it one to start from");
}

absl::StatusOr<bool> HasLog(store::FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return store::SegmentNumber(name).has_value();
  });
}

}  // namespace

void StoredLog::TakeSnapshots(const Config& config, Pipeline& pipeline,
                              const LoadedSnapshot& loaded) {
  snapshots_.emplace(store::PosixFileSystem(), config.daemon.data_dir + "/store", pipeline,
                     log_.get(), loaded.header, loaded.highest_number);
  snapshots_->Run(
      std::chrono::seconds(config.store.snapshot_interval_s),
      [this](const absl::StatusOr<SnapshotReport>& taken) { OnSnapshot(taken).IgnoreError(); });
}

absl::Status StoredLog::OnSnapshot(const absl::StatusOr<SnapshotReport>& taken) {
  metrics_.snapshots(taken.ok()).Increment();
  if (!taken.ok()) {
    Log(LogLevel::kError, "no snapshot", {{"error", std::string(taken.status().message())}});
    return taken.status();
  }
  metrics_.snapshot_timestamp().Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  metrics_.snapshot_seconds().Set(std::chrono::duration<double>(taken->took).count());
  metrics_.snapshot_bytes().Set(static_cast<double>(taken->bytes));
  Log(LogLevel::kInfo, "snapshot",
      {{"number", taken->number},
       {"streams", taken->streams},
       {"bytes", taken->bytes},
       {"ms", Milliseconds(taken->took)}});
  return absl::OkStatus();
}

void StoredLog::UpdateMetrics() {
  if (!log_) return;
  const store::LogStats now = log_->Stats();
  const store::LogStats before = std::exchange(told_, now);
  const auto more = [](std::uint64_t after, std::uint64_t earlier) {
    return static_cast<double>(after - earlier);
  };
  metrics_.log_pending_bytes().Set(static_cast<double>(now.pending_bytes));
  metrics_.log_segments().Set(static_cast<double>(now.segments));
  metrics_.log_bytes().Increment(more(now.bytes_written, before.bytes_written));
  metrics_.log_syncs().Increment(more(now.syncs, before.syncs));
  metrics_.log_failures().Increment(more(now.failures, before.failures));
}

absl::Status StoredLog::Stop() {
  if (snapshots_) {
    snapshots_->Stop();
    if (!log_) return OnSnapshot(snapshots_->Take());
  }
  if (!log_) return absl::OkStatus();

  const absl::Status status = log_->Stop();
  if (!status.ok()) {
    Log(LogLevel::kError, "not all that was taken in is in the log",
        {{"error", std::string(status.message())}});
  }
  return status;
}

absl::StatusOr<std::unique_ptr<StoredLog>> OpenStoredLog(const Config& config, Pipeline& pipeline,
                                                         Metrics& metrics) {
  const std::string folder = config.daemon.data_dir + "/store";
  const bool with_log = config.store.durability == "log";
  if (config.store.durability == "none") {
    std::error_code ignored;
    if (!config.daemon.data_dir.empty() && std::filesystem::exists(folder, ignored)) {
      Log(LogLevel::kWarn, "there is a store, which is not read: store.durability is none",
          {{"folder", folder}});
    }
    return nullptr;
  }
  absl::StatusOr<store::FolderLock> lock = store::FolderLock::Take(config.daemon.data_dir);
  if (!lock.ok()) return lock.status();
  store::FileSystem& files = store::PosixFileSystem();
  if (absl::Status status = files.MakeFolder(folder); !status.ok()) return status;
  // The folder's own name must outlive a loss of power, too.
  if (absl::Status status = files.SyncFolder(config.daemon.data_dir); !status.ok()) return status;
  const absl::StatusOr<bool> has_log = HasLog(files, folder);
  if (!has_log.ok()) return has_log.status();
  if (*has_log && !with_log) {
    return absl::FailedPreconditionError(
        folder +
        " holds a log, whose batches a snapshot alone would lose; expected "
        "store.durability log, or another daemon.data_dir");
  }
  absl::StatusOr<Loaded> loaded = Load(files, folder, *has_log, with_log, pipeline);
  if (!loaded.ok()) return WithCommands(loaded.status(), files, config.daemon.data_dir);
  std::unique_ptr<DurableLog> log;
  if (with_log) {
    store::LogOptions options;
    options.folder = folder;
    options.segment_bytes_max = config.store.segment_bytes;
    options.sync_interval = std::chrono::microseconds(config.store.sync_interval_us);
    options.pending_bytes_max = config.store.max_pending_bytes;
    log = std::make_unique<DurableLog>(files, std::move(options), std::move(loaded->log.end),
                                       RandomLogId(), loaded->log.next_stream_id, LogTrouble);
    pipeline.UseLog(log.get());
  }
  auto stored = std::make_unique<StoredLog>(*std::move(lock), std::move(log), metrics);
  stored->TakeSnapshots(config, pipeline, loaded->snapshot);
  return stored;
}

}  // namespace tidemark::server
