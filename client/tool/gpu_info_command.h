// `tidemark gpu-info`: what this machine's graphics devices can do for the daemon, without a
// daemon.
#ifndef TIDEMARK_CLIENT_TOOL_GPU_INFO_COMMAND_H_
#define TIDEMARK_CLIENT_TOOL_GPU_INFO_COMMAND_H_

#include "client/tool/environment.h"

namespace tidemark::tool {

/// Prints the devices found and the one that would be used, why others would not, which sorters can
/// run, and a table measured here, in about a second. `software`: measures a software rasteriser,
/// too.
int RunGpuInfo(bool software, bool json, const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_GPU_INFO_COMMAND_H_
