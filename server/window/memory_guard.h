// The limit of what the process may hold, and who goes without first when it comes near.
#ifndef TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_
#define TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/window/concat.h"
#include "server/window/refusal.h"

namespace tidemark::server {

/// Who wants memory, and up to where: the newest are refused first, then the idlest, the busiest
/// never. Nothing is evicted, for that would lose values that were acknowledged.
enum class MemoryWish {
  kNewStream,    ///< up to 7/8 of the limit
  kSmallStream,  ///< more for one of fewer than kSmallStreamValues: up to 15/16
  kQuietStream,  ///< more for one of as many or more, that is quiet: up to the limit
};

/// From so many values on a stream's summaries grow with the logarithm of their number, but for
/// the smallest ε.
inline constexpr std::uint64_t kSmallStreamValues = std::uint64_t{1} << 16;

/// The process is looked at now and then, not each time; what was wished for since counts as held,
/// granted or not. Busy streams of many values do not ask: the rate at which values come bounds how
/// many they are. With sliding windows those do not whose record of recent values is full. Thread:
/// any.
class MemoryGuard {
 public:
  /// Wishes of so many bytes from one look to the next, which costs microseconds.
  static constexpr std::uint64_t kLookBytes = 256 << 10;
  /// A wish counts for so many at least: what a new stream takes.
  static constexpr std::uint64_t kWishBytes = 2048;

  /// `used`: bytes that the process holds, 0 if that cannot be said now; called from any thread.
  /// A limit of 0: there is none.
  MemoryGuard() = default;
  MemoryGuard(std::uint64_t limit, std::function<std::uint64_t()> used)
      : limit_(limit), used_(std::move(used)) {}

  std::uint64_t limit() const { return limit_; }
  /// Whether there is room for so many bytes more.
  bool Admits(MemoryWish wish, std::uint64_t bytes) {
    if (limit_ == 0) return true;
    const std::uint64_t counted = std::max(bytes, kWishBytes);
    std::uint64_t wished = wished_.fetch_add(counted, std::memory_order_relaxed) + counted;
    if (wished >= kLookBytes) {
      Look();
      wished = wished_.fetch_add(counted, std::memory_order_relaxed) + counted;
    }
    return used() + wished <= limit_ - ShareOf(wish).kept;
  }
  /// What the process held at the last look.
  std::uint64_t used() const { return last_.load(std::memory_order_relaxed); }
  /// Looks at once: now and then, so that room is seen when nobody asks for it.
  void Look() {
    if (limit_ == 0) return;
    wished_.store(0, std::memory_order_relaxed);
    if (const std::uint64_t now = used_(); now != 0) last_.store(now, std::memory_order_relaxed);
  }

  /// What a wish that is not admitted is answered; `what` is the beginning: "cannot create ...".
  absl::Status Refused(MemoryWish wish, std::string_view what) const {
    return WithRefusal(absl::ResourceExhaustedError(Concat(
                           what, ": the daemon holds ", used(), " bytes, and ", ShareOf(wish).said,
                           " of limits.max_memory_bytes (", limit_, ")")),
                       Refusal::kMemoryLimit);
  }

 private:
  struct Share {
    std::uint64_t kept;     // of the limit, from them
    std::string_view said;  // of the rest
  };
  Share ShareOf(MemoryWish wish) const {
    switch (wish) {
      case MemoryWish::kNewStream:
        return {limit_ / 8, "new streams have 7/8"};
      case MemoryWish::kSmallStream:
        return {limit_ / 16, "streams of few values have 15/16"};
      case MemoryWish::kQuietStream:
        break;
    }
    return {0, "quiet streams have no more than all"};
  }

  const std::uint64_t limit_ = 0;
  const std::function<std::uint64_t()> used_;
  std::atomic<std::uint64_t> wished_{kLookBytes};  // since the last look: the first wish looks
  std::atomic<std::uint64_t> last_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_MEMORY_GUARD_H_
