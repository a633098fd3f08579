#include "gpu/gl/gl_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "gpu/egl/egl_error.h"
#include "gpu/egl/headless_context.h"
#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

constexpr std::chrono::seconds kOpenLimit{30};
// What a hung driver gets to come back before its thread is left behind, and what one that works
// gets to end its last tasks and its context.
constexpr std::chrono::seconds kHungGrace{1};
constexpr std::chrono::seconds kEndGrace{10};

struct Job {
  std::function<void()> task;
  bool running = false;
  bool done = false;
  std::exception_ptr error;
};

}  // namespace

// Shared with the thread, so that a hung thread never touches freed memory. All members but
// `thread` are guarded by `mutex`.
struct GlThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;
  bool started = false;
  std::exception_ptr start_error;
  bool stop = false;
  bool hung = false;
  bool ended = false;  // the thread touches GL no more
  std::shared_ptr<void> kept;
  std::thread thread;  // touched by the owner of GlThread alone
};

void GlThread::Loop(const std::shared_ptr<State>& state, const OpenContext& open) {
  pthread_setname_np(pthread_self(), "tidemark-gl");
  std::unique_ptr<egl::HeadlessContext> context;
  std::exception_ptr error;
  try {
    context = open();
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(state->mutex);
    state->start_error = error;
    state->started = true;
    state->changed.notify_all();
  }
  if (context != nullptr) RunTasks(*state);
  context.reset();
  const std::lock_guard lock(state->mutex);
  state->ended = true;
  state->changed.notify_all();
}

// Returns when it has been told to stop, with `kept` freed.
void GlThread::RunTasks(State& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return state.stop || !state.queue.empty(); });
    if (state.queue.empty()) break;  // stopped
    const std::shared_ptr<Job> job = std::move(state.queue.front());
    state.queue.pop_front();
    const bool runs = !state.hung;
    job->running = runs;
    state.changed.notify_all();
    lock.unlock();
    std::exception_ptr error;
    try {
      if (runs) job->task();
    } catch (...) {
      error = std::current_exception();
    }
    job->task = nullptr;  // what it owns is freed here, on the context's thread
    lock.lock();
    job->error = error;
    job->done = runs;
    state.changed.notify_all();
  }
  std::shared_ptr<void> kept = std::move(state.kept);
  lock.unlock();
  kept.reset();
}

GlThread::GlThread(bool allow_software)
    : GlThread(
          [allow_software] {
            return std::make_unique<egl::HeadlessContext>(
                egl::HeadlessContext::Open(allow_software));
          },
          kOpenLimit) {}

GlThread::GlThread(OpenContext open, std::chrono::milliseconds limit)
    : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_, open = std::move(open)] { Loop(state, open); });
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, limit, [&] { return state_->started; })) {
    state_->stop = true;  // whenever the driver comes back
    state_->thread.detach();
    throw egl::EglError("opening a GL context did not end within " + std::to_string(limit.count()) +
                        " ms (the GPU's driver hangs)");
  }
  if (state_->start_error == nullptr) return;
  lock.unlock();
  state_->thread.join();
  std::rethrow_exception(state_->start_error);
}

GlThread::~GlThread() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  const auto grace = state_->hung ? kHungGrace : kEndGrace;
  if (!state_->changed.wait_for(lock, grace, [&] { return state_->ended; })) {
    state_->thread.detach();
    return;
  }
  lock.unlock();
  state_->thread.join();
}

bool GlThread::Post(std::function<void()> task) {
  const auto job = std::make_shared<Job>();
  job->task = std::move(task);
  const std::lock_guard lock(state_->mutex);
  if (state_->hung) return false;
  state_->queue.push_back(job);
  state_->changed.notify_all();
  return true;
}

std::function<bool()> GlThread::WaitingProbe() const {
  return [state = state_] {
    const std::lock_guard lock(state->mutex);
    return !state->queue.empty();
  };
}

void GlThread::Run(std::function<void()> task, std::chrono::milliseconds limit) {
  const auto job = std::make_shared<Job>();
  job->task = std::move(task);
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->hung || state_->queue.size() < kQueueMax; });
  if (!state_->hung) {
    state_->queue.push_back(job);
    state_->changed.notify_all();
    // Those ahead in the queue are watched by their own callers.
    state_->changed.wait(lock, [&] { return job->running || job->done || state_->hung; });
    state_->changed.wait_for(lock, limit, [&] { return job->done || state_->hung; });
  }
  if (!job->done) {
    // The queue is left alone: a task is freed on the context's thread or not at all.
    const bool first = !std::exchange(state_->hung, true);
    state_->changed.notify_all();
    throw GlError(first ? "the GL driver did not answer within " + std::to_string(limit.count()) +
                              " ms (the GPU hangs)"
                        : std::string("the GL driver did not answer earlier (the GPU hangs)"));
  }
  if (job->error != nullptr) std::rethrow_exception(job->error);
}

void GlThread::Keep(std::shared_ptr<void> object) {
  const std::lock_guard lock(state_->mutex);
  state_->kept = std::move(object);
}

}  // namespace tidemark::gl
