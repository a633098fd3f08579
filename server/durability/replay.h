// Does again what a log says that streams took in.
//
// Guarantee: with the same limits of windows, the bytes of every stream's summaries are those that
// they had when the last record was taken in. They follow from its batches and their recorded times
// alone (ARCHITECTURE.md, invariants); both are in the log, in the order in which the stream took
// them. Not promised: that order between two streams, which no answer depends on.
#ifndef TIDEMARK_SERVER_DURABILITY_REPLAY_H_
#define TIDEMARK_SERVER_DURABILITY_REPLAY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/durability/snapshots.h"
#include "server/pipeline/pipeline.h"
#include "server/store/file_system.h"
#include "server/store/log_reader.h"

namespace tidemark::server {

struct Replayed {
  store::LogEnd end;
  std::uint64_t next_stream_id = 1;
  std::uint64_t batches = 0;
  std::uint64_t values = 0;  ///< that were accepted
};

/// What the log says behind the snapshot's position, into the pipeline that has its streams; then
/// subscriptions have their names. REQUIRES: the pipeline has started, has no other stream, and
/// nothing else uses it.
/// Waits where a source would. Returns when all is taken in, not when all is summarized. Errors:
/// ReadLog's; DATA_LOSS for a record that contradicts the others or the snapshot, with its sequence
/// number: written by a program with faults. The pipeline must not be used then.
absl::StatusOr<Replayed> ReplayLog(store::FileSystem& files, const std::string& folder,
                                   Pipeline& pipeline, const LoadedSnapshot& snapshot = {});

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DURABILITY_REPLAY_H_
