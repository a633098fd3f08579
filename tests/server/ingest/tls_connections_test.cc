// TLS on an ingest connection, with peers that do not do as a TLS library would: half a record, an
// end without a word behind the last bytes. Who gets in: tests/e2e/access_ports_test.cc.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/access/tls_material.h"
#include "server/ingest/io_threads.h"
#include "server/ingest/statsd_server.h"
#include "server/ingest/tls_socket.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"
#include "tests/support/self_signed_tls.h"
#include "tests/support/slow_tls_client.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using test::SlowTlsClient;
using test::WaitUntil;

// TLS on a socket that the test can go on with by itself.
class TlsPeer {
 public:
  explicit TlsPeer(std::uint16_t port)
      : socket_(port),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(SSL_new(context_.get()), SSL_free) {
    SSL_set_fd(ssl_.get(), socket_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool connected() const { return connected_; }
  RawSocket& socket() { return socket_; }
  bool Send(const std::string& text) {
    std::size_t written = 0;
    return SSL_write_ex(ssl_.get(), text.data(), text.size(), &written) == 1 &&
           written == text.size();
  }
  SSL* ssl() { return ssl_.get(); }

 private:
  RawSocket socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool connected_ = false;
};

class TlsConnectionsTest : public testing::Test {
 protected:
  TlsConnectionsTest() {
    StatsdServerOptions options;
    options.udp = false;
    options.listen.tls = &tls_;
    server_ = std::make_unique<StatsdServer>(io_.io(), sink_, metrics_, options, clocks_, LogFn());
    const absl::Status started = server_->Start();
    EXPECT_TRUE(started.ok()) << started;
  }

  // Runs `what` while the server's only thread stands still, so that it finds all of it at once.
  void WhileItStandsStill(const auto& what) {
    struct Latches {
      std::latch stands{1}, go_on{1};
    };
    // The thread may look at them for a moment longer than this call lasts.
    const auto latches = std::make_shared<Latches>();
    boost::asio::post(io_.io(), [latches] {
      latches->stands.count_down();
      latches->go_on.wait();
    });
    latches->stands.wait();
    what();
    latches->go_on.count_down();
  }

  TlsHolder tls_{test::SelfSignedTls("localhost")};
  FakeSink sink_;
  Metrics metrics_{"test"};
  const Clocks clocks_{[] { return RecordedTime{1'000'000}; }, [] { return RecordedTime{0}; }};
  IoThreads io_{1, "ingest"};
  std::unique_ptr<StatsdServer> server_;
};

// What a session takes is spent, and its certificate chosen, when the first record is whole.
TEST_F(TlsConnectionsTest, BeginsWithItsFirstRecordWhole) {
  SlowTlsClient slow(server_->port());
  const std::string& hello = slow.hello();
  ASSERT_TRUE(slow.socket().Send(hello.substr(0, hello.size() - 1)));
  SlowTlsClient next(server_->port());  // once it is served the first was looked at
  ASSERT_TRUE(next.socket().Send(next.hello()));
  EXPECT_EQ(next.ServerNames(), std::vector<std::string>{"localhost"});
  tls_.Set(test::SelfSignedTls("other"));
  ASSERT_TRUE(slow.socket().Send(hello.substr(hello.size() - 1)));
  EXPECT_EQ(slow.ServerNames(), std::vector<std::string>{"other"});
}

// As a client may cut it (RFC 8446, 5.1): the first record is whole long before the message is.
TEST_F(TlsConnectionsTest, TakesAClientHelloInTwoRecords) {
  SlowTlsClient client(server_->port());
  const std::string& hello = client.hello();
  constexpr std::size_t kHead = 5, kFirst = 10;
  const auto record = [&](std::size_t begin, std::size_t end) {
    const std::size_t size = end - begin;
    return hello.substr(0, 3) + static_cast<char>(size / 256) + static_cast<char>(size % 256) +
           hello.substr(begin, size);
  };
  ASSERT_TRUE(client.socket().Send(record(kHead, kHead + kFirst)));
  ASSERT_TRUE(client.socket().Send(record(kHead + kFirst, hello.size())));
  EXPECT_EQ(client.ServerNames(), std::vector<std::string>{"localhost"});
}

// Who waits for the rest by asking HasMore would ask over and over.
TEST_F(TlsConnectionsTest, HalfARecordIsNothingToRead) {
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::socket ours(io);
  boost::asio::local::stream_protocol::socket theirs(io);
  boost::asio::local::connect_pair(ours, theirs);
  ours.non_blocking(true);
  theirs.native_non_blocking(true);
  TlsSocket socket(tls_.Get(), ours.native_handle());
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> peer(SSL_new(context.get()), SSL_free);
  SSL_set_fd(peer.get(), theirs.native_handle());
  bool done = false;
  for (int turn = 0; turn < 10 && !done; ++turn) {
    const bool connected = SSL_connect(peer.get()) == 1;
    done = socket.Handshake() == TlsSocket::Step::kDone && connected;
  }
  ASSERT_TRUE(done) << socket.error();

  const auto read = [&](boost::system::error_code& error) {
    std::array<std::byte, 100> room;
    const std::size_t size = socket.Read(room, error);
    return std::string(reinterpret_cast<const char*>(room.data()), size);
  };
  boost::system::error_code error;
  ASSERT_EQ(SSL_write(peer.get(), "a:1|ms", 6), 6);
  EXPECT_EQ(read(error), "a:1|ms");
  for (const std::string half : {"\x17\x03\x03", "\x40", "\x01"}) {
    ASSERT_EQ(theirs.send(boost::asio::buffer(half)), half.size());
    EXPECT_EQ(read(error), "");
    EXPECT_EQ(error, boost::asio::error::would_block);
    EXPECT_FALSE(socket.HasMore());
  }
}

TEST_F(TlsConnectionsTest, TheLastLineNeedsNoEndWhenTheEndComesWithIt) {
  TlsPeer peer(server_->port());
  ASSERT_TRUE(peer.connected());
  WhileItStandsStill([&] {
    EXPECT_TRUE(peer.Send("a:1|ms\na:2|ms"));
    peer.socket().EndSending();
  });
  ASSERT_TRUE(sink_.WaitForValues(1));
  EXPECT_TRUE(sink_.WaitForValues(2));
}

// The keys of a connection change while lines come: an answer of TLS's own is owed by a read.
TEST_F(TlsConnectionsTest, ChangesOfKeysLoseNothing) {
  TlsPeer peer(server_->port());
  ASSERT_TRUE(peer.connected());
  constexpr std::size_t kLines = 2000;
  for (std::size_t i = 0; i < kLines; ++i) {
    ASSERT_EQ(SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_TRUE(peer.Send("a:1|ms\n"));
  }
  EXPECT_TRUE(sink_.WaitForValues(kLines));
}

// While the sink is behind; in clear: reset_peers_test.cc.
TEST_F(TlsConnectionsTest, LinesOfAPeerThatResetAreCounted) {
  constexpr int kLines = 5000;
  std::string text;
  for (int i = 0; i < kLines; ++i) text += "a:1|ms\n";
  sink_.SaturateAfter(1);
  std::optional<TlsPeer> peer(std::in_place, server_->port());
  ASSERT_TRUE(peer->connected());
  ASSERT_TRUE(peer->Send(text));
  ASSERT_TRUE(sink_.WaitForWaiters(1));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(setsockopt(peer->socket().fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  peer.reset();
  EXPECT_TRUE(WaitUntil([&] {
    server_->Sweep();
    return server_->connections() == 0;
  }));
  EXPECT_LT(sink_.taken(), std::size_t{kLines});
  EXPECT_EQ(
      static_cast<double>(sink_.taken()) + metrics_.Refused(Source::kStatsdTcp, "reset").Value(),
      kLines);
}

}  // namespace
}  // namespace tidemark::server
