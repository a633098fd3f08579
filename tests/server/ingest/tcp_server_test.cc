// The framed TCP server over real sockets on a free port, before a fake sink: batches and answers,
// wrong input, flow control, limits, stop. The bytes themselves are tested in tests/wire.
#include "server/ingest/tcp_server.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "client/tcp_producer.h"
#include "server/ingest/io_threads.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"

namespace tidemark::server {
namespace {

using client::TcpProducer;
using client::TcpStream;
using test::RawSocket;
using wire::WireType;

const Clocks kNoTime{[] { return 0; }, [] { return 0; }};
constexpr std::chrono::milliseconds kStopDeadline{5000};

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename T>
std::string Packed(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class TcpServerTest : public testing::Test {
 protected:
  void StartServer(TcpServerOptions options = {}) {
    server_ = std::make_unique<TcpServer>(
        io_.io(), sink_, metrics_, options,
        Clocks{[this] { return time_.load(); }, [this] { return steady_.load(); }},
        [this](IngestLogLevel, std::string_view line) {
          const std::lock_guard lock(log_mutex_);
          log_.emplace_back(line);
        });
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
    ASSERT_NE(server_->port(), 0);
  }

  std::unique_ptr<TcpProducer> Connect(client::TcpProducerOptions options = {}) {
    auto producer = TcpProducer::Connect("127.0.0.1", server_->port(), options);
    EXPECT_TRUE(producer.ok()) << producer.status();
    return *std::move(producer);
  }

  // The frames of `bytes`, one line each: "OPENED 1 float64", "ACK 7 2 0", "ERROR 5 flags batch
  // text".
  static std::vector<std::string> Answers(const std::string& bytes) {
    wire::ServerFrameDecoder decoder;
    std::vector<std::string> lines;
    std::size_t at = 0;
    wire::ServerFrame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    while (decoder.Next(Bytes(bytes).subspan(at), frame, consumed, needed) ==
           wire::DecodeResult::kFrame) {
      at += consumed;
      std::ostringstream line;
      if (frame.type == wire::FrameType::kOpened) {
        line << "OPENED " << frame.handle << ' ' << wire::WireTypeName(frame.value_type);
      } else if (frame.type == wire::FrameType::kAck) {
        line << "ACK " << frame.batch_id << ' ' << frame.accepted << ' ' << frame.refused;
      } else {
        line << "ERROR " << frame.code << ' ' << frame.flags << ' ' << frame.batch_id << ' '
             << frame.message;
      }
      lines.push_back(line.str());
    }
    EXPECT_EQ(at, bytes.size()) << "bytes after the last whole frame";
    return lines;
  }

  // Sends `bytes` on a connection of its own, ends sending, and returns all answers.
  std::vector<std::string> Exchange(const std::string& bytes) {
    RawSocket socket(server_->port());
    EXPECT_TRUE(socket.Send(bytes));
    socket.EndSending();
    return Answers(socket.ReceiveAll());
  }

  double Refused(std::string_view reason) { return metrics_.Refused(Source::kTcp, reason).Value(); }

  FakeSink sink_;
  Metrics metrics_{"test"};
  std::atomic<RecordedTime> time_{1'000'000};
  std::atomic<RecordedTime> steady_{5'000};
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  IoThreads io_{2, "ingest"};
  std::unique_ptr<TcpServer> server_;
};

std::string Hello() {
  std::string out;
  wire::AppendPreamble(out);
  return out;
}

TEST_F(TcpServerTest, EveryTypeArrivesAsItWasSent) {
  StartServer();
  auto producer = Connect();
  const auto send = [&](const char* name, WireType type, const std::string& packed) {
    const auto stream = producer->Open(name, type);
    ASSERT_TRUE(stream.ok()) << stream.status();
    EXPECT_EQ(stream->type, type);
    ASSERT_TRUE(producer->SendBatch(*stream, Bytes(packed)).ok());
  };
  send("f64", WireType::kFloat64, Packed<double>({1.5, -2, 1e300}));
  send("f32", WireType::kFloat32, Packed<float>({0.5F, -0.25F}));
  send("i64", WireType::kInt64, Packed<std::int64_t>({-7, 7}));
  send("u64", WireType::kUint64, Packed<std::uint64_t>({1ULL << 50}));
  send("u32", WireType::kUint32, Packed<std::uint32_t>({4'000'000'000U}));
  send("ip", WireType::kIpv4, Packed<std::uint32_t>({0x7F000001U}));
  const auto strings = producer->Open("words", WireType::kString);
  ASSERT_TRUE(strings.ok());
  const std::vector<std::string_view> words = {"a", "", "bc"};
  ASSERT_TRUE(producer->SendStrings(*strings, words).ok());
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_EQ(producer->accepted(), 13U);
  EXPECT_EQ(producer->acknowledged_batches(), 7U);
  EXPECT_EQ(sink_.Numbers("f64"), (std::vector<double>{1.5, -2, 1e300}));
  EXPECT_EQ(sink_.Numbers("f32"), (std::vector<double>{0.5, -0.25}));
  EXPECT_EQ(sink_.Numbers("i64"), (std::vector<double>{-7, 7}));
  EXPECT_EQ(sink_.Numbers("u64"), (std::vector<double>{std::ldexp(1.0, 50)}));
  EXPECT_EQ(sink_.Numbers("u32"), (std::vector<double>{4e9}));
  EXPECT_EQ(sink_.Numbers("ip"), (std::vector<double>{2130706433.0}));
  EXPECT_EQ(sink_.Items("words"), (std::vector<std::string>{"a", "", "bc"}));
  EXPECT_EQ(metrics_.source(Source::kTcp).batches.Value(), 7);
  EXPECT_EQ(metrics_.source(Source::kTcp).values.Value(), 13);
  server_->Stop(kStopDeadline);
  EXPECT_EQ(metrics_.source(Source::kTcp).connections.Value(), 0);
}

TEST_F(TcpServerTest, ManyFramesInOneWriteAreAnsweredInOrder) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 3, WireType::kDefault, "s");
  std::vector<std::string> expected = {"OPENED 3 float64"};
  for (std::uint64_t id = 0; id < 5000; ++id) {
    wire::AppendBatch(bytes, 3, id, WireType::kDefault,
                      Bytes(Packed<double>({static_cast<double>(id)})));
    expected.push_back("ACK " + std::to_string(id) + " 1 0");
  }
  EXPECT_EQ(Exchange(bytes), expected);
  const auto numbers = sink_.Numbers("s");
  ASSERT_EQ(numbers.size(), 5000U);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<double>(i));
}

TEST_F(TcpServerTest, ByteByByteIsTheSame) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 3, WireType::kFloat32, "dribble");
  wire::AppendBatch(bytes, 3, 8, WireType::kFloat32, Bytes(Packed<float>({1, 2, 3})));
  RawSocket socket(server_->port());
  for (const char byte : bytes) ASSERT_TRUE(socket.Send({&byte, 1}));
  socket.EndSending();
  EXPECT_EQ(Answers(socket.ReceiveAll()),
            (std::vector<std::string>{"OPENED 3 float32", "ACK 8 3 0"}));
}

TEST_F(TcpServerTest, FramesLargerThanTheReadBufferWork) {
  TcpServerOptions options;
  options.listen.read_buffer_bytes = 16 << 10;
  StartServer(options);
  auto producer = Connect();
  const auto stream = producer->Open("large", WireType::kFloat64);
  ASSERT_TRUE(stream.ok());
  std::vector<double> values(std::size_t{1} << 19);  // 4 MiB: the largest frame
  std::iota(values.begin(), values.end(), 0.0);
  std::vector<double> expected;
  for (const std::size_t size :
       {values.size(), std::size_t{1}, values.size() / 2, std::size_t{7}}) {
    ASSERT_TRUE(producer->SendBatch(*stream, std::span(values).first(size)).ok());
    expected.insert(expected.end(), values.begin(),
                    values.begin() + static_cast<std::ptrdiff_t>(size));
  }
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_TRUE(sink_.Numbers("large") == expected);
}

TEST_F(TcpServerTest, NanAreCountedAndTheRestTakenIn) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  wire::AppendBatch(bytes, 1, 1, WireType::kFloat64, Bytes(Packed<double>({1, nan, 2, nan, nan})));
  EXPECT_EQ(Exchange(bytes), (std::vector<std::string>{"OPENED 1 float64", "ACK 1 2 3"}));
  EXPECT_EQ(Refused("nan"), 3);
}

TEST_F(TcpServerTest, ErrorsThatLeaveFramingIntactAreAnsweredAndTheConnectionGoesOn) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendBatch(bytes, 9, 1, WireType::kDefault, Bytes("12345678"));  // not open
  wire::AppendOpen(bytes, 1, WireType::kDefault, "");                     // bad name
  wire::AppendOpen(bytes, 1, WireType::kDefault, "\xC3(");                // not UTF-8
  wire::AppendOpen(bytes, 1, static_cast<WireType>(9), "s");              // no type
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  wire::AppendOpen(bytes, 2, WireType::kUint32, "s");                    // other type
  wire::AppendBatch(bytes, 1, 2, WireType::kUint32, Bytes("12345678"));  // other type
  wire::AppendBatch(bytes, 1, 3, static_cast<WireType>(77), Bytes("12345678"));
  wire::AppendBatch(bytes, 1, 4, WireType::kFloat64, Bytes("1234567"));  // not whole values
  wire::AppendOpen(bytes, 5, WireType::kString, "words");
  wire::AppendBatch(bytes, 5, 5, WireType::kString, Bytes(std::string("\x09\0\0\0a", 5)));
  wire::AppendBatch(bytes, 1, 6, WireType::kFloat64, Bytes(Packed<double>({42})));
  EXPECT_EQ(
      Exchange(bytes),
      (std::vector<std::string>{
          "ERROR 5 2 1 batch 1: no stream is open as handle 9; expected OPEN before",
          "ERROR 3 4 0 open as handle 1: the name is empty, too long, or not plain UTF-8",
          "ERROR 3 4 0 open as handle 1: the name is empty, too long, or not plain UTF-8",
          "ERROR 3 4 0 open as handle 1: value type 9 names no type; expected 0 to 8, "
          "and 16 more with weights or 32 more with y",
          "OPENED 1 float64", "ERROR 9 4 0 open as handle 2: the stream exists with another type",
          "ERROR 9 2 2 batch 2: carries uint32 but the stream of handle 1 holds float64",
          "ERROR 3 2 3 batch 3: value type 77 names no type; expected 0 to 8, "
          "and 16 more with weights or 32 more with y",
          "ERROR 3 2 4 batch 4: the size is no multiple of the value's", "OPENED 5 string",
          "ERROR 3 2 5 batch 5: item 0 at byte 0 of the values claims 9 bytes; 1 follow",
          "ACK 6 1 0"}));
  EXPECT_EQ(Refused("unknown_stream"), 1);
  EXPECT_EQ(Refused("bad_name"), 2);
  EXPECT_EQ(Refused("bad_value"), 1);
  EXPECT_EQ(Refused("type_mismatch"), 4);
  EXPECT_EQ(Refused("bad_frame"), 1);
}

TEST_F(TcpServerTest, ADeletedStreamIsNotFoundUntilItIsOpenedAgain) {
  StartServer();
  auto producer = Connect();
  const auto stream = producer->Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok());
  const std::vector<double> values = {1};
  ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
  ASSERT_TRUE(producer->Flush().ok());
  sink_.Delete("s");
  ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
  ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
  ASSERT_TRUE(producer->Flush().ok());
  ASSERT_EQ(producer->errors().size(), 2U);
  EXPECT_EQ(producer->errors()[0].batch_id, 2U);
  EXPECT_TRUE(absl::IsNotFound(producer->errors()[0].status));
  const auto again = producer->Open("s", WireType::kFloat64);
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(producer->SendBatch(*again, values).ok());
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_EQ(producer->accepted(), 2U);
}

TEST_F(TcpServerTest, BrokenFramingEndsTheConnectionWithTheReason) {
  StartServer();
  std::string open = Hello();
  wire::AppendOpen(open, 1, WireType::kFloat64, "s");
  struct Case {
    std::string bytes;
    std::vector<std::string> answers;
  };
  const std::vector<Case> cases = {
      {"GET /metrics HTTP/1.1\r\n\r\n",
       {"ERROR 3 1 0 bad preamble at byte 0: the connection begins with 47 45 54 20; expected 54 "
        "44 4d 4b (\"TDMK\")"}},
      {std::string("TDMK\x02\0\0\0", 8),
       {"ERROR 3 1 0 unknown protocol version 2 at byte 4; expected 1"}},
      {open + std::string("\xFF\xFF\xFF\x7F", 4),
       {"OPENED 1 float64",
        "ERROR 3 1 0 frame length 2147483647 at byte 21 is too large; expected at most 4194324"}},
      {open + std::string("\x14\0\0\0\x05\0\0\0", 8),
       {"OPENED 1 float64",
        "ERROR 3 1 0 unknown frame type 5 at byte 25; expected 1 (OPEN) to 4 (SEQUENCED_BATCH)"}},
  };
  for (const Case& c : cases) {
    // What follows the broken frame is much, so that closing at once would reset the connection and
    // lose the answer.
    RawSocket socket(server_->port());
    ASSERT_TRUE(socket.Send(c.bytes));
    socket.Send(std::string(200'000, 'x'));
    socket.EndSending();
    bool ended_cleanly = false;
    EXPECT_EQ(Answers(socket.ReceiveAll(&ended_cleanly)), c.answers);
    EXPECT_TRUE(ended_cleanly);
  }
  EXPECT_EQ(Refused("bad_frame"), 3);
  EXPECT_EQ(Refused("frame_too_large"), 1);
  const std::lock_guard lock(log_mutex_);
  ASSERT_EQ(log_.size(), 1U) << "the same second: one line";
  EXPECT_NE(log_[0].find("tcp 127.0.0.1:"), std::string::npos) << log_[0];
  EXPECT_NE(log_[0].find("bad preamble at byte 0"), std::string::npos) << log_[0];
}

TEST_F(TcpServerTest, ATruncatedFrameIsCountedAndWhatCameBeforeStays) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  wire::AppendBatch(bytes, 1, 1, WireType::kFloat64, Bytes(Packed<double>({1, 2})));
  wire::AppendBatch(bytes, 1, 2, WireType::kFloat64, Bytes(Packed<double>({3, 4})));
  bytes.resize(bytes.size() - 3);
  EXPECT_EQ(Exchange(bytes), (std::vector<std::string>{"OPENED 1 float64", "ACK 1 2 0"}));
  EXPECT_EQ(Refused("bad_frame"), 1);
  EXPECT_EQ(sink_.Numbers("s"), (std::vector<double>{1, 2}));
}

TEST_F(TcpServerTest, ASaturatedSinkStopsReadingAndTheSenderLosesNothing) {
  StartServer();
  auto producer = Connect({.window_batches = 4000});
  const auto stream = producer->Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok());
  sink_.SaturateAfter(1000);
  constexpr std::size_t kBatches = 3000;
  const std::vector<double> values(4096, 1.0);
  std::thread sender([&] {
    for (std::size_t i = 0; i < kBatches; ++i)
      ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
    ASSERT_TRUE(producer->Flush().ok());
  });
  EXPECT_TRUE(sink_.WaitForWaiters(1));
  // It stopped after the very batch that filled the sink.
  EXPECT_EQ(sink_.taken(), 4096U);
  EXPECT_EQ(metrics_.source(Source::kTcp).paused.Value(), 1);
  // Idle while it waits for the sink: not the peer's fault.
  steady_ += 3'600'000'000;
  sink_.Release();
  sender.join();
  EXPECT_EQ(producer->accepted(), kBatches * 4096);
  EXPECT_EQ(sink_.taken(), kBatches * 4096);
}

TEST_F(TcpServerTest, AProducerThatNeverReadsItsAnswersIsNoLongerRead) {
  TcpServerOptions options;
  options.listen.outbound_bytes_max = 4096;
  StartServer(options);
  RawSocket socket(server_->port(), 2048);
  std::string hello = Hello();
  wire::AppendOpen(hello, 1, WireType::kFloat64, "s");
  ASSERT_TRUE(socket.Send(hello));
  // Empty batches: 24 bytes in, 32 bytes out.
  constexpr std::uint64_t kPerWrite = 1000;
  std::uint64_t sent_bytes = 0;
  std::uint64_t next = 0;
  std::string unsent;
  // Until the socket has taken nothing for a while: server and kernel are full.
  int refused = 0;
  while (refused < 20) {
    if (unsent.empty()) {
      for (std::uint64_t i = 0; i < kPerWrite; ++i) {
        wire::AppendBatch(unsent, 1, next++, WireType::kDefault, {});
      }
    }
    const std::size_t sent = socket.SendSome(unsent);
    sent_bytes += sent;
    unsent.erase(0, sent);
    if (sent > 0) {
      refused = 0;
    } else {
      ++refused;
      // Wait for room in the socket, at most 20 ms.
      pollfd wait{socket.fd(), POLLOUT, 0};
      poll(&wait, 1, 20);
    }
    ASSERT_LT(sent_bytes, 100U << 20) << "the server reads on and on";
  }
  // Another connection is served meanwhile.
  auto other = Connect();
  ASSERT_TRUE(other->Open("other").ok());
  // Now the producer reads, and everything that it sent is answered in order.
  ASSERT_TRUE(socket.Receive(wire::kOpenedBytes).size() == wire::kOpenedBytes);
  const std::uint64_t whole = next;
  std::thread sender([&] {
    EXPECT_TRUE(socket.Send(unsent));
    socket.EndSending();
  });
  const auto answers = Answers(socket.ReceiveAll());
  sender.join();
  ASSERT_EQ(answers.size(), whole);
  for (std::uint64_t id = 0; id < whole; ++id) {
    ASSERT_EQ(answers[id], "ACK " + std::to_string(id) + " 0 0");
  }
}

TEST_F(TcpServerTest, ConnectionsBeyondTheLimitAreToldSo) {
  TcpServerOptions options;
  options.listen.connections_max = 2;
  StartServer(options);
  auto first = Connect();
  auto second = Connect();
  ASSERT_TRUE(first->Open("a").ok());
  ASSERT_TRUE(second->Open("b").ok());
  auto third = Connect();
  const auto refused = third->Open("c");
  EXPECT_EQ(refused.status(),
            absl::ResourceExhaustedError(
                "the server has 2 connections, which is its limit; try again later"));
  EXPECT_EQ(metrics_.source(Source::kTcp).connections_refused.Value(), 1);
  EXPECT_EQ(metrics_.source(Source::kTcp).connections.Value(), 2);
  // A place becomes free.
  first.reset();
  while (metrics_.source(Source::kTcp).connections.Value() > 1) std::this_thread::yield();
  auto fourth = Connect();
  EXPECT_TRUE(fourth->Open("d").ok());
}

TEST_F(TcpServerTest, HandlesOfAConnectionAreLimitedAndMayBeReused) {
  TcpServerOptions options;
  options.handles_max = 2;
  StartServer(options);
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "a");
  wire::AppendOpen(bytes, 2, WireType::kFloat64, "b");
  wire::AppendOpen(bytes, 3, WireType::kFloat64, "c");
  wire::AppendOpen(bytes, 2, WireType::kUint32, "d");
  wire::AppendBatch(bytes, 2, 1, WireType::kDefault, Bytes("1234"));
  EXPECT_EQ(Exchange(bytes),
            (std::vector<std::string>{
                "OPENED 1 float64", "OPENED 2 float64",
                "ERROR 8 4 0 open as handle 3: this connection has 2 streams open, which is the "
                "limit",
                "OPENED 2 uint32", "ACK 1 1 0"}));
  EXPECT_EQ(sink_.Numbers("d").size(), 1U);
}

TEST_F(TcpServerTest, IdleConnectionsAreClosed) {
  TcpServerOptions options;
  options.listen.idle_timeout = std::chrono::seconds(60);
  StartServer(options);
  auto idle = Connect();
  ASSERT_TRUE(idle->Open("a").ok());
  steady_ += 59'000'000;
  auto busy = Connect();
  ASSERT_TRUE(busy->Open("b").ok());
  server_->Sweep();
  ASSERT_TRUE(busy->Open("c").ok());
  EXPECT_EQ(metrics_.source(Source::kTcp).idle_closed.Value(), 0);
  steady_ += 1'000'000;
  server_->Sweep();
  const auto answer = idle->Open("d");
  EXPECT_EQ(answer.status(), absl::DeadlineExceededError("closed: nothing arrived for 60000 ms"));
  EXPECT_TRUE(busy->Open("e").ok());
  EXPECT_EQ(metrics_.source(Source::kTcp).idle_closed.Value(), 1);
}

TEST_F(TcpServerTest, AClockThatIsSetClosesNobody) {
  TcpServerOptions options;
  options.listen.idle_timeout = std::chrono::seconds(60);
  StartServer(options);
  auto producer = Connect();
  for (const RecordedTime step : {86'400'000'000, -2 * 86'400'000'000}) {
    ASSERT_TRUE(producer->Open("a").ok());
    time_ += step;
    server_->Sweep();
  }
  EXPECT_TRUE(producer->Open("a").ok());
}

TEST_F(TcpServerTest, QuietConnectionsGiveTheirBufferBackAndGoOn) {
  StartServer();
  auto producer = Connect();
  const auto stream = producer->Open("a", WireType::kFloat64);
  ASSERT_TRUE(stream.ok());
  const std::vector<double> values(100, 1.0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
    ASSERT_TRUE(producer->Flush().ok());
    steady_ += 20'000'000;
    server_->Sweep();
  }
  EXPECT_EQ(sink_.taken(), 300U);
}

TEST_F(TcpServerTest, APortInUseIsNamed) {
  StartServer();
  TcpServerOptions options;
  options.listen.port = server_->port();
  TcpServer second(io_.io(), sink_, metrics_, options, kNoTime, {});
  EXPECT_EQ(second.Start(),
            absl::UnavailableError("cannot listen on 127.0.0.1:" + std::to_string(server_->port()) +
                                   ": address already in use"));
}

TEST_F(TcpServerTest, AnUnknownHostIsNamed) {
  TcpServerOptions options;
  options.listen.host = "no such host";
  options.listen.port = 7071;
  TcpServer server(io_.io(), sink_, metrics_, options, kNoTime, {});
  const absl::Status status = server.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(
      std::string(status.message()).find("cannot listen on no such host:7071: host not found"),
      std::string::npos)
      << status;
}

TEST_F(TcpServerTest, StopAnswersWhatWasReadAndSaysThatItStops) {
  StartServer();
  auto producer = Connect();
  const auto stream = producer->Open("s", WireType::kFloat64);
  ASSERT_TRUE(stream.ok());
  absl::Status ended;
  std::thread sender([&] {
    const std::vector<double> values(1000, 1.0);
    while (true) {
      if (const auto sent = producer->SendBatch(*stream, values); !sent.ok()) {
        ended = sent.status();
        break;
      }
    }
  });
  EXPECT_TRUE(sink_.WaitForValues(100'000));
  server_->BeginStop();
  sender.join();
  server_->Stop(kStopDeadline);
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_NE(std::string(ended.message()).find("shutting down"), std::string::npos) << ended;
  EXPECT_EQ(producer->accepted(), sink_.taken()) << "acknowledged is what was taken in";
  EXPECT_EQ(server_->connections(), 0U);
  EXPECT_FALSE(RawSocket(server_->port()).connected());
}

TEST_F(TcpServerTest, StopWhileTheSinkIsSaturatedTakesInWhatWasRead) {
  StartServer();
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  for (std::uint64_t id = 0; id < 10; ++id) {
    wire::AppendBatch(bytes, 1, id, WireType::kFloat64, Bytes(Packed<double>({1})));
  }
  sink_.SaturateAfter(1);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  ASSERT_TRUE(sink_.WaitForWaiters(1));
  EXPECT_EQ(sink_.taken(), 1U);
  server_->Stop(kStopDeadline);
  EXPECT_EQ(sink_.taken(), 10U);
  const auto answers = Answers(socket.ReceiveAll());
  ASSERT_EQ(answers.size(), 12U);
  EXPECT_EQ(answers[10], "ACK 9 1 0");
  EXPECT_EQ(answers[11].substr(0, 11), "ERROR 14 1 ");
  // The callback that the sink still owes finds nobody.
  sink_.Release();
}

TEST_F(TcpServerTest, StopEndsInTimeThoughAPeerReadsNothing) {
  TcpServerOptions options;
  options.listen.outbound_bytes_max = 1 << 20;
  StartServer(options);
  RawSocket socket(server_->port(), 2048);
  std::string bytes = Hello();
  wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
  for (std::uint64_t id = 0; id < 20'000; ++id) {
    wire::AppendBatch(bytes, 1, id, WireType::kDefault, Bytes(Packed<double>({1})));
  }
  ASSERT_TRUE(socket.Send(bytes));  // its answers, 640 KB, are more than both sockets hold
  ASSERT_TRUE(sink_.WaitForValues(20'000));
  const auto start = std::chrono::steady_clock::now();
  server_->Stop(std::chrono::milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(TcpServerTest, ManyProducersAtOnce) {
  StartServer();
  constexpr int kProducers = 8;
  std::vector<std::thread> threads;
  for (int p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      auto producer = Connect({.window_batches = 16});
      const auto stream = producer->Open("s" + std::to_string(p % 4), WireType::kFloat32);
      ASSERT_TRUE(stream.ok());
      const std::vector<float> values(777, static_cast<float>(p));
      for (int i = 0; i < 200; ++i) ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
      ASSERT_TRUE(producer->Flush().ok());
      EXPECT_EQ(producer->accepted(), 200U * 777);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sink_.taken(), 8U * 200 * 777);
  EXPECT_EQ(metrics_.source(Source::kTcp).values.Value(), 8.0 * 200 * 777);
}

TEST_F(TcpServerTest, AServerThatWasNeverStartedStops) {
  TcpServer server(io_.io(), sink_, metrics_, {}, kNoTime, {});
  server.Stop(kStopDeadline);
  server.Stop(kStopDeadline);
}

}  // namespace
}  // namespace tidemark::server
