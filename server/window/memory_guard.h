// The limit of what the process may hold: above it no stream is made.
#ifndef TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_
#define TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace tidemark::server {

/// Refuses what is new and lets what is there go on: each stream's summaries are bounded by their
/// formula, and evicting one would lose values that were acknowledged.
///
/// The process is asked now and then, not each time: so it may hold what kAsks - 1 new streams take
/// more than the limit, and what existing ones grow by. Thread: any.
class MemoryGuard {
 public:
  /// New streams from one look to the next. A quiet one takes 2 KB, and asking costs microseconds.
  static constexpr std::uint32_t kAsks = 64;

  /// `used`: bytes that the process holds; called from any thread. A limit of 0: there is none.
  MemoryGuard() = default;
  MemoryGuard(std::uint64_t limit, std::function<std::uint64_t()> used)
      : limit_(limit), used_(std::move(used)) {}

  std::uint64_t limit() const { return limit_; }
  /// Whether there is room for one more stream.
  bool Admits() {
    if (limit_ == 0) return true;
    if (asked_.fetch_add(1, std::memory_order_relaxed) % kAsks == 0) Look();
    return used() <= limit_;
  }
  /// What the process held at the last look.
  std::uint64_t used() const { return last_.load(std::memory_order_relaxed); }
  /// Asks at once: now and then, so that room is seen when nobody tries.
  void Look() {
    if (limit_ != 0) last_.store(used_(), std::memory_order_relaxed);
  }

 private:
  const std::uint64_t limit_ = 0;
  const std::function<std::uint64_t()> used_;
  std::atomic<std::uint32_t> asked_{0};
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_
