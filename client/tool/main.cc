#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <iostream>

#include "client/tool/command.h"

int main(int argc, char** argv) {
  // Only the character set: numbers never depend on the locale.
  std::setlocale(LC_CTYPE, "");
  // gRPC's own log lines would stand between ours; every failed call is reported anyway.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  std::ios::sync_with_stdio(false);
  const tidemark::tool::Environment environment{std::cout, std::cerr, STDIN_FILENO,
                                                tidemark::tool::FindTerminal(STDOUT_FILENO),
                                                tidemark::tool::FindTerminal(STDERR_FILENO)};
  return tidemark::tool::RunCommand(std::vector<std::string>(argv + 1, argv + argc), environment);
}
