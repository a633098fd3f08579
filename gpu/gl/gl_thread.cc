#include "gpu/gl/gl_thread.h"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

// What a hung driver gets to come back before its thread is left behind.
constexpr std::chrono::seconds kHungGrace{1};

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
  bool busy = false;  // a task is running
  std::shared_ptr<void> kept;
  std::thread thread;  // touched by the owner of GlThread alone
};

void GlThread::Loop(const std::shared_ptr<State>& state, bool allow_software) {
  pthread_setname_np(pthread_self(), "tidemark-gl");
  std::unique_lock lock(state->mutex);
  std::unique_ptr<egl::HeadlessContext> context;  // outlives all that uses GL below
  try {
    lock.unlock();
    context = std::make_unique<egl::HeadlessContext>(egl::HeadlessContext::Open(allow_software));
    lock.lock();
  } catch (...) {
    lock.lock();
    state->start_error = std::current_exception();
  }
  state->started = true;
  state->changed.notify_all();
  if (context == nullptr) return;

  while (true) {
    state->changed.wait(lock, [&] { return state->stop || !state->queue.empty(); });
    if (state->queue.empty()) break;  // stopped
    const std::shared_ptr<Job> job = std::move(state->queue.front());
    state->queue.pop_front();
    job->running = true;
    state->busy = true;
    state->changed.notify_all();
    lock.unlock();
    std::exception_ptr error;
    try {
      job->task();
    } catch (...) {
      error = std::current_exception();
    }
    job->task = nullptr;  // what it owns is freed here, on the context's thread
    lock.lock();
    job->error = error;
    job->done = true;
    state->busy = false;
    state->changed.notify_all();
  }
  const std::shared_ptr<void> kept = std::move(state->kept);
  lock.unlock();
  // `kept` is freed before `context`, which is still current.
}

GlThread::GlThread(bool allow_software) : state_(std::make_shared<State>()) {
  state_->thread = std::thread([state = state_, allow_software] { Loop(state, allow_software); });
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->started; });
  if (state_->start_error == nullptr) return;
  lock.unlock();
  state_->thread.join();
  std::rethrow_exception(state_->start_error);
}

GlThread::~GlThread() {
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  if (state_->hung && !state_->changed.wait_for(lock, kHungGrace, [&] { return !state_->busy; })) {
    state_->thread.detach();
    return;
  }
  lock.unlock();
  state_->thread.join();
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
