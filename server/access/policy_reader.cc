// Policy::Parse: from the text of a file of rules.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/access/policy.h"
#include "server/access/quoted.h"

namespace tidemark::server {
namespace {

// Wide enough for any list of teams; a larger one is no list of rules.
constexpr std::size_t kPatternsMax = 1000;

// What a header may carry, so that every protocol can.
bool IsTokenText(std::string_view text) {
  for (const char c : text) {
    if (c < '!' || c > '~') return false;
  }
  return text.size() >= kTokenCharactersMin;
}

std::optional<TokenHash> HashFromHex(std::string_view hex) {
  TokenHash hash;
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<std::byte>(high * 16 + low);
  }
  return hash;
}

std::int64_t MicrosecondsOf(const toml::date_time& time) {
  using namespace std::chrono;
  const sys_days day =
      year(time.date.year) / month(time.date.month) / std::chrono::day(time.date.day);
  const auto at = day + hours(time.time.hour) + minutes(time.time.minute) +
                  seconds(time.time.second) - minutes(time.offset->minutes);
  return duration_cast<microseconds>(at.time_since_epoch()).count();
}

}  // namespace

// Thread: one.
class PolicyReader {
 public:
  PolicyReader(std::string_view file, const Policy::Sources& sources)
      : file_(file), sources_(sources), policy_(std::make_shared<Policy>()) {}

  void ReadRoot(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key == "anonymous_beyond_loopback") {
        const auto* value = node.as_boolean();
        if (value == nullptr) {
          Fault(node, "anonymous_beyond_loopback: expected true or false");
        } else {
          policy_->anonymous_beyond_loopback_ = value->get();
        }
      } else if (const toml::table* table = node.as_table(); key == "principal" && table) {
        for (const auto& [name, rules] : *table) ReadPrincipal(name, rules);
      } else {
        Fault(key.source(), fmt::format("unknown key {}: expected anonymous_beyond_loopback or "
                                        "[principal.NAME]",
                                        Quoted(key.str())));
      }
    }
  }

  std::vector<std::string> FaultsInOrder() {
    std::vector<std::string> lines;
    for (auto& [position, line] : faults_) lines.push_back(std::move(line));
    return lines;
  }
  std::shared_ptr<const Policy> Take() { return std::move(policy_); }

 private:
  using Position = std::pair<std::uint64_t, std::uint64_t>;

  void ReadPrincipal(const toml::key& name, const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      Fault(node, fmt::format("expected [principal.{}]", name.str()));
      return;
    }
    const std::size_t index = policy_->principals_.size();
    policy_->principals_.push_back({.name = std::string(name.str()), .patterns = {}});
    const bool anonymous = name == "anonymous";
    if (anonymous) policy_->anonymous_ = index;
    for (const auto& [key, value] : *table) {
      const auto role = RoleOf(key.str());
      if (role) {
        ReadPatterns(key.str(), value, policy_->principals_[index].patterns[*role]);
      } else if (anonymous) {
        Fault(key.source(),
              fmt::format("{}: anonymous shows nothing; expected ingest, query, admin",
                          Quoted(key.str())));
      } else if (key == "tokens") {
        ForEach(key.str(), value, [&](const toml::node& one) { ReadToken(one, index); });
      } else if (key == "certificates") {
        ForEach(key.str(), value, [&](const toml::node& one) { ReadCertificate(one, index); });
      } else {
        Fault(key.source(), fmt::format("unknown key {}: expected tokens, certificates, ingest, "
                                        "query, admin",
                                        Quoted(key.str())));
      }
    }
  }

  static std::optional<std::size_t> RoleOf(std::string_view key) {
    for (std::size_t i = 0; i < kRoles; ++i) {
      if (RoleName(static_cast<Role>(i)) == key) return i;
    }
    return std::nullopt;
  }

  void ForEach(std::string_view key, const toml::node& node, const auto& read) {
    const toml::array* const array = node.as_array();
    if (array == nullptr) {
      Fault(node, fmt::format("{}: expected a list, [...]", key));
      return;
    }
    for (const toml::node& one : *array) read(one);
  }

  void ReadPatterns(std::string_view key, const toml::node& node,
                    std::vector<std::string>& patterns) {
    ForEach(key, node, [&](const toml::node& one) {
      const auto* text = one.as_string();
      if (text == nullptr || text->get().empty()) {
        Fault(one, fmt::format("{}: expected a pattern of stream names, such as \"prod.*\"", key));
      } else if (patterns.size() >= kPatternsMax) {
        Fault(one, fmt::format("{}: expected at most {} patterns", key, kPatternsMax));
      } else {
        patterns.push_back(text->get());
      }
    });
  }

  void ReadCertificate(const toml::node& node, std::size_t principal) {
    const auto* name = node.as_string();
    if (name == nullptr || name->get().empty()) {
      Fault(node, "certificates: expected the name of a client certificate");
      return;
    }
    const auto [found, added] = policy_->certificates_.emplace(name->get(), principal);
    if (!added) {
      Fault(node, fmt::format("certificates: {} is that of principal {}, too", Quoted(name->get()),
                              Quoted(policy_->principals_[found->second].name)));
    }
  }

  void ReadToken(const toml::node& node, std::size_t principal) {
    constexpr std::string_view kExpected =
        "tokens: expected { sha256 = \"…\" }, { file = \"…\" } or { env = \"…\" }, and perhaps "
        "expires = 2027-01-01T00:00:00Z";
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      Fault(node, kExpected);
      return;
    }
    std::optional<TokenHash> hash;
    std::int64_t expires_us = std::numeric_limits<std::int64_t>::max();
    int sources = 0;
    for (const auto& [key, value] : *table) {
      const auto* text = value.as_string();
      if (key == "expires") {
        const auto* time = value.as_date_time();
        if (time == nullptr || !time->get().offset) {
          Fault(value, "expires: expected a time with its offset, such as 2027-01-01T00:00:00Z");
        } else {
          expires_us = MicrosecondsOf(time->get());
        }
      } else if (text != nullptr && (key == "sha256" || key == "file" || key == "env")) {
        ++sources;
        hash = ReadHash(key.str(), *text);
      } else {
        Fault(key.source(), kExpected);
        return;
      }
    }
    if (sources != 1) Fault(node, kExpected);
    if (sources != 1 || !hash) return;
    AddToken(node, *hash, principal, expires_us);
  }

  std::optional<TokenHash> ReadHash(std::string_view key, const toml::value<std::string>& node) {
    if (key == "sha256") {
      const auto hash = HashFromHex(node.get());
      if (!hash) Fault(node, "sha256: expected 64 hexadecimal digits");
      // All zeros: what stands where a hash is to be filled in.
      if (hash && (*hash == HashToken("") || *hash == HashToken("test") || *hash == TokenHash{})) {
        Fault(node, "sha256: the hash of a text that everybody knows; expected that of a token");
      }
      return hash;
    }
    std::string token;
    if (key == "env") {
      const char* const value = sources_.environment(node.get().c_str());
      if (value == nullptr) {
        Fault(node, fmt::format("env: the environment has no {}", Quoted(node.get())));
        return std::nullopt;
      }
      token = value;
    } else if (node.get().empty()) {
      Fault(node, "file: expected the path of a file");
      return std::nullopt;
    } else {
      const std::filesystem::path path =
          std::filesystem::path(file_).parent_path() / std::filesystem::path(node.get());
      absl::StatusOr<std::string> text = sources_.file(path.string());
      if (!text.ok()) {
        Fault(node, fmt::format("file: cannot read {}: {}", Quoted(path.string()),
                                std::string(text.status().message())));
        return std::nullopt;
      }
      token = *std::move(text);
      while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    }
    if (!IsTokenText(token)) {
      Fault(node, fmt::format("{}: {} holds no token; expected at least {} visible characters of "
                              "ASCII on one line",
                              key, Quoted(node.get()), kTokenCharactersMin));
      return std::nullopt;
    }
    return HashToken(token);
  }

  void AddToken(const toml::node& node, const TokenHash& hash, std::size_t principal,
                std::int64_t expires_us) {
    const auto [found, added] = seen_.emplace(hash, principal);
    if (!added) {
      Fault(node, fmt::format("tokens: the same token is given to principal {}, too",
                              Quoted(policy_->principals_[found->second].name)));
    } else if (policy_->tokens_.size() >= kTokensMax) {
      Fault(node, fmt::format("tokens: expected at most {} in the file", kTokensMax));
    } else {
      policy_->tokens_.push_back({hash, principal, expires_us});
    }
  }

  void Fault(const toml::node& node, std::string_view what) { Fault(node.source(), what); }
  void Fault(const toml::source_region& where, std::string_view what) {
    const Position position = {where.begin.line, where.begin.column};
    faults_.emplace(position,
                    fmt::format("{}:{}:{}: {}", file_, position.first, position.second, what));
  }

  const std::string file_;
  const Policy::Sources& sources_;
  std::shared_ptr<Policy> policy_;
  std::map<TokenHash, std::size_t> seen_;
  std::multimap<Position, std::string> faults_;
};

absl::StatusOr<std::shared_ptr<const Policy>> Policy::Parse(std::string_view text,
                                                            std::string_view file,
                                                            const Sources& sources) {
  PolicyReader reader(file, sources);
  try {
    const toml::table root = toml::parse(text, file);
    reader.ReadRoot(root);
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    const std::string why =
        absl::StrReplaceAll(std::string(error.description()), {{"\n", " "}, {"\r", " "}});
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: {}", file, where.line, where.column, why));
  }
  const std::vector<std::string> faults = reader.FaultsInOrder();
  if (!faults.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
  return reader.Take();
}

}  // namespace tidemark::server
