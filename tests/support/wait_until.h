// Waiting in a test for what other threads do.
#ifndef TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_
#define TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_

#include <chrono>
#include <functional>
#include <thread>

namespace tidemark::server {

/// Asks `done` again and again until it says true, for at most 30 s; what it said last.
inline bool WaitUntil(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_
