// How many keys a stream's next window holds: few for a quiet stream, many for a busy one.
//
// The rule sees nothing but the stream's own batches and the times recorded with them, so that a
// replay makes the same windows, and with them the same summary, byte for byte.
//
//   - A window that filled in less than kFastFill makes the next one four times as large.
//   - A batch that finds the window open for kSlowFill or longer shrinks the capacity to the power
//     of two at or above what the window holds. A steady stream of r values/s so ends with windows
//     of 0.2 to 0.4 s, and a stream that was busy once does not keep a large window for ever.
//
// Capacities are powers of two between the two limits: the exponential histogram of the quantile
// summary needs that. A clock that steps back counts as no time passed.
#ifndef TIDEMARK_SERVER_WINDOW_CAPACITY_RULE_H_
#define TIDEMARK_SERVER_WINDOW_CAPACITY_RULE_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "server/window/ingest_sink.h"

namespace tidemark::server {

struct CapacityLimits {
  /// Keys; powers of two. 2^8: a quiet float64 stream's window stays within 2 KB. 2^18: above it
  /// the sort no longer gains and the window leaves the cache (docs/measurements.md).
  std::uint32_t min = 1u << 8;
  std::uint32_t max = 1u << 18;
};

/// Thread: none of its own; the stream's lock guards it.
class CapacityRule {
 public:
  /// Below this fill time the window grows. At 2^18 keys it stands for ten million values/s.
  static constexpr RecordedTime kFastFill = 25'000;
  /// From this age on an open window shrinks to what it holds.
  static constexpr RecordedTime kSlowFill = 200'000;

  explicit CapacityRule(CapacityLimits limits) : capacity_(limits.min) {}

  std::uint32_t capacity() const { return capacity_; }
  RecordedTime opened_at() const { return opened_at_; }
  /// How long ago that was. Any two times: a stored stream may bring any.
  RecordedTime Age(RecordedTime now) const {
    if (now <= opened_at_) return 0;
    const auto age = static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(opened_at_);
    return static_cast<RecordedTime>(
        std::min(age, std::uint64_t{std::numeric_limits<RecordedTime>::max()}));
  }
  /// The state of another rule. REQUIRES: a capacity that it may have.
  void Restore(RecordedTime opened_at, std::uint32_t capacity) {
    opened_at_ = opened_at;
    capacity_ = capacity;
  }

  /// A batch came in at `time` and finds `held` keys in the open window. Afterwards capacity() >=
  /// held, and the window is full if they are equal and `held` is not 0.
  void OnBatch(RecordedTime time, std::uint32_t held, CapacityLimits limits);
  /// The open window took in its first key at `time`.
  void OnOpened(RecordedTime time) { opened_at_ = time; }
  /// The window filled up at `time`; the next one has the capacity that follows.
  void OnFull(RecordedTime time, CapacityLimits limits);

 private:
  RecordedTime opened_at_ = 0;
  std::uint32_t capacity_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_CAPACITY_RULE_H_
