#include "tests/bench/crowd_bench_tls.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>

#include "client/tls_stream.h"
#include "tests/bench/service_bench_daemon.h"

namespace tidemark::bench {
namespace {

void Check(bool good) {
  if (!good) throw std::runtime_error("OpenSSL cannot make a ClientHello");
}

}  // namespace

std::string ClientHello(std::string_view alpn) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  Check(context != nullptr);
  Check(SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1);
  const std::unique_ptr<SSL, decltype(&SSL_free)> session(SSL_new(context.get()), SSL_free);
  Check(session != nullptr);
  std::string name = "localhost";  // SSL_set_tlsext_host_name has a cast that is warned of
  Check(SSL_ctrl(session.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                 name.data()) == 1);
  // The group of the key that it brings: gRPC takes no other, and would only ask for another one.
  Check(SSL_set1_groups_list(session.get(), "P-256") == 1);
  if (!alpn.empty()) {
    const std::string list = static_cast<char>(alpn.size()) + std::string(alpn);
    Check(SSL_set_alpn_protos(session.get(), reinterpret_cast<const unsigned char*>(list.data()),
                              static_cast<unsigned>(list.size())) == 0);
  }
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), in, out);  // which owns them
  Check(in != nullptr && out != nullptr);
  const int result = SSL_connect(session.get());
  Check(SSL_get_error(session.get(), result) == SSL_ERROR_WANT_READ);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  Check(size > 0);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string AnswerOverTls(std::uint16_t port, const std::string& ca, std::string_view request) {
  struct Socket {
    ~Socket() { close(fd); }
    const int fd;
  };
  const Socket socket{ConnectLoopback(SOCK_STREAM, port)};
  const auto stream = client::TlsStream::Connect(socket.fd, "localhost", {.ca = ca});
  if (!stream.ok()) throw std::runtime_error(std::string(stream.status().message()));
  if (const auto sent = (*stream)->Write(std::as_bytes(std::span(request))); !sent.ok()) {
    throw std::runtime_error(std::string(sent.message()));
  }
  std::string answer;
  std::array<char, 65'536> part;
  ssize_t got = 0;
  while ((got = (*stream)->Read(std::as_writable_bytes(std::span(part)), true)) > 0) {
    answer.append(part.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

}  // namespace tidemark::bench
