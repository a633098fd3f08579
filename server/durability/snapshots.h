// Snapshots of all streams, taken while they go on, and loaded at a start.
//
// A snapshot is a file of blobs (server/store/snapshot_file.h): one with the number of the next
// stream, then one for each stream, whose image (Stream::Image) is that stream at one moment. No
// moment is the same for two streams, which is why each image says what its last record of the log
// is. The file is finished when the log is durable up to all of these, so that the log never ends
// before the snapshot.
//
// Position. P, the log's last record when the snapshot began, is the file's. Every record up to P
// is in its stream's image, for the stream's lock was held while it was appended; what a stream
// took in later is behind P, and is skipped up to the image's last record. Streams that the file
// does not have although their number is below that of the next stream, or below one that it has,
// were deleted before their turn came: all that the log says of them is skipped.
//
// Subscriptions. One that leaves a stream for another meanwhile may be in two images, or in none.
// With a log, each stream's records behind its image put that right: names are looked at when all
// are replayed. Without one, the later image has it, and the other stream is without; not promised:
// one that went to a stream whose image was taken already is lost.
//
// Guarantee: with the same limits of windows, the newest valid snapshot and the log behind its P
// give the bytes of a run without a crash (replay.h). Without a log: those of the moments of the
// images.
#ifndef TIDEMARK_SERVER_DURABILITY_SNAPSHOTS_H_
#define TIDEMARK_SERVER_DURABILITY_SNAPSHOTS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/durability/durable_log.h"
#include "server/pipeline/pipeline.h"
#include "server/store/file_system.h"
#include "server/store/snapshot_file.h"

namespace tidemark::server {

struct LoadedSnapshot {
  std::optional<store::SnapshotHeader> header;  ///< nullopt: there was none
  std::uint64_t highest_number = 0;             ///< of any file of a snapshot
  /// A line for each newer one that is not valid, and for each subscription in two images, of
  /// which one stream is without now.
  std::vector<std::string> notes;
  std::uint64_t next_stream_id = 1;                          ///< when it was begun
  absl::flat_hash_map<std::uint64_t, StreamHandle> streams;  ///< by their ids
};
/// The newest valid one into a pipeline that has no stream, for ReplayLog to go on from: until then
/// subscriptions have no names. Errors: NewestSnapshot's; DATA_LOSS for blobs that no snapshot has.
/// The pipeline must not be used then.
absl::StatusOr<LoadedSnapshot> LoadSnapshot(store::FileSystem& files, const std::string& folder,
                                            Pipeline& pipeline);
/// The same where there is no log: all is there. Also DATA_LOSS if a newer one is not valid, for
/// nothing leads from this one to what that held.
absl::StatusOr<LoadedSnapshot> LoadSnapshotAlone(store::FileSystem& files,
                                                 const std::string& folder, Pipeline& pipeline);

/// Names subscriptions; of several streams that keep one of a name, all but the last are then
/// without. `streams`: all of the pipeline's, which has no log. A line for each that is without.
std::vector<std::string> SettleSubscriptions(Pipeline& pipeline,
                                             const std::vector<StreamHandle>& streams);

struct SnapshotReport {
  std::uint64_t number = 0;
  std::uint64_t log_position = 0;
  std::uint64_t streams = 0;
  std::uint64_t bytes = 0;  ///< of the blobs
  std::chrono::steady_clock::duration took{};
};

/// Thread: Take and Stop one at a time; Run's thread calls Take. Lifetime: all that it is given
/// outlives it.
/// Costs: a stream's lock for the copy of its open window and dictionary; the bytes of one stream
/// in memory at a time; a part of a sort thread's time for each stream's summaries.
class Snapshots {
 public:
  /// Told of each that Run took; by its thread.
  using Told = std::function<void(const absl::StatusOr<SnapshotReport>&)>;

  /// `log`: null without one. `newest`: the header that LoadSnapshot gave.
  Snapshots(store::FileSystem& files, std::string folder, Pipeline& pipeline, DurableLog* log,
            std::optional<store::SnapshotHeader> newest, std::uint64_t highest_number)
      : files_(files),
        folder_(std::move(folder)),
        pipeline_(pipeline),
        log_(log),
        newest_(newest),
        highest_number_(highest_number) {}
  ~Snapshots() { Stop(); }
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  /// Takes one now. Two stay, this and the one before it, and the log from that one's position on.
  /// Waits for windows under way: the pipeline must run. Errors: the file system's, the log's,
  /// CANCELLED once `stop` says so; there is then no new one, and nothing was removed.
  absl::StatusOr<SnapshotReport> Take(const std::stop_token& stop = {});

  /// From now on one every `interval`, by a thread of its own, until Stop.
  void Run(std::chrono::milliseconds interval, Told told);
  /// The one that Run is taking is given up, after the stream that it is at; nobody is told of it.
  void Stop();

 private:
  absl::Status AwaitDurable(std::uint64_t sequence);

  store::FileSystem& files_;
  const std::string folder_;
  Pipeline& pipeline_;
  DurableLog* const log_;
  std::optional<store::SnapshotHeader> newest_;
  std::uint64_t highest_number_;

  std::jthread thread_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DURABILITY_SNAPSHOTS_H_
