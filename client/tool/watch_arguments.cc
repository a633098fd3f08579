#include "client/tool/watch_arguments.h"

#include <CLI/CLI.hpp>

#include "client/tool/arguments.h"

namespace tidemark::tool {

void AddWatchOptions(CLI::App* command, WatchArguments& arguments) {
  auto* phi = command->add_option("--quantile", arguments.phi, "Watch quantiles");
  phi->option_text("PHI...");
  command->add_option("--top", arguments.support, "Watch heavy hitters of this support")
      ->option_text("S")
      ->excludes(phi);
  command->add_option("--every", arguments.every, "Time between answers (default 1s)")
      ->option_text("DURATION");
  command
      ->add_option("--min-change", arguments.min_change,
                   "An answer only when a value, or a share, moved by more")
      ->option_text("X");
  command->add_flag("--hierarchical", arguments.hierarchical, "With --top: prefixes");
  command->add_flag("--by-weight", arguments.by_weight, "With --top: add up weights");
}

client::WatchQuery ToWatchQuery(const std::string& command, const std::string& stream,
                                const WatchArguments& arguments, const client::Scope& scope) {
  if (arguments.phi.empty() == arguments.support.empty()) {
    throw UsageError(command + ": give --quantile PHI... or --top S");
  }
  if (arguments.support.empty() && (arguments.hierarchical || arguments.by_weight)) {
    throw UsageError(command + ": --hierarchical and --by-weight need --top");
  }
  if (arguments.hierarchical && arguments.by_weight) {
    throw UsageError(kWeighsByItself);
  }
  client::WatchQuery query;
  query.stream = stream;
  if (arguments.support.empty()) {
    query.asks = client::QuantilesQuery{ToNumbers("--quantile", arguments.phi)};
  } else if (arguments.hierarchical) {
    query.asks = client::PrefixesQuery{ToNumber("--top", arguments.support)};
  } else {
    query.asks = client::ItemsQuery{ToNumber("--top", arguments.support), 0, arguments.by_weight};
  }
  query.options.interval = ToDuration("--every", arguments.every);
  if (!arguments.min_change.empty()) {
    query.options.min_change = ToNumber("--min-change", ShowMinus(arguments.min_change));
  }
  query.options.scope = scope;
  return query;
}

client::WatchQuery AskedByWatch(const std::string& stream, const std::string& subscription,
                                const WatchArguments& arguments, const client::Scope& scope) {
  if (subscription.empty()) {
    if (stream.empty()) throw UsageError("watch: give STREAM or --subscription NAME");
    return ToWatchQuery("watch", stream, arguments, scope);
  }
  if (!stream.empty() || arguments != WatchArguments() || !scope.whole()) {
    throw UsageError("watch: a subscription says all that is asked; give its name alone");
  }
  return {};
}

}  // namespace tidemark::tool
