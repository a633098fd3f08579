#include "server/ingest/tls_socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <boost/asio/error.hpp>
#include <utility>

namespace tidemark::server {

void TlsSocket::Free::operator()(SSL* ssl) const { SSL_free(ssl); }

TlsSocket::TlsSocket(std::shared_ptr<const TlsMaterial> material, int descriptor)
    : material_(std::move(material)), ssl_(SSL_new(material_->context.get())) {
  if (!ssl_ || SSL_set_fd(ssl_.get(), descriptor) != 1) {
    ssl_.reset();
    error_ = "TLS cannot be begun";
    return;
  }
  SSL_set_accept_state(ssl_.get());
}

TlsSocket::Step TlsSocket::Judge(int result) {
  if (result == 1) return Step::kDone;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Step::kWaitRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWaitWrite;
    default: {
      std::array<char, 256> text{};
      const unsigned long code = ERR_get_error();
      ERR_error_string_n(code, text.data(), text.size());
      error_ = code == 0 ? "the peer has gone" : text.data();
      return Step::kFailed;
    }
  }
}

TlsSocket::Step TlsSocket::Handshake() {
  if (!ssl_) return Step::kFailed;
  ERR_clear_error();
  return Judge(SSL_do_handshake(ssl_.get()));
}

// One SSL_read gives one record, of at most 16 KiB.
std::size_t TlsSocket::Read(std::span<std::byte> room, boost::system::error_code& error) {
  std::size_t total = 0;
  error = {};
  read_waits_to_write_ = false;
  while (total < room.size() && !end_) {
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), room.data() + total, room.size() - total, &got);
    if (result == 1) {
      total += got;
      continue;
    }
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_WRITE:
        read_waits_to_write_ = true;
        [[fallthrough]];
      case SSL_ERROR_WANT_READ:
        if (total == 0) error = boost::asio::error::would_block;
        return total;
      case SSL_ERROR_ZERO_RETURN:
        end_ = boost::asio::error::eof;
        break;
      default:
        // An end without a word is one all the same: every protocol here knows what is whole.
        if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
          end_ = boost::asio::error::eof;
        } else {
          end_ = boost::asio::error::connection_reset;
        }
        break;
    }
  }
  // Behind bytes the end is told next time; asked again, OpenSSL would no longer know which it was.
  if (total == 0 && end_) error = *end_;
  return total;
}

TlsSocket::Step TlsSocket::Write(std::span<const std::byte> bytes, std::size_t& written) {
  ERR_clear_error();
  written = 0;
  return Judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written));
}

// Not SSL_has_pending, to which half a record is something: nothing comes of it until the rest is
// there. Without read_ahead no whole record waits unopened.
bool TlsSocket::HasMore() const { return end_ || (ssl_ && SSL_pending(ssl_.get()) > 0); }

void TlsSocket::Shutdown() {
  if (!ssl_ || SSL_is_init_finished(ssl_.get()) != 1) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());  // the peer's own is not waited for
  ERR_clear_error();
}

std::optional<std::vector<std::string>> TlsSocket::PeerNames() const {
  const std::unique_ptr<X509, decltype(&X509_free)> peer(SSL_get1_peer_certificate(ssl_.get()),
                                                         X509_free);
  if (!peer) return std::nullopt;
  return CertificateNames(*peer);
}

}  // namespace tidemark::server
