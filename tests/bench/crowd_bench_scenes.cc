#include "tests/bench/crowd_bench_scenes.h"

#include <span>
#include <string_view>
#include <utility>

#include "tests/bench/crowd_bench_tls.h"
#include "tidemark/v1/query.pb.h"
#include "wire/frame.h"

namespace tidemark::bench {
namespace {

// Of HTTP/2, RFC 9113, 6.
enum class FrameType : char { kData = 0, kHeaders = 1, kSettings = 4 };
constexpr char kEndStream = 0x1;
constexpr char kEndHeaders = 0x4;

std::string Frame(FrameType type, char flags, char stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += flags;
  frame += std::string(3, '\0');
  frame += stream;
  frame += payload;
  return frame;
}

// Where the daemon ends them: sessions of TLS may still be made while it asks.
constexpr double kHandshakeGrowth = 1'000;

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// HPACK, RFC 7541: literals without indexing and without Huffman coding. REQUIRES: texts of fewer
// than 127 bytes.
std::string Text(std::string_view text) {
  return static_cast<char>(text.size()) + std::string(text);
}

// A subscription whose reader grants no window: its answers stay where they are.
std::string StoppedWatch() {
  v1::WatchRequest request;
  request.mutable_quantiles()->set_stream(kCrowdStream);
  request.mutable_quantiles()->add_phi(0.99);
  request.mutable_interval()->set_nanos(100'000'000);
  const std::string message = request.SerializeAsString();
  const std::string no_window("\0\x04\0\0\0\0", 6);      // SETTINGS_INITIAL_WINDOW_SIZE
  const std::string headers = std::string("\x83\x86") +  // :method POST, :scheme http
                              '\x04' + Text("/tidemark.v1.QueryService/Watch") +  // :path
                              '\x01' + Text("localhost") +                        // :authority
                              "\x0f\x10" + Text("application/grpc") +             // content-type
                              std::string(1, '\0') + Text("te") + Text("trailers");
  const std::string body =
      std::string(4, '\0') + static_cast<char>(message.size()) + message;  // not compressed
  return std::string(kPreface) + Frame(FrameType::kSettings, 0, 0, no_window) +
         Frame(FrameType::kHeaders, kEndHeaders, 1, headers) +
         Frame(FrameType::kData, kEndStream, 1, body);
}

std::string Hello() {
  std::string bytes;
  wire::AppendPreamble(bytes);
  return bytes;
}
std::string Open(const std::string& name) {
  std::string bytes;
  wire::AppendOpen(bytes, 1, wire::WireType::kFloat64, name);
  return bytes;
}
std::string Batches() {
  const double one = 1;
  std::string bytes;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    wire::AppendBatch(bytes, 1, id, wire::WireType::kFloat64, std::as_bytes(std::span(&one, 1)));
  }
  return bytes;
}

// The beginning of a client's first TLS record, which claims 512 bytes, of which `come` have come.
std::string HalfRecord(std::size_t come) {
  return std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(come, 'x');
}

// Of all that a server answers to a ClientHello; an alert has fewer.
constexpr std::size_t kServerFlightBytes = 500;

std::string HandshakesFailed(const std::string& protocol) {
  return "tidemark_tls_handshakes_failed_total{protocol=\"" + protocol + "\"";
}
constexpr char kUnopened[] = "tidemark_grpc_connections_unopened_total";

double OpenConnections(const Sight& sight) {
  return sight.Metric("tidemark_ingest_connections{source=\"tcp\"");
}

}  // namespace

double Sight::Metric(std::string_view prefix) const {
  if (ca.empty()) return daemon.Metric(prefix);
  return SumOfSamples(
      AnswerOverTls(daemon.http(), ca,
                    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
      prefix);
}

std::vector<Scene> Scenes(const std::string& folder, int timeout_s, int pace_s) {
  const std::string timeout = std::to_string(timeout_s);
  const std::vector<std::string> many = {"--max-connections", "20000", "--max-subscriptions",
                                         "20000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), many.begin(), many.end());
    return more;
  };
  const auto tls = [&](const std::string& listener) {
    return with({"--tls-cert-file", folder + "/server.pem", "--tls-key-file",
                 folder + "/server.key", "--tls-listeners", listener, "--tls-handshake-timeout-s",
                 timeout});
  };
  std::vector<std::string> paced = tls("grpc");
  paced.back() = std::to_string(timeout_s + pace_s);
  const auto all_there = [](const Sight& sight) {
    return OpenConnections(sight) + static_cast<double>(sight.crowd.ended()) >=
           static_cast<double>(sight.crowd.members());
  };
  const std::string long_header = "GET /metrics HTTP/1.1\r\nX-Slow: " + std::string(4000, 'x');

  std::vector<Scene> scenes;
  scenes.push_back(
      {.name = "idle-tcp",
       .what = "framed TCP connections with a stream open, silent",
       .flags = many,
       .port = &Daemon::tcp,
       .script = {.first = Hello() + Open(kCrowdStream), .answer_bytes = wire::kOpenedBytes},
       .bytes_max = 12'000,
       .seen = all_there});
  scenes.push_back(
      {.name = "idle-http",
       .what = "HTTP connections kept alive after an answer, silent",
       .flags = with({"--http-timeout-s", "600"}),
       .port = &Daemon::http,
       .script = {.first = "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n", .answer_bytes = 60},
       .bytes_max = 12'000});
  scenes.push_back(
      {.name = "idle-grpc",
       .what = "gRPC connections without a call",
       .flags = many,
       .port = &Daemon::grpc,
       .script = {.first = std::string(kPreface) + Frame(FrameType::kSettings, 0, 0, ""),
                  .answer_bytes = 9},
       .bytes_max = 64'000});
  scenes.push_back({.name = "slow-tcp",
                    .what = "framed TCP connections that send a byte a second of one frame",
                    .flags = with({"--idle-timeout-s", timeout}),
                    .port = &Daemon::tcp,
                    .script = {.first = Hello(), .drip = Open(std::string(500, 'x'))},
                    .bytes_max = 12'000,
                    .seen = all_there,
                    .ends_them = true,
                    .counted = {"tidemark_ingest_connections_idle_closed_total{source=\"tcp\""}});
  scenes.push_back({.name = "slow-http",
                    .what = "HTTP connections that send a byte a second of one header",
                    .flags = with({"--http-timeout-s", timeout}),
                    .port = &Daemon::http,
                    .script = {.first = long_header.substr(0, 1), .drip = long_header.substr(1)},
                    .bytes_max = 12'000,
                    .ends_them = true,
                    .counted = {"tidemark_http_requests_total{code=\"408\""}});
  scenes.push_back({.name = "slow-grpc",
                    .what = "gRPC connections that send a byte a second of HTTP/2's preface",
                    .flags = with({"--tls-handshake-timeout-s", timeout}),
                    .port = &Daemon::grpc,
                    .script = {.drip = std::string(kPreface)},
                    .bytes_max = 4'000,
                    .ends_them = true,
                    .counted = {kUnopened}});
  scenes.push_back(
      {.name = "slow-grpc-headers",
       .what = "gRPC connections that send a byte a second of a call's first frame",
       .flags = many,
       .port = &Daemon::grpc,
       .script = {.first = std::string(kPreface) + Frame(FrameType::kSettings, 0, 0, ""),
                  .drip = Frame(FrameType::kHeaders, kEndHeaders, 1, std::string(500, '\x83')),
                  .answer_bytes = 9},
       .bytes_max = 64'000});
  scenes.push_back(
      {.name = "slow-tls",
       .what = "framed TCP connections that send a byte a second of the first TLS record",
       .flags = tls("tcp"),
       .port = &Daemon::tcp,
       .script = {.drip = HalfRecord(400)},
       .bytes_max = 90'000,
       .growth_max = kHandshakeGrowth,
       .seen = all_there,
       .ends_them = true,
       .counted = {HandshakesFailed("tcp")}});
  scenes.push_back({.name = "half-tls-tcp",
                    .what = "framed TCP connections within the first TLS record",
                    .flags = tls("tcp"),
                    .port = &Daemon::tcp,
                    .script = {.first = HalfRecord(400)},
                    .bytes_max = 90'000,
                    .growth_max = kHandshakeGrowth,
                    .seen = all_there,
                    .ends_them = true,
                    .counted = {HandshakesFailed("tcp")}});
  scenes.push_back({.name = "half-tls-http",
                    .what = "HTTP connections within the first TLS record",
                    .flags = tls("http"),
                    .port = &Daemon::http,
                    .script = {.first = HalfRecord(400)},
                    .bytes_max = 130'000,
                    .growth_max = kHandshakeGrowth,
                    .ends_them = true,
                    .counted = {HandshakesFailed("http")},
                    .tls_metrics = true});
  scenes.push_back({.name = "half-tls-grpc",
                    .what = "gRPC connections within the first TLS record",
                    .flags = tls("grpc"),
                    .port = &Daemon::grpc,
                    .script = {.first = HalfRecord(400)},
                    .bytes_max = 4'000,
                    .growth_max = kHandshakeGrowth,
                    .ends_them = true,
                    .counted = {HandshakesFailed("grpc"), kUnopened},
                    .tls_asker = true});
  scenes.push_back({.name = "hello-tls-tcp",
                    .what = "framed TCP connections after a whole ClientHello, silent",
                    .flags = tls("tcp"),
                    .port = &Daemon::tcp,
                    .script = {.first = ClientHello(""), .answer_bytes = kServerFlightBytes},
                    .bytes_max = 90'000,
                    .growth_max = kHandshakeGrowth,
                    .seen = all_there,
                    .ends_them = true,
                    .counted = {HandshakesFailed("tcp")}});
  scenes.push_back({.name = "hello-tls-http",
                    .what = "HTTP connections after a whole ClientHello, silent",
                    .flags = tls("http"),
                    .port = &Daemon::http,
                    .script = {.first = ClientHello(""), .answer_bytes = kServerFlightBytes},
                    .bytes_max = 130'000,
                    .growth_max = kHandshakeGrowth,
                    .ends_them = true,
                    .counted = {HandshakesFailed("http")},
                    .tls_metrics = true});
  scenes.push_back({.name = "hello-tls-grpc",
                    .what = "gRPC connections after a whole ClientHello, silent",
                    .flags = paced,
                    .port = &Daemon::grpc,
                    .script = {.first = ClientHello("h2"), .answer_bytes = kServerFlightBytes},
                    .bytes_max = 130'000,
                    .growth_max = kHandshakeGrowth,
                    .ends_them = true,
                    .counted = {HandshakesFailed("grpc")},
                    .tls_asker = true});
  scenes.push_back({.name = "deaf",
                    .what = "framed TCP producers at full speed that read no acknowledgement",
                    .members = 100,
                    .flags = many,
                    .port = &Daemon::tcp,
                    .script = {.first = Hello() + Open(kCrowdStream),
                               .flood = Batches(),
                               .answer_bytes = wire::kOpenedBytes,
                               .deaf = true},
                    .bytes_max = 1.5e6,
                    .growth_max = 0.5e6,    // until its buffers are full
                    .bytes_besides = 72e6,  // windows on their way
                    .seen = [](const Sight& sight) {
                      return sight.Metric("tidemark_ingest_paused_total{source=\"tcp\"") >=
                             static_cast<double>(sight.crowd.members());
                    }});
  scenes.push_back({.name = "stopped-watch",
                    .what = "subscriptions of ten answers a second that nobody reads",
                    .members = 1'000,
                    .flags = many,
                    .port = &Daemon::grpc,
                    .script = {.first = StoppedWatch(), .answer_bytes = 9, .deaf = true},
                    .bytes_max = 100'000,
                    .seen = [](const Sight& sight) {
                      const auto members = static_cast<double>(sight.crowd.members());
                      return sight.Metric("tidemark_subscribers") >= members &&
                             sight.Metric("tidemark_subscription_skipped_total") >= members;
                    }});
  scenes.push_back(
      {.name = "beyond",
       .what = "framed TCP connections beyond the limit of 1,000",
       .port = &Daemon::tcp,
       .script = {.first = Hello() + Open(kCrowdStream), .answer_bytes = wire::kOpenedBytes},
       .bytes_max = 12'000,
       .seen =
           [](const Sight& sight) {
             const std::string refused = "tidemark_ingest_connections_refused_total{source=\"tcp\"";
             return sight.Metric(refused) >= static_cast<double>(sight.crowd.ended());
           },
       .refuses_some = true});
  return scenes;
}

}  // namespace tidemark::bench
