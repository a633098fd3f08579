// Which prefixes a new stream counts, from the command line.
#ifndef TIDEMARK_CLIENT_TOOL_HIERARCHY_OPTIONS_H_
#define TIDEMARK_CLIENT_TOOL_HIERARCHY_OPTIONS_H_

#include <CLI/App.hpp>
#include <string>

#include "client/answers.h"

namespace tidemark::tool {

struct HierarchyOptions {
  std::string prefixes;
  std::string separator;
  std::string depth;
  bool root_last = false;
};

/// Lifetime: `options` outlives the parser.
void AddHierarchyOptions(CLI::App* create, HierarchyOptions& options);

/// Errors: UsageError for what is no length, no depth, or goes with nothing.
void SetHierarchy(const HierarchyOptions& options, client::StreamConfig& config);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_HIERARCHY_OPTIONS_H_
