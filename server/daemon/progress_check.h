// Whether the daemon still does what it is there for, asked again and again: what a watchdog is
// told by.
//
// Looked at: that a thread of ingest takes up work, and that full windows reach their summaries
// while there are some. Not looked at: the log's disk, and peers. What a slow disk or a peer that
// does not read holds up no restart makes better.
#ifndef TIDEMARK_SERVER_DAEMON_PROGRESS_CHECK_H_
#define TIDEMARK_SERVER_DAEMON_PROGRESS_CHECK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/pipeline/pipeline.h"
#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// How far a pipeline is: where keys wait and `published` stays the same, it does not go on.
struct PipelineProgress {
  double pending_keys = 0;      ///< in windows that are full and not summarized
  std::uint64_t published = 0;  ///< windows that reached their summaries since the start
};
/// By the metrics that the pipeline tells, brought up to date as for a scrape: it takes every
/// stream's lock for a moment, so that a stream that is stuck holds it up.
PipelineProgress ProgressOf(Pipeline& pipeline, Metrics& metrics);

/// Thread: one. No call waits but for `progress`.
class ProgressCheck {
 public:
  /// `post` hands a function to the threads of ingest; `progress` is the pipeline's.
  using Post = std::function<void(std::function<void()>)>;
  ProgressCheck(Post post, std::function<PipelineProgress()> progress)
      : post_(std::move(post)), progress_(std::move(progress)) {}

  /// What has not moved since the call before; empty if all has. The first call says nothing.
  std::string Stalled();

 private:
  const Post post_;
  const std::function<PipelineProgress()> progress_;
  // Whether the threads of ingest took up what was posted last; they may do so when this is gone.
  const std::shared_ptr<std::atomic<bool>> answered_ = std::make_shared<std::atomic<bool>>(true);
  PipelineProgress last_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_PROGRESS_CHECK_H_
