// So many a second, and no more.
#ifndef TIDEMARK_SERVER_DAEMON_PACE_H_
#define TIDEMARK_SERVER_DAEMON_PACE_H_

#include <algorithm>
#include <cstdint>

#include "server/ingest/clocks.h"

namespace tidemark::server {

/// Lets a few go at once, and then one every 1 / rate seconds, in whole microseconds, rounded up
/// (the generic cell rate algorithm). Thread: none of its own.
class Pace {
 public:
  /// Those that may go at once after a pause.
  static constexpr RecordedTime kAtOnce = 8;

  /// 0 a second: there is no limit. At most a million.
  explicit Pace(std::uint32_t per_second)
      : interval_(per_second == 0 ? 0 : (kSecond + per_second - 1) / per_second) {}

  /// 0 if one more may go, which counts as gone; else in how many microseconds it may. `now`:
  /// microseconds, never steps.
  RecordedTime Take(RecordedTime now) {
    next_ = std::max(next_, now);
    const RecordedTime early = next_ - now - (kAtOnce - 1) * interval_;
    if (early > 0) return early;
    next_ += interval_;
    return 0;
  }

 private:
  static constexpr RecordedTime kSecond = 1'000'000;

  const RecordedTime interval_;
  RecordedTime next_ = 0;  // when it would be one's turn, were none to go at once
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_PACE_H_
