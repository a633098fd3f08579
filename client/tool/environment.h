// What a run of the command reads from and writes to, so that tests can hand over their own.
#ifndef TIDEMARK_CLIENT_TOOL_ENVIRONMENT_H_
#define TIDEMARK_CLIENT_TOOL_ENVIRONMENT_H_

#include <ostream>

#include "client/tool/terminal.h"

namespace tidemark::tool {

struct Environment {
  std::ostream& out;
  std::ostream& err;
  int input_fd = 0;
  Terminal out_terminal;
  Terminal err_terminal;
};

enum ExitStatus : int { kDone = 0, kRefused = 1, kUsage = 2 };

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_ENVIRONMENT_H_
