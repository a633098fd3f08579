// `tidemark watch`: a continuous query, printed as it goes.
#ifndef TIDEMARK_CLIENT_TOOL_WATCH_COMMAND_H_
#define TIDEMARK_CLIENT_TOOL_WATCH_COMMAND_H_

#include <string>

#include "client/client.h"
#include "client/tool/environment.h"

namespace tidemark::tool {

struct WatchCommandOptions {
  std::string subscription;  ///< its name, or empty:
  client::WatchQuery query;
  bool json = false;
};

/// JSON: one object a line. Text: quantiles are one line an answer under a heading; heavy hitters a
/// table an answer, drawn over the one before on a terminal. SIGINT and SIGTERM end it with status
/// 0. Errors: client::Error.
int RunWatch(const client::ClientOptions& to, const WatchCommandOptions& options,
             const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_WATCH_COMMAND_H_
