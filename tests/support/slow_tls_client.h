// A TLS client whose first record the test sends when and as it likes.
#ifndef TIDEMARK_TESTS_SUPPORT_SLOW_TLS_CLIENT_H_
#define TIDEMARK_TESTS_SUPPORT_SLOW_TLS_CLIENT_H_

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/access/tls_material.h"
#include "tests/support/raw_socket.h"

namespace tidemark::test {

class SlowTlsClient {
 public:
  explicit SlowTlsClient(std::uint16_t port)
      : socket_(port),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(SSL_new(context_.get()), SSL_free) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(ssl_.get());
    hello_ = Written();
  }

  RawSocket& socket() { return socket_; }
  /// The first record, a ClientHello; none of it has been sent.
  const std::string& hello() const { return hello_; }

  /// When all of it has been sent: ends the handshake and returns the names of the certificate that
  /// the server showed; none if it went wrong.
  std::vector<std::string> ServerNames() {
    while (SSL_connect(ssl_.get()) != 1) {
      if (!socket_.Send(Written())) return {};
      const std::string answer = socket_.Receive(1);
      if (answer.empty()) return {};
      BIO_write(SSL_get_rbio(ssl_.get()), answer.data(), static_cast<int>(answer.size()));
    }
    if (!socket_.Send(Written())) return {};
    const std::unique_ptr<X509, decltype(&X509_free)> server(SSL_get1_peer_certificate(ssl_.get()),
                                                             X509_free);
    return server ? server::CertificateNames(*server) : std::vector<std::string>();
  }

 private:
  std::string Written() {
    std::string bytes(BIO_pending(SSL_get_wbio(ssl_.get())), '\0');
    if (!bytes.empty()) {
      BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    }
    return bytes;
  }

  RawSocket socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::string hello_;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_SLOW_TLS_CLIENT_H_
