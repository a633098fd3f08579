#include "server/daemon/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <mutex>
#include <string>

namespace tidemark::server {
namespace {

// gRPC's C++ interface has no certificate that changes, but for one that reads whatever the files
// hold at the time. The C interface asks a function before each handshake; this is the C++ class
// around it.
class ReloadedCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadedCredentials(const TlsHolder& tls) : tls_(tls) {
    const auto material = tls.Get();
    const auto request = material->client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                         : material->require_client_certificate
                             ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                             : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, Fetch, this));
  }
  ~ReloadedCredentials() override { grpc_server_credentials_release(credentials_); }
  ReloadedCredentials(const ReloadedCredentials&) = delete;
  ReloadedCredentials& operator=(const ReloadedCredentials&) = delete;

  // Tokens are looked at by the calls themselves.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadedCredentials*>(self)->Fetch(config);
  }
  // Called for each new connection, from any thread.
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const TlsMaterial> now = tls_.Get();
    if (now == last_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{now->key.c_str(), now->certificate.c_str()};
    // gRPC asserts that there are authorities; where no client is asked for a certificate nothing
    // is checked against them, and any certificate will do.
    const std::string& authorities = now->client_ca.empty() ? now->certificate : now->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    last_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsHolder& tls_;
  std::mutex mutex_;
  std::shared_ptr<const TlsMaterial> last_;  // what gRPC has; guarded by mutex_
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsHolder& tls) {
  return std::make_shared<ReloadedCredentials>(tls);
}

}  // namespace tidemark::server
