// A LogWriter with the thread that steps it.
#ifndef TIDEMARK_SERVER_STORE_LOG_THREAD_H_
#define TIDEMARK_SERVER_STORE_LOG_THREAD_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "server/store/log_writer.h"

namespace tidemark::store {

/// Thread: log() from any; Stop and the destructor from one. Lifetime: files outlives it.
class LogThread {
 public:
  /// See LogWriter's constructor. The thread runs until Stop.
  LogThread(FileSystem& files, LogOptions options, LogEnd end, std::uint64_t new_log_id);
  /// Stop.
  ~LogThread();

  /// Append, Stats and ReleaseThrough are free for all; Step and Close are the thread's.
  LogWriter& log() { return log_; }

  /// Ends the thread, then LogWriter::Close. Nothing is done by a second call, which is OK.
  absl::Status Stop();

 private:
  void Run();
  void Wake();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;  // guarded by mutex_
  bool stop_ = false;   // guarded by mutex_
  LogWriter log_;
  std::thread thread_;
};

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_LOG_THREAD_H_
