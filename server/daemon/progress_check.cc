#include "server/daemon/progress_check.h"

#include <utility>

namespace tidemark::server {

PipelineProgress ProgressOf(Pipeline& pipeline, Metrics& metrics) {
  pipeline.UpdateGauges();
  return {.pending_keys = metrics.QueueDepth("sort_keys").Value(),
          .published = metrics.merge_seconds().Collect().histogram.sample_count};
}

std::string ProgressCheck::Stalled() {
  std::string stalled;
  if (answered_->exchange(false)) {
    post_([answered = answered_] { answered->store(true); });
  } else {
    stalled = "the threads of ingest take up nothing";
  }
  const PipelineProgress before = std::exchange(last_, progress_());
  if (before.pending_keys > 0 && last_.pending_keys > 0 && before.published == last_.published) {
    if (!stalled.empty()) stalled += ", and ";
    stalled += "full windows wait, and none was summarized";
  }
  return stalled;
}

}  // namespace tidemark::server
