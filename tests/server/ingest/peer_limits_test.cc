// Framed TCP and StatsD at the limits of one peer, and peers that send next to nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "server/access/guard.h"
#include "server/ingest/io_threads.h"
#include "server/ingest/statsd_server.h"
#include "server/ingest/tcp_server.h"
#include "tests/server/ingest/server_frames.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"
#include "wire/frame.h"
#include "wire/token.h"

namespace tidemark::server {
namespace {

using test::RawSocket;

constexpr char kTokenA[] = "a-token-of-0123456789";
constexpr char kTokenB[] = "b-token-of-0123456789";

std::string Open(const std::string& name) {
  std::string out;
  wire::AppendOpen(out, 1, wire::WireType::kFloat64, name);
  return out;
}

class PeerLimitsTest : public ::testing::Test {
 protected:
  void Limit(PeerLimits limits) {
    limits.loopback_is_one_peer = true;
    peers_ = std::make_unique<PeerTable>(limits, metrics_);
    guard_.HoldTo(peers_.get());
  }
  void StartTcp(TcpServerOptions options = {}) {
    options.listen.guard = &guard_;
    tcp_ = std::make_unique<TcpServer>(io_.io(), sink_, metrics_, options, clocks_, LogFn());
    ASSERT_TRUE(tcp_->Start().ok());
  }
  double Refused(const std::string& protocol, const std::string& reason) {
    return metrics_.PeerRefused(protocol, reason).Value();
  }
  // Served: it is answered.
  bool Serves(RawSocket& socket) {
    return socket.Send(Open("s")) &&
           socket.Receive(wire::kOpenedBytes).size() == wire::kOpenedBytes;
  }

  Metrics metrics_{"test"};
  std::unique_ptr<PeerTable> peers_;
  Guard guard_{metrics_, [] { return std::int64_t{0}; }};
  FakeSink sink_;
  std::atomic<RecordedTime> steady_{0};
  Clocks clocks_{[] { return RecordedTime{0}; }, [this] { return steady_.load(); }};
  IoThreads io_{2, "ingest"};
  std::unique_ptr<TcpServer> tcp_;
};

TEST_F(PeerLimitsTest, ConnectionsOfAnAddress) {
  Limit({.connections = 2});
  StartTcp();
  RawSocket first(tcp_->port());
  auto second = std::make_unique<RawSocket>(tcp_->port());
  for (RawSocket* one : {&first, second.get()}) {
    ASSERT_TRUE(one->Send(Hello()));
    ASSERT_TRUE(Serves(*one));
  }
  RawSocket third(tcp_->port());
  EXPECT_EQ(ErrorIn(third.ReceiveAll()),
            "8 this peer has 2 connections, which is the limit of one peer; try again later");
  EXPECT_EQ(Refused("tcp", "connections"), 1);
  EXPECT_EQ(metrics_.source(Source::kTcp).connections_refused.Value(), 0)
      << "that is another limit";
  EXPECT_EQ(metrics_.source(Source::kTcp).connections.Value(), 2);
  second.reset();
  while (metrics_.source(Source::kTcp).connections.Value() > 1) std::this_thread::yield();
  RawSocket fourth(tcp_->port());
  ASSERT_TRUE(fourth.Send(Hello()));
  EXPECT_TRUE(Serves(fourth));
}

TEST_F(PeerLimitsTest, AStrangerIsItsAddressUntilItHasAName) {
  Limit({.connections = 1});
  const Policy::Sources sources{.file = [](const std::string& path) -> absl::StatusOr<std::string> {
                                  return std::string(path == "a" ? kTokenA : kTokenB);
                                },
                                .environment = [](const char*) -> const char* { return nullptr; }};
  const auto rules = Policy::Parse(
      "[principal.a]\ntokens = [{ file = \"a\" }]\ningest = [\"*\"]\n"
      "[principal.b]\ntokens = [{ file = \"b\" }]\ningest = [\"*\"]\n",
      "rules.toml", sources);
  ASSERT_TRUE(rules.ok()) << rules.status();
  guard_.Set(*rules);
  StartTcp();
  // Each leaves the address's only place when it says who it is.
  RawSocket a(tcp_->port());
  ASSERT_TRUE(a.Send(Hello(kTokenA)));
  ASSERT_TRUE(Serves(a));
  RawSocket b(tcp_->port());
  ASSERT_TRUE(b.Send(Hello(kTokenB)));
  ASSERT_TRUE(Serves(b));
  RawSocket again(tcp_->port());
  ASSERT_TRUE(again.Send(Hello(kTokenA)));
  EXPECT_EQ(ErrorIn(again.ReceiveAll()),
            "8 this peer has 1 connections, which is the limit of one peer; try again later");
  EXPECT_TRUE(Serves(a));
  EXPECT_EQ(Refused("tcp", "connections"), 1);
}

TEST_F(PeerLimitsTest, BytesInReadBuffers) {
  constexpr std::size_t kLimit = 64 << 10;
  Limit({.bytes = kLimit});
  StartTcp();
  std::string begun;  // of a frame of 48 KiB
  const std::vector<double> values(6 << 10, 1.0);
  wire::AppendBatch(begun, 1, 1, wire::WireType::kFloat64, std::as_bytes(std::span(values)));
  begun = Hello() + Open("s") + begun.substr(0, begun.size() - 1);
  RawSocket first(tcp_->port());
  ASSERT_TRUE(first.Send(begun));
  ASSERT_EQ(first.Receive(wire::kOpenedBytes).size(), wire::kOpenedBytes);
  // All that the first one sent is in its buffer by then.
  while (metrics_.source(Source::kTcp).bytes.Value() < static_cast<double>(begun.size())) {
    std::this_thread::yield();
  }
  RawSocket second(tcp_->port());
  second.Send(begun);
  ASSERT_EQ(second.Receive(wire::kOpenedBytes).size(), wire::kOpenedBytes);
  EXPECT_EQ(
      ErrorIn(second.ReceiveAll()),
      "8 this peer has all the bytes on their way that one may have, and this connection is in "
      "the middle of a long frame");
  EXPECT_EQ(Refused("tcp", "bytes"), 1);
  // Short frames are taken in all the same, and the long one once it is whole.
  RawSocket third(tcp_->port());
  ASSERT_TRUE(third.Send(Hello()));
  EXPECT_TRUE(Serves(third));
  ASSERT_TRUE(first.Send(std::string(1, '\0')));
  EXPECT_EQ(first.Receive(wire::kAckBytes).size(), wire::kAckBytes);
}

// 128 bytes each, 128 handles at a time; the first 32 of each connection are free.
TEST_F(PeerLimitsTest, HandlesAreOfThePeersBytes) {
  Limit({.bytes = 64 << 10});
  StartTcp();
  constexpr std::uint32_t kHandles = 1000;
  // 48 KiB: the buffer has 2 to 16 KiB.
  constexpr std::size_t kOpened = 32 + 3 * 128;
  std::string opens = Hello();
  for (std::uint32_t handle = 1; handle <= kHandles; ++handle) {
    wire::AppendOpen(opens, handle, wire::WireType::kFloat64, "s");
  }
  for (int round = 0; round < 2; ++round) {
    auto first = std::make_unique<RawSocket>(tcp_->port());
    ASSERT_TRUE(first->Send(opens));
    EXPECT_EQ(first->Receive(kOpened * wire::kOpenedBytes).size(), kOpened * wire::kOpenedBytes);
    const double refused = round * (kHandles - kOpened + 1) + kHandles - kOpened;
    while (metrics_.Refused(Source::kTcp, "stream_limit").Value() < refused &&
           sink_.opens() < (round + 1U) * kHandles) {
      std::this_thread::yield();
    }
    EXPECT_EQ(Refused("tcp", "bytes"), refused);

    RawSocket second(tcp_->port());
    ASSERT_TRUE(second.Send(opens.substr(0, Hello().size() + 33 * Open("s").size())));
    second.Receive(32 * wire::kOpenedBytes);
    second.EndSending();
    EXPECT_EQ(ErrorIn(second.ReceiveAll()),
              "8 open as handle 33: more than the 65536 bytes that one peer may have on their way");
    EXPECT_EQ(Refused("tcp", "bytes"), refused + 1);
    first.reset();
    while (peers_->peers() > 0) std::this_thread::yield();
  }
}

TEST_F(PeerLimitsTest, StatsdIsClosedWithoutAWord) {
  Limit({.connections = 1});
  StatsdServerOptions options;
  options.listen.guard = &guard_;
  options.udp = false;
  StatsdServer server(io_.io(), sink_, metrics_, options, clocks_, LogFn());
  ASSERT_TRUE(server.Start().ok());
  RawSocket first(server.port());
  ASSERT_TRUE(first.Send("a:1|ms\n"));
  while (sink_.taken() == 0) std::this_thread::yield();
  RawSocket second(server.port());
  EXPECT_EQ(second.ReceiveAll(), "");
  EXPECT_EQ(Refused("statsd_tcp", "connections"), 1);
}

// A byte now and then is no sending.
TEST_F(PeerLimitsTest, WhoSendsAByteNowAndThenIsIdle) {
  TcpServerOptions options;
  options.listen.idle_timeout = std::chrono::seconds(60);
  StartTcp(options);
  RawSocket slow(tcp_->port());
  RawSocket large(tcp_->port());
  for (RawSocket* one : {&slow, &large}) {
    ASSERT_TRUE(one->Send(Hello()));
    ASSERT_TRUE(Serves(*one));
  }
  std::string frame;
  const std::vector<double> values(20'000, 1.0);
  wire::AppendBatch(frame, 1, 1, wire::WireType::kFloat64, std::as_bytes(std::span(values)));
  double sent = metrics_.source(Source::kTcp).bytes.Value();
  for (std::size_t i = 0; i < 3; ++i) {
    steady_ += 25'000'000;
    ASSERT_TRUE(slow.Send(frame.substr(i, 1)));
    ASSERT_TRUE(large.Send(frame.substr(i * 16'384, 16'384)));
    sent += 1 + 16'384;
    while (metrics_.source(Source::kTcp).bytes.Value() < sent) std::this_thread::yield();
    tcp_->Sweep();
  }
  EXPECT_EQ(ErrorIn(slow.ReceiveAll()), "4 closed: nothing arrived for 60000 ms");
  EXPECT_EQ(metrics_.source(Source::kTcp).idle_closed.Value(), 1);
  // Who is at a long frame goes on.
  ASSERT_TRUE(large.Send(frame.substr(3 * 16'384)));
  EXPECT_EQ(large.Receive(wire::kAckBytes).size(), wire::kAckBytes);
}

}  // namespace
}  // namespace tidemark::server
