#include "server/http/http_server.h"

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cassert>
#include <cctype>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "server/access/loopback.h"
#include "server/access/opening.h"
#include "server/telemetry/log.h"
#include "server/threads/thread_role.h"

namespace tidemark::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

/// How long, and how much, a closing connection is still read, so that the kernel does not answer
/// unread bytes with a reset that would take our last answer with it.
constexpr std::chrono::seconds kDrainTime{1};
constexpr std::size_t kDrainBytes = 64 * 1024;

/// Pause after accept() failed (no file descriptors left is the usual cause), instead of spinning.
constexpr std::chrono::milliseconds kAcceptPause{100};

/// Read ahead beyond the largest header: what the parser looks at as a whole, trailers and the
/// extensions of chunks, too, fits the buffer, or the request is refused.
constexpr std::size_t kReadAheadBytes = 1024;

/// Of one peer, whatever the others have.
constexpr int kTooMany = 429;

std::string Message(const error_code& error) {
  std::string text = error.message();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

/// What all connections share. Lives as long as the io_context that runs them.
struct Shared {
  const HttpOptions& options;
  const HttpCallbacks& callbacks;
  std::size_t connections = 0;

  void Count(std::string_view path, int code) const {
    if (callbacks.count) callbacks.count(path, code);
  }
  void TlsFailed() const {
    if (callbacks.tls_failed) callbacks.tls_failed();
  }
};

/// One of the connections that there may be, and of those that its peer may have.
class Place {
 public:
  explicit Place(std::size_t& connections) : connections_(&connections) { ++*connections_; }
  ~Place() {
    if (connections_ != nullptr) --*connections_;
  }
  Place(Place&& other) noexcept
      : connections_(std::exchange(other.connections_, nullptr)),
        of_peer_(std::move(other.of_peer_)) {}
  Place& operator=(Place&&) = delete;

  /// Errors: the peer has all that one may have, which is counted.
  absl::Status TakeAs(Caller& caller) {
    return caller.Hold(PeerResource::kConnections, 1, of_peer_);
  }

 private:
  std::size_t* connections_;  // null: moved from
  PeerShare of_peer_;
};

/// What is known of a peer by its address.
Credentials CredentialsOf(const tcp::socket& socket) {
  error_code error;
  const auto peer = socket.remote_endpoint(error);
  return CredentialsAt(error ? "" : peer.address().to_string());
}

using TlsStream = beast::ssl_stream<beast::tcp_stream>;

/// The stream of a connection: TCP, or TLS above it.
struct PlainStream {
  explicit PlainStream(tcp::socket socket) : stream(std::move(socket)) {}
  beast::tcp_stream& lowest() { return stream; }
  beast::tcp_stream stream;
};
struct SecureStream {
  SecureStream(tcp::socket socket, std::shared_ptr<const TlsMaterial> material_in)
      : material(std::move(material_in)),
        // Takes over the handle that it is given, and gives it back when it ends.
        context((SSL_CTX_up_ref(material->context.get()), material->context.get())),
        stream(std::move(socket), context) {}
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream); }
  std::shared_ptr<const TlsMaterial> material;
  asio::ssl::context context;
  TlsStream stream;
};

/// One connection: read a request, answer it, and again while the client keeps it open.
template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Material>
  Connection(tcp::socket socket, Place place, Shared& shared, Material... material)
      : stream_(std::move(socket), std::move(material)...),
        shared_(shared),
        place_(std::move(place)),
        buffer_(shared.options.max_header_bytes + kReadAheadBytes) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// In clear.
  void Begin() { Read(); }

  /// Over TLS, whose handshake ends before `deadline`.
  void Begin(std::chrono::steady_clock::time_point deadline) {
    stream_.lowest().expires_at(deadline);
    stream_.stream.async_handshake(
        asio::ssl::stream_base::server,
        [self = Self()](const error_code& error) { self->OnSecured(error); });
  }

 private:
  std::shared_ptr<Connection> Self() { return this->shared_from_this(); }

  void OnSecured(const error_code& error) {
    if (error) {
      shared_.TlsFailed();
      return;
    }
    Caller caller = WhoAsks({});  // by its certificate perhaps another peer than by its address
    if (place_.TakeAs(caller).ok()) {
      Read();
    } else {
      Refuse(kTooMany, "too many connections of one peer");
    }
  }

  void Read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.max_header_bytes));
    parser_->body_limit(shared_.options.max_body_bytes);
    // One deadline for the whole request: a client that sends a byte now and then gains nothing.
    stream_.lowest().expires_after(shared_.options.timeout);
    http::async_read(
        stream_.stream, buffer_, *parser_,
        [self = Self()](const error_code& error, std::size_t) { self->OnRead(error); });
  }

  void OnRead(const error_code& error) {
    if (!error) {
      const auto& request = parser_->get();
      const std::string_view method(request.method_string().data(), request.method_string().size());
      const std::string_view target(request.target().data(), request.target().size());
      Caller caller = WhoAsks(request);
      // A token may show who it is.
      if (const absl::Status place = place_.TakeAs(caller); !place.ok()) {
        Refuse(kTooMany, std::string(place.message()));
        return;
      }
      Write(Answer(method, target, shared_.callbacks, caller), request.version(),
            request.keep_alive(), request.method() == http::verb::head);
    } else if (error == http::error::header_limit) {
      Refuse(431, "the request's header is larger than " +
                      std::to_string(shared_.options.max_header_bytes) + " bytes");
    } else if (error == http::error::body_limit) {
      Refuse(413, "the request's body is larger than " +
                      std::to_string(shared_.options.max_body_bytes) + " bytes");
    } else if (error == beast::error::timeout) {
      // Silent between requests is no fault; in the middle of one it is, and is counted.
      if (parser_->got_some()) shared_.Count("other", 408);
    } else if (error == http::error::end_of_stream) {
      error_code ignored;
      stream_.lowest().socket().shutdown(tcp::socket::shutdown_send, ignored);
    } else if (error.category() == make_error_code(http::error::bad_method).category() &&
               error != http::error::partial_message) {
      Refuse(400, "bad request: " + Message(error));
    }
    // Anything else: the client has gone.
  }

  Caller WhoAsks(const http::request<http::string_body>& request) {
    Credentials shown = CredentialsOf(stream_.lowest().socket());
    if (const auto count = request.count(http::field::authorization); count > 0) {
      const auto header = request[http::field::authorization];
      // More than one is as wrong as a wrong one.
      shown.token =
          BearerToken(count == 1 ? std::string_view(header.data(), header.size()) : "several");
    }
    if constexpr (std::is_same_v<Stream, SecureStream>) {
      X509* const certificate = SSL_get1_peer_certificate(stream_.stream.native_handle());
      shown.certificate = certificate != nullptr;
      if (shown.certificate) shown.certificate_names = CertificateNames(*certificate);
      X509_free(certificate);
    }
    return Caller(shared_.options.guard, "http", std::move(shown));
  }

  void Refuse(int code, const std::string& why) {
    Write({.code = code, .body = why + "\n"}, 11, false, false);
  }

  void Write(HttpAnswer answer, unsigned version, bool keep_alive, bool head) {
    shared_.Count(answer.path, answer.code);
    response_.emplace(static_cast<http::status>(answer.code), version);
    response_->set(http::field::content_type,
                   beast::string_view(answer.content_type.data(), answer.content_type.size()));
    response_->set("X-Content-Type-Options", "nosniff");
    if (!answer.allow.empty()) {
      response_->set(http::field::allow,
                     beast::string_view(answer.allow.data(), answer.allow.size()));
    }
    if (answer.challenge) response_->set(http::field::www_authenticate, "Bearer");
    response_->keep_alive(keep_alive);
    response_->content_length(answer.body.size());
    if (!head) response_->body() = std::move(answer.body);
    stream_.lowest().expires_after(shared_.options.timeout);
    http::async_write(stream_.stream, *response_,
                      [self = Self(), keep_alive](const error_code& error, std::size_t) {
                        if (error) return;
                        self->response_.reset();
                        if (keep_alive) {
                          self->Read();
                        } else {
                          self->BeginClose();
                        }
                      });
  }

  void BeginClose() {
    if constexpr (std::is_same_v<Stream, SecureStream>) {
      stream_.lowest().expires_after(kDrainTime);
      // Ends when the peer's own has come, or the time is over.
      stream_.stream.async_shutdown([self = Self()](const error_code&) {});
      return;
    }
    error_code error;
    stream_.lowest().socket().shutdown(tcp::socket::shutdown_send, error);
    if (error) return;
    stream_.lowest().expires_after(kDrainTime);
    Drain(kDrainBytes);
  }

  void Drain(std::size_t bytes_left) {
    if (!drained_) drained_ = std::make_unique<std::array<char, 4096>>();
    stream_.stream.async_read_some(
        asio::buffer(*drained_),
        [self = Self(), bytes_left](const error_code& error, std::size_t bytes) {
          if (!error && bytes < bytes_left) self->Drain(bytes_left - bytes);
        });
  }

  Stream stream_;
  Shared& shared_;
  Place place_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::unique_ptr<std::array<char, 4096>> drained_;  // once it closes
};

/// A connection over TLS until its first record is whole.
class Arrival : public std::enable_shared_from_this<Arrival> {
 public:
  Arrival(tcp::socket socket, Place place, Shared& shared)
      : socket_(std::move(socket)),
        place_(std::move(place)),
        shared_(shared),
        timer_(socket_.get_executor()) {}

  void Begin() {
    timer_.expires_after(shared_.options.handshake_timeout);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && self->socket_.is_open()) self->Fail();
    });
    Await();
  }

 private:
  void Await() {
    switch (opening_.Look(socket_.native_handle())) {
      case OpeningLook::State::kMissing:
        socket_.async_wait(tcp::socket::wait_read,
                           [self = shared_from_this()](const error_code& error) {
                             if (!error && self->socket_.is_open()) self->Await();
                           });
        return;
      case OpeningLook::State::kWhole:
        timer_.cancel();
        std::make_shared<Connection<SecureStream>>(std::move(socket_), std::move(place_), shared_,
                                                   shared_.options.tls->Get())
            ->Begin(timer_.expiry());
        return;
      case OpeningLook::State::kEnded:
        timer_.cancel();
        Fail();
        return;
    }
  }

  void Fail() {
    shared_.TlsFailed();
    error_code ignored;
    socket_.close(ignored);
  }

  tcp::socket socket_;
  Place place_;
  Shared& shared_;
  OpeningLook opening_{Opening::kTls};
  asio::steady_timer timer_;
};

}  // namespace

/// Members are destroyed from the last: the thread has ended by then, and the context, which holds
/// the connections, goes before what they refer to.
struct HttpServer::Running {
  Running(const HttpOptions& options, const HttpCallbacks& callbacks)
      : shared{options, callbacks}, acceptor(context), pause(context) {}

  void Accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) {
        Log(LogLevel::kWarn, "cannot accept an HTTP connection", {{"error", error.message()}});
        pause.expires_after(kAcceptPause);
        pause.async_wait([this](const error_code&) { Accept(); });
        return;
      }
      if (shared.connections < shared.options.max_connections) {
        Serve(std::move(socket));
      } else {
        TurnAway(std::move(socket), 503);
      }
      Accept();
    });
  }

  void Serve(tcp::socket socket) {
    Place place(shared.connections);
    Caller stranger(shared.options.guard, "http", CredentialsOf(socket));
    if (!place.TakeAs(stranger).ok()) {
      TurnAway(std::move(socket), kTooMany);
    } else if (shared.options.tls != nullptr) {
      std::make_shared<Arrival>(std::move(socket), std::move(place), shared)->Begin();
    } else {
      std::make_shared<Connection<PlainStream>>(std::move(socket), std::move(place), shared)
          ->Begin();
    }
  }

  /// So short an answer fits any socket's buffer, so it is sent without waiting.
  void TurnAway(tcp::socket socket, int code) const {
    const std::string_view answer =
        code == kTooMany
            ? "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 33\r\nConnection: close\r\n\r\ntoo many connections of one peer\n"
            : "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 21\r\nConnection: close\r\n\r\ntoo many connections\n";
    shared.Count("other", code);
    if (shared.options.tls != nullptr) return;  // closed: words would need a handshake
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(answer.data(), answer.size()), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  Shared shared;
  asio::io_context context{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::thread thread;
};

HttpServer::HttpServer(HttpOptions options, HttpCallbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)) {}

HttpServer::~HttpServer() { Stop(); }

absl::Status HttpServer::Start() {
  assert(running_ == nullptr);
  auto running = std::make_unique<Running>(options_, callbacks_);
  error_code error;
  const auto failed = [&] {
    return absl::UnavailableError("cannot listen on " + options_.address.ToString() + ": " +
                                  Message(error));
  };
  tcp::resolver resolver(running->context);
  const auto found = resolver.resolve(options_.address.host, std::to_string(options_.address.port),
                                      tcp::resolver::passive, error);
  if (error) return failed();
  const tcp::endpoint endpoint = *found.begin();
  tcp::acceptor& acceptor = running->acceptor;
  acceptor.open(endpoint.protocol(), error);
  // Lets a restarted daemon take its port at once; Linux still refuses a port that is listened on.
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failed();

  running_ = std::move(running);
  running_->Accept();
  running_->thread = std::thread([this] {
    EnterThreadRole(ThreadRole::kAnswers, "tidemark-http");
    running_->context.run();
  });
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (running_ == nullptr) return;
  running_->context.stop();
  running_->thread.join();
  running_.reset();
}

HostPort HttpServer::address() const {
  assert(running_ != nullptr);
  const tcp::endpoint endpoint = running_->acceptor.local_endpoint();
  return {endpoint.address().to_string(), endpoint.port()};
}

}  // namespace tidemark::server
