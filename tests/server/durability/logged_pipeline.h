// A pipeline that logs to a disk in memory.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_LOGGED_PIPELINE_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_LOGGED_PIPELINE_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/durability/durable_log.h"
#include "server/durability/replay.h"
#include "server/durability/snapshots.h"
#include "tests/support/fake_disk.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {

inline constexpr char kLogFolder[] = "/log";

/// Small windows, so that few values make many.
inline PipelineOptions SmallWindows() {
  PipelineOptions options;
  options.window_limits = {.min = 16, .max = 256};
  return options;
}

/// Loads and replays what the disk has, then logs to it. REQUIRES: the log can be replayed.
class LoggedPipeline {
 public:
  explicit LoggedPipeline(store::FileSystem& disk, PipelineOptions options = SmallWindows(),
                          DurableLog::Trouble trouble = {})
      : held_(options) {
    const LoadedSnapshot snapshot = LoadSnapshot(disk, kLogFolder, held_.pipeline).value();
    Replayed replayed = ReplayLog(disk, kLogFolder, held_.pipeline, snapshot).value();
    batches_ = replayed.batches;
    store::LogOptions log_options;
    log_options.folder = kLogFolder;
    log_options.segment_bytes_max = 32 << 10;  // several
    log_options.pending_bytes_max = 1 << 20;
    log_options.sync_interval = std::chrono::microseconds(200);
    log_options.retry_interval = std::chrono::microseconds(200);
    log_.emplace(disk, log_options, std::move(replayed.end), 0x7469646d61726bu,
                 replayed.next_stream_id, std::move(trouble));
    held_.pipeline.UseLog(&*log_);
  }
  ~LoggedPipeline() { held_.pipeline.Stop(); }

  Pipeline& pipeline() { return held_.pipeline; }
  TestPipeline& held() { return held_; }
  DurableLog& log() { return *log_; }
  std::uint64_t replayed_batches() const { return batches_; }

 private:
  std::optional<DurableLog> log_;
  TestPipeline held_;
  std::uint64_t batches_ = 0;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_LOGGED_PIPELINE_H_
