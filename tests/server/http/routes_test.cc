// What is answered to which method and target, without a socket.
#include "server/http/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tidemark::server {
namespace {

using ::testing::HasSubstr;

class Routes : public ::testing::Test {
 protected:
  HttpCallbacks callbacks_{
      .metrics = [] { return std::string("up 1\n"); },
      .not_ready = [this] { return not_ready_; },
      .reload = [this] { return ++reloads_, reload_status_; },
      .count = {},
  };
  Caller caller_{nullptr, "http", {}};
  std::optional<std::string> not_ready_;
  absl::Status reload_status_;
  int reloads_ = 0;
};

TEST_F(Routes, MetricsHaveTheContentTypeOfTheExposition) {
  const HttpAnswer answer = Answer("GET", "/metrics", callbacks_, caller_);
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(answer.body, "up 1\n");
  EXPECT_EQ(answer.path, "/metrics");
}

TEST_F(Routes, HealthAndReadiness) {
  EXPECT_EQ(Answer("GET", "/-/healthy", callbacks_, caller_).code, 200);
  EXPECT_EQ(Answer("GET", "/-/ready", callbacks_, caller_).code, 200);
  not_ready_ = "draining";
  const HttpAnswer answer = Answer("GET", "/-/ready", callbacks_, caller_);
  EXPECT_EQ(answer.code, 503);
  EXPECT_EQ(answer.body, "not ready: draining\n");
  EXPECT_EQ(Answer("GET", "/-/healthy", callbacks_, caller_).code, 200) << "alive while it drains";
}

TEST_F(Routes, ReloadNeedsPostOrPut) {
  EXPECT_EQ(Answer("GET", "/-/reload", callbacks_, caller_).code, 405);
  EXPECT_EQ(reloads_, 0);
  EXPECT_EQ(Answer("POST", "/-/reload", callbacks_, caller_).code, 200);
  EXPECT_EQ(Answer("PUT", "/-/reload", callbacks_, caller_).code, 200);
  EXPECT_EQ(reloads_, 2);
  reload_status_ = absl::InvalidArgumentError("tidemark.toml:1:1: unknown key \"x\"");
  const HttpAnswer answer = Answer("POST", "/-/reload", callbacks_, caller_);
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.body, "not reloaded: tidemark.toml:1:1: unknown key \"x\"\n");
}

TEST_F(Routes, QueryIsIgnored) {
  EXPECT_EQ(Answer("GET", "/metrics?name=x", callbacks_, caller_).code, 200);
}

TEST_F(Routes, UnknownPathsAndMethods) {
  for (const char* target : {"", "*", "/metrics/", "//metrics", "/METRICS", "/-/", "/../metrics"}) {
    const HttpAnswer answer = Answer("GET", target, callbacks_, caller_);
    EXPECT_EQ(answer.code, 404) << target;
    EXPECT_EQ(answer.path, "other") << "an unknown path must not become a label";
  }
  const HttpAnswer answer = Answer("DELETE", "/metrics", callbacks_, caller_);
  EXPECT_EQ(answer.code, 405);
  EXPECT_EQ(answer.allow, "GET, HEAD");
  EXPECT_EQ(answer.body, "method not allowed: use GET\n");
}

TEST_F(Routes, IndexLinksThePages) {
  const HttpAnswer answer = Answer("GET", "/", callbacks_, caller_);
  EXPECT_THAT(answer.body, HasSubstr("/metrics"));
  EXPECT_THAT(std::string(answer.content_type), HasSubstr("text/html"));
}

TEST_F(Routes, ThrowingCallbackIsAnInternalError) {
  callbacks_.metrics = []() -> std::string { throw std::runtime_error("no memory"); };
  const HttpAnswer answer = Answer("GET", "/metrics", callbacks_, caller_);
  EXPECT_EQ(answer.code, 500);
  EXPECT_EQ(answer.body, "internal error: no memory\n");
}

TEST_F(Routes, EveryAnswerEndsItsLastLine) {
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "BREW"}) {
    for (const char* target : {"/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/x"}) {
      EXPECT_TRUE(Answer(method, target, callbacks_, caller_).body.ends_with('\n'))
          << method << target;
    }
  }
}

}  // namespace
}  // namespace tidemark::server
