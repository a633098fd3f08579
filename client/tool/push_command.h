// `tidemark push`: a file or standard input into a stream.
#ifndef TIDEMARK_CLIENT_TOOL_PUSH_COMMAND_H_
#define TIDEMARK_CLIENT_TOOL_PUSH_COMMAND_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/tool/environment.h"

namespace tidemark::tool {

struct PushOptions {
  std::string stream;
  std::string file = "-";
  std::optional<client::ValueType> type;  ///< nullopt: the stream's, or the daemon's default
  std::optional<std::string> column;
  client::PayloadType payload = client::PayloadType::kNone;
  std::optional<std::string> payload_column;  ///< of the payload; needs `column`
  std::uint64_t repeat = 1;
  /// How long an unreachable daemon is tried again; 0: not at all.
  std::chrono::milliseconds retry_for{0};
  bool raw = false;       ///< packed little-endian values instead of text
  bool skip_bad = false;  ///< count what is no value and go on
  bool json = false;
};

/// The first bad value ends the push with status 1: every value before it is taken in, nothing
/// after it is sent, and the message says how many were taken in. SIGINT or SIGTERM end it in the
/// same way; a second one does not wait for the daemon. A cut connection, or a daemon that stops
/// and is back within retry_for, changes nothing: each value is counted once. Errors:
/// client::Error, UsageError, InputError.
int RunPush(const client::ClientOptions& to, const PushOptions& options,
            const Environment& environment);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_PUSH_COMMAND_H_
