// Ctrl-C and SIGTERM as something that a command can wait for, instead of the end of the process.
#ifndef TIDEMARK_CLIENT_TOOL_INTERRUPT_H_
#define TIDEMARK_CLIENT_TOOL_INTERRUPT_H_

#include <csignal>
#include <functional>
#include <mutex>
#include <thread>

namespace tidemark::tool {

/// While it lives, SIGINT and SIGTERM are blocked in the thread that made it and in those made
/// later (so make it before the client), and a thread of its own takes them.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Readable from the first signal on: for poll.
  int fd() const { return raised_fd_; }
  bool raised() const;

  /// Called from its thread with 1, 2, ... for each signal; at once for those that came before.
  /// Returns when no earlier action runs any more; an empty function takes the action away.
  void SetAction(std::function<void(int)> action);

 private:
  void Run();

  sigset_t signals_;
  sigset_t before_;
  int signal_fd_ = -1;
  int raised_fd_ = -1;
  int stop_fd_ = -1;
  mutable std::mutex mutex_;
  std::function<void(int)> action_;  // mutex_
  int count_ = 0;                    // mutex_
  std::thread thread_;
};

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_INTERRUPT_H_
