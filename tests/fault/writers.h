// Producers that send again what was not acknowledged, whatever happens to the daemon.
#ifndef TIDEMARK_TESTS_FAULT_WRITERS_H_
#define TIDEMARK_TESTS_FAULT_WRITERS_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/feeds.h"

namespace tidemark::fault {

/// What one feed has sent, when its writer has ended.
struct Sent {
  std::uint64_t last_number = 1;
  std::uint64_t values = 0;
};

struct WritersOptions {
  std::uint64_t seed = 0;
  std::uint16_t tcp_port = 0;
  std::string grpc_address;
  /// After the last answer, before a writer gives up, which fails the test.
  std::chrono::milliseconds retry_for{600'000};
  /// Of each feed; a writer that has sent them ends by itself.
  std::uint64_t batches_max = std::numeric_limits<std::uint64_t>::max();
  std::size_t window_batches = 64;
  /// Between two batches, so that a long run costs little.
  std::chrono::microseconds pause{0};
};

/// The writers of kFeeds, each with a thread. The streams exist. Thread: one. Failures of the
/// running test: a writer that gives up, a batch that is refused for good, an acknowledgement of
/// another number of values than were sent.
class Writers {
 public:
  explicit Writers(WritersOptions options);
  ~Writers() { End(); }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  /// Nothing more is sent than what was begun; waits until all is acknowledged.
  void End();
  /// Waits until all have sent batches_max.
  void Finish();

  /// Values, of all writers; any thread.
  std::uint64_t acknowledged() const;
  /// Of one writer.
  std::uint64_t acknowledged(std::uint8_t writer) const { return acknowledged_[writer]; }
  /// Batches that were sent more than once, or connections that were begun again. After End.
  std::uint64_t retries() const { return retries_; }
  /// By place in kFeeds. After End.
  const std::array<Sent, kFeeds.size()>& sent() const { return sent_; }

 private:
  void RunTcp(std::uint8_t writer);
  void RunGrpc(std::uint8_t writer);
  void Pause() const;
  bool Goes(std::size_t feed) const {
    return !ends_ && sent_[feed].last_number <= options_.batches_max;
  }

  const WritersOptions options_;
  std::atomic<bool> ends_{false};
  std::array<std::atomic<std::uint64_t>, kWriters> acknowledged_{};
  std::atomic<std::uint64_t> retries_{0};
  std::array<Sent, kFeeds.size()> sent_;  // each of its writer's thread until that has ended
  std::vector<std::thread> threads_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_WRITERS_H_
