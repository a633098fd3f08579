// Callers who stay while the rules and the time change.
#include "server/access/guard.h"

#include <gtest/gtest.h>

namespace tidemark::server {
namespace {

constexpr char kToken[] = "a-token-of-0123456789";

std::shared_ptr<const Policy> Rules(const std::string& rules) {
  const Policy::Sources sources{
      .file = [](const std::string&) -> absl::StatusOr<std::string> { return std::string(kToken); },
      .environment = [](const char*) -> const char* { return nullptr; }};
  const auto policy = Policy::Parse(rules, "rules.toml", sources);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(nullptr);
}

class GuardTest : public ::testing::Test {
 protected:
  double Refused(std::string_view reason) { return metrics_.AccessRefused("grpc", reason).Value(); }

  Metrics metrics_{"test"};
  std::int64_t now_ = 0;
  Guard guard_{metrics_, [this] { return now_; }};
  Credentials shown_{.token = HashToken(kToken), .certificate_names = {}, .loopback = true};
};

TEST_F(GuardTest, WithoutRulesEverybodyMay) {
  Caller nobody(&guard_, "grpc", {});
  EXPECT_TRUE(nobody.MayOver(Role::kAdmin, "s").ok());
  EXPECT_TRUE(nobody.MayOverAll(Role::kAdmin).ok());
  EXPECT_TRUE(nobody.Sees("s"));
  EXPECT_EQ(nobody.Version(), 1U);
  Caller unguarded(nullptr, "grpc", {});
  EXPECT_TRUE(unguarded.MayAnything().ok());
}

TEST_F(GuardTest, NewRulesHoldForWhoeverIsThere) {
  Caller caller(&guard_, "grpc", shown_);
  EXPECT_TRUE(caller.MayOver(Role::kQuery, "s").ok());
  EXPECT_EQ(caller.Version(), 1U);
  guard_.Set(Rules("[principal.a]\ntokens = [{ file = \"t\" }]\nquery = [\"s\"]\n"));
  EXPECT_EQ(caller.Version(), 2U);
  EXPECT_EQ(caller.Version(), 2U);
  EXPECT_TRUE(caller.MayOver(Role::kQuery, "s").ok());
  EXPECT_EQ(caller.MayOver(Role::kQuery, "t").code(), absl::StatusCode::kPermissionDenied);
  guard_.Set(Rules("[principal.b]\nquery = [\"*\"]\n"));
  EXPECT_EQ(caller.MayOver(Role::kQuery, "s").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(caller.MayAnything().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(caller.Sees("s"));
  EXPECT_EQ(Refused("role"), 1);
  EXPECT_EQ(Refused("unknown_token"), 2);
  guard_.Set(nullptr);
  EXPECT_TRUE(caller.MayOver(Role::kQuery, "s").ok());
}

TEST_F(GuardTest, ATokenExpiresUnderItsCaller) {
  guard_.Set(
      Rules("[principal.a]\nquery = [\"*\"]\n"
            "tokens = [{ file = \"t\", expires = 1970-01-01T00:00:01Z }]\n"));
  Caller caller(&guard_, "grpc", shown_);
  EXPECT_TRUE(caller.MayOver(Role::kQuery, "s").ok());
  now_ = 999'999;
  EXPECT_EQ(caller.Version(), 1U);
  now_ = 1'000'000;
  EXPECT_EQ(caller.Version(), 2U);
  EXPECT_EQ(caller.Version(), 2U);
  EXPECT_EQ(caller.MayOver(Role::kQuery, "s").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Refused("expired_token"), 1);
  // A clock that is set back does not bring it back by itself; new rules judge by the clock again.
  guard_.Set(Rules("[principal.a]\nquery = [\"*\"]\ntokens = [{ file = \"t\" }]\n"));
  EXPECT_TRUE(caller.MayOver(Role::kQuery, "s").ok());
}

TEST_F(GuardTest, ATokenMayBeShownLater) {
  guard_.Set(Rules("[principal.a]\ntokens = [{ file = \"t\" }]\nquery = [\"s\"]\n"));
  Caller caller(&guard_, "tcp", {.token = {}, .certificate_names = {}, .loopback = true});
  EXPECT_EQ(caller.MayAnything().code(), absl::StatusCode::kUnauthenticated);
  caller.Show(HashToken(kToken));
  EXPECT_TRUE(caller.MayAnything().ok());
}

}  // namespace
}  // namespace tidemark::server
