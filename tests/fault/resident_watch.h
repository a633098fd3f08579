// The most memory that a daemon had resident while a test went on.
#ifndef TIDEMARK_TESTS_FAULT_RESIDENT_WATCH_H_
#define TIDEMARK_TESTS_FAULT_RESIDENT_WATCH_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "tests/e2e/test_daemon.h"

namespace tidemark::fault {

/// Looks every five milliseconds from a thread of its own, and at the end at what the kernel has
/// noted as the most since the process began, where it notes that. Thread: one. Lifetime: the
/// daemon's.
class ResidentWatch {
 public:
  explicit ResidentWatch(const test::TestDaemon& daemon);
  ~ResidentWatch();
  ResidentWatch(const ResidentWatch&) = delete;
  ResidentWatch& operator=(const ResidentWatch&) = delete;

  /// Bytes, so far.
  std::uint64_t Most() const;

 private:
  const test::TestDaemon& daemon_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> most_{0};
  std::thread thread_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_RESIDENT_WATCH_H_
