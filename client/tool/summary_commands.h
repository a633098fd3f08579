// `tidemark export`, `import` and `merge`: streams as files, and unions of streams.
#ifndef TIDEMARK_CLIENT_TOOL_SUMMARY_COMMANDS_H_
#define TIDEMARK_CLIENT_TOOL_SUMMARY_COMMANDS_H_

#include <string>
#include <vector>

#include "client/client.h"
#include "client/tool/environment.h"

namespace tidemark::tool {

/// Writes the stream to `file` ("-": standard output): whole, or not at all.
/// Errors: InputError for what the system refuses.
int RunExport(const client::ClientOptions& to, const std::string& stream, const std::string& file,
              bool json, const Environment& environment);

/// The contents of files; "-" is standard input. Errors: InputError, naming the file.
std::vector<std::string> ReadFiles(const std::vector<std::string>& files,
                                   const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_SUMMARY_COMMANDS_H_
