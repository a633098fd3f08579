#include "tests/e2e/access_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstdlib>

namespace tidemark::test {
namespace {

std::string Sha256Hex(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : hash) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string LastError() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return text.data();
}

}  // namespace

struct TlsConnection::Parts {
  ~Parts() {
    SSL_free(ssl);
    SSL_CTX_free(context);
    if (fd >= 0) close(fd);
  }
  int fd = -1;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

TlsConnection::TlsConnection(std::uint16_t port, const std::string& authority,
                             const Identity& identity)
    : parts_(std::make_unique<Parts>()) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes with write()
  ERR_clear_error();
  parts_->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{10, 0};
  setsockopt(parts_->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(parts_->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto generic = std::bit_cast<sockaddr>(address);
  if (connect(parts_->fd, &generic, sizeof generic) != 0) {
    error_ = "cannot connect";
    return;
  }
  parts_->context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(parts_->context, SSL_VERIFY_PEER, nullptr);
  const auto pem = [](const std::string& text) {
    return BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  };
  BIO* bio = pem(authority);
  X509* const root = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(parts_->context), root);
  X509_free(root);
  BIO_free(bio);
  if (!identity.certificate.empty()) {
    bio = pem(identity.certificate);
    X509* const own = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(parts_->context, own);
    X509_free(own);
    BIO_free(bio);
    bio = pem(identity.key);
    EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(parts_->context, key);
    EVP_PKEY_free(key);
    BIO_free(bio);
  }
  parts_->ssl = SSL_new(parts_->context);
  SSL_set_fd(parts_->ssl, parts_->fd);
  SSL_set1_host(parts_->ssl, "localhost");
  good_ = SSL_connect(parts_->ssl) == 1;
  if (!good_) error_ = LastError();
}

TlsConnection::~TlsConnection() = default;

bool TlsConnection::Send(const std::string& bytes) {
  if (!good_) return false;
  std::size_t written = 0;
  good_ = SSL_write_ex(parts_->ssl, bytes.data(), bytes.size(), &written) == 1;
  if (!good_) error_ = LastError();
  return good_;
}

std::string TlsConnection::Receive(std::size_t bytes) {
  std::string all;
  std::array<char, 4096> chunk{};
  while (good_ && all.size() < bytes) {
    std::size_t got = 0;
    if (SSL_read_ex(parts_->ssl, chunk.data(), std::min(chunk.size(), bytes - all.size()), &got) !=
        1) {
      error_ = LastError();
      good_ = false;
    }
    all.append(chunk.data(), got);
  }
  return all;
}

std::string TlsConnection::PeerCertificate() const {
  X509* const peer = good_ ? SSL_get1_peer_certificate(parts_->ssl) : nullptr;
  if (peer == nullptr) return "";
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, peer);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string pem(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  X509_free(peer);
  return pem;
}

AccessFixture::AccessFixture() {
  WriteServer(server);
  folder.Write("ca.pem", authority.certificate());
  WriteRules();
}

void AccessFixture::WriteServer(const TestCertificate& one) const {
  folder.Write("server.pem", one.certificate());
  folder.Write("server.key", one.key());
}

void AccessFixture::WriteRules(const std::string& more) const {
  std::string rules;
  for (const std::string role : {"ingest", "query", "admin"}) {
    rules += "[principal." + role + "]\ntokens = [{ sha256 = \"" + Sha256Hex(Token(role)) +
             "\" }]\ncertificates = [\"" + role + ".example\"]\n" + role + " = [\"prod.*\"" +
             (role == "admin" ? ", \"*\"" : "") + "]\n";
  }
  rules += "[principal.expired]\ntokens = [{ sha256 = \"" + Sha256Hex(Token("expired")) +
           "\", expires = 2020-01-01T00:00:00Z }]\n"
           "ingest = [\"*\"]\nquery = [\"*\"]\nadmin = [\"*\"]\n";
  rules += "[principal.other]\ntokens = [{ sha256 = \"" + Sha256Hex(Token("other")) +
           "\" }]\ningest = [\"other.*\"]\nquery = [\"other.*\"]\nadmin = [\"other.*\"]\n";
  folder.Write("rules.toml", rules + more);
}

std::vector<std::string> AccessFixture::Flags(const std::string& listeners) const {
  return {"--rules-file",         folder / "rules.toml",
          "--tls-cert-file",      folder / "server.pem",
          "--tls-key-file",       folder / "server.key",
          "--tls-client-ca-file", folder / "ca.pem",
          "--tls-listeners",      listeners};
}

HttpReply Https(std::uint16_t port, const std::string& authority, const std::string& path,
                const std::string& token, const Identity& identity, const std::string& method) {
  TlsConnection connection(port, authority, identity);
  std::string request =
      method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
  if (!connection.Send(request + "Content-Length: 0\r\n\r\n")) return {};
  const std::string reply = connection.ReceiveAll();
  const std::size_t body = reply.find("\r\n\r\n");
  if (reply.size() < 12 || body == std::string::npos) return {};
  return {std::atoi(reply.c_str() + 9), reply.substr(body + 4)};
}

}  // namespace tidemark::test
