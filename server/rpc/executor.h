// A few threads that compute answers, so that gRPC's own threads never wait for a window or sort
// more than a few keys.
#ifndef TIDEMARK_SERVER_RPC_EXECUTOR_H_
#define TIDEMARK_SERVER_RPC_EXECUTOR_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// What a task throws ends that task alone, and is counted in
/// tidemark_query_errors_total{method="executor",code="INTERNAL"}.
/// Thread: Post from any. Stop runs what is queued, then joins; Post answers false from then on.
class Executor {
 public:
  Executor(int threads, std::size_t queue_max, Metrics& metrics);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// False if the queue is full or the executor stopped; `task` is then not kept.
  [[nodiscard]] bool Post(std::function<void()> task);
  void Stop();

 private:
  void Work();

  const std::size_t queue_max_;
  prometheus::Gauge& depth_;
  prometheus::Counter& thrown_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_EXECUTOR_H_
