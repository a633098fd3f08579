// What the command knows about the terminal that it writes to.
#ifndef TIDEMARK_CLIENT_TOOL_TERMINAL_H_
#define TIDEMARK_CLIENT_TOOL_TERMINAL_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tidemark::tool {

struct Terminal {
  bool is_terminal = false;
  std::size_t width = 80;
  bool utf8 = false;
};

/// Asks the system about file descriptor `fd`: its width is the terminal's, else $COLUMNS, else 80;
/// utf8 is the locale's (call setlocale first).
Terminal FindTerminal(int fd);

/// Columns that a UTF-8 text takes, one for each code point: enough for names and numbers.
std::size_t DisplayWidth(std::string_view text);

/// Makes an item safe to print: control characters, which could move the cursor or forge lines,
/// become \n, \t, \xNN.
std::string Printable(std::string_view text);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_TERMINAL_H_
