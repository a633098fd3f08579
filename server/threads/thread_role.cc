#include "server/threads/thread_role.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace tidemark::server {
namespace {

struct Scheduling {
  int nice;                // beyond the process's own; a step weighs 1.25
  std::uint64_t slice_ns;  // 0: the kernel's own
};

// With ingest at 10 and sorting at 19 queries of a fed stream were no faster than with 3 and 10,
// and of the CPU time that a program of nice 0 in the same scheduling group leaves, nice 19 gets 15
// parts against 1024.
constexpr Scheduling Of(ThreadRole role) {
  switch (role) {
    case ThreadRole::kAnswers:
      return {0, 100'000};  // the shortest slice that Linux takes
    case ThreadRole::kIngest:
      return {5, 300'000};  // shorter than sorting's, so that a reader goes first
    case ThreadRole::kSort:
      return {10, 0};
  }
  return {0, 0};
}

// What sched_setattr(2) takes, as its manual has it. The C library has no name for it before 2.41,
// and the kernel's header clashes with the C library's.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // of SCHED_OTHER: the slice in nanoseconds, 0: the kernel's own
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

void SetScheduling(int niceness, std::uint64_t slice_ns) {
  SchedulingAttributes wanted;
  wanted.nice = niceness;
  wanted.runtime = slice_ns;
  if (syscall(SYS_sched_setattr, 0, &wanted, 0U) == 0) return;
  setpriority(PRIO_PROCESS, 0, niceness);  // on Linux of the calling thread
}

}  // namespace

void EnterThreadRole(ThreadRole role, std::string_view name) noexcept {
  // Relative to what the process was started with: an operator's niceness holds.
  static const int started_with = getpriority(PRIO_PROCESS, 0);
  const Scheduling wanted = Of(role);
  SetScheduling(started_with + wanted.nice, wanted.slice_ns);
  if (name.empty()) return;
  std::array<char, 16> text{};
  name.copy(text.data(), text.size() - 1);
  pthread_setname_np(pthread_self(), text.data());
}

}  // namespace tidemark::server
