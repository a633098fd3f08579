#include "client/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tidemark::client {
namespace {

std::string LastError(const SSL* ssl) {
  if (ssl != nullptr) {
    if (const long why = SSL_get_verify_result(ssl); why != X509_V_OK) {
      return X509_verify_cert_error_string(why);
    }
  }
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  ERR_error_string_n(code, text.data(), text.size());
  ERR_clear_error();
  return code == 0 ? "the connection ended" : text.data();
}

absl::Status BadFile(const std::string& what, const std::string& path) {
  return absl::InvalidArgumentError(what + " cannot be used: \"" + path +
                                    "\": " + LastError(nullptr));
}

// OpenSSL writes with write(), which raises SIGPIPE where the peer has gone; a library must not end
// its program so, nor change how it takes signals. Held back on this thread, and taken if it came.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec now{0, 0};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace

struct TlsStream::Parts {
  ~Parts() {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  int socket = -1;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

TlsStream::TlsStream(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsStream::~TlsStream() = default;

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Connect(int socket, const std::string& host,
                                                              const TlsStreamOptions& options) {
  ERR_clear_error();
  auto parts = std::make_unique<Parts>();
  parts->socket = socket;
  parts->context = SSL_CTX_new(TLS_client_method());
  SSL_CTX* const context = parts->context;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (options.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, options.ca.c_str()) != 1) {
    return BadFile("the file of authorities", options.ca);
  }
  if (options.cert.empty() != options.key.empty()) {
    return absl::InvalidArgumentError("a client certificate and its key go together");
  }
  if (!options.cert.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, options.cert.c_str()) != 1) {
      return BadFile("the client certificate", options.cert);
    }
    if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      return BadFile("the key of the client certificate", options.key);
    }
  }
  parts->ssl = SSL_new(context);
  SSL* const ssl = parts->ssl;
  SSL_set_mode(ssl, SSL_MODE_AUTO_RETRY);
  X509_VERIFY_PARAM* const expected = SSL_get0_param(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) != 1) {
    // SSL_set_tlsext_host_name, without the C cast that it is; the name is copied.
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
    X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size());
  }
  ERR_clear_error();
  SSL_set_fd(ssl, socket);
  const WithoutSigpipe quiet;
  if (SSL_connect(ssl) != 1) {
    return absl::UnavailableError("TLS with " + host + " failed: " + LastError(ssl));
  }
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(parts)));
}

absl::Status TlsStream::Write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return absl::OkStatus();
  ERR_clear_error();
  const WithoutSigpipe quiet;
  std::size_t written = 0;
  if (SSL_write_ex(parts_->ssl, bytes.data(), bytes.size(), &written) != 1) {
    return absl::UnavailableError("cannot send: " + LastError(nullptr));
  }
  return absl::OkStatus();
}

ssize_t TlsStream::Read(std::span<std::byte> room, bool wait) {
  if (!wait && SSL_has_pending(parts_->ssl) != 1) {
    pollfd ready{parts_->socket, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) {
      errno = EAGAIN;
      return -1;
    }
  }
  ERR_clear_error();
  const WithoutSigpipe quiet;
  std::size_t got = 0;
  const int result = SSL_read_ex(parts_->ssl, room.data(), room.size(), &got);
  if (result == 1) return static_cast<ssize_t>(got);
  const int why = SSL_get_error(parts_->ssl, result);
  const bool ended = why == SSL_ERROR_ZERO_RETURN ||
                     ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (!ended && errno == 0) errno = EIO;
  return ended ? 0 : -1;
}

}  // namespace tidemark::client
