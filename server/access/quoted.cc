#include "server/access/quoted.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"

namespace tidemark::server {
namespace {

constexpr std::size_t kMaxBytes = 200;

// Bytes of the character at the front of `text` and the character; 0 bytes: none.
struct Character {
  std::size_t bytes = 0;
  char32_t point = 0;
};

Character FirstOf(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead < 0xC2   ? 0
                            : lead < 0xE0 ? 2
                            : lead < 0xF0 ? 3
                            : lead < 0xF5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t point = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    point = point << 6 | (next & 0x3FU);
  }
  const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  return overlong || surrogate || point > 0x10FFFF ? Character{} : Character{bytes, point};
}

// Whether it stays on its line: not the controls above ASCII, nor the separators of lines.
bool Stays(char32_t point) { return point >= 0xA0 && point != 0x2028 && point != 0x2029; }

}  // namespace

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  std::size_t at = 0;
  while (at < text.size()) {
    const Character next = FirstOf(text.substr(at));
    const std::size_t bytes = std::max<std::size_t>(1, next.bytes);
    if (at + bytes > kMaxBytes) break;
    const std::string piece(text.substr(at, bytes));
    quoted += Stays(next.point) ? piece : absl::CEscape(piece);
    at += bytes;
  }
  quoted += at < text.size() ? "...\"" : "\"";
  return quoted;
}

}  // namespace tidemark::server
