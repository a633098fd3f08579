// `tidemark store verify | dump | repair DATA_DIR`: looks at a daemon's data folder while no daemon
// uses it. Asks no daemon.
#ifndef TIDEMARK_CLIENT_TOOL_STORE_COMMAND_H_
#define TIDEMARK_CLIENT_TOOL_STORE_COMMAND_H_

#include <CLI/App.hpp>
#include <functional>
#include <string>

#include "client/tool/environment.h"

namespace tidemark::tool {

struct StoreOptions {
  std::string data_dir;  ///< the daemon's daemon.data_dir
  bool values = false;   ///< dump: those of batches, too
  bool yes = false;      ///< repair: do it
};
/// Exit status kRefused where something is damaged. Errors: InputError where there is no store, a
/// daemon uses the folder (none may start meanwhile, either), or the system refuses something.
using StoreCommand = int (*)(const StoreOptions&, bool json, const Environment& environment);

/// Adds `store` and what belongs to it; `chosen` is told the one that the command line names.
void AddStoreCommands(CLI::App& app, StoreOptions& options,
                      const std::function<void(StoreCommand)>& chosen);

/// Each file, what of it is whole, what is damaged, and what is lost with that. Changes nothing.
int RunStoreVerify(const StoreOptions& options, bool json, const Environment& environment);

/// A line of JSON for each snapshot, stream in it, record of the log, and damage. Changes nothing.
int RunStoreDump(const StoreOptions& options, bool json, const Environment& environment);

/// With `yes`: makes the folder one that a daemon starts from, and says what is lost; damaged files
/// are set aside, none is removed. Without: says what it would do, and changes nothing. kDone if
/// there is nothing to do, or it was done.
int RunStoreRepair(const StoreOptions& options, bool json, const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_STORE_COMMAND_H_
