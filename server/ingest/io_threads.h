// The threads that run the handlers of sockets.
#ifndef TIDEMARK_SERVER_INGEST_IO_THREADS_H_
#define TIDEMARK_SERVER_INGEST_IO_THREADS_H_

#include <memory>
#include <string_view>

#include "server/threads/thread_role.h"

namespace boost::asio {
class io_context;
}

namespace tidemark::server {

/// An io_context and the threads that run it, named NAME-0, NAME-1, ... (at most 15 characters, as
/// Linux allows).
///
/// Lifetime: outlives every server on it, and every callback that the sink still owes them. Stop
/// order: servers, sink, IoThreads.
class IoThreads {
 public:
  /// REQUIRES: count >= 1.
  IoThreads(int count, std::string_view name, ThreadRole role = ThreadRole::kIngest);
  /// Stops.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  boost::asio::io_context& io();
  /// Ends the threads; handlers that have not run are dropped. May be called again.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_IO_THREADS_H_
