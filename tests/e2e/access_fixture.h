// A daemon with rules and TLS, its authorities and its callers; all of it made by the test.
#ifndef TIDEMARK_TESTS_E2E_ACCESS_FIXTURE_H_
#define TIDEMARK_TESTS_E2E_ACCESS_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::test {

/// PEM; empty: none.
struct Identity {
  std::string certificate;
  std::string key;
};
inline Identity IdentityOf(const TestCertificate& one) { return {one.certificate(), one.key()}; }

/// A blocking TLS connection to 127.0.0.1; gives up after ten seconds. Errors: what fails makes
/// good() false, and error() says why.
class TlsConnection {
 public:
  TlsConnection(std::uint16_t port, const std::string& authority, const Identity& identity = {});
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  bool good() const { return good_; }
  const std::string& error() const { return error_; }
  bool Send(const std::string& bytes);
  /// Until there are `bytes`, or the peer ends.
  std::string Receive(std::size_t bytes);
  std::string ReceiveAll() { return Receive(SIZE_MAX); }
  /// The daemon's certificate, PEM.
  std::string PeerCertificate() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  bool good_ = false;
  std::string error_;
};

/// Principals "ingest", "query", "admin", each with its role over "prod.*", a token, and a
/// certificate of its name; "expired" with the token of that; "other" with all roles over
/// "other.*". Streams are named so. There is no anonymous.
class AccessFixture {
 public:
  AccessFixture();

  /// Flags for TLS on all listeners and the rules; `listeners` as tls.listeners.
  std::vector<std::string> Flags(const std::string& listeners = "grpc tcp http statsd") const;
  static std::string Token(const std::string& principal) {
    return "token-of-" + principal + "-0123";
  }
  void WriteRules(const std::string& more = "") const;
  void WriteServer(const TestCertificate& server) const;

  TemporaryFolder folder;
  const TestCertificate authority = TestCertificate::Authority("tidemark test authority");
  const TestCertificate server = authority.Sign(
      {.common_name = "localhost", .alternative_names = "DNS:localhost,IP:127.0.0.1"});
};

/// One request over TLS, with a token if it is not empty.
HttpReply Https(std::uint16_t port, const std::string& authority, const std::string& path,
                const std::string& token = "", const Identity& identity = {},
                const std::string& method = "GET");

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_E2E_ACCESS_FIXTURE_H_
