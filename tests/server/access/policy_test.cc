// Rules: what a file of them means, what is wrong with others, who may do what.
#include "server/access/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kNow = 1'800'000'000'000'000;  // 2027-01-15
constexpr char kToken[] = "a-token-of-0123456789";
constexpr char kOther[] = "another-token-9876543";

std::string Hex(const TokenHash& hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte byte : hash) {
    hex += kDigits[std::to_integer<unsigned>(byte) >> 4];
    hex += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

std::string Sha256Of(std::string_view token) {
  return "{ sha256 = \"" + Hex(HashToken(token)) + "\" }";
}

absl::StatusOr<std::shared_ptr<const Policy>> Parse(
    const std::string& text, const std::map<std::string, std::string>& files = {}) {
  const Policy::Sources sources{
      .file = [&](const std::string& path) -> absl::StatusOr<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) return absl::NotFoundError("No such file or directory");
        return found->second;
      },
      .environment = [](const char* name) -> const char* {
        return std::string_view(name) == "TIDEMARK_TEST_TOKEN" ? kOther : nullptr;
      }};
  return Policy::Parse(text, "/etc/rules.toml", sources);
}

std::shared_ptr<const Policy> Rules(const std::string& text,
                                    const std::map<std::string, std::string>& files = {}) {
  auto policy = Parse(text, files);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? *policy : nullptr;
}

std::string Fault(const std::string& text, const std::map<std::string, std::string>& files = {}) {
  const auto policy = Parse(text, files);
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(policy.status().message());
}

Credentials WithToken(std::string_view token) {
  return {.token = HashToken(token), .certificate_names = {}, .loopback = true};
}
Credentials WithCertificate(std::vector<std::string> names) {
  return {.token = {}, .certificate_names = std::move(names), .loopback = true};
}

Denial Ask(const Policy& policy, const Credentials& who, Role role, std::string_view stream,
           std::int64_t now = kNow) {
  return policy.MayOver(policy.Identify(who, now), role, stream).denial;
}

TEST(PolicyTest, Sha256IsTheStandards) {
  // FIPS 180-4's example.
  EXPECT_EQ(Hex(HashToken("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(PolicyTest, NoRulesAllowNobody) {
  const auto policy = Rules("");
  EXPECT_EQ(Ask(*policy, {.loopback = true}, Role::kQuery, "s"), Denial::kNoCredentials);
  EXPECT_EQ(Ask(*policy, WithToken(kToken), Role::kQuery, "s"), Denial::kUnknownToken);
  EXPECT_EQ(Ask(*policy, WithCertificate({"x"}), Role::kQuery, "s"), Denial::kUnknownCertificate);
  EXPECT_EQ(policy->MayAnything(policy->Identify({}, kNow)).denial, Denial::kNoCredentials);
}

TEST(PolicyTest, RolesAreOverStreamsAndDoNotContainOneAnother) {
  const auto policy = Rules("[principal.collector]\ntokens = [" + Sha256Of(kToken) +
                            "]\ningest = [\"prod.*\"]\nadmin = [\"*\"]\n");
  const Credentials who = WithToken(kToken);
  EXPECT_EQ(Ask(*policy, who, Role::kIngest, "prod.latency"), Denial::kNone);
  EXPECT_EQ(Ask(*policy, who, Role::kIngest, "test.latency"), Denial::kRole);
  EXPECT_EQ(Ask(*policy, who, Role::kQuery, "prod.latency"), Denial::kRole);
  EXPECT_EQ(Ask(*policy, who, Role::kAdmin, "anything"), Denial::kNone);
  const Policy::Identity identity = policy->Identify(who, kNow);
  EXPECT_TRUE(policy->MayOverAll(identity, Role::kAdmin).allowed());
  EXPECT_EQ(policy->MayOverAll(identity, Role::kIngest).denial, Denial::kRole);
  EXPECT_TRUE(policy->MayOverAny(identity, Role::kIngest).allowed());
  EXPECT_EQ(policy->MayOverAny(identity, Role::kQuery).denial, Denial::kRole);
  EXPECT_THAT(policy->MayOver(identity, Role::kQuery, "a\nb").why,
              "\"collector\" has not the role query over the stream \"a\\nb\"");
}

TEST(PolicyTest, TokensComeFromHashesFilesAndTheEnvironmentAndExpire) {
  const auto policy = Rules(
      "[principal.a]\nquery = [\"*\"]\ntokens = [\n"
      "  { file = \"a.token\", expires = 2027-01-15T09:00:00+01:00 },\n"
      "  { env = \"TIDEMARK_TEST_TOKEN\" }]\n",
      {{"/etc/a.token", std::string(kToken) + "\n"}});
  EXPECT_EQ(Ask(*policy, WithToken(kOther), Role::kQuery, "s"), Denial::kNone);
  EXPECT_EQ(Ask(*policy, WithToken(kToken), Role::kQuery, "s", kNow - 1), Denial::kNone);
  EXPECT_EQ(Ask(*policy, WithToken(kToken), Role::kQuery, "s", kNow), Denial::kExpiredToken);
  const auto who = policy->Identify(WithToken(kToken), kNow);
  EXPECT_EQ(policy->MayOver(who, Role::kQuery, "s").why,
            "the token of \"a\" expired at 2027-01-15T08:00:00Z");
  EXPECT_EQ(policy->Identify(WithToken(kToken), kNow - 1).expires_us(), kNow);
}

TEST(PolicyTest, AWrongTokenDoesNotFallBack) {
  const auto policy = Rules(
      "[principal.anonymous]\nquery = [\"*\"]\n"
      "[principal.b]\ncertificates = [\"b\"]\ningest = [\"*\"]\n");
  Credentials who = WithCertificate({"b"});
  EXPECT_EQ(Ask(*policy, who, Role::kIngest, "s"), Denial::kNone);
  who.token = HashToken("wrong");
  EXPECT_EQ(Ask(*policy, who, Role::kIngest, "s"), Denial::kUnknownToken);
  EXPECT_EQ(Ask(*policy, who, Role::kQuery, "s"), Denial::kUnknownToken);
  // Nor an unknown certificate to anonymous.
  EXPECT_EQ(Ask(*policy, WithCertificate({"c"}), Role::kQuery, "s"), Denial::kUnknownCertificate);
  EXPECT_EQ(Ask(*policy, WithCertificate({"c", "b"}), Role::kIngest, "s"), Denial::kNone);
}

TEST(PolicyTest, AnonymousIsOnThisMachineUnlessSaidOtherwise) {
  const std::string rules = "[principal.anonymous]\nquery = [\"public.*\"]\n";
  const Credentials near{.token = {}, .certificate_names = {}, .loopback = true};
  const Credentials far{.token = {}, .certificate_names = {}, .loopback = false};
  EXPECT_EQ(Ask(*Rules(rules), near, Role::kQuery, "public.s"), Denial::kNone);
  EXPECT_EQ(Ask(*Rules(rules), near, Role::kQuery, "s"), Denial::kRole);
  EXPECT_EQ(Ask(*Rules(rules), far, Role::kQuery, "public.s"), Denial::kNoCredentials);
  EXPECT_EQ(
      Ask(*Rules("anonymous_beyond_loopback = true\n" + rules), far, Role::kQuery, "public.s"),
      Denial::kNone);
}

TEST(PolicyTest, SeesWhatAnyRoleIsOver) {
  const auto policy = Rules("[principal.a]\ntokens = [" + Sha256Of(kToken) +
                            "]\nquery = [\"q\"]\ningest = [\"i\"]\n");
  const Policy::Identity who = policy->Identify(WithToken(kToken), kNow);
  EXPECT_TRUE(policy->Sees(who, "q"));
  EXPECT_TRUE(policy->Sees(who, "i"));
  EXPECT_FALSE(policy->Sees(who, "a"));
  EXPECT_FALSE(policy->Sees(policy->Identify(WithToken(kOther), kNow), "q"));
}

TEST(PolicyTest, FaultsNamePlaceAndWhatWasExpected) {
  EXPECT_EQ(Fault("[principal.a]\nquerry = [\"*\"]\n"),
            "/etc/rules.toml:2:1: unknown key \"querry\": expected tokens, certificates, ingest, "
            "query, admin");
  EXPECT_THAT(Fault("principals = 1\n"), HasSubstr("/etc/rules.toml:1:1: unknown key"));
  EXPECT_THAT(Fault("[principal.a\n"), HasSubstr("/etc/rules.toml:1:"));
  EXPECT_THAT(Fault("anonymous_beyond_loopback = 1\n"), HasSubstr("expected true or false"));
  EXPECT_THAT(Fault("[principal.a]\nquery = \"*\"\n"), HasSubstr(":2:9: query: expected a list"));
  EXPECT_THAT(Fault("[principal.a]\nquery = [\"\"]\n"), HasSubstr("expected a pattern"));
  EXPECT_THAT(Fault("[principal.a]\ncertificates = [7]\n"), HasSubstr("expected the name"));
  EXPECT_THAT(Fault("[principal.anonymous]\ntokens = []\n"), HasSubstr("anonymous shows nothing"));
  EXPECT_THAT(
      Fault("[principal.a]\ncertificates = [\"x\"]\n[principal.b]\ncertificates = [\"x\"]\n"),
      HasSubstr(":4:17: certificates: \"x\" is that of principal \"a\", too"));
  EXPECT_THAT(
      Fault("[principal.a]\ntokens = [" + Sha256Of(kToken) + ", " + Sha256Of(kToken) + "]\n"),
      HasSubstr("the same token is given to principal \"a\", too"));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [\"secret-secret-secret\"]\n"),
              ::testing::AllOf(HasSubstr("tokens: expected { sha256"), Not(HasSubstr("secret-"))));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ token = \"secret-secret-secret\" }]\n"),
              ::testing::AllOf(HasSubstr("tokens: expected"), Not(HasSubstr("secret-"))));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ sha256 = \"12\" }]\n"),
              HasSubstr("sha256: expected 64 hexadecimal digits"));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ file = \"none\" }]\n"),
              HasSubstr("file: cannot read \"/etc/none\": No such file or directory"));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ env = \"NOT_SET\" }]\n"),
              HasSubstr("the environment has no \"NOT_SET\""));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ expires = 2027-01-01T00:00:00Z }]\n"),
              HasSubstr("tokens: expected"));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ env = \"TIDEMARK_TEST_TOKEN\", expires = "
                    "2027-01-01T00:00:00 }]\n"),
              HasSubstr("expires: expected a time with its offset"));
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ file = \"\" }]\n"),
              HasSubstr(":2:20: file: expected the path of a file"));
  for (const std::string token : {"", "test"}) {
    EXPECT_THAT(Fault("[principal.a]\ntokens = [" + Sha256Of(token) + "]\n"),
                HasSubstr("sha256: the hash of a text that everybody knows"));
  }
  EXPECT_THAT(Fault("[principal.a]\ntokens = [{ sha256 = \"" + std::string(64, '0') + "\" }]\n"),
              HasSubstr("sha256: the hash of a text that everybody knows"));
  for (const std::string token :
       {"short", "has a blank in its midst", "two-lines-of-it\ntwo-lines"}) {
    EXPECT_THAT(
        Fault("[principal.a]\ntokens = [{ file = \"t\" }]\n", {{"/etc/t", token}}),
        ::testing::AllOf(HasSubstr("holds no token; expected at least 16"), Not(HasSubstr(token))));
  }
}

TEST(PolicyTest, AllFaultsAreToldInTheirOrder) {
  const std::string faults = Fault("[principal.z]\nx = 1\n[principal.a]\ny = 1\n");
  EXPECT_LT(faults.find(":2:1:"), faults.find(":4:1:"));
}

// A name from outside may hold anything; what is told of it goes into messages that must be UTF-8.
TEST(PolicyTest, RefusalsAreOneLineOfUtf8WhateverTheNameHolds) {
  const auto policy = Rules("[principal.anonymous]\nquery = [\"only\"]\n");
  const auto who = policy->Identify({.token = {}, .certificate_names = {}, .loopback = true}, kNow);
  const auto told = [&](const std::string& name) {
    return policy->MayOver(who, Role::kQuery, name).why;
  };
  EXPECT_THAT(told("b\xc3\xbcro"), HasSubstr("stream \"b\xc3\xbcro\""));
  EXPECT_THAT(told("a\xff\xc3"), HasSubstr("stream \"a\\377\\303\""));
  EXPECT_THAT(told("a\n\"b\x7f"), HasSubstr("stream \"a\\n\\\"b\\177\""));
  EXPECT_THAT(told("\xc2\x85\xe2\x80\xa8"), HasSubstr("stream \"\\302\\205\\342\\200\\250\""))
      << "ends of lines, to some";
  EXPECT_THAT(told("\xed\xa0\x80\xc0\x80"), HasSubstr("\\355\\240\\200\\300\\200"));
  // Cut between characters, wherever the limit falls.
  for (const std::string character : {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x8c\x8a"}) {
    for (std::size_t before = 190; before < 210; ++before) {
      std::string name(before, 'x');
      for (int i = 0; i < 100; ++i) name += character;
      const std::string text = told(name);
      std::size_t at = text.find("x");
      while (text[at] == 'x') ++at;
      while (text.compare(at, character.size(), character) == 0) at += character.size();
      EXPECT_EQ(text.substr(at), "...\"") << before;
    }
  }
}

TEST(PolicyTest, ACertificateWithoutANameIsNotAnonymous) {
  const auto policy = Rules("[principal.anonymous]\nquery = [\"*\"]\n");
  const auto who = policy->Identify(
      {.token = {}, .certificate_names = {}, .certificate = true, .loopback = true}, kNow);
  EXPECT_EQ(policy->MayOver(who, Role::kQuery, "s").denial, Denial::kUnknownCertificate);
}

TEST(MatchesPatternTest, ByHand) {
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("a", ""));
  EXPECT_TRUE(MatchesPattern("a*c", "abbc"));
  EXPECT_FALSE(MatchesPattern("a*c", "abbcd"));
  EXPECT_TRUE(MatchesPattern("*ab", "aab"));
  EXPECT_FALSE(MatchesPattern("?", ""));
  EXPECT_TRUE(MatchesPattern("?", "\xc3\xbc"));  // one character of two bytes
  EXPECT_FALSE(MatchesPattern("??", "\xc3\xbc"));
  EXPECT_TRUE(MatchesPattern("prod.?.*", "prod.\xe2\x82\xac.x"));
}

// Every way that each star may take.
bool Matches(const std::vector<std::string>& pattern, std::size_t p,
             const std::vector<std::string>& name, std::size_t n) {
  if (p == pattern.size()) return n == name.size();
  if (pattern[p] == "*") {
    for (std::size_t to = n; to <= name.size(); ++to) {
      if (Matches(pattern, p + 1, name, to)) return true;
    }
    return false;
  }
  return n < name.size() && (pattern[p] == "?" || pattern[p] == name[n]) &&
         Matches(pattern, p + 1, name, n + 1);
}

TEST(MatchesPatternTest, AgreesWithTryingAll) {
  const std::vector<std::string> letters = {"a", "b", "\xc3\xbc", "*", "?"};
  int matches = 0;
  for (std::uint64_t seed = 0; seed < Seeds(5000); ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::size_t most, std::size_t choices) {
      std::vector<std::string> out(random() % (most + 1));
      for (std::string& one : out) one = letters[random() % choices];
      return out;
    };
    const auto join = [](const std::vector<std::string>& parts) {
      std::string text;
      for (const std::string& part : parts) text += part;
      return text;
    };
    const auto pattern = draw(7, letters.size());
    const auto name = draw(9, 3);
    const bool expected = Matches(pattern, 0, name, 0);
    matches += expected ? 1 : 0;
    ASSERT_EQ(MatchesPattern(join(pattern), join(name)), expected)
        << "seed " << seed << ": " << join(pattern) << " " << join(name);
  }
  EXPECT_GT(matches, 100);
}

// Random principals with random tokens, certificates and patterns; every question answered as a
// naive reading of the same rules answers it.
TEST(PolicyTest, AgreesWithANaiveReading) {
  const std::vector<std::string> patterns = {"*", "a*", "*b", "a?b", "ab", "c"};
  const std::vector<std::string> names = {"", "a", "ab", "axb", "b", "c", "cc"};
  struct Naive {
    std::map<int, std::int64_t> tokens;
    std::vector<int> certificates;
    std::vector<std::string> roles[kRoles];
  };
  for (std::uint64_t seed = 0; seed < Seeds(300); ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Naive> all(random() % 4);
    std::ostringstream text;
    int next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      text << "[principal.p" << i << "]\ntokens = [";
      for (auto n = random() % 3; n > 0; --n, ++next) {
        const bool expires = random() % 2 == 0;
        all[i].tokens[next] = expires ? kNow : INT64_MAX;
        std::string one = Sha256Of("token-" + std::to_string(next));
        if (expires) one.insert(one.size() - 1, ", expires = 2027-01-15T08:00:00Z ");
        text << one << ",";
      }
      text << "]\ncertificates = [";
      for (auto n = random() % 3; n > 0; --n, ++next) {
        all[i].certificates.push_back(next);
        text << "\"c" << next << "\",";
      }
      text << "]\n";
      for (std::size_t role = 0; role < kRoles; ++role) {
        text << RoleName(static_cast<Role>(role)) << " = [";
        for (auto n = random() % 3; n > 0; --n) {
          all[i].roles[role].push_back(patterns[random() % patterns.size()]);
          text << "\"" << all[i].roles[role].back() << "\",";
        }
        text << "]\n";
      }
    }
    const auto policy = Rules(text.str());
    ASSERT_NE(policy, nullptr) << text.str();
    for (int shown = 0; shown <= next; ++shown) {
      for (const bool token : {true, false}) {
        for (const std::int64_t now : {kNow - 1, kNow}) {
          const Naive* who = nullptr;
          Denial denial = token ? Denial::kUnknownToken : Denial::kUnknownCertificate;
          for (const Naive& one : all) {
            if (token && one.tokens.contains(shown)) {
              if (one.tokens.at(shown) > now) who = &one;
              denial = Denial::kExpiredToken;
            }
            for (const int certificate : one.certificates) {
              if (!token && certificate == shown) who = &one;
            }
          }
          const Credentials credentials =
              token ? WithToken("token-" + std::to_string(shown))
                    : WithCertificate({std::string("c") + std::to_string(shown)});
          for (std::size_t role = 0; role < kRoles; ++role) {
            for (const std::string& name : names) {
              Denial expected = who == nullptr ? denial : Denial::kRole;
              if (who != nullptr) {
                for (const std::string& pattern : who->roles[role]) {
                  if (MatchesPattern(pattern, name)) expected = Denial::kNone;
                }
              }
              ASSERT_EQ(Ask(*policy, credentials, static_cast<Role>(role), name, now), expected)
                  << "seed " << seed << "\n"
                  << text.str();
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::server
