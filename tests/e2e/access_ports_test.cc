// Who gets in over framed TCP, StatsD and HTTP, in TLS and in clear; handshakes that never end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "tests/e2e/access_fixture.h"
#include "tests/support/raw_socket.h"
#include "wire/frame.h"
#include "wire/token.h"

namespace tidemark::test {
namespace {

class AccessPortsTest : public testing::Test {
 protected:
  Identity Named(const std::string& name, long expires_in_s = kDaySeconds) const {
    return IdentityOf(fixture_.authority.Sign({.common_name = name, .expires_in_s = expires_in_s}));
  }
  std::string Ca() const { return fixture_.authority.certificate(); }
  // In clear over HTTP, as the principal "query".
  static double Metric(const TestDaemon& daemon, const std::string& sample) {
    return MetricIn(
        Http(daemon.port("http"), "/metrics", "GET", AccessFixture::Token("query")).body, sample);
  }

  const AccessFixture fixture_;
};

// A caller of a port: what it shows, and the roles that it has over prod.*; handshake: whether TLS
// lets it in at all.
struct Caller {
  std::string name;
  std::string role;
  std::string token;
  Identity identity = {};
  bool handshake = true;
};

std::vector<Caller> Callers(const AccessFixture& fixture) {
  const auto named = [&](const std::string& name, long expires_in_s = kDaySeconds) {
    return IdentityOf(fixture.authority.Sign({.common_name = name, .expires_in_s = expires_in_s}));
  };
  const TestCertificate stranger = TestCertificate::Authority("another authority");
  std::vector<Caller> callers = {
      {"nobody", "", ""},
      {"a wrong token", "", "no-token-that-anybody-gave"},
      {"an expired token", "", AccessFixture::Token("expired")},
      {"an unknown certificate", "", "", named("nobody.example")},
      {"an expired certificate", "", "", named("admin.example", -3600), false},
      {"a stranger's certificate", "", "",
       IdentityOf(stranger.Sign({.common_name = "admin.example"})), false},
  };
  for (const std::string role : {"ingest", "query", "admin"}) {
    callers.push_back({role + "'s token", role, AccessFixture::Token(role)});
    callers.push_back({role + "'s certificate", role, "", named(role + ".example")});
  }
  return callers;
}

TEST_F(AccessPortsTest, HttpByEveryCaller) {
  TestDaemon daemon(fixture_.Flags());
  const struct {
    const char* path;
    const char* method;
    std::string role;  // "": everybody
  } pages[] = {{"/", "GET", ""},
               {"/-/healthy", "GET", ""},
               {"/-/ready", "GET", ""},
               {"/metrics", "GET", "query"},
               {"/metrics", "HEAD", "query"},
               {"/-/reload", "POST", "admin"}};
  for (const Caller& caller : Callers(fixture_)) {
    for (const auto& page : pages) {
      const int code =
          Https(daemon.port("http"), Ca(), page.path, caller.token, caller.identity, page.method)
              .code;
      const int expected = !caller.handshake          ? 0
                           : page.role.empty()        ? 200
                           : caller.role.empty()      ? 401
                           : caller.role == page.role ? 200
                                                      : 403;
      EXPECT_EQ(code, expected) << caller.name << " " << page.method << " " << page.path;
    }
  }
  EXPECT_EQ(Http(daemon.port("http"), "/-/healthy").code, 0) << "in clear";
  EXPECT_EQ(daemon.process().err().find("token-of-"), std::string::npos);
}

// What a producer sends to open a stream and push one value to it.
std::string Push(const std::string& token, const std::string& stream) {
  std::string bytes;
  if (!token.empty()) wire::AppendToken(bytes, token);
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, stream);
  const double value = 1;
  wire::AppendBatch(bytes, 1, 7, wire::WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
  return bytes;
}

// The frames of an answer, by name; "fatal 16" for a fatal ERROR with that code.
std::string Frames(const std::string& answer) {
  wire::ServerFrameDecoder decoder;
  std::span bytes = std::as_bytes(std::span(answer));
  std::string frames;
  while (!bytes.empty()) {
    wire::ServerFrame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    if (decoder.Next(bytes, frame, consumed, needed) != wire::DecodeResult::kFrame) break;
    bytes = bytes.subspan(consumed);
    if (frame.type == wire::FrameType::kError) {
      frames += (frame.flags & wire::kErrorFatal) != 0 ? "fatal " : "error ";
      frames += std::to_string(frame.code) + ";";
    } else {
      frames += frame.type == wire::FrameType::kAck ? "ack;" : "opened;";
    }
  }
  return frames;
}

// So many frames, or fewer if the connection ends.
std::string ReceiveFrames(TlsConnection& connection, int count) {
  std::string bytes;
  for (;;) {
    const std::string frames = Frames(bytes);
    if (std::count(frames.begin(), frames.end(), ';') >= count || !connection.good()) return frames;
    bytes += connection.Receive(1);
  }
}

TEST_F(AccessPortsTest, FramedTcpByEveryCaller) {
  TestDaemon daemon(fixture_.Flags("grpc tcp statsd"));
  for (const Caller& caller : Callers(fixture_)) {
    TlsConnection connection(daemon.port("tcp"), Ca(), caller.identity);
    connection.Send(Push(caller.token, "prod.s"));
    const bool in = caller.role == "ingest";
    const std::string answer =
        in ? connection.Receive(wire::kOpenedBytes + wire::kAckBytes) : connection.ReceiveAll();
    const std::string expected = in                    ? "opened;ack;"
                                 : !caller.handshake   ? ""
                                 : caller.role.empty() ? "fatal 16;"
                                                       : "fatal 7;";
    EXPECT_EQ(Frames(answer), expected) << caller.name << ": " << connection.error();
  }
  // A stream of others is refused, and the connection goes on.
  TlsConnection connection(daemon.port("tcp"), Ca());
  connection.Send(Push(AccessFixture::Token("ingest"), "test.s"));
  EXPECT_EQ(ReceiveFrames(connection, 2), "error 7;error 5;");
  connection.Send(Push("", "prod.s").substr(wire::kPreambleBytes));
  EXPECT_EQ(ReceiveFrames(connection, 2), "opened;ack;");
  // In clear nothing is understood, and nobody hangs.
  RawSocket clear(daemon.port("tcp"));
  clear.Send(Push(AccessFixture::Token("ingest"), "prod.s"));
  EXPECT_EQ(Frames(clear.ReceiveAll()), "");
}

TEST_F(AccessPortsTest, ManyLargeBatchesOverTls) {
  TestDaemon daemon(fixture_.Flags("grpc tcp"));
  TlsConnection connection(daemon.port("tcp"), Ca(), Named("ingest.example"));
  std::string bytes;
  wire::AppendPreamble(bytes);
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, "prod.s");
  constexpr int kBatches = 200;
  std::vector<double> values(16 * 1024);
  for (int i = 0; i < kBatches; ++i) {
    for (double& value : values) value = i;
    wire::AppendBatch(bytes, 1, static_cast<std::uint64_t>(i), wire::WireType::kFloat64,
                      std::as_bytes(std::span(values)));
  }
  ASSERT_TRUE(connection.Send(bytes)) << connection.error();
  const std::string answer = connection.Receive(wire::kOpenedBytes + kBatches * wire::kAckBytes);
  EXPECT_EQ(answer.size(), wire::kOpenedBytes + kBatches * wire::kAckBytes);
  client::Client query({.server = daemon.address("grpc"),
                        .tls_ca = fixture_.folder / "ca.pem",
                        .token = AccessFixture::Token("query")});
  EXPECT_EQ(query.DescribeStream("prod.s").count, kBatches * values.size());
}

TEST_F(AccessPortsTest, TheProducerShowsATokenOrACertificateOverTls) {
  TestDaemon daemon(fixture_.Flags("grpc tcp"));
  const Identity ingest = Named("ingest.example");
  const client::TcpProducerOptions with_token{.tls_ca = fixture_.folder / "ca.pem",
                                              .token = AccessFixture::Token("ingest")};
  const client::TcpProducerOptions with_certificate{
      .tls_ca = fixture_.folder / "ca.pem",
      .tls_cert = fixture_.folder.Write("me.pem", ingest.certificate),
      .tls_key = fixture_.folder.Write("me.key", ingest.key)};
  const std::vector<double> values(100'000, 1.5);
  for (const auto& options : {with_token, with_certificate}) {
    const auto producer = daemon.Producer(options);
    const auto stream = producer->Open("prod.s", wire::WireType::kFloat64);
    ASSERT_TRUE(stream.ok()) << stream.status();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(producer->SendBatch(*stream, values).ok());
    ASSERT_TRUE(producer->Flush().ok());
    EXPECT_EQ(producer->accepted(), 20 * values.size());
  }
  client::TcpProducerOptions wrong = with_token;
  wrong.token = AccessFixture::Token("query");
  const auto refused = daemon.Producer(wrong)->Open("prod.s");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied) << refused.status();
  const TestCertificate stranger = TestCertificate::Authority("another authority");
  wrong = with_token;
  wrong.tls_ca = fixture_.folder.Write("other.pem", stranger.certificate());
  const auto untrusted = client::TcpProducer::Connect("127.0.0.1", daemon.port("tcp"), wrong);
  EXPECT_EQ(untrusted.status().code(), absl::StatusCode::kUnavailable) << untrusted.status();
  wrong.tls_ca = fixture_.folder / "none.pem";
  EXPECT_EQ(client::TcpProducer::Connect("127.0.0.1", daemon.port("tcp"), wrong).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AccessPortsTest, AReloadHoldsForOpenConnections) {
  TestDaemon daemon(fixture_.Flags("grpc tcp"));
  TlsConnection connection(daemon.port("tcp"), Ca());
  connection.Send(Push(AccessFixture::Token("ingest"), "prod.s"));
  EXPECT_EQ(Frames(connection.Receive(wire::kOpenedBytes + wire::kAckBytes)), "opened;ack;");
  fixture_.folder.Write("rules.toml", "[principal.anonymous]\nadmin = [\"*\"]\n");
  daemon.process().Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil(
      [&] { return daemon.process().err().find("configuration reloaded") != std::string::npos; }));
  std::string batch;
  const double value = 1;
  wire::AppendBatch(batch, 1, 8, wire::WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
  connection.Send(batch);
  EXPECT_EQ(ReceiveFrames(connection, 1), "error 16;");
}

TEST_F(AccessPortsTest, StatsdIsItsCertificateOrAnonymous) {
  fixture_.WriteRules("[principal.anonymous]\ningest = [\"open.*\"]\nquery = [\"*\"]\n");
  TestDaemon daemon(fixture_.Flags("grpc tcp statsd"));
  const std::string lines = "prod.a:1|h\nopen.a:1|h\n";
  {
    TlsConnection named(daemon.port("statsd"), Ca(), Named("ingest.example"));
    EXPECT_TRUE(named.Send(lines)) << named.error();
    TlsConnection anonymous(daemon.port("statsd"), Ca());
    EXPECT_TRUE(anonymous.Send(lines)) << anonymous.error();
  }
  SendUdp(daemon.port("statsd"), lines);
  const auto refused = [&](const std::string& source) {
    return daemon.Metric("tidemark_ingest_refused_total{reason=\"access\",source=\"" + source +
                         "\"}");
  };
  const auto taken = [&](const std::string& source) {
    return daemon.Metric("tidemark_ingest_values_total{source=\"" + source + "\"}");
  };
  EXPECT_TRUE(WaitUntil([&] { return taken("statsd_tcp") == 2 && refused("statsd_tcp") == 2; }))
      << taken("statsd_tcp") << " " << refused("statsd_tcp");
  EXPECT_TRUE(WaitUntil([&] { return taken("statsd_udp") == 1 && refused("statsd_udp") == 1; }))
      << taken("statsd_udp") << " " << refused("statsd_udp");
}

// StatsD has no token: of the same callers those who show a certificate, or nothing.
TEST_F(AccessPortsTest, StatsdOverTlsByEveryCaller) {
  TestDaemon daemon(fixture_.Flags("grpc tcp statsd"));
  double taken = 0;
  double refused = 0;
  double failed = 0;
  const auto so_far = [&daemon] {
    return std::array{
        Metric(daemon, "tidemark_ingest_values_total{source=\"statsd_tcp\"}"),
        Metric(daemon, "tidemark_ingest_refused_total{reason=\"access\",source=\"statsd_tcp\"}"),
        Metric(daemon, "tidemark_tls_handshakes_failed_total{protocol=\"statsd_tcp\"}")};
  };
  int callers = 0;
  for (const Caller& caller : Callers(fixture_)) {
    if (!caller.token.empty()) continue;
    ++callers;
    TlsConnection connection(daemon.port("statsd"), Ca(), caller.identity);
    connection.Send("prod.s:1|h\nprod.s:2|h\ntest.s:1|h\n");
    if (!caller.handshake) {
      connection.ReceiveAll();
      EXPECT_FALSE(connection.good());
      ++failed;
    } else if (caller.role == "ingest") {
      taken += 2;
      refused += 1;
    } else {
      refused += 3;
    }
    EXPECT_TRUE(WaitUntil([&] {
      return so_far() == std::array{taken, refused, failed};
    })) << caller.name
        << ": " << testing::PrintToString(so_far());
  }
  EXPECT_EQ(callers, 7);
  // In clear nothing is understood.
  RawSocket clear(daemon.port("statsd"));
  clear.Send("prod.s:1|h\n");
  EXPECT_EQ(clear.ReceiveAll().find("prod"), std::string::npos);
  ++failed;
  EXPECT_TRUE(WaitUntil([&] {
    return so_far() == std::array{taken, refused, failed};
  })) << testing::PrintToString(so_far());
}

TEST_F(AccessPortsTest, WhereCertificatesAreRequiredATokenAloneIsNotEnough) {
  fixture_.WriteRules("[principal.anonymous]\ningest = [\"*\"]\n");
  std::vector<std::string> flags = fixture_.Flags("grpc tcp statsd");
  flags.push_back("--tls-require-client-cert");
  TestDaemon daemon(flags);
  const auto failed = [&](const std::string& protocol) {
    return Metric(daemon, "tidemark_tls_handshakes_failed_total{protocol=\"" + protocol + "\"}");
  };
  const auto taken = [&] {
    return Metric(daemon, "tidemark_ingest_values_total{source=\"statsd_tcp\"}");
  };
  for (const std::string token : {"", "ingest"}) {
    TlsConnection connection(daemon.port("tcp"), Ca());
    connection.Send(Push(token.empty() ? "" : AccessFixture::Token(token), "prod.s"));
    EXPECT_EQ(connection.ReceiveAll(), "") << token;
  }
  EXPECT_TRUE(WaitUntil([&] { return failed("tcp") == 2; })) << failed("tcp");
  client::TcpProducerOptions options{.tls_ca = fixture_.folder / "ca.pem",
                                     .token = AccessFixture::Token("ingest")};
  const auto refused = client::TcpProducer::Connect("127.0.0.1", daemon.port("tcp"), options);
  // TLS 1.3 tells a client that is through with its half of the handshake afterwards.
  EXPECT_FALSE(refused.ok() && (*refused)->Open("prod.s").ok());
  {
    TlsConnection nobody(daemon.port("statsd"), Ca());
    nobody.Send("prod.s:1|h\n");
    nobody.ReceiveAll();
    EXPECT_FALSE(nobody.good());
  }
  EXPECT_TRUE(WaitUntil([&] { return failed("statsd_tcp") == 1; })) << failed("statsd_tcp");
  EXPECT_EQ(taken(), 0);

  // With one both work, and a token may stand beside it.
  for (const std::string token : {"", "ingest"}) {
    const std::string who = token.empty() ? "ingest" : "query";
    TlsConnection connection(daemon.port("tcp"), Ca(), Named(who + ".example"));
    connection.Send(Push(token.empty() ? "" : AccessFixture::Token(token), "prod.s"));
    EXPECT_EQ(ReceiveFrames(connection, 2), "opened;ack;") << token << connection.error();
  }
  TlsConnection named(daemon.port("statsd"), Ca(), Named("ingest.example"));
  EXPECT_TRUE(named.Send("prod.s:1|h\n")) << named.error();
  EXPECT_TRUE(WaitUntil([&] { return taken() == 1; })) << taken();
}

// Open connections go on under the certificate that they began with; who comes gets the new one.
TEST_F(AccessPortsTest, AReplacedCertificateIsForThoseWhoCome) {
  TestDaemon daemon(fixture_.Flags("tcp http statsd"));
  const std::string batch = [] {
    std::string bytes;
    const double value = 1;
    wire::AppendBatch(bytes, 1, 8, wire::WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
    return bytes;
  }();
  const std::string get = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto healthy = [&get](TlsConnection& connection) {
    connection.Send(get);
    std::string answer;
    while (connection.good() && !answer.ends_with("\r\n\r\nhealthy\n")) {
      answer += connection.Receive(1);
    }
    return answer.starts_with("HTTP/1.1 200");
  };
  const auto from_statsd = [&daemon](const std::string& ca) {
    const std::string page =
        Https(daemon.port("http"), ca, "/metrics", AccessFixture::Token("query")).body;
    return MetricIn(page, "tidemark_ingest_values_total{source=\"statsd_tcp\"}");
  };

  TlsConnection tcp(daemon.port("tcp"), Ca());
  tcp.Send(Push(AccessFixture::Token("ingest"), "prod.s"));
  EXPECT_EQ(ReceiveFrames(tcp, 2), "opened;ack;");
  TlsConnection http(daemon.port("http"), Ca());
  EXPECT_TRUE(healthy(http)) << http.error();
  TlsConnection statsd(daemon.port("statsd"), Ca(), Named("ingest.example"));
  statsd.Send("prod.d:1|h\n");
  EXPECT_TRUE(WaitUntil([&] { return from_statsd(Ca()) == 1; }));

  const TestCertificate other = TestCertificate::Authority("another authority");
  const TestCertificate replaced =
      other.Sign({.common_name = "localhost", .alternative_names = "DNS:localhost"});
  fixture_.WriteServer(replaced);
  daemon.process().Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil(
      [&] { return daemon.process().err().find("configuration reloaded") != std::string::npos; }));

  tcp.Send(batch);
  EXPECT_EQ(ReceiveFrames(tcp, 1), "ack;") << tcp.error();
  EXPECT_TRUE(healthy(http)) << http.error();
  EXPECT_TRUE(statsd.Send("prod.d:2|h\n")) << statsd.error();
  EXPECT_TRUE(WaitUntil([&] { return from_statsd(other.certificate()) == 2; }));
  for (const char* port : {"tcp", "http", "statsd"}) {
    EXPECT_FALSE(TlsConnection(daemon.port(port), Ca()).good()) << port;
    const TlsConnection fresh(daemon.port(port), other.certificate());
    EXPECT_EQ(fresh.PeerCertificate(), replaced.certificate()) << port << fresh.error();
  }
  // They work, too.
  TlsConnection pushing(daemon.port("tcp"), other.certificate());
  pushing.Send(Push(AccessFixture::Token("ingest"), "prod.s"));
  EXPECT_EQ(ReceiveFrames(pushing, 2), "opened;ack;");
  TlsConnection lines(daemon.port("statsd"), other.certificate(), Named("ingest.example"));
  EXPECT_TRUE(lines.Send("prod.d:3|h\n")) << lines.error();
  EXPECT_TRUE(WaitUntil([&] { return from_statsd(other.certificate()) == 3; }));
}

TEST_F(AccessPortsTest, HalfOpenHandshakesEndAndHoldNobodyUp) {
  std::vector<std::string> flags = fixture_.Flags();
  flags.insert(flags.end(), {"--tls-handshake-timeout-s", "1"});
  TestDaemon daemon(flags);
  std::vector<std::unique_ptr<RawSocket>> silent;
  for (const char* port : {"grpc", "tcp", "http", "statsd"}) {
    for (int i = 0; i < 20; ++i) {
      silent.push_back(std::make_unique<RawSocket>(daemon.port(port)));
      // The head of a ClientHello that does not go on.
      if (i % 2 == 0) silent.back()->Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
    }
  }
  EXPECT_EQ(Https(daemon.port("http"), Ca(), "/-/ready").code, 200);
  TlsConnection connection(daemon.port("tcp"), Ca());
  connection.Send(Push(AccessFixture::Token("ingest"), "prod.s"));
  EXPECT_EQ(Frames(connection.Receive(wire::kOpenedBytes + wire::kAckBytes)), "opened;ack;");
  const auto begun = std::chrono::steady_clock::now();
  for (const auto& one : silent) one->ReceiveAll();  // gives up after ten seconds
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(9));
  const std::string metrics =
      Https(daemon.port("http"), Ca(), "/metrics", AccessFixture::Token("query")).body;
  for (const char* protocol : {"grpc", "tcp", "http", "statsd_tcp"}) {
    EXPECT_NE(metrics.find("tidemark_tls_handshakes_failed_total{protocol=\"" +
                           std::string(protocol) + "\"} 20"),
              std::string::npos)
        << protocol;
  }
  // Connections that are still in their handshake do not hold the end up either.
  silent.clear();
  for (int i = 0; i < 5; ++i) silent.push_back(std::make_unique<RawSocket>(daemon.port("tcp")));
}

}  // namespace
}  // namespace tidemark::test
