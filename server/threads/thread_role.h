// Tells the kernel's scheduler what a thread is for.
//
// Under full ingest the threads that take values in and sort them never rest, and a daemon may have
// two cores. A query needs a core for microseconds (10 µs of 260 for a small stream). If all
// threads were alike it would wait for the turn of another one to end, which with the usual tick of
// 4 ms takes up to 4 ms. Measured on two cores beside five threads that only compute, wake-up delay
// of a thread that sleeps for 2 ms at a time (99th percentile):
//
//   all alike                            3,956 µs
//   the computing ones at nice 5           148 µs
//   the sleeping one's slice 0.1 ms         97 µs
//   the machine idle                       274 µs (its cores sleep deeper)
#ifndef TIDEMARK_SERVER_THREADS_THREAD_ROLE_H_
#define TIDEMARK_SERVER_THREADS_THREAD_ROLE_H_

#include <string_view>

namespace tidemark::server {

enum class ThreadRole {
  kAnswers,  ///< queries, health, metrics: short turns, soon
  kIngest,   ///< sockets of values: before sorting, so that few windows in stock feed the sorters
  kSort,     ///< sorting and merging: long turns, last in line
};

/// Sets the calling thread's role and, if it is not empty, its name (its first 15 bytes).
/// Threads that it starts inherit the role. From the later roles there is no way back to an earlier
/// one without privilege. Best effort: a kernel before 6.12 ignores slices, a sandbox may refuse
/// both calls; the threads then share the cores as they come.
void EnterThreadRole(ThreadRole role, std::string_view name) noexcept;

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_THREADS_THREAD_ROLE_H_
