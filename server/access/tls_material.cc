#include "server/access/tls_material.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

#include "absl/strings/escaping.h"
#include "server/access/file_text.h"

namespace tidemark::server {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// A bundle of authorities has some hundred KiB.
constexpr std::size_t kFileBytesMax = std::size_t{4} << 20;

absl::Status Fault(std::string_view setting, const std::string& path, std::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(
      fmt::format("tls.{}: \"{}\" {}", setting, absl::Utf8SafeCEscape(path), what));
}

absl::StatusOr<std::string> Read(std::string_view setting, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFileText(path, kFileBytesMax);
  if (text.ok()) return text;
  return Fault(setting, path,
               fmt::format("cannot be read: {}", std::string(text.status().message())));
}

Bio Memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

// A key with a passphrase would make OpenSSL ask the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

// Every certificate of the text, at least one.
absl::StatusOr<std::vector<Certificate>> Certificates(std::string_view setting,
                                                      const std::string& path,
                                                      const std::string& text) {
  std::vector<Certificate> all;
  const Bio bio = Memory(text);
  ERR_clear_error();
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)) {
    all.emplace_back(one, X509_free);
  }
  // The end is an error too, and the only one that is none.
  const unsigned long why = ERR_peek_last_error();
  if (ERR_GET_LIB(why) != ERR_LIB_PEM || ERR_GET_REASON(why) != PEM_R_NO_START_LINE) {
    return Fault(setting, path,
                 fmt::format("is damaged: certificate {} in it cannot be read", all.size() + 1));
  }
  if (all.empty()) return Fault(setting, path, "holds no certificate in PEM");
  ERR_clear_error();
  return all;
}

absl::Status CheckTimes(const TlsFiles& files, const X509& certificate, std::int64_t now_us) {
  std::time_t now = static_cast<std::time_t>(now_us / 1'000'000);
  if (X509_cmp_time(X509_get0_notAfter(&certificate), &now) <= 0) {
    return Fault("cert_file", files.certificate, "has expired");
  }
  if (X509_cmp_time(X509_get0_notBefore(&certificate), &now) > 0) {
    return Fault("cert_file", files.certificate, "is not valid yet");
  }
  return absl::OkStatus();
}

absl::Status MakeContext(const TlsFiles& files, const std::vector<Certificate>& chain,
                         const Key& key, TlsMaterial& material) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 0);
  // A writer goes on with the rest, from wherever it lies by then.
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate(raw, chain.front().get()) != 1) {
    return Fault("cert_file", files.certificate, "is a certificate that TLS cannot use");
  }
  if (SSL_CTX_use_PrivateKey(raw, key.get()) != 1) {
    return Fault("key_file", files.key, "is a key that TLS cannot use");
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(raw, chain[i].get());
  }
  if (!material.client_ca.empty()) {
    const auto authorities = Certificates("client_ca_file", files.client_ca, material.client_ca);
    if (!authorities.ok()) return authorities.status();
    X509_STORE* const store = SSL_CTX_get_cert_store(raw);
    for (const Certificate& authority : *authorities) {
      X509_STORE_add_cert(store, authority.get());
      SSL_CTX_add_client_CA(raw, authority.get());
    }
    SSL_CTX_set_verify(
        raw,
        SSL_VERIFY_PEER | (files.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        nullptr);
  }
  ERR_clear_error();
  material.context = context;
  return absl::OkStatus();
}

void AddName(const ASN1_STRING* text, std::vector<std::string>& names) {
  unsigned char* bytes = nullptr;
  const int size = ASN1_STRING_to_UTF8(&bytes, text);
  if (size < 0) return;
  std::string name(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  // "a\0b" would read as "a" elsewhere.
  if (!name.empty() && name.find('\0') == std::string::npos) names.push_back(std::move(name));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsMaterial>> LoadTls(const TlsFiles& files,
                                                           std::int64_t now_us) {
  auto material = std::make_shared<TlsMaterial>();
  material->require_client_certificate = files.require_client_certificate;
  absl::StatusOr<std::string> text = Read("cert_file", files.certificate);
  if (!text.ok()) return text.status();
  material->certificate = *std::move(text);
  text = Read("key_file", files.key);
  if (!text.ok()) return text.status();
  material->key = *std::move(text);
  if (!files.client_ca.empty()) {
    text = Read("client_ca_file", files.client_ca);
    if (!text.ok()) return text.status();
    material->client_ca = *std::move(text);
    if (material->client_ca.empty()) {
      return Fault("client_ca_file", files.client_ca, "holds no certificate in PEM");
    }
  }
  const auto certificates = Certificates("cert_file", files.certificate, material->certificate);
  if (!certificates.ok()) return certificates.status();
  const std::vector<Certificate>& chain = *certificates;
  const Bio key_text = Memory(material->key);
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, NoPassphrase, nullptr),
                EVP_PKEY_free);
  if (!key) return Fault("key_file", files.key, "holds no key in PEM without a passphrase");
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    return Fault("key_file", files.key,
                 fmt::format("is not the key of \"{}\"", absl::Utf8SafeCEscape(files.certificate)));
  }
  if (absl::Status status = CheckTimes(files, *chain.front(), now_us); !status.ok()) return status;
  if (absl::Status status = MakeContext(files, chain, key, *material); !status.ok()) return status;
  return material;
}

std::vector<std::string> CertificateNames(const X509& certificate) {
  std::vector<std::string> names;
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    AddName(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names);
  }
  auto* const others = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (const int type : {GEN_DNS, GEN_URI, GEN_EMAIL}) {
    for (int i = 0; i < sk_GENERAL_NAME_num(others); ++i) {
      const GENERAL_NAME* const name = sk_GENERAL_NAME_value(others, i);
      if (name->type == type) AddName(name->d.ia5, names);
    }
  }
  GENERAL_NAMES_free(others);
  return names;
}

}  // namespace tidemark::server
