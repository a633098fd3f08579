#include "wire/token.h"

#include <algorithm>
#include <cassert>

namespace tidemark::wire {
namespace {

constexpr std::size_t kHeadBytes = 8;
constexpr unsigned kTokenVersion = 1;

std::size_t Padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

TokenPreamble DecodeToken(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const auto failed = [](std::string why) {
    TokenPreamble out;
    out.result = TokenResult::kError;
    out.error = std::move(why);
    return out;
  };
  TokenPreamble out;
  for (std::size_t i = 0; i < std::min(bytes.size(), kTokenMagic.size()); ++i) {
    if (at(i) != static_cast<unsigned char>(kTokenMagic[i])) {
      out.result = TokenResult::kNone;
      return out;
    }
  }
  out.needed = kHeadBytes;
  if (bytes.size() < kHeadBytes) return out;
  if (const unsigned version = at(4) | at(5) << 8; version != kTokenVersion) {
    return failed("version " + std::to_string(version) +
                  " of a token at byte 4 of the connection; expected 1");
  }
  const std::size_t size = at(6) | at(7) << 8;
  if (size == 0 || size > kTokenBytesMax) {
    return failed("a token of " + std::to_string(size) +
                  " bytes at byte 6 of the connection; expected 1 to " +
                  std::to_string(kTokenBytesMax));
  }
  out.needed = kHeadBytes + Padded(size);
  if (bytes.size() < out.needed) return out;
  for (std::size_t i = kHeadBytes + size; i < out.needed; ++i) {
    if (at(i) != 0) {
      return failed("byte " + std::to_string(i) +
                    " of the connection, behind a token, is not 0; expected zeros up to a multiple "
                    "of 8");
    }
  }
  out.result = TokenResult::kToken;
  out.token = {reinterpret_cast<const char*>(bytes.data()) + kHeadBytes, size};
  out.consumed = out.needed;
  return out;
}

void AppendToken(std::string& out, std::string_view token) {
  assert(!token.empty() && token.size() <= kTokenBytesMax);
  const std::size_t begin = out.size();
  out.append(kTokenMagic.data(), kTokenMagic.size());
  for (const std::size_t number : {std::size_t{kTokenVersion}, token.size()}) {
    out += static_cast<char>(number & 0xFF);
    out += static_cast<char>(number >> 8);
  }
  out.append(token);
  out.resize(begin + kHeadBytes + Padded(token.size()), '\0');
}

}  // namespace tidemark::wire
