// The bound on what the dictionaries of all string streams hold together.
//
// Nobody waits here: text leaves when its stream's windows are summarized and no summary keeps it,
// which for an open window may never happen. A batch that does not fit is refused instead. What
// waits in queues is bounded before that by the FlowGate, which counts it and slows the senders.
#ifndef TIDEMARK_SERVER_WINDOW_TEXT_BUDGET_H_
#define TIDEMARK_SERVER_WINDOW_TEXT_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <limits>

namespace tidemark::server {

/// Thread: any.
class TextBudget {
 public:
  /// No limit.
  TextBudget() = default;
  explicit TextBudget(std::size_t limit_bytes) : limit_(limit_bytes) {}
  TextBudget(const TextBudget&) = delete;
  TextBudget& operator=(const TextBudget&) = delete;

  std::size_t limit() const { return limit_; }
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }

  /// Takes `bytes` if they fit, else nothing. Nothing always fits.
  bool TryTake(std::size_t bytes) {
    if (bytes == 0) return true;
    std::size_t held = held_.load(std::memory_order_relaxed);
    do {
      if (held > limit_ || bytes > limit_ - held) return false;
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  /// What is held was `before` and is `after`, whether that fits or not.
  void Change(std::size_t before, std::size_t after) {
    held_.fetch_add(after - before, std::memory_order_relaxed);  // modulo 2^64 for a smaller after
  }

 private:
  const std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::atomic<std::size_t> held_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_TEXT_BUDGET_H_
