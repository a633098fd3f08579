// Connections over TLS whose first record comes late, in pieces, or never. Who gets in:
// tests/e2e/access_ports_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/access/opening.h"
#include "server/access/tls_material.h"
#include "server/http/http_server.h"
#include "tests/support/raw_socket.h"
#include "tests/support/self_signed_tls.h"
#include "tests/support/slow_tls_client.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using test::SlowTlsClient;
using test::WaitUntil;

class TlsArrivalsTest : public testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    options.tls = &tls_;
    server_ = std::make_unique<HttpServer>(
        options, HttpCallbacks{.metrics = [] { return std::string(); },
                               .not_ready = [] { return std::optional<std::string>(); },
                               .tls_failed = [this] { ++failed_; }});
    const absl::Status status = server_->Start();
    ASSERT_TRUE(status.ok()) << status;
  }
  std::uint16_t port() const { return server_->address().port; }

  TlsHolder tls_{test::SelfSignedTls("localhost")};
  std::atomic<int> failed_ = 0;
  std::unique_ptr<HttpServer> server_;
};

// What a session takes is spent, and its certificate chosen, when the first record is whole.
TEST_F(TlsArrivalsTest, TlsBeginsWithItsFirstRecordWhole) {
  Start();
  SlowTlsClient slow(port());
  const std::string& hello = slow.hello();
  ASSERT_TRUE(slow.socket().Send(hello.substr(0, hello.size() - 1)));
  SlowTlsClient next(port());  // once it is served the first was looked at
  ASSERT_TRUE(next.socket().Send(next.hello()));
  EXPECT_EQ(next.ServerNames(), std::vector<std::string>{"localhost"});
  tls_.Set(test::SelfSignedTls("other"));
  ASSERT_TRUE(slow.socket().Send(hello.substr(hello.size() - 1)));
  EXPECT_EQ(slow.ServerNames(), std::vector<std::string>{"other"});
  EXPECT_EQ(failed_, 0);
}

TEST_F(TlsArrivalsTest, IsClosedAndCountedThatIsNotWholeInTime) {
  Start({.handshake_timeout = std::chrono::milliseconds(50)});
  RawSocket silent(port());
  SlowTlsClient half(port());
  ASSERT_TRUE(half.socket().Send(half.hello().substr(0, 100)));
  bool cleanly = false;
  EXPECT_EQ(silent.ReceiveAll(&cleanly), "");
  EXPECT_TRUE(cleanly);
  EXPECT_EQ(half.socket().ReceiveAll(), "");
  EXPECT_TRUE(WaitUntil([&] { return failed_ == 2; })) << failed_;
}

// The time is that of the whole handshake.
TEST_F(TlsArrivalsTest, IsClosedAndCountedThatStopsBehindItsFirstRecord) {
  Start({.handshake_timeout = std::chrono::milliseconds(50)});
  SlowTlsClient client(port());
  ASSERT_TRUE(client.socket().Send(client.hello()));
  client.socket().ReceiveAll();
  EXPECT_TRUE(WaitUntil([&] { return failed_ == 1; })) << failed_;
}

TEST_F(TlsArrivalsTest, AnotherProtocolAndWhoGoesAreClosedAndCounted) {
  Start();
  RawSocket clear(port());
  ASSERT_TRUE(clear.Send("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(clear.ReceiveAll(), "");
  EXPECT_TRUE(WaitUntil([&] { return failed_ == 1; })) << failed_;
  RawSocket ended(port());
  ASSERT_TRUE(ended.Send("\x16\x03"));
  ended.EndSending();
  EXPECT_EQ(ended.ReceiveAll(), "");
  EXPECT_TRUE(WaitUntil([&] { return failed_ == 2; })) << failed_;
}

// One each, while it waits for its first record and behind it, and gives it back.
TEST_F(TlsArrivalsTest, HaveAPlaceEach) {
  Start({.max_connections = 1});
  const auto refused = [&] {
    RawSocket one(port());
    bool cleanly = false;
    return one.ReceiveAll(&cleanly).empty() && cleanly;
  };
  const auto served = [&](SlowTlsClient& client) {
    return client.socket().Send(client.hello()) &&
           client.ServerNames() == std::vector<std::string>{"localhost"};
  };
  {
    const RawSocket silent(port());
    EXPECT_TRUE(refused());
  }
  EXPECT_TRUE(WaitUntil([&] {
    SlowTlsClient next(port());
    return served(next) && refused();
  }));
}

TEST_F(TlsArrivalsTest, EndWithTheServer) {
  Start();
  SlowTlsClient half(port());
  ASSERT_TRUE(half.socket().Send(half.hello().substr(0, 100)));
  SlowTlsClient next(port());
  ASSERT_TRUE(next.socket().Send(next.hello()));
  EXPECT_EQ(next.ServerNames().size(), 1U);
  server_->Stop();
  EXPECT_TRUE(WaitUntil([&] { return PeerSendsNoMore(half.socket().fd()); }));
  EXPECT_EQ(failed_, 0);
}

}  // namespace
}  // namespace tidemark::server
