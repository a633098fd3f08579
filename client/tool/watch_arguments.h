// What `tidemark watch` and `subscribe` ask for on the command line.
#ifndef TIDEMARK_CLIENT_TOOL_WATCH_ARGUMENTS_H_
#define TIDEMARK_CLIENT_TOOL_WATCH_ARGUMENTS_H_

#include <string>
#include <vector>

#include "client/client.h"

namespace CLI {
class App;
}

namespace tidemark::tool {

/// As given.
struct WatchArguments {
  std::vector<std::string> phi;  ///< quantiles of the stream, or
  std::string support;           ///< its heavy hitters
  std::string every = "1s";
  std::string min_change;
  bool hierarchical = false;  ///< the heavy hitters are prefixes
  bool by_weight = false;     ///< or add up weights
  friend bool operator==(const WatchArguments&, const WatchArguments&) = default;
};

/// Why --hierarchical and --by-weight do not go together.
inline constexpr char kWeighsByItself[] =
    "--hierarchical adds up weights by itself where a stream has them";

/// Lifetime: `arguments` outlives the command.
void AddWatchOptions(CLI::App* command, WatchArguments& arguments);

/// Errors: UsageError, which names the command, if it asks for nothing or for too much.
client::WatchQuery ToWatchQuery(const std::string& command, const std::string& stream,
                                const WatchArguments& arguments, const client::Scope& scope);

/// The same for `watch`; nothing where it names a subscription. Errors also: it gives both, or
/// neither of a stream and a subscription.
client::WatchQuery AskedByWatch(const std::string& stream, const std::string& subscription,
                                const WatchArguments& arguments, const client::Scope& scope);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_WATCH_ARGUMENTS_H_
