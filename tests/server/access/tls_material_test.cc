// Certificates and keys that fit together, and those that do not.
#include "server/access/tls_material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::server {
namespace {

using test::kDaySeconds;
using test::TestCertificate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t Now() { return std::time(nullptr) * std::int64_t{1'000'000}; }

class TlsMaterialTest : public ::testing::Test {
 protected:
  TlsFiles Files(const TestCertificate& one) {
    return {.certificate = folder_.Write("cert.pem", one.certificate()),
            .key = folder_.Write("key.pem", one.key()),
            .client_ca = folder_.Write("ca.pem", authority_.certificate())};
  }
  static std::string Fault(const TlsFiles& files, std::int64_t now = Now()) {
    const auto loaded = LoadTls(files, now);
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(loaded.status().message());
  }

  test::TemporaryFolder folder_;
  const TestCertificate authority_ = TestCertificate::Authority("test authority");
  const TestCertificate good_ = authority_.Sign({.common_name = "localhost"});
};

TEST_F(TlsMaterialTest, WhatFitsIsTaken) {
  const auto loaded = LoadTls(Files(good_), Now());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->certificate, good_.certificate());
  EXPECT_NE((*loaded)->context, nullptr);
}

TEST_F(TlsMaterialTest, WhatDoesNotIsNamed) {
  TlsFiles files = Files(good_);
  folder_.Write("key.pem", authority_.key());
  EXPECT_THAT(Fault(files),
              ::testing::AllOf(HasSubstr("tls.key_file: "), HasSubstr("is not the key of")));
  folder_.Write("key.pem", good_.certificate());
  EXPECT_THAT(Fault(files), HasSubstr("holds no key in PEM"));
  files = Files(good_);
  folder_.Write("cert.pem", good_.key());
  EXPECT_THAT(Fault(files), HasSubstr("tls.cert_file: "));
  files = Files(good_);
  folder_.Write("ca.pem", "");
  EXPECT_THAT(Fault(files), HasSubstr("tls.client_ca_file: "));
  files.client_ca = "";
  EXPECT_TRUE(LoadTls(files, Now()).ok());
  files.key = folder_ / "none.pem";
  EXPECT_THAT(Fault(files), HasSubstr("cannot be read: No such file or directory"));
}

TEST_F(TlsMaterialTest, AFolderIsNoFile) {
  for (const auto member : {&TlsFiles::certificate, &TlsFiles::key, &TlsFiles::client_ca}) {
    TlsFiles files = Files(good_);
    files.*member = folder_.path();
    EXPECT_THAT(Fault(files), HasSubstr("cannot be read: Is a directory"));
  }
  folder_.Write("large.pem", std::string((std::size_t{4} << 20) + 1, '\n'));
  TlsFiles files = Files(good_);
  files.client_ca = folder_ / "large.pem";
  EXPECT_THAT(Fault(files), HasSubstr("cannot be read: larger than 4194304 bytes"));
}

TEST_F(TlsMaterialTest, ADamagedCertificateInTheMidstIsNamed) {
  std::string damaged = authority_.certificate();
  damaged.replace(damaged.size() / 2, 4, "!!!!");
  const std::string whole = good_.certificate();
  TlsFiles files = Files(good_);
  for (const std::string& bundle :
       {whole + damaged, whole + damaged + whole, whole + "text between\n" + damaged}) {
    folder_.Write("ca.pem", bundle);
    EXPECT_THAT(Fault(files), HasSubstr("certificate 2 in it cannot be read"));
  }
  folder_.Write("ca.pem", "a comment\n" + whole + "another\n" + authority_.certificate() + "end\n");
  EXPECT_TRUE(LoadTls(files, Now()).ok());
  folder_.Write("cert.pem", whole + damaged);
  EXPECT_THAT(Fault(files), HasSubstr("tls.cert_file"));
}

TEST_F(TlsMaterialTest, TimesAreChecked) {
  const TlsFiles files = Files(good_);
  EXPECT_THAT(Fault(files, Now() + 2 * kDaySeconds * 1'000'000), HasSubstr("has expired"));
  EXPECT_THAT(Fault(files, Now() - 3 * kDaySeconds * 1'000'000), HasSubstr("is not valid yet"));
  EXPECT_THAT(Fault(Files(authority_.Sign({.common_name = "x", .expires_in_s = -60}))),
              HasSubstr("has expired"));
}

TEST_F(TlsMaterialTest, EveryCutOfAFileIsRefusedOrWhole) {
  const std::string whole = good_.key();
  const TlsFiles files = Files(good_);
  for (std::size_t bytes = 0; bytes + 1 < whole.size(); bytes += 7) {
    folder_.Write("key.pem", whole.substr(0, bytes));
    EXPECT_FALSE(LoadTls(files, Now()).ok()) << bytes;
  }
}

TEST_F(TlsMaterialTest, NamesAreThoseOfSubjectAndAlternatives) {
  const TestCertificate one = authority_.Sign(
      {.common_name = "b\xc3\xbcro",
       .alternative_names = "email:a@b.c,DNS:x.example,IP:127.0.0.1,URI:spiffe://d/e"});
  EXPECT_THAT(CertificateNames(one.x509()),
              ElementsAre("b\xc3\xbcro", "x.example", "spiffe://d/e", "a@b.c"));
  EXPECT_THAT(CertificateNames(good_.x509()), ElementsAre("localhost"));
}

}  // namespace
}  // namespace tidemark::server
