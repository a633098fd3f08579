// "HOST:PORT": what is read, what is refused, and that writing and reading agree.
#include "server/config/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tidemark::server {
namespace {

using ::testing::HasSubstr;

TEST(HostPort, ReadsNamesAddressesAndFreePorts) {
  EXPECT_EQ(*ParseHostPort("127.0.0.1:7070"), (HostPort{"127.0.0.1", 7070}));
  EXPECT_EQ(*ParseHostPort("localhost:0"), (HostPort{"localhost", 0}));
  EXPECT_EQ(*ParseHostPort("[::1]:65535"), (HostPort{"::1", 65535}));
}

TEST(HostPort, WritesWhatItReads) {
  for (const char* text : {"127.0.0.1:7070", "a-b.example:1", "[fe80::1%eth0]:80", "[::]:0"}) {
    EXPECT_EQ(ParseHostPort(text)->ToString(), text);
  }
}

TEST(HostPort, RefusesAndSaysWhy) {
  const struct {
    std::string text;
    const char* why;
  } cases[] = {
      {"", "there is no port"},
      {"7070", "there is no port"},
      {":7070", "there is no host"},
      {"[]:1", "brackets are for IPv6"},
      {"[127.0.0.1]:1", "brackets are for IPv6"},
      {"::1:7070", "is written in brackets"},
      {"host:", "a number from 0 to 65535"},
      {"host:65536", "a number from 0 to 65535"},
      {"host:-1", "a number from 0 to 65535"},
      {"host:80x", "a number from 0 to 65535"},
      {"host: 80", "a number from 0 to 65535"},
      {"ho st:80", "no host name has"},
      {"ho\nst:80", "no host name has"},
      {"http://host:80", "is written in brackets"},
      {std::string(254, 'a') + ":80", "longer than 253 bytes"},
  };
  for (const auto& [text, why] : cases) {
    const auto result = ParseHostPort(text);
    ASSERT_FALSE(result.ok()) << text;
    const std::string message(result.status().message());
    EXPECT_THAT(message, HasSubstr("expected HOST:PORT, not \""));
    EXPECT_THAT(message, HasSubstr(why)) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
  }
}

}  // namespace
}  // namespace tidemark::server
