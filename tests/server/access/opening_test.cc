// What a connection is to begin with, by bytes and over real connections. Who waits for it:
// tests/server/daemon/first_bytes_test.cc, tests/server/ingest/tls_connections_test.cc.
#include "server/access/opening.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>

namespace tidemark::server {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Record(std::size_t length) {
  return std::string("\x16\x03\x01") + static_cast<char>(length / 256) +
         static_cast<char>(length % 256) + std::string(length, 'x');
}

TEST(OpeningBytes, OfEachProtocol) {
  const auto of = OpeningBytes;
  EXPECT_EQ(of(Opening::kNothing, ""), 0U);
  EXPECT_EQ(of(Opening::kHttp2, ""), 1U);
  for (std::size_t i = 1; i <= kPreface.size(); ++i) {
    EXPECT_EQ(of(Opening::kHttp2, kPreface.substr(0, i)), 24U);
  }
  EXPECT_EQ(of(Opening::kHttp2, kPreface + "more"), 24U);
  EXPECT_EQ(of(Opening::kHttp2, "G"), std::nullopt);
  EXPECT_EQ(of(Opening::kHttp2, "PRI * HTTP/1"), std::nullopt);
  EXPECT_EQ(of(Opening::kTls, ""), 5U);
  EXPECT_EQ(of(Opening::kTls, "P"), 5U);
  EXPECT_EQ(of(Opening::kTls, "\x16\x03\x01\x02"), 5U);
  EXPECT_EQ(of(Opening::kTls, Record(513)), 518U);
  EXPECT_EQ(of(Opening::kTls, Record(1 << 14)), 4096U);
  EXPECT_EQ(of(Opening::kTls, Record((1 << 14) + 1)), std::nullopt) << "longer than a record";
  EXPECT_EQ(of(Opening::kTls, Record(0)), std::nullopt);
  EXPECT_EQ(of(Opening::kTls, "PRI *"), std::nullopt);
  for (const std::size_t wrong : {0, 1}) {  // its type, its version
    std::string record = Record(513);
    record[wrong] = 1;
    EXPECT_EQ(of(Opening::kTls, record), std::nullopt);
  }
}

TEST(OpeningLook, PutsUpWithTooLittleEightTimes) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  ASSERT_EQ(send(ends[1], "PRI", 3, MSG_NOSIGNAL), 3);
  OpeningLook look(Opening::kHttp2);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(look.Look(ends[0]), OpeningLook::State::kMissing);
  EXPECT_EQ(look.Look(ends[0]), OpeningLook::State::kWhole);
  int there = 0;
  EXPECT_EQ(ioctl(ends[0], FIONREAD, &there), 0);
  EXPECT_EQ(there, 3) << "it took some";
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tidemark::server
