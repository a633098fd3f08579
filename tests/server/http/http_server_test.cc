// The server over loopback sockets: framing, limits, slow and hostile clients, start and stop.
#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tidemark::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A blocking client socket. Reads give up after ten seconds, so that a hang fails a test.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  ~Client() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool connected() const { return connected_; }

  Client& Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // the server has hung up, which the test sees when it reads
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return *this;
  }

  /// One response with the body that Content-Length announces (none for HEAD).
  std::string ReadResponse(bool head = false) {
    while (pending_.find("\r\n\r\n") == std::string::npos) {
      if (!ReadMore()) return std::exchange(pending_, "");
    }
    std::size_t size = pending_.find("\r\n\r\n") + 4;
    const std::size_t length = pending_.find("Content-Length: ");
    if (!head && length < size) size += std::stoul(pending_.substr(length + 16));
    while (pending_.size() < size) {
      if (!ReadMore()) break;
    }
    std::string response = pending_.substr(0, size);
    pending_.erase(0, size);
    return response;
  }

  /// Everything until the server closes.
  std::string ReadToEnd() {
    while (ReadMore()) {
    }
    return std::exchange(pending_, "");
  }

 private:
  bool ReadMore() {
    char buffer[4096];
    const ssize_t got = ::recv(socket_, buffer, sizeof(buffer), 0);
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "no answer within ten seconds";
    if (got <= 0) return false;
    pending_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  int socket_;
  bool connected_ = false;
  std::string pending_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    server_ = std::make_unique<HttpServer>(
        options, HttpCallbacks{
                     .metrics = [] { return std::string("# TYPE up gauge\nup 1\n"); },
                     .not_ready = [] { return std::optional<std::string>("starting"); },
                     .reload = [this] { return ++reloads_, absl::OkStatus(); },
                     .count =
                         [this](std::string_view path, int code) {
                           const std::lock_guard lock(mutex_);
                           ++counts_[std::string(path) + " " + std::to_string(code)];
                         },
                 });
    const absl::Status status = server_->Start();
    ASSERT_TRUE(status.ok()) << status;
  }

  Client Connect() const { return Client(server_->address().port); }

  std::string Request(const std::string& head) const {
    return Connect().Send(head + "\r\nHost: t\r\nConnection: close\r\n\r\n").ReadToEnd();
  }

  int Count(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return counts_[key];
  }

  std::unique_ptr<HttpServer> server_;
  std::atomic<int> reloads_ = 0;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

TEST_F(HttpServerTest, ServesTheRoutes) {
  Start();
  const std::string metrics = Request("GET /metrics HTTP/1.1");
  EXPECT_THAT(metrics, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(metrics, HasSubstr("\r\n\r\n# TYPE up gauge\nup 1\n"));
  EXPECT_THAT(Request("GET /-/healthy HTTP/1.1"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Request("GET /-/ready HTTP/1.1"), HasSubstr("not ready: starting\n"));
  EXPECT_THAT(Request("GET /x HTTP/1.1"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Request("DELETE /metrics HTTP/1.1"), HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(Request("POST /-/reload HTTP/1.1\r\nContent-Length: 0"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(reloads_, 1);
  EXPECT_EQ(Count("/metrics 200"), 1);
  EXPECT_EQ(Count("/metrics 405"), 1);
  EXPECT_EQ(Count("/-/ready 503"), 1);
  EXPECT_EQ(Count("other 404"), 1);
}

TEST_F(HttpServerTest, HeadSendsTheHeaderAlone) {
  Start();
  const std::string answer = Request("HEAD /metrics HTTP/1.1");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 21\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, KeepsAConnectionOpenAndTakesPipelinedRequests) {
  Start();
  Client client = Connect();
  const std::string request = "GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client.Send(request).ReadResponse(), HasSubstr("\r\n\r\nhealthy\n"));
  }
  client.Send(request + "HEAD /metrics HTTP/1.1\r\nHost: t\r\n\r\n" + request);
  EXPECT_THAT(client.ReadResponse(), HasSubstr("healthy\n"));
  EXPECT_THAT(client.ReadResponse(/*head=*/true), HasSubstr("Content-Length: 21\r\n"));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("healthy\n"));
}

TEST_F(HttpServerTest, OldClientsGetTheirConnectionClosed) {
  Start();
  EXPECT_THAT(Connect().Send("GET /-/healthy HTTP/1.0\r\n\r\n").ReadToEnd(),
              HasSubstr("\r\n\r\nhealthy\n"));
}

TEST_F(HttpServerTest, BadRequestsAreAnsweredInOneLineAndClosed) {
  Start();
  for (const char* bytes : {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                            "GET / HTTP/1.1\r\nbad header\r\n\r\n", "\x16\x03\x01\x02 tls\r\n\r\n",
                            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"}) {
    const std::string answer = Connect().Send(bytes).ReadToEnd();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << bytes;
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nbad request: ")) << bytes;
  }
  EXPECT_EQ(Count("other 400"), 6);
}

TEST_F(HttpServerTest, LargeHeadersAndBodiesAreRefused) {
  Start();
  const std::string header =
      Connect().Send("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n").ReadToEnd();
  EXPECT_THAT(header, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(header, HasSubstr("the request's header is larger than 8192 bytes\n"));
  const std::string body =
      Connect()
          .Send("POST /-/reload HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'))
          .ReadToEnd();
  EXPECT_THAT(body, StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(reloads_, 0);
}

// They belong neither to the header nor to the body, and must not be collected whole either.
TEST_F(HttpServerTest, EndlessChunkExtensionsAndTrailersAreRefused) {
  Start({.timeout = std::chrono::milliseconds(3000)});
  const std::string head =
      "POST /-/reload HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string endless(1 << 20, 'a');
  int refused = 0;
  for (const char* begin : {"1;", "0\r\nX: "}) {
    // Whoever has sent so much may find the connection reset, and no answer.
    const std::string answer = Connect().Send(head).Send(begin).Send(endless).ReadToEnd();
    if (!answer.empty()) {
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 Bad Request\r\n")) << begin;
    }
    EXPECT_EQ(Count("other 400"), ++refused) << begin;
    // One that sends little more than the limit is told.
    EXPECT_THAT(Connect().Send(head).Send(begin).Send(endless.substr(0, 16 << 10)).ReadToEnd(),
                HasSubstr("\r\n\r\nbad request: "))
        << begin;
    EXPECT_EQ(Count("other 400"), ++refused) << begin;
  }
  EXPECT_EQ(reloads_, 0);
  EXPECT_THAT(Connect()
                  .Send(head + "1;a=b\r\nx\r\n0\r\nX: y\r\n\r\n")
                  .Send("GET /-/healthy HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
                  .ReadToEnd(),
              HasSubstr("healthy\n"));
  EXPECT_EQ(reloads_, 1);
}

TEST_F(HttpServerTest, SlowClientIsCutOffWhileOthersAreServed) {
  Start({.timeout = std::chrono::milliseconds(400)});
  std::vector<Client> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(Connect());
    slow.back().Send("GET /metrics HTTP/1.1\r\nHost:");
  }
  EXPECT_THAT(Request("GET /-/healthy HTTP/1.1"), HasSubstr("healthy\n"));
  for (Client& client : slow) EXPECT_EQ(client.ReadToEnd(), "");
  // A client may see the end before the server has counted it; not before the next answer.
  EXPECT_THAT(Request("GET /-/healthy HTTP/1.1"), HasSubstr("healthy\n"));
  EXPECT_EQ(Count("other 408"), 20);
  // One that says nothing at all is closed too, and is no fault.
  EXPECT_EQ(Connect().ReadToEnd(), "");
  EXPECT_EQ(Count("other 408"), 20);
}

// Of one address; a token shows who it is, and takes one of that name's places instead.
TEST_F(HttpServerTest, OnePeerHasItsShareOfConnections) {
  Metrics metrics("test");
  PeerTable peers({.connections = 2, .loopback_is_one_peer = true}, metrics);
  Guard guard(metrics, [] { return std::int64_t{0}; });
  guard.HoldTo(&peers);
  Start({.guard = &guard});
  const std::string request = "GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n";
  {
    Client first = Connect();
    Client second = Connect();
    EXPECT_THAT(first.Send(request).ReadResponse(), HasSubstr("healthy\n"));
    EXPECT_THAT(second.Send(request).ReadResponse(), HasSubstr("healthy\n"));
    EXPECT_THAT(Connect().ReadToEnd(),
                AllOf(StartsWith("HTTP/1.1 429 Too Many Requests\r\n"),
                      HasSubstr("\r\n\r\ntoo many connections of one peer\n")));
    EXPECT_EQ(Count("other 429"), 1);
    EXPECT_EQ(metrics.PeerRefused("http", "connections").Value(), 1);
  }
  while (peers.peers() > 0) std::this_thread::yield();

  constexpr char kToken[] = "a-token-of-0123456789";
  const Policy::Sources sources{.file = [&](const std::string&) -> absl::StatusOr<std::string> {
                                  return std::string(kToken);
                                },
                                .environment = [](const char*) -> const char* { return nullptr; }};
  const auto rules = Policy::Parse("[principal.a]\ntokens = [{ file = \"t\" }]\nquery = [\"*\"]\n",
                                   "rules.toml", sources);
  ASSERT_TRUE(rules.ok()) << rules.status();
  guard.Set(*rules);
  const std::string named = "GET /metrics HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer " +
                            std::string(kToken) + "\r\n\r\n";
  Client one = Connect();
  Client two = Connect();
  for (Client* client : {&one, &two}) {
    EXPECT_THAT(client->Send(named).ReadResponse(), HasSubstr("200 OK"));
  }
  Client three = Connect();
  EXPECT_THAT(three.Send(request).ReadResponse(), HasSubstr("healthy\n")) << "the address has room";
  EXPECT_THAT(three.Send(named).ReadToEnd(),
              HasSubstr("this peer has 2 connections, which is the limit of one peer"));
  server_.reset();  // before what it is held to
}

TEST_F(HttpServerTest, ConnectionsBeyondTheLimitAreTurnedAway) {
  Start({.max_connections = 2});
  const std::string request = "GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n";
  {
    Client first = Connect();
    Client second = Connect();
    EXPECT_THAT(first.Send(request).ReadResponse(), HasSubstr("healthy\n"));
    EXPECT_THAT(second.Send(request).ReadResponse(), HasSubstr("healthy\n"));
    EXPECT_THAT(Connect().ReadToEnd(), HasSubstr("\r\n\r\ntoo many connections\n"));
    EXPECT_GE(Count("other 503"), 1);
  }
  // The server learns of the two closings in its own time; each attempt is a round trip to it.
  std::string answer;
  for (int attempt = 0; attempt < 10'000 && !answer.ends_with("healthy\n"); ++attempt) {
    answer = Connect().Send(request).ReadResponse();
  }
  EXPECT_THAT(answer, HasSubstr("healthy\n"));
}

TEST_F(HttpServerTest, PortInUseIsOneClearLine) {
  Start();
  HttpServer second({.address = server_->address()}, {});
  const absl::Status status = second.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()),
            "cannot listen on " + server_->address().ToString() + ": address already in use");
}

TEST_F(HttpServerTest, ForeignAddressIsOneClearLine) {
  // 192.0.2.0/24 is reserved for documentation: no machine has it.
  HttpServer server({.address = {"192.0.2.1", 80}}, {});
  EXPECT_EQ(std::string(server.Start().message()),
            "cannot listen on 192.0.2.1:80: cannot assign requested address");
}

TEST_F(HttpServerTest, StopsWithOpenConnectionsAndStartsAgainOnTheSamePort) {
  Start();
  const HostPort address = server_->address();
  Client idle = Connect();
  EXPECT_THAT(idle.Send("GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n").ReadResponse(),
              HasSubstr("healthy\n"));
  Client half = Connect();
  half.Send("GET /metrics HT");
  server_->Stop();
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_FALSE(Client(address.port).connected());
  server_->Stop();  // again: without effect
  Start({.address = address});
  EXPECT_THAT(Request("GET /-/healthy HTTP/1.1"), HasSubstr("healthy\n"));
}

// Property: whatever bytes come, the server answers or closes, and serves the next client.
TEST_F(HttpServerTest, SurvivesAnyBytes) {
  Start({.timeout = std::chrono::milliseconds(2000)});
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string valid =
      "POST /metrics HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (int round = 0; round < 300; ++round) {
    std::string bytes = valid;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Client client = Connect();
    client.Send(std::string_view(bytes).substr(0, random() % (bytes.size() + 1)));
  }
  EXPECT_THAT(Request("GET /-/healthy HTTP/1.1"), HasSubstr("healthy\n"));
}

}  // namespace
}  // namespace tidemark::server
