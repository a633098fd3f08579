// Authorities, certificates and keys made by the test that uses them: P-256, valid from a day ago.
#ifndef TIDEMARK_TESTS_SUPPORT_CERTIFICATES_H_
#define TIDEMARK_TESTS_SUPPORT_CERTIFICATES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace tidemark::test {

/// Seconds from now; negative: it expired so long ago.
inline constexpr long kDaySeconds = 86'400;

struct CertificateOptions {
  /// Empty: none.
  std::string common_name;
  /// As OpenSSL writes it: "DNS:localhost,IP:127.0.0.1"; empty: none.
  std::string alternative_names = {};
  long expires_in_s = kDaySeconds;
};

/// A certificate and its key, and what it takes to sign others with it.
/// Errors: throws std::runtime_error.
class TestCertificate {
 public:
  /// An authority, signed by itself.
  static TestCertificate Authority(const std::string& name) {
    TestCertificate authority;
    authority.Make({.common_name = name}, nullptr);
    return authority;
  }
  /// Signed by this authority.
  TestCertificate Sign(const CertificateOptions& options) const {
    TestCertificate one;
    one.Make(options, this);
    return one;
  }

  /// PEM.
  std::string certificate() const {
    return Written([this](BIO* bio) { return PEM_write_bio_X509(bio, certificate_.get()); });
  }
  std::string key() const {
    return Written([this](BIO* bio) {
      return PEM_write_bio_PKCS8PrivateKey(bio, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  const X509& x509() const { return *certificate_; }

 private:
  TestCertificate() = default;

  static void Check(bool good) {
    if (!good) throw std::runtime_error("OpenSSL cannot make a certificate");
  }

  void Make(const CertificateOptions& options, const TestCertificate* authority) {
    key_.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
    certificate_.reset(X509_new(), X509_free);
    Check(key_ && certificate_);
    X509* const raw = certificate_.get();
    static long serial = 0;
    Check(X509_set_version(raw, 2) == 1);
    Check(ASN1_INTEGER_set(X509_get_serialNumber(raw), ++serial) == 1);
    Check(X509_gmtime_adj(X509_getm_notBefore(raw), -2 * kDaySeconds) != nullptr);
    Check(X509_gmtime_adj(X509_getm_notAfter(raw), options.expires_in_s) != nullptr);
    Check(X509_set_pubkey(raw, key_.get()) == 1);
    X509_NAME* const subject = X509_get_subject_name(raw);
    Check(options.common_name.empty() ||
          X509_NAME_add_entry_by_txt(
              subject, "CN", MBSTRING_UTF8,
              reinterpret_cast<const unsigned char*>(options.common_name.data()),
              static_cast<int>(options.common_name.size()), -1, 0) == 1);
    const TestCertificate& issuer = authority == nullptr ? *this : *authority;
    Check(X509_set_issuer_name(raw, X509_get_subject_name(issuer.certificate_.get())) == 1);
    Extend(NID_basic_constraints, authority == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    if (!options.alternative_names.empty()) {
      Extend(NID_subject_alt_name, options.alternative_names);
    }
    Check(X509_sign(raw, issuer.key_.get(), EVP_sha256()) > 0);
  }

  void Extend(int nid, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()), X509_EXTENSION_free);
    Check(extension && X509_add_ext(certificate_.get(), extension.get(), -1) == 1);
  }

  static std::string Written(const auto& write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
    Check(bio && write(bio.get()) == 1);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &bytes);
    return {bytes, static_cast<std::size_t>(size)};
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_CERTIFICATES_H_
