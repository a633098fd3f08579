// Rules of access, and the token of framed TCP: no bytes crash their readers; a refusal is a list
// of lines that begin with the file's name; what is accepted lets nobody in who shows nothing that
// it names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "server/access/policy.h"
#include "wire/token.h"

namespace {

void Require(bool property) {
  if (!property) std::abort();
}

void CheckToken(std::span<const std::byte> bytes) {
  namespace wire = tidemark::wire;
  const wire::TokenPreamble read = wire::DecodeToken(bytes);
  Require((read.result == wire::TokenResult::kError) == !read.error.empty());
  if (read.result == wire::TokenResult::kNeedMore) Require(read.needed > bytes.size());
  if (read.result != wire::TokenResult::kToken) return;
  Require(read.consumed <= bytes.size() && !read.token.empty());
  std::string again;
  wire::AppendToken(again, read.token);
  Require(again == std::string_view(reinterpret_cast<const char*>(bytes.data()), read.consumed));
}

void CheckRules(std::string_view text) {
  using tidemark::server::Credentials;
  using tidemark::server::Policy;
  using tidemark::server::Role;
  const Policy::Sources sources{.file = [](const std::string&) -> absl::StatusOr<std::string> {
                                  return std::string("a-token-of-a-file");
                                },
                                .environment = [](const char*) -> const char* { return nullptr; }};
  const auto policy = Policy::Parse(text, "f", sources);
  if (!policy.ok()) {
    const std::string message(policy.status().message());
    Require(message.starts_with("f:"));
    for (std::size_t end = message.find('\n'); end != std::string::npos;
         end = message.find('\n', end + 1)) {
      Require(std::string_view(message).substr(end + 1).starts_with("f:"));
    }
    return;
  }
  const Credentials shown[] = {
      {.token = {}, .certificate_names = {}, .loopback = false},
      {.token = tidemark::server::HashToken("nobody's"), .certificate_names = {}, .loopback = true},
      {.token = {}, .certificate_names = {std::string(1, '\0')}, .loopback = true}};
  for (const Credentials& one : shown) {
    const auto who = (*policy)->Identify(one, 0);
    const bool open = text.find("anonymous") != std::string_view::npos ||
                      text.find("\\u") != std::string_view::npos ||
                      text.find("\\U") != std::string_view::npos;
    for (const Role role : {Role::kIngest, Role::kQuery, Role::kAdmin}) {
      const auto decision = (*policy)->MayOver(who, role, text.substr(0, 30));
      Require(decision.allowed() == decision.why.empty());
      Require(open || !decision.allowed());
      Require(!(*policy)->MayOverAll(who, role).allowed() ||
              (*policy)->MayOverAny(who, role).allowed());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  CheckToken(std::as_bytes(std::span(data, size)));
  CheckRules({reinterpret_cast<const char*>(data), size});
  return 0;
}
