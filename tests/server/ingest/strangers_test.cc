// Framed TCP with rules: how long a peer may say nothing of who it is, and rules that come later.
#include <gtest/gtest.h>

#include "server/access/guard.h"
#include "server/ingest/io_threads.h"
#include "server/ingest/tcp_server.h"
#include "tests/server/ingest/server_frames.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"
#include "wire/frame.h"

namespace tidemark::server {
namespace {

using test::RawSocket;

// Where there are rules, whoever does not say who they are has a connection for a limited time.
TEST(StrangersTest, AStrangerWhoSaysNothingIsClosed) {
  Metrics metrics("test");
  Guard guard(metrics, [] { return std::int64_t{0}; });
  const Policy::Sources none;
  const auto rules = Policy::Parse("[principal.anonymous]\ningest = [\"*\"]\n", "r.toml", none);
  ASSERT_TRUE(rules.ok()) << rules.status();
  guard.Set(*rules);
  FakeSink sink;
  IoThreads io(1, "ingest");
  TcpServerOptions options;
  options.listen.guard = &guard;
  options.listen.handshake_timeout = std::chrono::milliseconds(50);
  TcpServer server(io.io(), sink, metrics, options, Clocks{[] { return 0; }, [] { return 0; }},
                   LogFn());
  ASSERT_TRUE(server.Start().ok());
  RawSocket known(server.port());
  ASSERT_TRUE(known.Send(Hello()));
  RawSocket silent(server.port());
  RawSocket half(server.port());
  ASSERT_TRUE(half.Send(Hello().substr(0, 3)));
  for (RawSocket* stranger : {&silent, &half}) {
    EXPECT_EQ(ErrorIn(stranger->ReceiveAll()),
              "16 closed: no token and no frame came within 50 ms");
  }
  EXPECT_EQ(metrics.AccessRefused("tcp", "no_credentials").Value(), 2);
  // Who has said so stays.
  std::string open;
  wire::AppendOpen(open, 1, wire::WireType::kFloat64, "s");
  ASSERT_TRUE(known.Send(open));
  EXPECT_EQ(known.Receive(wire::kOpenedBytes).size(), wire::kOpenedBytes);
}

// A handle is known by its stream's name.
TEST(StrangersTest, RulesThatComeLaterHoldForStreamsThatAreOpen) {
  Metrics metrics("test");
  Guard guard(metrics, [] { return std::int64_t{0}; });
  FakeSink sink;
  IoThreads io(1, "ingest");
  TcpServerOptions options;
  options.listen.guard = &guard;
  TcpServer server(io.io(), sink, metrics, options, Clocks{[] { return 0; }, [] { return 0; }},
                   LogFn());
  ASSERT_TRUE(server.Start().ok());
  std::string opens = Hello();
  std::string batches;
  for (const std::uint32_t handle : {1U, 2U}) {
    wire::AppendOpen(opens, handle, wire::WireType::kFloat64, handle == 1 ? "a.x" : "b.x");
    const double value = 1;
    wire::AppendBatch(batches, handle, 7, wire::WireType::kFloat64,
                      std::as_bytes(std::span(&value, 1)));
  }
  RawSocket socket(server.port());
  ASSERT_TRUE(socket.Send(opens));
  ASSERT_EQ(socket.Receive(2 * wire::kOpenedBytes).size(), 2 * wire::kOpenedBytes);
  const Policy::Sources none;
  const auto rules = Policy::Parse("[principal.anonymous]\ningest = [\"a.*\"]\n", "r.toml", none);
  ASSERT_TRUE(rules.ok()) << rules.status();
  guard.Set(*rules);
  ASSERT_TRUE(socket.Send(batches));
  socket.EndSending();
  EXPECT_EQ(socket.Receive(wire::kAckBytes).size(), wire::kAckBytes);
  EXPECT_EQ(ErrorIn(socket.ReceiveAll()).substr(0, 10), "7 batch 7:");
  EXPECT_EQ(sink.Numbers("a.x").size(), 1U);
  EXPECT_EQ(sink.Numbers("b.x").size(), 0U);
}

}  // namespace
}  // namespace tidemark::server
