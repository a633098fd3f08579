#include "server/access/loopback.h"

#include <gtest/gtest.h>

namespace tidemark::server {
namespace {

TEST(LoopbackTest, AddressesOfThisMachineAndNoOthers) {
  for (const char* here : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(here)) << here;
  }
  for (const char* there : {"", "128.0.0.1", "10.127.0.1", "127.example.com", "::2", "::1:1",
                            "::ffff:10.0.0.1", "fe80::1", "1270.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(there)) << there;
  }
}

TEST(LoopbackTest, WhatIsKnownOfACallerByItsAddress) {
  EXPECT_TRUE(CredentialsAt("::1").loopback);
  const Credentials there = CredentialsAt("10.0.0.1");
  EXPECT_FALSE(there.loopback);
  EXPECT_EQ(there.address, "10.0.0.1");
  EXPECT_FALSE(CredentialsAt("").loopback);
}

}  // namespace
}  // namespace tidemark::server
