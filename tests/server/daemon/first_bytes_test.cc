// What is kept from gRPC until its first bytes are whole, over real connections; time is passed in.
#include "server/daemon/first_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/raw_socket.h"

namespace tidemark::server {
namespace {

using test::RawSocket;

constexpr RecordedTime kTimeout = 1000;
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
  EXPECT_EQ(of(Opening::kHttp2, "G"), 0U);
  EXPECT_EQ(of(Opening::kHttp2, "PRI * HTTP/1"), 0U);
  EXPECT_EQ(of(Opening::kTls, ""), 1U);
  EXPECT_EQ(of(Opening::kTls, "\x16"), 5U);
  EXPECT_EQ(of(Opening::kTls, "\x16\x03\x01\x02"), 5U);
  EXPECT_EQ(of(Opening::kTls, Record(513)), 518U);
  EXPECT_EQ(of(Opening::kTls, Record(1 << 14).substr(0, 6)), 5U + (1 << 14));
  EXPECT_EQ(of(Opening::kTls, Record((1 << 14) + 1).substr(0, 6)), 0U) << "longer than a record";
  EXPECT_EQ(of(Opening::kTls, "PRI"), 0U);
}

class FirstBytesTest : public ::testing::Test {
 protected:
  FirstBytesTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~FirstBytesTest() override {
    for (const int fd : whole_) close(fd);
    for (const int fd : ended_) close(fd);
    close(listener_);
  }

  std::unique_ptr<FirstBytes> Make(Opening opening) {
    return std::make_unique<FirstBytes>(
        io_.get_executor(), opening, kTimeout, [this](int fd) { whole_.push_back(fd); },
        [this](int fd) { ended_.push_back(fd); });
  }
  // The client's end of a connection that is added.
  RawSocket& Connect(FirstBytes& to, RecordedTime now = 0) {
    clients_.push_back(std::make_unique<RawSocket>(port_));
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    EXPECT_GE(fd, 0);
    to.Add(fd, now);
    return *clients_.back();
  }
  // What is ready; until `done`, which must come to be.
  template <typename Done>
  bool RunUntil(Done done) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10); !done();) {
      if (std::chrono::steady_clock::now() > end) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  // How many handlers ran in a moment in which all that was sent has arrived.
  std::size_t RunAMoment() {
    io_.restart();
    return io_.run_for(std::chrono::milliseconds(20));
  }

  boost::asio::io_context io_;
  std::vector<int> whole_;
  std::vector<int> ended_;
  std::vector<std::unique_ptr<RawSocket>> clients_;
  int listener_;
  std::uint16_t port_ = 0;
};

TEST_F(FirstBytesTest, AreHandedOverWholeAndAsTheyCame) {
  for (const auto& [opening, bytes] :
       {std::pair{Opening::kHttp2, kPreface}, std::pair{Opening::kTls, Record(3000)}}) {
    const auto waiting = Make(opening);
    RawSocket& client = Connect(*waiting);
    std::size_t sent = 0;
    for (const std::size_t end : {std::size_t{1}, std::size_t{6}, bytes.size() - 1}) {
      client.Send(std::string_view(bytes).substr(sent, end - sent));
      sent = end;
      RunAMoment();
      ASSERT_EQ(waiting->size(), 1U);
    }
    client.Send(bytes.substr(bytes.size() - 1));
    ASSERT_TRUE(RunUntil([&] { return waiting->size() == 0; }));
    ASSERT_EQ(whole_.size(), 1U);
    int mark = 0;
    socklen_t size = sizeof mark;
    getsockopt(whole_[0], SOL_SOCKET, SO_RCVLOWAT, &mark, &size);
    EXPECT_EQ(mark, 1);
    std::string got(bytes.size() + 1, '\0');
    EXPECT_EQ(recv(whole_[0], got.data(), got.size(), MSG_DONTWAIT),
              static_cast<ssize_t>(bytes.size()));
    got.resize(bytes.size());
    EXPECT_EQ(got, bytes);
    close(whole_[0]);
    whole_.clear();
  }
  EXPECT_TRUE(ended_.empty());
}

TEST_F(FirstBytesTest, AByteAtATimeWakesNobody) {
  const auto waiting = Make(Opening::kTls);
  RawSocket& client = Connect(*waiting);
  client.Send(Record(4000).substr(0, 6));
  RunAMoment();
  for (int i = 0; i < 50; ++i) {
    client.Send("x");
    EXPECT_EQ(RunAMoment(), 0U);
  }
  EXPECT_EQ(waiting->size(), 1U);
  EXPECT_TRUE(whole_.empty());
}

TEST_F(FirstBytesTest, WhatIsThereAlreadyIsHandedOverAtOnce) {
  const auto waiting = Make(Opening::kHttp2);
  RawSocket client(port_);
  client.Send(kPreface);
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  ASSERT_TRUE(RunUntil([&] {
    char all[24];
    return recv(fd, all, sizeof all, MSG_PEEK | MSG_DONTWAIT) == sizeof all;
  }));
  waiting->Add(fd, 0);
  EXPECT_EQ(whole_, std::vector{fd});
  const auto nothing = Make(Opening::kNothing);
  Connect(*nothing);
  EXPECT_EQ(whole_.size(), 2U);
  EXPECT_EQ(RunAMoment(), 1U) << "of the wait that was cancelled";
}

TEST_F(FirstBytesTest, AnotherProtocolIsNotKept) {
  const auto waiting = Make(Opening::kHttp2);
  Connect(*waiting).Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(RunUntil([&] { return whole_.size() == 1; }));
  const auto tls = Make(Opening::kTls);
  Connect(*tls).Send("P");
  EXPECT_TRUE(RunUntil([&] { return whole_.size() == 2; }));
}

TEST_F(FirstBytesTest, EndWithTheirPeer) {
  const auto waiting = Make(Opening::kHttp2);
  Connect(*waiting);
  clients_.clear();
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 1; }));
  RawSocket& half = Connect(*waiting);
  half.Send("PRI");
  RunAMoment();
  half.EndSending();
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 2; }));
  RawSocket& reset = Connect(*waiting);
  reset.Send("PRI");
  RunAMoment();
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(reset.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  clients_.clear();
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 3; }));
  EXPECT_TRUE(whole_.empty());
}

TEST_F(FirstBytesTest, EndInTime) {
  const auto waiting = Make(Opening::kHttp2);
  Connect(*waiting, 0);
  Connect(*waiting, 10).Send("PRI");
  Connect(*waiting, 20);
  waiting->EndOverdue(kTimeout - 1);
  EXPECT_EQ(waiting->size(), 3U);
  waiting->EndOverdue(kTimeout + 10);
  EXPECT_EQ(ended_.size(), 2U);
  EXPECT_EQ(waiting->size(), 1U);
  RunAMoment();
  waiting->EndAll();
  EXPECT_EQ(ended_.size(), 3U);
  EXPECT_TRUE(whole_.empty());
}

}  // namespace
}  // namespace tidemark::server
