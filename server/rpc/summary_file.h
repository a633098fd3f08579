// Between a stream's state and tidemark.v1.SummaryFile.
#ifndef TIDEMARK_SERVER_RPC_SUMMARY_FILE_H_
#define TIDEMARK_SERVER_RPC_SUMMARY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/window/stream_state.h"
#include "tidemark/v1/summary.pb.h"

namespace tidemark::server {

inline constexpr std::uint32_t kSummaryFileVersion = 1;

/// `name`: of the stream.
void WriteSummaryFile(const std::string& name, const StreamState& state, v1::SummaryFile& file);
/// Errors: INVALID_ARGUMENT, naming what is wrong, for anything that is not a whole, undamaged file
/// whose summaries are what its config says.
absl::StatusOr<StreamState> ReadSummaryFile(const v1::SummaryFile& file);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_SUMMARY_FILE_H_
