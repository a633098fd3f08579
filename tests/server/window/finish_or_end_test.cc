#include "server/window/finish_or_end.h"

#include <gtest/gtest.h>

#include <new>

namespace tidemark::server {
namespace {

void LeaveBy(bool exception) {
  try {
    const FinishOrEnd all;
    if (exception) throw std::bad_alloc();
  } catch (const std::bad_alloc&) {  // as gRPC does
  }
}

TEST(FinishOrEndDeathTest, AnExceptionThatWouldBeSwallowedEndsTheProcess) {
  LeaveBy(false);
  EXPECT_DEATH(LeaveBy(true), "");
}

// A change that is made while another exception is on its way is none of its business.
TEST(FinishOrEnd, OnlyWhatLeavesItsBlockCounts) {
  struct Cleanup {
    ~Cleanup() { const FinishOrEnd all; }
  };
  EXPECT_THROW(
      {
        const Cleanup cleanup;
        throw std::bad_alloc();
      },
      std::bad_alloc);
}

}  // namespace
}  // namespace tidemark::server
