// The certificate, key and authorities that the listeners use: read from files and checked as a
// whole, so that what is in force always works.
#ifndef TIDEMARK_SERVER_ACCESS_TLS_MATERIAL_H_
#define TIDEMARK_SERVER_ACCESS_TLS_MATERIAL_H_

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tidemark::server {

/// Paths of PEM files. Without a client_ca no client certificate is asked for.
struct TlsFiles {
  std::string certificate;  ///< the daemon's, then those between it and its authority
  std::string key;          ///< not encrypted
  std::string client_ca;    ///< authorities of clients' certificates
  bool require_client_certificate = false;
};

/// Thread: any; immutable. Holds the key in memory: never log it.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  bool require_client_certificate = false;
  /// For OpenSSL's own connections: TLS 1.2 and later, no renegotiation, no session cache (a
  /// resumed session would not show its client certificate to new rules).
  std::shared_ptr<SSL_CTX> context;
};

/// Reads and checks: the key is the certificate's, the certificate is valid at `now_us`
/// (microseconds since 1970), the authorities are certificates.
/// Errors: INVALID_ARGUMENT, one line: `tls.key_file: "/etc/…/key.pem" is not the key of …`.
absl::StatusOr<std::shared_ptr<const TlsMaterial>> LoadTls(const TlsFiles& files,
                                                           std::int64_t now_us);

/// The names of a certificate: common name of the subject, DNS, URI and e-mail names, in this
/// order, without what holds a NUL.
std::vector<std::string> CertificateNames(const X509& certificate);

/// What is in force; a reload replaces it for the connections that come after.
/// Thread: any.
class TlsHolder {
 public:
  explicit TlsHolder(std::shared_ptr<const TlsMaterial> material)
      : material_(std::move(material)) {}
  std::shared_ptr<const TlsMaterial> Get() const {
    const std::lock_guard lock(mutex_);
    return material_;
  }
  void Set(std::shared_ptr<const TlsMaterial> material) {
    const std::lock_guard lock(mutex_);
    material_ = std::move(material);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsMaterial> material_;  // guarded by mutex_; not null
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_TLS_MATERIAL_H_
