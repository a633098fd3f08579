#include "server/store/log_thread.h"

#include <chrono>
#include <utility>

namespace tidemark::store {

LogThread::LogThread(FileSystem& files, LogOptions options, LogEnd end, std::uint64_t new_log_id)
    : log_(files, std::move(options), std::move(end), new_log_id, [this] { Wake(); }),
      thread_([this] { Run(); }) {}

LogThread::~LogThread() { static_cast<void>(Stop()); }

void LogThread::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void LogThread::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    woken_ = false;
    lock.unlock();
    const LogWriter::Time next = log_.Step(std::chrono::steady_clock::now());
    lock.lock();
    const auto wanted = [this] { return woken_ || stop_; };
    if (next == LogWriter::Time::max()) {
      changed_.wait(lock, wanted);
    } else {
      changed_.wait_until(lock, next, wanted);
    }
  }
}

absl::Status LogThread::Stop() {
  if (!thread_.joinable()) return absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  return log_.Close();
}

}  // namespace tidemark::store
