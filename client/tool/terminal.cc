#include "client/tool/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "client/value.h"

namespace tidemark::tool {

Terminal FindTerminal(int fd) {
  Terminal terminal;
  terminal.is_terminal = isatty(fd) == 1;
  winsize size{};
  if (terminal.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS")) {
    std::uint32_t width = 0;
    if (client::ParseText(columns, &width) && width > 0) terminal.width = width;
  }
  // Below this nothing is readable, above it bars say nothing more.
  terminal.width = std::clamp<std::size_t>(terminal.width, 40, 200);
  terminal.utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  return terminal;
}

std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::string Printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    // U+0080..U+009F, the second set of control characters, is C2 80..9F in UTF-8.
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else if (c1) {
      const auto next = static_cast<unsigned char>(text[++i]);
      out += {'\\', 'x', kHex[next >> 4], kHex[next & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace tidemark::tool
