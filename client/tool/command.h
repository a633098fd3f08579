// The `tidemark` command: its subcommands and options, and what each prints.
#ifndef TIDEMARK_CLIENT_TOOL_COMMAND_H_
#define TIDEMARK_CLIENT_TOOL_COMMAND_H_

#include <string>
#include <vector>

#include "client/tool/environment.h"

namespace tidemark::tool {

/// Runs one command. arguments: those after the program's name. Answers go to environment.out;
/// everything that went wrong is one line on environment.err.
/// Exit status: 0 done; 1 refused by the daemon, daemon not reachable, bad input, or output that
/// cannot be written; 2 wrong usage.
int RunCommand(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_COMMAND_H_
