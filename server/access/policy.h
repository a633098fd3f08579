// Who may do what: the rules as one immutable value, and its decisions. No socket, no clock, no
// thread: whoever asks says what the caller showed and what time it is.
//
//   credentials ── Identify ──► identity ── MayOver, MayOverAny, ... ──► allowed, or why not
//
// The file of rules is TOML; docs/operations.md describes it, docs/decisions/2026-11-22-access.md
// says why it is so.
//
//   anonymous_beyond_loopback = false
//   [principal.collector]
//   tokens = [{ sha256 = "<64 hexadecimal digits>", expires = 2027-01-01T00:00:00Z }, { file =
//   "collector.token" }] certificates = ["collector.example.com"] ingest = ["prod.*"]
//
// Guarantees: nothing that the rules do not name is allowed. How long it takes to find a token does
// not depend on which it is, nor on how much of it is right: its SHA-256 is compared with every one
// of the rules, each in constant time. Not promised: that the number of tokens cannot be measured.
// Cost: a token costs its hash and 32 bytes of comparison for each token of the rules; a decision
// one match for each pattern of the principal and role.
#ifndef TIDEMARK_SERVER_ACCESS_POLICY_H_
#define TIDEMARK_SERVER_ACCESS_POLICY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"

namespace tidemark::server {

enum class Role : std::uint8_t { kIngest, kQuery, kAdmin };
inline constexpr std::size_t kRoles = 3;
/// "ingest", "query", "admin".
std::string_view RoleName(Role role);

/// SHA-256. A token itself is kept nowhere.
using TokenHash = std::array<std::byte, 32>;
TokenHash HashToken(std::string_view token);

/// The token of an `authorization` header, "Bearer TOKEN"; of any other text a hash that no token
/// has.
TokenHash BearerToken(std::string_view header);

/// Random tokens of fewer characters can be found by trying.
inline constexpr std::size_t kTokenCharactersMin = 16;
/// Of all principals together; more are an error.
inline constexpr std::size_t kTokensMax = 10'000;

/// What a caller showed.
struct Credentials {
  std::optional<TokenHash> token;
  /// Of a client certificate that TLS has verified: the common name, then DNS, URI and e-mail
  /// names.
  std::vector<std::string> certificate_names;
  /// There is such a certificate, with or without a name.
  bool certificate = false;
  /// The caller is on this machine.
  bool loopback = false;
  /// Where it is: a numeric address, as the kernel's are written; empty if that is not known. No
  /// rule asks for it.
  std::string address = {};
};

enum class Denial : std::uint8_t {
  kNone,                ///< allowed
  kNoCredentials,       ///< neither token nor certificate, and anonymous may not
  kUnknownToken,        ///< a token that the rules do not have
  kExpiredToken,        ///< one that they have, and whose time is over
  kUnknownCertificate,  ///< a certificate with no name of the rules, or none at all
  kRole,                ///< known, and may not do this
};
/// "no_credentials", "unknown_token", ...: the `reason` of tidemark_access_refused_total.
std::string_view DenialName(Denial denial);

/// `why` is one line for the caller, empty if allowed; it repeats no secret.
struct Decision {
  Denial denial = Denial::kNone;
  std::string why;
  bool allowed() const { return denial == Denial::kNone; }
};

/// Whether `name` is of the form `pattern`: `*` stands for any number of characters, `?` for one
/// character (of UTF-8), everything else for itself. Cost: at most |name| * |pattern|.
bool MatchesPattern(std::string_view pattern, std::string_view name);

/// Thread: any; immutable.
class Policy {
 public:
  /// The text of a file that the rules name, or of an environment variable; nullopt: there is none.
  struct Sources {
    std::function<absl::StatusOr<std::string>(const std::string& path)> file;
    std::function<const char*(const char* name)> environment;
  };

  /// Reads rules. `file` is for messages, and relative paths of tokens' files count from its
  /// folder. Errors: INVALID_ARGUMENT, one line for each fault: `FILE:LINE:COLUMN: what is wrong,
  /// what was expected`. No message holds a token.
  static absl::StatusOr<std::shared_ptr<const Policy>> Parse(std::string_view text,
                                                             std::string_view file,
                                                             const Sources& sources);

  /// Who somebody is. Of this policy alone, and valid as long as it.
  class Identity {
   public:
    /// From then on the token is expired; never, if it does not expire.
    std::int64_t expires_us() const { return expires_us_; }

   private:
    friend class Policy;
    Decision refused_;  // not allowed: nobody
    std::size_t principal_ = 0;
    std::int64_t expires_us_ = std::numeric_limits<std::int64_t>::max();
  };
  /// `now_us`: microseconds since 1970. A token that is shown decides alone; else the certificate's
  /// first name that the rules have; else the caller is anonymous.
  Identity Identify(const Credentials& credentials, std::int64_t now_us) const;

  /// The role over this stream.
  Decision MayOver(const Identity& who, Role role, std::string_view stream) const;
  /// The role over some stream, whichever.
  Decision MayOverAny(const Identity& who, Role role) const;
  /// The role over all streams there may be: the pattern "*".
  Decision MayOverAll(const Identity& who, Role role) const;
  /// Any role over some stream; over this stream.
  Decision MayAnything(const Identity& who) const;
  bool Sees(const Identity& who, std::string_view stream) const;

  /// Who it is; empty for nobody, and for anonymous.
  std::string_view NameOf(const Identity& who) const {
    const bool known = who.refused_.allowed() && who.principal_ != anonymous_;
    return known ? std::string_view(principals_[who.principal_].name) : std::string_view();
  }

  std::size_t principals() const { return principals_.size(); }

 private:
  friend class PolicyReader;
  struct Principal {
    std::string name;
    std::array<std::vector<std::string>, kRoles> patterns;  // by role
  };
  struct Token {
    TokenHash hash;
    std::size_t principal;
    std::int64_t expires_us;
  };
  Decision Refuse(const Identity& who, std::string_view what) const;

  std::vector<Principal> principals_;
  std::vector<Token> tokens_;
  std::unordered_map<std::string, std::size_t> certificates_;
  std::optional<std::size_t> anonymous_;
  bool anonymous_beyond_loopback_ = false;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_POLICY_H_
