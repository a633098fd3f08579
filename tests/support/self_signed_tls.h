// What a server under test shows itself with.
#ifndef TIDEMARK_TESTS_SUPPORT_SELF_SIGNED_TLS_H_
#define TIDEMARK_TESTS_SUPPORT_SELF_SIGNED_TLS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

#include "server/access/tls_material.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::test {

/// A certificate of that name, signed by itself, and its key; clients are asked for none. Errors: a
/// failure of the test, and null.
inline std::shared_ptr<const server::TlsMaterial> SelfSignedTls(const std::string& name) {
  const TemporaryFolder folder;
  const TestCertificate own = TestCertificate::Authority(name);
  const auto loaded = server::LoadTls({.certificate = folder.Write("cert.pem", own.certificate()),
                                       .key = folder.Write("key.pem", own.key()),
                                       .client_ca = {}},
                                      std::time(nullptr) * std::int64_t{1'000'000});
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.value_or(nullptr);
}

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_SELF_SIGNED_TLS_H_
