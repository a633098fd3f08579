// gRPC's connections at their limits, and that each gives its place and its descriptor back,
// however it ends.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/access_fixture.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"
#include "tidemark/v1/info.grpc.pb.h"

namespace tidemark::test {
namespace {

constexpr char kLevel[] = "tidemark_grpc_connections";
constexpr char kRefused[] = "tidemark_ingest_connections_refused_total{source=\"grpc\"}";
constexpr char kRefusedOfPeer[] =
    "tidemark_peer_refused_total{protocol=\"grpc\",reason=\"connections\"}";
// What a client begins HTTP/2 with, and its SETTINGS.
const std::string kPreface =
    std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);

using Sockets = std::vector<std::unique_ptr<RawSocket>>;

// gRPC's own first frame comes, with its settings.
bool Serves(RawSocket& socket) {
  socket.Send(kPreface);  // a refused one may be closed by now
  const std::string frame = socket.Receive(9);
  return frame.size() == 9 && frame[3] == '\4';
}
// It was closed, with nothing said and in good order.
bool Closed(RawSocket& socket) {
  bool in_order = false;
  return socket.ReceiveAll(&in_order).empty() && in_order;
}
RawSocket& Connect(Sockets& sockets, const TestDaemon& daemon, std::uint32_t host = 1) {
  return *sockets.emplace_back(std::make_unique<RawSocket>(daemon.port("grpc"), 0, host));
}
bool LevelIs(const TestDaemon& daemon, double level) {
  const bool is = WaitUntil([&] { return daemon.Metric(kLevel) == level; });
  EXPECT_TRUE(is) << daemon.Metric(kLevel) << " and not " << level;
  return is;
}
std::size_t Descriptors(TestDaemon& daemon) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(daemon.process().pid()) +
                                                "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A client with a connection of its own; they would share one otherwise.
class OwnConnection {
 public:
  explicit OwnConnection(const TestDaemon& daemon, const std::string& ca = "")
      : channel_(grpc::CreateCustomChannel(daemon.address("grpc"),
                                           ca.empty()
                                               ? grpc::InsecureChannelCredentials()
                                               : grpc::SslCredentials({.pem_root_certs = ca}),
                                           Arguments())) {}

  grpc::StatusCode Ask() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::GetInfoResponse info;
    return v1::InfoService::NewStub(channel_)->GetInfo(&context, {}, &info).error_code();
  }

 private:
  static grpc::ChannelArguments Arguments() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }
  std::shared_ptr<grpc::Channel> channel_;
};

TEST(GrpcConnectionsTest, OneTooManyIsClosedAndTheOthersGoOn) {
  TestDaemon daemon(
      {"--max-connections", "6", "--max-connections-per-peer", "3", "--loopback-is-one-peer"});
  OwnConnection first(daemon);
  EXPECT_EQ(first.Ask(), grpc::OK);
  Sockets sockets;
  EXPECT_TRUE(Serves(Connect(sockets, daemon)));
  EXPECT_TRUE(Serves(Connect(sockets, daemon)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Closed(Connect(sockets, daemon)));
  EXPECT_EQ(daemon.Metric(kRefusedOfPeer), 5);
  EXPECT_EQ(OwnConnection(daemon).Ask(), grpc::UNAVAILABLE);
  EXPECT_EQ(daemon.Metric(kLevel), 3);
  // Another peer is not, until all together are too many.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Serves(Connect(sockets, daemon, 2)));
  EXPECT_TRUE(Serves(Connect(sockets, daemon, 3)));
  EXPECT_EQ(daemon.Metric(kRefused), 0);
  EXPECT_TRUE(Closed(Connect(sockets, daemon, 4)));
  EXPECT_EQ(daemon.Metric(kRefused), 1);
  EXPECT_EQ(daemon.Metric(kLevel), 6);
  EXPECT_EQ(first.Ask(), grpc::OK);

  sockets.clear();
  LevelIs(daemon, 1);
  EXPECT_EQ(OwnConnection(daemon).Ask(), grpc::OK);
  EXPECT_TRUE(Serves(Connect(sockets, daemon)));
  EXPECT_EQ(daemon.Metric(kRefused), 1);
}

TEST(GrpcConnectionsTest, ThisMachineIsManyPeersByDefault) {
  TestDaemon daemon({"--max-connections", "4", "--max-connections-per-peer", "1"});
  Sockets sockets;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Serves(Connect(sockets, daemon)));
  EXPECT_TRUE(Closed(Connect(sockets, daemon)));
  EXPECT_EQ(daemon.Metric(kRefusedOfPeer), 0);
  EXPECT_EQ(daemon.Metric(kRefused), 1);
}

TEST(GrpcConnectionsTest, WhatIsNoOpeningIsClosedAndCounted) {
  TestDaemon daemon({"--tls-handshake-timeout-s", "1"});
  Sockets sockets;
  RawSocket& half = Connect(sockets, daemon);
  half.Send(kPreface.substr(0, 20));
  RawSocket& http1 = Connect(sockets, daemon);
  http1.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(http1.ReceiveAll(), "");
  EXPECT_EQ(half.ReceiveAll(), "") << "its time is over";
  EXPECT_EQ(daemon.Metric("tidemark_grpc_connections_unopened_total"), 2);
  EXPECT_EQ(daemon.Metric(kLevel), 0);
  EXPECT_EQ(OwnConnection(daemon).Ask(), grpc::OK);
}

// In clear nobody waits.
TEST(GrpcConnectionsTest, HandshakesBeginAtAPace) {
  const AccessFixture fixture;
  std::vector<std::string> flags = fixture.Flags("grpc");
  flags.insert(flags.end(), {"--tls-grpc-handshakes-per-s", "1"});
  TestDaemon daemon(flags);
  const auto delayed = [&] {
    return MetricIn(
        Http(daemon.port("http"), "/metrics", "GET", AccessFixture::Token("query")).body,
        "tidemark_grpc_handshakes_delayed_total");
  };
  Sockets sockets;
  // Eight at once, and one or two while these are looked at.
  for (int i = 0; i < 30; ++i) {
    Connect(sockets, daemon).Send(std::string("\x16\x03\x01\x00\x02\x01\x00", 7));
  }
  EXPECT_TRUE(WaitUntil([&] { return delayed() > 10; })) << delayed();

  TestDaemon clear({"--tls-grpc-handshakes-per-s", "1"});
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Serves(Connect(sockets, clear)));
  EXPECT_EQ(clear.Metric("tidemark_grpc_handshakes_delayed_total"), 0);
}

// Refused ones are closed before TLS, which would cost more than the refusal saves.
TEST(GrpcConnectionsTest, OverTlsToo) {
  const AccessFixture fixture;
  std::vector<std::string> flags = fixture.Flags("grpc");
  flags.insert(flags.end(), {"--max-connections-per-peer", "2", "--loopback-is-one-peer",
                             "--tls-handshake-timeout-s", "2"});
  TestDaemon daemon(flags);
  const std::string token = AccessFixture::Token("query");
  const auto metric = [&](const std::string& sample) {
    return MetricIn(Http(daemon.port("http"), "/metrics", "GET", token).body, sample);
  };
  const std::string failed = "tidemark_tls_handshakes_failed_total{protocol=\"grpc\"}";
  const std::string ca = fixture.authority.certificate();
  {
    // Without a token: it is TLS that lets them in.
    OwnConnection one(daemon, ca);
    OwnConnection two(daemon, ca);
    EXPECT_EQ(one.Ask(), grpc::UNAUTHENTICATED);
    EXPECT_EQ(two.Ask(), grpc::UNAUTHENTICATED);
    RawSocket refused(daemon.port("grpc"));
    EXPECT_TRUE(Closed(refused));
    EXPECT_EQ(OwnConnection(daemon, ca).Ask(), grpc::UNAVAILABLE);
    EXPECT_GE(metric(kRefusedOfPeer), 2) << "a client may try more than once";
    EXPECT_EQ(one.Ask(), grpc::UNAUTHENTICATED);
    EXPECT_EQ(metric(failed), 0);
  }
  EXPECT_TRUE(WaitUntil([&] { return metric(kLevel) == 0; }));
  // Handshakes under way count, and those that do not end are ended.
  RawSocket silent(daemon.port("grpc"));
  RawSocket half(daemon.port("grpc"));
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  RawSocket third(daemon.port("grpc"));
  EXPECT_TRUE(Closed(third));
  EXPECT_TRUE(Closed(silent));
  half.ReceiveAll();
  EXPECT_TRUE(WaitUntil([&] { return metric(kLevel) == 0; }));
  EXPECT_EQ(metric(failed), 2);
  EXPECT_EQ(OwnConnection(daemon, ca).Ask(), grpc::UNAUTHENTICATED);
}

TEST(GrpcConnectionsTest, HalfOpenOnesCountAndEnd) {
  TestDaemon daemon({"--max-connections-per-peer", "2", "--loopback-is-one-peer",
                     "--tls-handshake-timeout-s", "2", "--idle-timeout-s", "2"});
  Sockets sockets;
  for (int i = 0; i < 2; ++i) Connect(sockets, daemon);  // and nothing is sent
  EXPECT_TRUE(Closed(Connect(sockets, daemon)));
  EXPECT_EQ(daemon.Metric(kRefusedOfPeer), 1);
  LevelIs(daemon, 0);
  // So do those without a call.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Serves(Connect(sockets, daemon)));
  EXPECT_TRUE(Closed(Connect(sockets, daemon)));
  LevelIs(daemon, 0);
  EXPECT_TRUE(Serves(Connect(sockets, daemon)));
}

TEST(GrpcConnectionsTest, EveryEndGivesTheDescriptorBack) {
  TestDaemon daemon;
  const auto come_and_go = [&](int each) {
    Sockets sockets;
    for (int i = 0; i < each; ++i) {
      Connect(sockets, daemon);                       // closed before a byte
      EXPECT_TRUE(Serves(Connect(sockets, daemon)));  // closed
      EXPECT_TRUE(Serves(Connect(sockets, daemon)));  // reset
      const linger reset{.l_onoff = 1, .l_linger = 0};
      setsockopt(sockets.back()->fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      EXPECT_TRUE(Serves(Connect(sockets, daemon)));  // half closed; gRPC closes the rest
      sockets.back()->EndSending();
      Connect(sockets, daemon).Send("GET / HTTP/1.1\r\n\r\n");  // what gRPC does not understand
    }
    // Those are closed by gRPC, though their clients' ends are open.
    LevelIs(daemon, 3 * each);
    sockets.clear();
    LevelIs(daemon, 0);
  };
  come_and_go(1);
  const std::size_t before = Descriptors(daemon);
  come_and_go(40);
  EXPECT_TRUE(WaitUntil([&] { return Descriptors(daemon) <= before; }))
      << Descriptors(daemon) << " descriptors, " << before << " before";
}

// Which gRPC would not outlive: it accepts never again.
TEST(GrpcConnectionsTest, ServesAgainAfterItWasOutOfDescriptors) {
  TestDaemon daemon;
  EXPECT_EQ(OwnConnection(daemon).Ask(), grpc::OK);
  LevelIs(daemon, 0);
  rlimit limit{};
  ASSERT_EQ(prlimit(daemon.process().pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = Descriptors(daemon) + 5;
  ASSERT_EQ(prlimit(daemon.process().pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  {
    Sockets sockets;
    for (int i = 0; i < 30; ++i) Connect(sockets, daemon);
    EXPECT_TRUE(WaitUntil([&] {
      return daemon.process().err().find("cannot accept: too many open files") != std::string::npos;
    }));
  }
  EXPECT_EQ(OwnConnection(daemon).Ask(), grpc::OK);
}

}  // namespace
}  // namespace tidemark::test
