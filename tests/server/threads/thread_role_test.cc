#include "server/threads/thread_role.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

namespace tidemark::server {
namespace {

struct Seen {
  std::string name;
  int nice = 0;
  std::uint64_t slice_ns = 0;
};

Seen Look() {
  Seen seen;
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  seen.name = name.data();
  seen.nice = getpriority(PRIO_PROCESS, 0);
  // sched_getattr(2), in words of 64 bits: size and policy, flags, nice and priority, the slice.
  std::array<std::uint64_t, 6> attributes{};
  if (syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0U) == 0) {
    seen.slice_ns = attributes[3];
  }
  return seen;
}

// In a thread of its own, as a role has no way back.
Seen In(ThreadRole role, std::string_view name) {
  Seen seen;
  std::thread([&] {
    EnterThreadRole(role, name);
    seen = Look();
  }).join();
  return seen;
}

bool KernelTakesSlices() {
  utsname system{};
  uname(&system);
  int major = 0;
  int minor = 0;
  std::sscanf(system.release, "%d.%d", &major, &minor);
  return major > 6 || (major == 6 && minor >= 12);
}

TEST(ThreadRoleTest, AnswersComeFirstAndSortingLast) {
  const int before = getpriority(PRIO_PROCESS, 0);
  EXPECT_EQ(In(ThreadRole::kAnswers, "query-1").nice, before);
  EXPECT_EQ(In(ThreadRole::kIngest, "ingest-0").nice, std::min(before + 5, 19));
  EXPECT_EQ(In(ThreadRole::kSort, "sort-0").nice, std::min(before + 10, 19));
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

TEST(ThreadRoleTest, AnswersHaveShortSlices) {
  if (!KernelTakesSlices()) GTEST_SKIP() << "slices are set since Linux 6.12";
  EXPECT_EQ(In(ThreadRole::kAnswers, "query-1").slice_ns, 100'000u);
  EXPECT_EQ(In(ThreadRole::kIngest, "ingest-0").slice_ns, 300'000u);
  EXPECT_GT(In(ThreadRole::kSort, "sort-0").slice_ns, 300'000u);
}

TEST(ThreadRoleTest, ThreadsInheritTheRoleAndMayTakeALaterOne) {
  Seen child;
  Seen later;
  std::thread([&] {
    EnterThreadRole(ThreadRole::kAnswers, "parent");
    std::thread([&] {
      child = Look();
      EnterThreadRole(ThreadRole::kSort, "sort-0");
      later = Look();
    }).join();
  }).join();
  const Seen answers = In(ThreadRole::kAnswers, "");
  const Seen sort = In(ThreadRole::kSort, "");
  EXPECT_EQ(child.slice_ns, answers.slice_ns);
  EXPECT_EQ(later.slice_ns, sort.slice_ns);
  EXPECT_EQ(later.nice, sort.nice);
}

TEST(ThreadRoleTest, NamesAreCutAtFifteenBytes) {
  EXPECT_EQ(In(ThreadRole::kAnswers, "0123456789abcdefgh").name, "0123456789abcde");
  const std::string mine = Look().name;
  EXPECT_EQ(In(ThreadRole::kAnswers, "").name, mine);  // a new thread has its maker's name
}

}  // namespace
}  // namespace tidemark::server
