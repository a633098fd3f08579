// The bound on keys that are on their way from a full window to the summaries, and the bell that
// rings when there is room again.
#ifndef TIDEMARK_SERVER_WINDOW_FLOW_GATE_H_
#define TIDEMARK_SERVER_WINDOW_FLOW_GATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "server/window/call_back.h"

namespace tidemark::server {

/// Thread: any. Callbacks run on the thread that made room, with no lock held.
class FlowGate {
 public:
  explicit FlowGate(std::uint64_t limit_keys)
      : limit_(limit_keys), ready_(limit_keys - limit_keys / 4) {}

  std::uint64_t limit() const { return limit_; }
  std::uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }
  bool saturated() const { return keys() >= limit_ && !closed_.load(std::memory_order_relaxed); }

  void Enter(std::uint64_t keys) { keys_.fetch_add(keys, std::memory_order_relaxed); }
  void Leave(std::uint64_t keys);

  /// Calls `resume` once: at once if there is room, else when the level has fallen to three
  /// quarters of the limit, or at Close. With the default limit and two sort workers a quarter is
  /// one window of the largest size. Half the limit would let the sorters run dry before a source
  /// has filled the next window; at the limit itself a source would wake for next to nothing. Of
  /// callers that may go first: an OfAsker (call_back.h), or what is kept for them grows while the
  /// sorters are behind.
  void WhenReady(std::function<void()> resume);

  /// How many wait, of whom some may have gone.
  std::size_t waiting() const;

  /// From now on nothing is saturated and everyone who waits is called.
  void Close();

 private:
  void Ring();

  const std::uint64_t limit_;
  const std::uint64_t ready_;
  std::atomic<std::uint64_t> keys_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> anyone_waits_{false};
  mutable std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;  // guarded by mutex_, as the next
  GoneAskers gone_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_FLOW_GATE_H_
