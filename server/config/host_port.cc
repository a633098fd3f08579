#include "server/config/host_port.h"

#include <fmt/format.h>

#include <charconv>

#include "absl/strings/escaping.h"

namespace tidemark::server {
namespace {

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      fmt::format("expected HOST:PORT, not \"{}\": {}",
                  absl::Utf8SafeCEscape(std::string(text.substr(0, 200))), why));
}

}  // namespace

std::string HostPort::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  // 253 is the longest host name that DNS allows.
  constexpr std::size_t kMaxHostBytes = 253;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Bad(text, "there is no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) {
      return Bad(text, "brackets are for IPv6 addresses");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return Bad(text, "an IPv6 address is written in brackets, [::1]:7070");
  }
  if (host.empty()) return Bad(text, "there is no host");
  if (host.size() > kMaxHostBytes) return Bad(text, "the host is longer than 253 bytes");
  for (const char c : host) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '[' || c == ']' || c == '/' || c == '\x7f') {
      return Bad(text, "the host holds a character that no host name has");
    }
  }
  HostPort result;
  const char* const end = port_text.data() + port_text.size();
  const auto [stop, error] = std::from_chars(port_text.data(), end, result.port);
  if (error != std::errc() || stop != end) {
    return Bad(text, "the port is a number from 0 to 65535");
  }
  result.host = std::string(host);
  return result;
}

}  // namespace tidemark::server
