// Connections for gRPC, with the test in gRPC's place: it owns what it is handed, and closes it
// without a word.
#include "server/daemon/grpc_acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/access/guard.h"
#include "server/daemon/pace.h"
#include "server/ingest/io_threads.h"
#include "server/telemetry/metrics.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait_until.h"

namespace tidemark::server {
namespace {

using std::chrono::steady_clock;
using test::RawSocket;
using test::WaitUntil;

constexpr RecordedTime kSecond = 1'000'000;

class GrpcAcceptorTest : public ::testing::Test {
 protected:
  ~GrpcAcceptorTest() override {
    if (acceptor_) acceptor_->Stop();
    for (const int fd : owned_) close(fd);
  }

  void LimitPeers(const PeerLimits& limits) {
    peers_ = std::make_unique<PeerTable>(limits, metrics_);
    guard_.HoldTo(peers_.get());
  }
  std::unique_ptr<GrpcAcceptor> Make(GrpcAcceptorOptions options) {
    options.guard = &guard_;
    const auto log = [this](IngestLogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_.push_back({std::string(line), steady_clock::now()});
      logged_.notify_all();
    };
    const auto now = [this] { return steady_.load(); };
    return std::make_unique<GrpcAcceptor>(io_.io(), options, metrics_, now, log);
  }
  void Start(const GrpcAcceptorOptions& options) {
    acceptor_ = Make(options);
    const absl::Status listens = acceptor_->Listen();
    ASSERT_TRUE(listens.ok()) << listens;
    acceptor_->Start([this](int /*listener*/, int connection) {
      const std::lock_guard lock(mutex_);
      owned_.push_back(connection);
      send(connection, "a", 1, MSG_NOSIGNAL);
    });
  }
  // Whether one more is handed over; else it was closed.
  bool Accepts() {
    clients_.push_back(std::make_unique<RawSocket>(acceptor_->port()));
    if (clients_.back()->Receive(1) == "a") return true;
    char byte = 0;
    EXPECT_EQ(recv(clients_.back()->fd(), &byte, 1, MSG_DONTWAIT), 0) << "left open";
    return false;
  }
  int LastOwned() {
    const std::lock_guard lock(mutex_);
    return owned_.empty() ? -1 : owned_.back();
  }
  int TakeLastOwned() {
    const std::lock_guard lock(mutex_);
    if (owned_.empty()) return -1;
    const int fd = owned_.back();
    owned_.pop_back();
    return fd;
  }
  // The time of the n-th line; it is waited for.
  steady_clock::time_point Logged(std::size_t lines) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        logged_.wait_for(lock, std::chrono::seconds(10), [&] { return log_.size() >= lines; }));
    return log_.size() < lines ? steady_clock::time_point() : log_[lines - 1].at;
  }
  std::string Line(std::size_t n) {
    const std::lock_guard lock(mutex_);
    return n < log_.size() ? log_[n].text : "";
  }
  double Refused() { return metrics_.source(Source::kGrpc).connections_refused.Value(); }
  double RefusedOfPeer() { return metrics_.PeerRefused("grpc", "connections").Value(); }
  double Delayed() { return metrics_.grpc_handshakes_delayed().Value(); }
  std::size_t Handed() {
    const std::lock_guard lock(mutex_);
    return owned_.size();
  }
  double Unopened() { return metrics_.grpc_unopened().Value(); }
  double Level() { return metrics_.grpc_connections().Value(); }

  struct Logline {
    std::string text;
    steady_clock::time_point at;
  };

  Metrics metrics_{"test"};
  std::unique_ptr<PeerTable> peers_;
  Guard guard_{metrics_, [] { return std::int64_t{0}; }};
  std::atomic<RecordedTime> steady_{0};
  std::mutex mutex_;
  std::condition_variable logged_;
  std::vector<int> owned_;    // guarded by mutex_
  std::vector<Logline> log_;  // guarded by mutex_
  std::vector<std::unique_ptr<RawSocket>> clients_;
  IoThreads io_{1, "accept"};
  std::unique_ptr<GrpcAcceptor> acceptor_;
};

TEST_F(GrpcAcceptorTest, OneMoreThanTheLimitIsClosedAtOnce) {
  Start({.connections_max = 2});
  EXPECT_TRUE(Accepts());
  EXPECT_TRUE(Accepts());
  EXPECT_FALSE(Accepts());
  EXPECT_EQ(Refused(), 1);
  EXPECT_EQ(RefusedOfPeer(), 0) << "that is another limit";
  EXPECT_EQ(Level(), 2);
  Logged(1);
  EXPECT_EQ(Line(0), "refused a connection: gRPC has 2 connections, which is the limit");
  close(TakeLastOwned());
  // Looked at by the time that is passed in.
  EXPECT_FALSE(Accepts());
  steady_ += kSecond;
  EXPECT_TRUE(Accepts());
  EXPECT_EQ(Level(), 2);
  EXPECT_EQ(acceptor_->connections(), 2U);
  EXPECT_FALSE(Accepts());
  EXPECT_EQ(Refused(), 3);
}

TEST_F(GrpcAcceptorTest, APeerHasItsShare) {
  LimitPeers({.connections = 2, .loopback_is_one_peer = true});
  Start({.connections_max = 10});
  EXPECT_TRUE(Accepts());
  EXPECT_TRUE(Accepts());
  EXPECT_FALSE(Accepts());
  EXPECT_EQ(RefusedOfPeer(), 1);
  EXPECT_EQ(Refused(), 0) << "that is another limit";
  EXPECT_EQ(Level(), 2);
  EXPECT_EQ(peers_->peers(), 1U);
  close(TakeLastOwned());
  steady_ += kSecond;
  EXPECT_TRUE(Accepts());
  close(TakeLastOwned());
  close(TakeLastOwned());
  acceptor_->Look();
  EXPECT_EQ(peers_->peers(), 0U);
  EXPECT_EQ(Level(), 0);
}

TEST_F(GrpcAcceptorTest, ThisMachineIsManyPeers) {
  LimitPeers({.connections = 1});
  Start({.connections_max = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Accepts());
  EXPECT_FALSE(Accepts());
  EXPECT_EQ(RefusedOfPeer(), 0);
  EXPECT_EQ(Refused(), 1);
}

TEST_F(GrpcAcceptorTest, AnotherFileOfTheSameNumberIsNotTheConnection) {
  Start({.connections_max = 10});
  ASSERT_TRUE(Accepts());
  ASSERT_TRUE(Accepts());
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_GE(dup3(file, LastOwned(), O_CLOEXEC), 0);
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(other, 0);
  acceptor_->Look();
  EXPECT_EQ(acceptor_->connections(), 1U);
  ASSERT_GE(dup3(other, TakeLastOwned(), O_CLOEXEC), 0);
  ASSERT_GE(dup3(other, LastOwned(), O_CLOEXEC), 0);
  acceptor_->Look();
  EXPECT_EQ(acceptor_->connections(), 0U);
  close(file);
  close(other);
}

TEST_F(GrpcAcceptorTest, AConnectionTakesOverThePlaceOfItsNumber) {
  // The client's end gets the lowest number that is free, the other end the next.
  const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Start({.connections_max = 1});
  ASSERT_TRUE(Accepts());
  const int number = TakeLastOwned();
  ASSERT_LT(low, number);
  close(number);
  close(low);
  EXPECT_TRUE(Accepts()) << "though nobody has looked";
  EXPECT_EQ(LastOwned(), number);
  EXPECT_EQ(acceptor_->connections(), 1U);
}

TEST_F(GrpcAcceptorTest, ConnectionsAreAsGrpcMakesItsOwn) {
  Start({.unacknowledged_max = std::chrono::milliseconds(12'345)});
  ASSERT_TRUE(Accepts());
  const int fd = LastOwned();
  EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  const auto option = [fd](int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(TCP_NODELAY), 0);
  EXPECT_EQ(option(TCP_USER_TIMEOUT), 12'345);
}

TEST_F(GrpcAcceptorTest, NothingIsHandedOverOnceItHasStopped) {
  Start({});
  ASSERT_TRUE(Accepts());
  acceptor_->Stop();
  EXPECT_FALSE(RawSocket(acceptor_->port()).connected());
  EXPECT_EQ(owned_.size(), 1U);
  send(LastOwned(), "b", 1, MSG_NOSIGNAL);
  EXPECT_EQ(clients_.back()->Receive(1), "b") << "open ones stay";
  acceptor_->Stop();
  Make({})->Stop();  // never listened
  const auto never_started = Make({});
  EXPECT_TRUE(never_started->Listen().ok());
}

// Those whose first bytes are not whole have places, and give them back with themselves.
TEST_F(GrpcAcceptorTest, WaitsForFirstBytes) {
  LimitPeers({.connections = 2, .loopback_is_one_peer = true});
  Start({.connections_max = 10, .opening = Opening::kTls});
  RawSocket silent(acceptor_->port());
  RawSocket half(acceptor_->port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_FALSE(Accepts());
  EXPECT_EQ(RefusedOfPeer(), 1);
  EXPECT_EQ(Level(), 2);
  silent.Send("GET / HTTP/1.1");
  EXPECT_EQ(silent.Receive(1), "") << "that is not TLS";
  EXPECT_EQ(Unopened(), 1);
  EXPECT_TRUE(WaitUntil([this] { return Level() == 1; }));
  RawSocket whole(acceptor_->port());
  whole.Send(std::string("\x16\x03\x01\x00\x02\x01\x00", 7));
  EXPECT_EQ(whole.Receive(1), "a");
  acceptor_->Stop();
  EXPECT_EQ(half.Receive(1), "");
  EXPECT_EQ(Unopened(), 2);
  EXPECT_EQ(metrics_.TlsFailed("grpc").Value(), 1) << "half had its time still";
  EXPECT_EQ(acceptor_->connections(), 1U);
  EXPECT_EQ(owned_.size(), 1U);
}

TEST_F(GrpcAcceptorTest, HandsOverSoManyASecondInTheirOrder) {
  constexpr auto kAtOnce = static_cast<std::size_t>(Pace::kAtOnce);
  Start({.handed_over_per_second = 1000});  // one each millisecond
  for (std::size_t i = 0; i < kAtOnce; ++i) EXPECT_TRUE(Accepts());
  EXPECT_EQ(Delayed(), 0);
  // Neither time goes on nor is anybody handed over.
  RawSocket first(acceptor_->port());
  EXPECT_TRUE(WaitUntil([this] { return Delayed() == 1; }));
  RawSocket gone(acceptor_->port());
  EXPECT_TRUE(WaitUntil([this] { return Delayed() == 2; }));
  gone.EndSending();
  RawSocket second(acceptor_->port());
  RawSocket third(acceptor_->port());
  EXPECT_TRUE(WaitUntil([this] { return Delayed() == 4; }));
  EXPECT_EQ(Level(), kAtOnce + 4);
  steady_ = 1000;
  EXPECT_EQ(first.Receive(1), "a");
  EXPECT_EQ(gone.ReceiveAll(), "");
  EXPECT_EQ(Unopened(), 1);
  EXPECT_EQ(Handed(), kAtOnce + 1);
  steady_ = 2000;
  EXPECT_EQ(second.Receive(1), "a");
  EXPECT_EQ(Handed(), kAtOnce + 2);
  acceptor_->Stop();
  EXPECT_EQ(third.Receive(1), "");
  EXPECT_EQ(Unopened(), 2);
}

TEST(Pace, IsThatOfTheRateOnceAFewHaveGone) {
  Pace pace(1000);
  RecordedTime now = 1'000'000;
  for (int i = 0; i < Pace::kAtOnce; ++i) EXPECT_EQ(pace.Take(now), 0) << i;
  EXPECT_EQ(pace.Take(now), 1000);
  EXPECT_EQ(pace.Take(now + 400), 600);
  int gone = 0;
  for (; now < 11'000'000; now += 137) gone += pace.Take(now) == 0 ? 1 : 0;
  EXPECT_EQ(gone, 9'999);
  now += 1'000'000;
  gone = 0;
  while (pace.Take(now) == 0) ++gone;
  EXPECT_EQ(gone, Pace::kAtOnce) << "a pause is worth no more";
  Pace none(0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(none.Take(0), 0);
}

TEST_F(GrpcAcceptorTest, SaysWhyItCannotListen) {
  Start({});
  const std::uint16_t port = acceptor_->port();
  const absl::Status taken = Make({.port = port})->Listen();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(taken.message(),
            "cannot listen on 127.0.0.1:" + std::to_string(port) + ": address already in use");
  const absl::Status nowhere = Make({.host = "no host", .port = 1})->Listen();
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(nowhere.message().find("cannot listen on no host:1: host not found"), 0U) << nowhere;
}

// Not one try after the other, which would take a core and fill the log.
TEST_F(GrpcAcceptorTest, WaitsForDescriptors) {
  Start({});
  ASSERT_TRUE(Accepts());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(next) + 1;  // the client's end, and no more
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RawSocket client(acceptor_->port());
  EXPECT_TRUE(client.connected());
  const auto first = Logged(1);
  steady_ += kSecond;
  const auto second = Logged(2);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(Line(0), "cannot accept: too many open files");
  EXPECT_GE(second - first, std::chrono::milliseconds(90));
  EXPECT_EQ(client.Receive(1), "a") << "as soon as there are some";
}

}  // namespace
}  // namespace tidemark::server
