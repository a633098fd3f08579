// What is kept from gRPC until its first bytes are whole, over real connections; time is passed in.
#include "server/daemon/first_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/raw_socket.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using test::WaitUntil;

constexpr RecordedTime kTimeout = 1000;
const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Record(std::size_t length) {
  return std::string("\x16\x03\x01") + static_cast<char>(length / 256) +
         static_cast<char>(length % 256) + std::string(length, 'x');
}

class FirstBytesTest : public ::testing::Test {
 protected:
  ~FirstBytesTest() override {
    for (const int fd : whole_) close(fd);
    for (const int fd : ended_) close(fd);
  }

  std::unique_ptr<FirstBytes> Make(Opening opening) {
    return std::make_unique<FirstBytes>(
        io_.get_executor(), opening, kTimeout, [this](int fd) { whole_.push_back(fd); },
        [this](int fd) { ended_.push_back(fd); });
  }
  // The client's end of a connection that is added.
  RawSocket& Connect(FirstBytes& to, RecordedTime now = 0) {
    clients_.push_back(std::make_unique<RawSocket>(port_));
    to.Add(last_ = Accept(), now);
    return *clients_.back();
  }
  int Accept() {
    const int fd =
        accept4(listener_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    EXPECT_GE(fd, 0);
    return fd;
  }
  static int Mark(int fd) {
    int mark = 0;
    socklen_t size = sizeof mark;
    EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, &size), 0);
    return mark;
  }
  static int There(int fd) {
    int there = 0;
    EXPECT_EQ(ioctl(fd, FIONREAD, &there), 0);
    return there;
  }
  // Runs what is ready until `done`, which must come to be.
  template <typename Done>
  bool RunUntil(Done done) {
    return WaitUntil([&] {
      io_.restart();
      io_.poll();
      return done();
    });
  }

  boost::asio::io_context io_;
  std::vector<int> whole_;
  std::vector<int> ended_;
  std::vector<std::unique_ptr<RawSocket>> clients_;
  boost::asio::ip::tcp::acceptor listener_{
      io_, {boost::asio::ip::address_v4::loopback(), std::uint16_t{0}}};
  const std::uint16_t port_ = listener_.local_endpoint().port();
  int last_ = -1;  // added
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
      ASSERT_TRUE(RunUntil([&] { return There(last_) == static_cast<int>(sent); }));
      io_.poll();
      ASSERT_EQ(waiting->size(), 1U);
    }
    client.Send(bytes.substr(bytes.size() - 1));
    ASSERT_TRUE(RunUntil([&] { return waiting->size() == 0; }));
    ASSERT_EQ(whole_.size(), 1U);
    EXPECT_EQ(Mark(whole_[0]), 1);
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
  client.Send(Record(3000).substr(0, 6));
  ASSERT_TRUE(RunUntil([&] { return Mark(last_) == 3005; }));
  io_.poll();
  for (int there = 7; there < 50; ++there) {
    client.Send("x");
    ASSERT_TRUE(WaitUntil([&] { return There(last_) == there; }));
    EXPECT_EQ(io_.poll(), 0U);
  }
  EXPECT_EQ(waiting->size(), 1U);
}

// As a kernel without memory does, and one that has no mark: here that of another kind of socket.
TEST_F(FirstBytesTest, WhoeverWakesForLessIsHandedOver) {
  const auto waiting = Make(Opening::kHttp2);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  waiting->Add(ends[0], 0);
  ASSERT_EQ(send(ends[1], "P", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(RunUntil([&] { return whole_.size() == 1; }));
  EXPECT_EQ(waiting->size(), 0U);
  close(ends[1]);
}

TEST_F(FirstBytesTest, WhatIsThereAlreadyIsHandedOverAtOnce) {
  const auto waiting = Make(Opening::kHttp2);
  RawSocket client(port_);
  client.Send(kPreface);
  const int fd = Accept();
  ASSERT_TRUE(WaitUntil([&] { return There(fd) == 24; }));
  waiting->Add(fd, 0);
  EXPECT_EQ(whole_, std::vector{fd});
  const auto nothing = Make(Opening::kNothing);
  Connect(*nothing);
  EXPECT_EQ(whole_.size(), 2U);
}

TEST_F(FirstBytesTest, AnotherProtocolEnds) {
  const auto clear = Make(Opening::kHttp2);
  Connect(*clear).Send("G");
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 1; }));
  const auto tls = Make(Opening::kTls);
  Connect(*tls).Send(kPreface);
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 2; }));
  EXPECT_TRUE(whole_.empty());
}

// What comes while it is looked at has not been looked at.
TEST_F(FirstBytesTest, AnotherProtocolEndsWheneverItComes) {
  const auto waiting = Make(Opening::kHttp2);
  for (std::size_t round = 1; round <= 3000; ++round) {
    RawSocket client(port_);
    const int fd = Accept();
    std::atomic<bool> added = false;
    std::thread sender([&] {
      while (!added) std::this_thread::yield();
      for (volatile std::size_t spun = 0; spun < round % 300 * 10;) spun = spun + 1;
      client.Send("G");
    });
    added = true;
    waiting->Add(fd, 0);
    sender.join();
    ASSERT_TRUE(RunUntil([&] { return waiting->size() == 0; }));
    ASSERT_TRUE(whole_.empty()) << "round " << round;
    for (const int end : ended_) close(end);
    ended_.clear();
  }
}

TEST_F(FirstBytesTest, WhoClosesItsHalfBehindThemIsHandedOver) {
  const auto waiting = Make(Opening::kHttp2);
  RawSocket& client = Connect(*waiting);
  client.Send(kPreface);
  client.EndSending();
  EXPECT_TRUE(RunUntil([&] { return whole_.size() == 1; }));
}

TEST_F(FirstBytesTest, EndWithTheirPeer) {
  const auto waiting = Make(Opening::kHttp2);
  Connect(*waiting);
  clients_.clear();
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 1; }));
  RawSocket& half = Connect(*waiting);
  half.Send("PRI");
  ASSERT_TRUE(RunUntil([&] { return Mark(last_) == 24; }));
  half.EndSending();
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 2; }));
  RawSocket& reset = Connect(*waiting);
  reset.Send("PRI");
  ASSERT_TRUE(RunUntil([&] { return Mark(last_) == 24; }));
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
  io_.poll();  // the waits that were cancelled
  waiting->EndAll();
  EXPECT_EQ(ended_.size(), 3U);
  EXPECT_TRUE(whole_.empty());
}

}  // namespace
}  // namespace tidemark::server
