// Peers that go while the sink is behind, so that nothing waits on their sockets: framed TCP and
// StatsD, reset and ended.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/ingest/io_threads.h"
#include "server/ingest/statsd_server.h"
#include "server/ingest/tcp_server.h"
#include "tests/server/ingest/server_frames.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using test::WaitUntil;

std::string OneValue(std::uint64_t id) {
  std::string out;
  const double value = 1;
  wire::AppendBatch(out, 1, id, wire::WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
  return out;
}

class ResetPeersTest : public testing::Test {
 protected:
  // Small reads, so that most of what is sent stays in the kernel.
  static ListenOptions Listen() {
    ListenOptions listen;
    listen.connections_max = 1;
    listen.read_buffer_bytes = 16'384;
    return listen;
  }
  void StartTcp() {
    TcpServerOptions options;
    options.listen = Listen();
    tcp_ = std::make_unique<TcpServer>(io_.io(), sink_, metrics_, options, clocks_, LogFn());
    ASSERT_TRUE(tcp_->Start().ok());
  }
  void StartStatsd() {
    StatsdServerOptions options;
    options.listen = Listen();
    options.udp = false;
    statsd_ = std::make_unique<StatsdServer>(io_.io(), sink_, metrics_, options, clocks_, LogFn());
    ASSERT_TRUE(statsd_->Start().ok());
  }
  // Sends `bytes`, of which the sink takes in the first value or a few and no more.
  void SendUnread(std::uint16_t port, const std::string& bytes) {
    sink_.SaturateAfter(1);
    socket_.emplace(port);
    ASSERT_TRUE(socket_->Send(bytes));
    ASSERT_TRUE(sink_.WaitForWaiters(1));
  }
  void Reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(setsockopt(socket_->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    socket_.reset();
  }
  // Whether the server has no connection any more once it has looked.
  template <typename Server>
  static bool IsGone(Server& server) {
    return WaitUntil([&] {
      server.Sweep();
      return server.connections() == 0;
    });
  }

  FakeSink sink_;
  Metrics metrics_{"test"};
  const Clocks clocks_{[] { return RecordedTime{0}; }, [] { return RecordedTime{0}; }};
  IoThreads io_{2, "ingest"};
  std::unique_ptr<TcpServer> tcp_;
  std::unique_ptr<StatsdServer> statsd_;
  std::optional<RawSocket> socket_;
};

std::string Batches(std::uint64_t count) {
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, "s");
  for (std::uint64_t id = 1; id <= count; ++id) bytes += OneValue(id);
  return bytes;
}

TEST_F(ResetPeersTest, AFramedOneGivesItsPlaceBackWhileTheSinkIsBehind) {
  StartTcp();
  SendUnread(tcp_->port(), Batches(1000));
  tcp_->Sweep();
  EXPECT_EQ(tcp_->connections(), 1U) << "it is still there";
  Reset();
  ASSERT_TRUE(IsGone(*tcp_));
  EXPECT_EQ(sink_.taken(), 1U);
  RawSocket next(tcp_->port());
  ASSERT_TRUE(next.Send(Batches(2)));
  EXPECT_TRUE(sink_.WaitForWaiters(2)) << "served, though it has to wait";
  EXPECT_EQ(metrics_.source(Source::kTcp).connections_refused.Value(), 0);
  sink_.Release();
  EXPECT_TRUE(sink_.WaitForValues(3));
  next.EndSending();
  next.ReceiveAll();
  EXPECT_EQ(sink_.taken(), 3U) << "of the first one nothing more";
}

// It may wait for its acknowledgements; and what it sent is taken in if it does not.
TEST_F(ResetPeersTest, OneThatHasEndedSendingStays) {
  StartTcp();
  SendUnread(tcp_->port(), Batches(1000));
  socket_->EndSending();
  for (int i = 0; i < 10; ++i) tcp_->Sweep();
  sink_.Release();
  EXPECT_EQ(socket_->ReceiveAll().size(), wire::kOpenedBytes + 1000 * wire::kAckBytes);
  EXPECT_EQ(sink_.taken(), 1000U);
}

TEST_F(ResetPeersTest, LinesOfAStatsdOneThatHadArrivedAreCounted) {
  constexpr int kLines = 7000;  // 49 kB: less than the first window of a connection
  StartStatsd();
  std::string text;
  for (int i = 0; i < kLines; ++i) text += "a:1|ms\n";
  SendUnread(statsd_->port(), text + "half:1");
  Reset();
  ASSERT_TRUE(IsGone(*statsd_));
  EXPECT_LT(sink_.taken(), std::size_t{kLines} / 2);
  EXPECT_EQ(
      static_cast<double>(sink_.taken()) + metrics_.Refused(Source::kStatsdTcp, "reset").Value(),
      kLines + 1);
  EXPECT_EQ(metrics_.Refused(Source::kStatsdTcp, "shutting_down").Value(), 0);
  sink_.Release();
}

}  // namespace
}  // namespace tidemark::server
