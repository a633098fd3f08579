// StatsD over real sockets on a free port: TCP and UDP, cuts at any byte, saturation, limits, stop.
// What lines mean is tested in statsd_parser_test.cc and statsd_batcher_test.cc.
#include "server/ingest/statsd_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "server/ingest/io_threads.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"
#include "tests/support/udp_sender.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using test::UdpSender;
using test::WaitUntil;
using Values = std::vector<double>;
constexpr std::chrono::milliseconds kStopDeadline{5000};

// A sink that says that streams were deleted.
class DeletingSink : public FakeSink {
 public:
  std::uint64_t deletions() const override { return deletions_.load(); }
  void DeleteAndSay(const std::string& name) {
    Delete(name);
    ++deletions_;
  }

 private:
  std::atomic<std::uint64_t> deletions_{0};
};

class StatsdServerTest : public testing::Test {
 protected:
  void StartServer(StatsdServerOptions options = {}) {
    server_ = std::make_unique<StatsdServer>(io_.io(), sink_, metrics_, options, clocks_, LogFn());
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }
  double Dropped(std::string_view reason) {
    return metrics_.Dropped(Source::kStatsdUdp, reason).Value();
  }
  // Whether soon nobody but the sink and the test holds the stream.
  static bool IsLetGoOf(const StreamHandle& stream) {
    return WaitUntil([&] { return stream.use_count() <= 2; }) && stream.use_count() == 2;
  }

  DeletingSink sink_;
  Metrics metrics_{"test"};
  std::atomic<RecordedTime> steady_{0};
  const Clocks clocks_{[] { return RecordedTime{1'000'000}; }, [this] { return steady_.load(); }};
  IoThreads io_{2, "ingest"};
  std::unique_ptr<StatsdServer> server_;
};

TEST_F(StatsdServerTest, TcpLinesArriveHoweverTheyAreCut) {
  StartServer();
  RawSocket socket(server_->port());
  const std::string text = "a:1|ms\nb:2|ms|#k:v\r\na:3|ms\nlast:4|ms";
  for (const char byte : text) ASSERT_TRUE(socket.Send({&byte, 1}));
  socket.EndSending();
  EXPECT_EQ(socket.ReceiveAll(), "") << "nothing is answered";
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 3}));
  EXPECT_EQ(sink_.Numbers("b{k=\"v\"}"), (Values{2}));
  EXPECT_EQ(sink_.Numbers("last"), (Values{4}));
}

TEST_F(StatsdServerTest, ALongLineIsSkippedToItsEnd) {
  StatsdServerOptions options;
  options.limits.line_bytes_max = 100;
  StartServer(options);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send("a:1|ms\n" + std::string(300'000, 'x') + ":1|ms\na:2|ms\n"));
  socket.EndSending();
  socket.ReceiveAll();
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 2}));
  EXPECT_EQ(metrics_.Refused(Source::kStatsdTcp, "bad_line").Value(), 1);
}

// The names that it has sent are forgotten, and opened again when they are sent again.
TEST_F(StatsdServerTest, AQuietConnectionHoldsNoNamesAlsoInTheMiddleOfALine) {
  StartServer();
  RawSocket socket(server_->port());
  const std::string begun = "a:1|ms\na:";
  ASSERT_TRUE(socket.Send(begun));
  while (metrics_.source(Source::kStatsdTcp).bytes.Value() < static_cast<double>(begun.size()) ||
         sink_.taken() < 1) {
    std::this_thread::yield();
  }
  EXPECT_EQ(sink_.opens(), 1U);
  steady_ += 10'000'000;
  server_->Sweep();
  ASSERT_TRUE(socket.Send("2|ms\n"));
  socket.EndSending();
  EXPECT_EQ(socket.ReceiveAll(), "");
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 2}));
  EXPECT_EQ(sink_.opens(), 2U);
}

TEST_F(StatsdServerTest, ASaturatedSinkStopsReadingTcpAndNothingIsLost) {
  StartServer();
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a:1|ms\n";
  sink_.SaturateAfter(1);
  std::thread sender([&] {
    RawSocket socket(server_->port());
    EXPECT_TRUE(socket.Send(text));
    socket.EndSending();
    socket.ReceiveAll();
  });
  EXPECT_TRUE(sink_.WaitForWaiters(1));
  EXPECT_LT(sink_.taken(), 100'000U) << "at most one buffer after it was full";
  EXPECT_EQ(metrics_.source(Source::kStatsdTcp).paused.Value(), 1);
  sink_.Release();
  sender.join();
  EXPECT_EQ(sink_.taken(), 200'000U);
}

TEST_F(StatsdServerTest, UdpDatagramsOfSeveralLinesArriveOnTheSamePort) {
  StartServer();
  UdpSender udp(server_->port());
  ASSERT_TRUE(udp.Send("u:1|ms\nu:2|ms\nwords:x|s\n"));
  ASSERT_TRUE(udp.Send("u:3|ms"));
  ASSERT_TRUE(udp.Send(""));
  // The largest datagram that there is.
  std::string large;
  while (large.size() < 65'507 - 16) large += "l:1|ms\n";
  ASSERT_TRUE(udp.Send(large));
  ASSERT_TRUE(sink_.WaitForValues(4 + large.size() / 7));
  EXPECT_EQ(sink_.Numbers("u"), (Values{1, 2, 3}));
  EXPECT_EQ(sink_.Items("words"), (std::vector<std::string>{"x"}));
  server_->Stop(kStopDeadline);  // lines are counted after they are appended
  EXPECT_EQ(metrics_.StatsdLines(Source::kStatsdUdp, "set").Value(), 1);
  EXPECT_EQ(Dropped("truncated"), 0);
  EXPECT_EQ(metrics_.source(Source::kStatsdUdp).bytes.Value(),
            static_cast<double>(24 + 6 + large.size()));
}

TEST_F(StatsdServerTest, UdpThatCannotBeTakenInIsCounted) {
  StartServer();
  UdpSender udp(server_->port());
  ASSERT_TRUE(udp.Send("u:1|ms"));
  ASSERT_TRUE(sink_.WaitForValues(1));
  sink_.Saturate();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(udp.Send("u:2|ms\nu:3|ms"));
  while (Dropped("saturated") < 10) std::this_thread::yield();
  sink_.Release();
  ASSERT_TRUE(udp.Send("u:4|ms"));
  ASSERT_TRUE(sink_.WaitForValues(2));
  EXPECT_EQ(sink_.Numbers("u"), (Values{1, 4}));
  EXPECT_EQ(Dropped("saturated"), 10);
}

// Else its memory would be kept until the next datagram, and counted against the others.
TEST_F(StatsdServerTest, SilentUdpLetsGoOfADeletedStream) {
  StartServer();
  UdpSender udp(server_->port());
  ASSERT_TRUE(udp.Send("u:1|ms\nv:1|ms"));
  ASSERT_TRUE(sink_.WaitForValues(2));
  const StreamHandle stream = sink_.Open("u", std::nullopt).value();
  EXPECT_EQ(stream.use_count(), 3);
  sink_.DeleteAndSay("u");
  server_->Sweep();
  EXPECT_TRUE(IsLetGoOf(stream));
  ASSERT_TRUE(udp.Send("u:2|ms\nv:2|ms"));
  ASSERT_TRUE(sink_.WaitForValues(4));
  EXPECT_EQ(sink_.Numbers("u"), (Values{2})) << "begun anew";
  EXPECT_EQ(sink_.Numbers("v"), (Values{1, 2}));
}

TEST_F(StatsdServerTest, UdpThatIsSilentForTenSecondsHoldsNoNames) {
  StartServer();
  UdpSender udp(server_->port());
  ASSERT_TRUE(udp.Send("u:1|ms"));
  ASSERT_TRUE(sink_.WaitForValues(1));
  const StreamHandle stream = sink_.Open("u", std::nullopt).value();
  steady_ += 9'999'999;
  server_->Sweep();
  ASSERT_TRUE(udp.Send("u:2|ms"));
  ASSERT_TRUE(sink_.WaitForValues(2));
  EXPECT_EQ(sink_.opens(), 2U) << "by the first line and the test";
  steady_ += 10'000'000;
  server_->Sweep();
  EXPECT_TRUE(IsLetGoOf(stream));
  ASSERT_TRUE(udp.Send("u:3|ms"));
  ASSERT_TRUE(sink_.WaitForValues(3));
  EXPECT_EQ(sink_.opens(), 3U);
  EXPECT_EQ(sink_.Numbers("u"), (Values{1, 2, 3}));
}

TEST_F(StatsdServerTest, WhatTheKernelDropsIsCounted) {
  StatsdServerOptions options;
  options.udp_buffer_bytes = 4096;  // a few datagrams
  StartServer(options);
  UdpSender udp(server_->port());
  const std::string datagram(1400, 'x');  // refused, but read
  double sent = 0;
  const auto read_bytes = [&] { return metrics_.source(Source::kStatsdUdp).bytes.Value(); };
  // Until the kernel has dropped some; the sender is faster than the reader sooner or later.
  while (Dropped("kernel_buffer") == 0 && sent < 1'000'000) {
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(udp.Send(datagram));
    sent += 1000;
    // Drops are reported with a datagram that arrives after them.
    const double before = read_bytes();
    while (read_bytes() == before) {
      ASSERT_TRUE(udp.Send(datagram));
      ++sent;
      std::this_thread::yield();
    }
  }
  EXPECT_GT(Dropped("kernel_buffer"), 0);
  server_->Stop(kStopDeadline);
  EXPECT_LE(read_bytes() / 1400 + Dropped("kernel_buffer"), sent);
}

// The kernel tells of its drops with the datagrams that it queues after them. Here none comes
// after.
class StatsdServerBurstTest : public StatsdServerTest {
 protected:
  // The reader is held with a first datagram in its hands while many more arrive than the kernel
  // has room for.
  void SendBurst() {
    StatsdServerOptions options;
    options.tcp = false;
    options.udp_buffer_bytes = 16'384;
    server_ =
        std::make_unique<StatsdServer>(io_.io(), sink_, metrics_, options,
                                       Clocks{[this] {
                                                std::unique_lock lock(mutex_);
                                                reading_ = true;
                                                changed_.notify_all();
                                                changed_.wait(lock, [this] { return go_on_; });
                                                return RecordedTime{1'000'000};
                                              },
                                              clocks_.steady},
                                       LogFn());
    ASSERT_TRUE(server_->Start().ok());
    UdpSender udp(server_->port());
    ASSERT_TRUE(udp.Send(kDatagram));
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return reading_; });
    }
    for (int i = 1; i < kSent; ++i) ASSERT_TRUE(udp.Send(kDatagram));
  }
  void GoOn() {
    const std::lock_guard lock(mutex_);
    go_on_ = true;
    changed_.notify_all();
  }
  double Read() {
    return metrics_.source(Source::kStatsdUdp).bytes.Value() /
           static_cast<double>(kDatagram.size());
  }

  static constexpr int kSent = 1000;
  const std::string kDatagram = std::string(1400, 'x');  // refused, but read
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reading_ = false;  // mutex_
  bool go_on_ = false;    // mutex_
};

TEST_F(StatsdServerBurstTest, DropsAfterTheLastDatagramAreCountedAtTheNextSweep) {
  SendBurst();
  GoOn();
  while (Read() < 2) std::this_thread::yield();
  server_->Sweep();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (Read() + Dropped("kernel_buffer") < kSent && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Read() + Dropped("kernel_buffer"), kSent);
  EXPECT_GT(Dropped("kernel_buffer"), 0);
}

TEST_F(StatsdServerBurstTest, DropsAfterTheLastDatagramAreCountedAtStop) {
  SendBurst();
  GoOn();
  server_->Stop(kStopDeadline);
  EXPECT_EQ(Read() + Dropped("kernel_buffer"), kSent);
  EXPECT_GT(Dropped("kernel_buffer"), 0);
}

TEST_F(StatsdServerTest, EachProtocolCanBeHadAlone) {
  StatsdServerOptions options;
  options.tcp = false;
  StartServer(options);
  EXPECT_FALSE(RawSocket(server_->port()).connected());
  UdpSender udp(server_->port());
  ASSERT_TRUE(udp.Send("u:1|ms"));
  ASSERT_TRUE(sink_.WaitForValues(1));
  server_->Stop(kStopDeadline);
}

TEST_F(StatsdServerTest, APortInUseIsNamed) {
  StatsdServerOptions udp_only;
  udp_only.tcp = false;
  StartServer(udp_only);
  StatsdServerOptions options;
  options.listen.port = server_->port();
  StatsdServer second(io_.io(), sink_, metrics_, options, clocks_, {});
  EXPECT_EQ(second.Start(),
            absl::UnavailableError("cannot listen on 127.0.0.1:" + std::to_string(server_->port()) +
                                   ": address already in use"));
}

TEST_F(StatsdServerTest, ASmallKernelBufferIsLogged) {
  std::vector<std::string> lines;
  StatsdServerOptions options;
  options.udp_buffer_bytes = std::size_t{2047} << 20;  // more than a kernel's int can be doubled to
  StatsdServer server(io_.io(), sink_, metrics_, options, clocks_,
                      [&](IngestLogLevel, std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(server.Start().ok());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("net.core.rmem_max"), std::string::npos) << lines[0];
}

TEST_F(StatsdServerTest, StopTakesInWhatTheKernelHolds) {
  StartServer();
  {
    // A thread is busy and the other one too, so that datagrams wait in the kernel.
    UdpSender udp(server_->port());
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(udp.Send("u:1|ms"));
  }
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send("a:1|ms\na:2"));
  ASSERT_TRUE(sink_.WaitUntil([] { return true; }));
  while (sink_.Numbers("a").empty()) std::this_thread::yield();
  server_->Stop(kStopDeadline);
  EXPECT_EQ(sink_.Numbers("u").size(), 500U);
  EXPECT_EQ(sink_.Numbers("a"), (Values{1}));
  EXPECT_EQ(metrics_.Refused(Source::kStatsdTcp, "shutting_down").Value(), 1)
      << "half a line is not taken for a whole one";
  EXPECT_EQ(server_->connections(), 0U);
}

// A sender whose lines wait in the kernel because the sink has no room.
class StatsdServerStopTest : public StatsdServerTest {
 protected:
  void SendUnread(const std::string& end) {
    StatsdServerOptions options;
    options.listen.read_buffer_bytes = 16'384;
    StartServer(options);
    sink_.SaturateAfter(1);
    socket_.emplace(server_->port());
    std::string text;
    for (int i = 0; i < kLines; ++i) text += "a:1|ms\n";
    ASSERT_TRUE(socket_->Send(text + end));
    ASSERT_TRUE(sink_.WaitForWaiters(1));
    ASSERT_LT(sink_.taken(), std::size_t{kLines} / 2) << "most of it has not been read";
  }
  double Refused() { return metrics_.Refused(Source::kStatsdTcp, "shutting_down").Value(); }
  bool Listens() const { return RawSocket(port_).connected(); }

  static constexpr int kLines = 7000;  // 49 kB: less than the first window of a connection
  std::optional<RawSocket> socket_;
  std::uint16_t port_ = 0;
};

TEST_F(StatsdServerStopTest, LinesThatTheKernelHoldsAreTakenIn) {
  SendUnread("half:1");
  port_ = server_->port();
  std::thread stop([&] { server_->Stop(kStopDeadline); });
  while (Listens()) std::this_thread::yield();
  sink_.Release();
  stop.join();
  EXPECT_EQ(sink_.taken(), std::size_t{kLines});
  EXPECT_EQ(Refused(), 1) << "half a line";
}

TEST_F(StatsdServerStopTest, TheLastLineOfASenderThatHasEndedIsWhole) {
  SendUnread("last:1|ms");
  socket_->EndSending();
  port_ = server_->port();
  std::thread stop([&] { server_->Stop(kStopDeadline); });
  while (Listens()) std::this_thread::yield();
  sink_.Release();
  stop.join();
  EXPECT_EQ(sink_.taken(), std::size_t{kLines} + 1);
  EXPECT_EQ(Refused(), 0);
}

TEST_F(StatsdServerStopTest, LinesThatThereIsNoRoomForAreCounted) {
  SendUnread("half:1");
  server_->Stop(std::chrono::milliseconds(0));
  EXPECT_LT(sink_.taken(), std::size_t{kLines} / 2);
  EXPECT_EQ(static_cast<double>(sink_.taken()) + Refused(), kLines + 1);
}

TEST_F(StatsdServerStopTest, ASenderThatNeverEndsDelaysNothing) {
  StartServer();
  std::atomic<std::uint64_t> sent{0};
  std::thread sender([&] {
    RawSocket socket(server_->port());
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "a:1|ms\n";
    do {
      sent += 1000;
    } while (socket.Send(text));
  });
  ASSERT_TRUE(sink_.WaitForValues(10'000));
  server_->Stop(std::chrono::hours(1));
  sender.join();
  EXPECT_LE(static_cast<double>(sink_.taken()) + Refused(), static_cast<double>(sent) + 1);
}

}  // namespace
}  // namespace tidemark::server
