// StatsD lines over UDP and TCP into the real daemon, read back through the client. Every form of a
// line: tests/server/ingest.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"

namespace tidemark::test {
namespace {

using client::Value;

class StatsdTest : public testing::Test {
 protected:
  // Nothing is answered: what was sent is there once its stream holds so many values.
  void ExpectCount(const std::string& stream, std::uint64_t n) {
    std::uint64_t count = 0;
    EXPECT_TRUE(WaitUntil([&] {
      const auto streams = daemon_.client().ListStreams(stream);
      count = streams.empty() || streams[0].name != stream ? 0 : streams[0].count;
      return count >= n;
    })) << stream
        << " holds " << count << " values";
    EXPECT_EQ(count, n) << stream;
  }
  std::vector<double> Sorted(const std::string& stream, std::size_t n) {
    std::vector<double> phi;
    for (std::size_t i = 1; i <= n; ++i) {
      phi.push_back(static_cast<double>(i) / static_cast<double>(n));
    }
    std::vector<double> values;
    for (const auto& a : daemon_.client().Quantiles(stream, phi).answers) {
      values.push_back(std::get<double>(a.value.kind));
    }
    return values;
  }
  double Metric(const std::string& name, const std::string& labels) {
    return daemon_.Metric(name + "{" + labels + "}");
  }

  TestDaemon daemon_;
};

TEST_F(StatsdTest, UdpAndTcpFillTheSameStreams) {
  SendUdp(daemon_.port("statsd"),
          "latency:12.5|ms|#zone:b,host:web-1\nlatency:7|ms|#host:web-1,zone:b\n"
          "hits:5|c|@0.1\nhits:1|c\n"
          "users:alice|s\nusers:bob|s\nusers:alice|s\n"
          "load:3|g\nload:+2|g\nload:-1|g\n"
          "multi:1:2:3|d");
  const std::string latency = R"(latency{host="web-1",zone="b"})";
  ExpectCount(latency, 2);
  RawSocket tcp(daemon_.port("statsd"));
  ASSERT_TRUE(tcp.connected());
  ASSERT_TRUE(tcp.Send("latency:100|h|#zone:b,host:web-1\nplain:1|d\nusers:carol|s\nlast:4|d"));
  tcp.EndSending();
  ExpectCount(latency, 3);
  EXPECT_EQ(Sorted(latency, 3), (std::vector<double>{7, 12.5, 100}));
  ExpectCount("hits", 2);
  EXPECT_EQ(Sorted("hits", 2), (std::vector<double>{1, 50}));
  ExpectCount("load", 3);
  EXPECT_EQ(Sorted("load", 3), (std::vector<double>{3, 4, 5}));
  ExpectCount("multi", 3);
  ExpectCount("last", 1);
  ExpectCount("users", 4);
  const client::HeavyHittersAnswer top = daemon_.client().HeavyHitters("users", 0.5);
  ASSERT_EQ(top.items.size(), 1u);
  EXPECT_EQ(top.items[0].value, Value{std::string("alice")});
  EXPECT_EQ(top.items[0].count_low, 2u);
  EXPECT_EQ(Metric("tidemark_statsd_lines_total", R"(kind="set",source="statsd_udp")"), 3);
  EXPECT_EQ(Metric("tidemark_ingest_values_total", R"(source="statsd_tcp")"), 4);
}

TEST_F(StatsdTest, WrongLinesAreCountedAndTheRestIsTaken) {
  SendUdp(daemon_.port("statsd"),
          "no value\nbad:abc|ms\nnone:nan|ms\nwhat:1|zz\n:1|c\n_e{5,4}:title|text\n"
          "_sc|check|0\ngood:1|ms");
  ExpectCount("good", 1);
  const auto refused = [&](const std::string& reason) {
    return Metric("tidemark_ingest_refused_total", "reason=\"" + reason + "\"");
  };
  EXPECT_EQ(refused("nan"), 1);
  EXPECT_EQ(daemon_.Metric("tidemark_ingest_refused_total"), 5);
  EXPECT_EQ(Metric("tidemark_statsd_lines_total", R"(kind="event")"), 1);
  EXPECT_EQ(Metric("tidemark_statsd_lines_total", R"(kind="service_check")"), 1);
  // A line of another type than its stream.
  SendUdp(daemon_.port("statsd"), "good:text|s\ngood:2|ms");
  ExpectCount("good", 2);
  EXPECT_EQ(refused("type_mismatch"), 1);
}

// Once each: the others of its datagram are taken in.
TEST_F(StatsdTest, AnswersSayWhatTheirStreamsRefused) {
  daemon_.client().CreateStream("whole", {.type = client::ValueType::kInt64});
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += i % 25 == 7 ? "whole:1.5|c\n" : "whole:1|c\n";
  SendUdp(daemon_.port("statsd"), lines);
  ExpectCount("whole", 96);
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon_.client().Quantiles("whole", {0.5}).losses.refused_whole == 4; }));
  EXPECT_EQ(Metric("tidemark_ingest_refused_total", R"(reason="bad_value")"), 4);
  EXPECT_EQ(daemon_.client().DescribeStream("whole").losses.refused_whole, 4u);
}

TEST_F(StatsdTest, AnswersSayWhatTheKernelDropped) {
  SendUdp(daemon_.port("statsd"), "kept:1|ms");
  ExpectCount("kept", 1);
  LoseDatagrams(daemon_);
  std::uint64_t dropped = 0;
  EXPECT_TRUE(WaitUntil([&] {
    dropped = daemon_.client().Quantiles("kept", {0.5}).losses.dropped_datagrams;
    return dropped != 0;
  }));
  EXPECT_LE(dropped, kLostAtMost);
  const client::StreamInfo info = daemon_.client().DescribeStream("kept");
  EXPECT_EQ(info.count, 1u);
  EXPECT_EQ(info.losses.refused_whole, 0u) << "it is not known whose they were";
  EXPECT_GE(info.losses.dropped_datagrams, dropped);
  EXPECT_GE(Metric("tidemark_ingest_dropped_total", R"(reason="kernel_buffer")"),
            static_cast<double>(dropped));
}

TEST_F(StatsdTest, ManyLinesOverTcp) {
  constexpr int kLines = 200'000;
  std::string lines;
  for (int i = 0; i < kLines; ++i) lines += "many:" + std::to_string(i) + "|ms\n";
  RawSocket tcp(daemon_.port("statsd"));
  ASSERT_TRUE(tcp.Send(lines));
  tcp.EndSending();
  ExpectCount("many", kLines);
  const auto answer = daemon_.client().Quantiles("many", {0.5}).answers.at(0);
  const auto rank = static_cast<std::uint64_t>(std::get<double>(answer.value.kind)) + 1;
  EXPECT_LE(answer.rank_low, rank);
  EXPECT_GE(answer.rank_high, rank);
}

}  // namespace
}  // namespace tidemark::test
