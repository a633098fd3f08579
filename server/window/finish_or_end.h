// From the record of a change in the log until the change itself is made: all of it, or the process
// ends and reads the log again. Half of it, with the log saying all, would be answered from, and a
// batch that is sent again taken in twice.
#ifndef TIDEMARK_SERVER_WINDOW_FINISH_OR_END_H_
#define TIDEMARK_SERVER_WINDOW_FINISH_OR_END_H_

#include <exception>

namespace tidemark::server {

/// Ends the process, as an exception that nobody catches does, if one leaves the block that it is
/// declared in (std::bad_alloc: gRPC would swallow it). Thread: one.
class FinishOrEnd {
 public:
  FinishOrEnd() = default;
  FinishOrEnd(const FinishOrEnd&) = delete;
  FinishOrEnd& operator=(const FinishOrEnd&) = delete;
  ~FinishOrEnd() {
    if (std::uncaught_exceptions() > before_) std::terminate();
  }

 private:
  const int before_ = std::uncaught_exceptions();
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_FINISH_OR_END_H_
