// Connections kept from gRPC until their first bytes are whole: HTTP/2's preface, or the first
// record of a TLS handshake. What begins otherwise never gets there.
//
// gRPC 1.51 reads and times a connection that has not got so far, and begins a TLS session for it
// (docs/measurements.md: what that costs another client). Here it costs a descriptor, some hundred
// bytes and what it has sent (server/access/opening.h).
#ifndef TIDEMARK_SERVER_DAEMON_FIRST_BYTES_H_
#define TIDEMARK_SERVER_DAEMON_FIRST_BYTES_H_

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "server/access/opening.h"
#include "server/ingest/clocks.h"

namespace tidemark::server {

/// Thread: one at a time, the executor's (a strand).
class FirstBytes {
 public:
  using Take = std::function<void(int fd)>;

  /// `whole` gets a descriptor whose first bytes are there, as it came; or that the kernel or Asio
  /// cannot wait for. `ended` gets one that began otherwise, whose peer has closed before, that
  /// took longer than `timeout` (microseconds), or that is left at EndAll. Each is theirs to close.
  FirstBytes(boost::asio::any_io_executor executor, Opening opening, RecordedTime timeout,
             Take whole, Take ended);
  /// EndAll().
  ~FirstBytes();
  FirstBytes(const FirstBytes&) = delete;
  FirstBytes& operator=(const FirstBytes&) = delete;

  /// A connected TCP socket that does not block. `now`: microseconds, never steps.
  void Add(int fd, RecordedTime now);
  /// Ends those that were added a timeout ago.
  void EndOverdue(RecordedTime now);
  /// Ends all that wait.
  void EndAll();
  /// How many wait.
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting;
  using Place = std::list<std::shared_ptr<Waiting>>::iterator;
  void WaitFor(const std::shared_ptr<Waiting>& waiting);
  /// Takes it out of the list.
  int Release(Waiting& waiting);

  const boost::asio::any_io_executor executor_;
  const Opening opening_;
  const RecordedTime timeout_;
  const Take whole_;
  const Take ended_;
  std::list<std::shared_ptr<Waiting>> waiting_;  // the oldest first
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_FIRST_BYTES_H_
