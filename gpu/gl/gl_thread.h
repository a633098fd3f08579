// The thread that owns a GL context.
#ifndef TIDEMARK_GPU_GL_GL_THREAD_H_
#define TIDEMARK_GPU_GL_GL_THREAD_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "gpu/egl/headless_context.h"

namespace tidemark::gl {

/// Opens a headless context on a thread of its own and runs tasks there, in the order in which they
/// came. Callers of any thread wait for their task.
///
/// Invariants:
/// 1. The context is current on the thread "tidemark-gl" and nowhere else.
/// 2. At most kQueueMax tasks wait; further callers wait for room.
/// 3. After a task has overrun its limit the driver is taken to be hung: no further task runs, and
///    every Run throws. What the stuck task uses must be owned by the task, for it may outlive its
///    caller.
/// 4. No caller waits for a driver without a limit: neither for the context nor for its end.
class GlThread {
 public:
  static constexpr std::size_t kQueueMax = 4;
  /// What makes the context, on the thread that it is then current on.
  using OpenContext = std::function<std::unique_ptr<egl::HeadlessContext>()>;

  /// Throws egl::EglError when there is no context, or none within half a minute: the slowest
  /// drivers need a few seconds.
  explicit GlThread(bool allow_software);
  /// The same with a context of the caller's making. `open` may outlive a throw.
  GlThread(OpenContext open, std::chrono::milliseconds limit);
  GlThread(const GlThread&) = delete;
  GlThread& operator=(const GlThread&) = delete;
  /// Runs what is queued, then ends the thread and what it keeps. A thread that hangs is left
  /// behind after a second, one that takes its time after ten.
  ~GlThread();

  /// Runs the task and returns when it is done; rethrows what it throws.
  /// Errors: throws GlError when the task has not ended `limit` after it began.
  void Run(std::function<void()> task, std::chrono::milliseconds limit);

  /// Runs the task when its turn comes; nobody waits for it, nor for room in the queue. What it
  /// throws is lost. False: it will not run, since the driver hangs.
  bool Post(std::function<void()> task);

  /// Tells whether a task waits for one that runs; for tasks, which may outlive this.
  std::function<bool()> WaitingProbe() const;

  /// Keeps an object that owns GL objects until the thread ends, and frees it there. Called at most
  /// once.
  void Keep(std::shared_ptr<void> object);

 private:
  struct State;
  static void Loop(const std::shared_ptr<State>& state, const OpenContext& open);
  static void RunTasks(State& state);

  std::shared_ptr<State> state_;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_GL_THREAD_H_
