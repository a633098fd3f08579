#include "server/access/policy.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/ascii.h"
#include "server/access/quoted.h"

namespace tidemark::server {
namespace {

static_assert(sizeof(TokenHash) == SHA256_DIGEST_LENGTH);

// Seconds since 1970 as 2027-01-01T00:00:00Z.
std::string FormatTime(std::int64_t time_us) {
  const std::chrono::sys_seconds time{
      std::chrono::floor<std::chrono::seconds>(std::chrono::microseconds(time_us))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

// Bytes of the character at the front of `text`: a lead byte and what continues it.
std::size_t CharacterBytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return bytes;
}

bool AnyMatches(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kIngest:
      return "ingest";
    case Role::kQuery:
      return "query";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::string_view DenialName(Denial denial) {
  switch (denial) {
    case Denial::kNone:
      return "none";
    case Denial::kNoCredentials:
      return "no_credentials";
    case Denial::kUnknownToken:
      return "unknown_token";
    case Denial::kExpiredToken:
      return "expired_token";
    case Denial::kUnknownCertificate:
      return "unknown_certificate";
    case Denial::kRole:
      return "role";
  }
  return "unknown";
}

TokenHash HashToken(std::string_view token) {
  TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

TokenHash BearerToken(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  bool bearer = header.size() >= kScheme.size();
  for (std::size_t i = 0; bearer && i < kScheme.size(); ++i) {
    bearer = absl::ascii_tolower(static_cast<unsigned char>(header[i])) == kScheme[i];
  }
  // No token holds a blank.
  return bearer ? HashToken(header.substr(kScheme.size())) : HashToken("no bearer");
}

// Only the last `*` need be tried again: what an earlier one could take more of, a later one can,
// too.
bool MatchesPattern(std::string_view pattern, std::string_view name) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = kNone;
  std::size_t taken = 0;  // where what the star has not taken begins
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      n += CharacterBytes(name.substr(n));
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != kNone) {
      p = star + 1;
      taken += CharacterBytes(name.substr(taken));
      n = taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Policy::Identity Policy::Identify(const Credentials& credentials, std::int64_t now_us) const {
  Identity who;
  if (credentials.token) {
    const Token* found = nullptr;
    // Every one, whichever it is.
    for (const Token& token : tokens_) {
      const bool same =
          CRYPTO_memcmp(token.hash.data(), credentials.token->data(), token.hash.size()) == 0;
      found = same ? &token : found;
    }
    if (found == nullptr) {
      who.refused_ = {Denial::kUnknownToken, "the token is none that the rules know"};
    } else if (found->expires_us <= now_us) {
      who.refused_ = {Denial::kExpiredToken, fmt::format("the token of {} expired at {}",
                                                         Quoted(principals_[found->principal].name),
                                                         FormatTime(found->expires_us))};
    } else {
      who.principal_ = found->principal;
      who.expires_us_ = found->expires_us;
    }
    return who;
  }
  if (credentials.certificate || !credentials.certificate_names.empty()) {
    for (const std::string& name : credentials.certificate_names) {
      if (const auto found = certificates_.find(name); found != certificates_.end()) {
        who.principal_ = found->second;
        return who;
      }
    }
    who.refused_ = {Denial::kUnknownCertificate,
                    credentials.certificate_names.empty()
                        ? std::string("the client certificate has no name that rules could know")
                        : fmt::format("the client certificate of {} is none that the rules know",
                                      Quoted(credentials.certificate_names.front()))};
    return who;
  }
  if (anonymous_ && (credentials.loopback || anonymous_beyond_loopback_)) {
    who.principal_ = *anonymous_;
  } else {
    who.refused_ = {Denial::kNoCredentials,
                    "no token and no client certificate was shown; expected a bearer token, or a "
                    "certificate that the rules name"};
  }
  return who;
}

Decision Policy::Refuse(const Identity& who, std::string_view what) const {
  return {Denial::kRole, fmt::format("{} {}", Quoted(principals_[who.principal_].name), what)};
}

Decision Policy::MayOver(const Identity& who, Role role, std::string_view stream) const {
  if (!who.refused_.allowed()) return who.refused_;
  const auto& patterns = principals_[who.principal_].patterns[static_cast<std::size_t>(role)];
  if (AnyMatches(patterns, stream)) return {};
  return Refuse(
      who, fmt::format("has not the role {} over the stream {}", RoleName(role), Quoted(stream)));
}

Decision Policy::MayOverAny(const Identity& who, Role role) const {
  if (!who.refused_.allowed()) return who.refused_;
  if (!principals_[who.principal_].patterns[static_cast<std::size_t>(role)].empty()) return {};
  return Refuse(who, fmt::format("has the role {} over no stream", RoleName(role)));
}

Decision Policy::MayOverAll(const Identity& who, Role role) const {
  if (!who.refused_.allowed()) return who.refused_;
  const auto& patterns = principals_[who.principal_].patterns[static_cast<std::size_t>(role)];
  if (std::find(patterns.begin(), patterns.end(), "*") != patterns.end()) return {};
  return Refuse(who, fmt::format("has not the role {} over \"*\"", RoleName(role)));
}

Decision Policy::MayAnything(const Identity& who) const {
  if (!who.refused_.allowed()) return who.refused_;
  for (const auto& patterns : principals_[who.principal_].patterns) {
    if (!patterns.empty()) return {};
  }
  return Refuse(who, "has no role");
}

bool Policy::Sees(const Identity& who, std::string_view stream) const {
  if (!who.refused_.allowed()) return false;
  const auto& roles = principals_[who.principal_].patterns;
  return std::any_of(roles.begin(), roles.end(),
                     [&](const auto& patterns) { return AnyMatches(patterns, stream); });
}

}  // namespace tidemark::server
