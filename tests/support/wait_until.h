// Waiting in a test for what other threads or programs do.
#ifndef TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_
#define TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_

#include <chrono>
#include <functional>
#include <thread>

namespace tidemark::test {

/// Long enough for a machine that is busy with something else; a test that passes never waits so
/// long.
inline constexpr std::chrono::seconds kPatience{60};

/// Asks `done` again and again until it says true or `patience` is over; what it said last.
inline bool WaitUntil(const std::function<bool()>& done,
                      std::chrono::milliseconds patience = kPatience) {
  constexpr std::chrono::milliseconds kPollInterval{3};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_WAIT_UNTIL_H_
