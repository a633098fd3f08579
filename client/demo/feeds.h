// The demo's streams, and the two threads that measure and push.
//
// Thread "machine": every 10 ms up to 2 x 16k clock readings (at most 1 ms each), round trips over
// loopback (at most 0.5 ms), and from time to time threads and TCP peers (at most one twentieth of
// its time). Thread "wake": sleeps, and pushes its delays ten times a second. Together they take a
// fraction of one core.
#ifndef TIDEMARK_CLIENT_DEMO_FEEDS_H_
#define TIDEMARK_CLIENT_DEMO_FEEDS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"

namespace tidemark::demo {

enum FeedId : std::size_t { kClockGaps, kWakeDelays, kLoopback, kThreads, kPeers, kFeeds };

struct FeedInfo {
  const char* name;   ///< of the stream, after the prefix
  const char* title;  ///< heading of its column
  client::ValueType type;
};
inline constexpr std::array<FeedInfo, kFeeds> kFeedInfo = {{
    {"clock_gap_ns", "clock gaps, ns", client::ValueType::kUint32},
    {"wake_delay_ns", "wake-up delays, ns", client::ValueType::kFloat64},
    {"loopback_ns", "loopback there+back, ns", client::ValueType::kFloat32},
    {"thread_state", "threads and states", client::ValueType::kString},
    {"tcp_peer", "TCP peers", client::ValueType::kIpv4},
}};

struct FeedCount {
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
};

/// Thread: every method from the thread that made it. Lifetime: `client` outlives it.
class Feeds {
 public:
  /// Creates the streams and starts the threads. Errors: client::Error, std::system_error.
  Feeds(client::Client* client, const std::string& prefix);
  ~Feeds();  ///< cancels what was not stopped
  Feeds(const Feeds&) = delete;
  Feeds& operator=(const Feeds&) = delete;

  static std::string StreamName(const std::string& prefix, FeedId id);

  /// What a thread ended with; nullptr while all is well. From any thread.
  std::exception_ptr error() const;
  /// So far. `sent` is ahead of `acknowledged` by what is on its way.
  FeedCount count(FeedId id) const;
  /// Ends measuring, waits until everything sent is acknowledged. Rethrows what a thread ended
  /// with.
  void Stop();
  /// Ends the calls without waiting. From any thread.
  void Cancel();

 private:
  struct Feed {
    std::unique_ptr<client::AcknowledgedPusher> pusher;
    std::atomic<std::uint64_t> sent = 0;
    std::atomic<std::uint64_t> acknowledged = 0;
  };
  template <typename T>
  void Push(FeedId id, const std::vector<T>& values);
  void RunMachine();
  void RunWake();
  template <typename Function>
  void Guard(Function run);

  std::array<Feed, kFeeds> feeds_;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr error_;  // mutex_
  std::thread machine_;       // pushes all but wake-up delays
  std::thread wake_;          // pushes wake-up delays
};

}  // namespace tidemark::demo

#endif  // TIDEMARK_CLIENT_DEMO_FEEDS_H_
