#include "server/rpc/executor.h"

#include <string>
#include <utility>

#include "server/rpc/try.h"
#include "server/threads/thread_role.h"

namespace tidemark::server {

Executor::Executor(int threads, std::size_t queue_max, Metrics& metrics)
    : queue_max_(queue_max),
      depth_(metrics.QueueDepth("query")),
      thrown_(metrics.QueryErrors("executor", "INTERNAL")) {
  metrics.QueueLimit("query").Set(static_cast<double>(queue_max));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] {
      EnterThreadRole(ThreadRole::kAnswers, "query-" + std::to_string(i));
      Work();
    });
  }
}

Executor::~Executor() { Stop(); }

bool Executor::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(task));
    depth_.Set(static_cast<double>(queue_.size()));
  }
  arrived_.notify_one();
  return true;
}

void Executor::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Executor::Work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      depth_.Set(static_cast<double>(queue_.size()));
    }
    const absl::Status done = Try([&] {
      task();
      return absl::OkStatus();
    });
    if (!done.ok()) thrown_.Increment();
  }
}

}  // namespace tidemark::server
