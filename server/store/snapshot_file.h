// A snapshot: named blobs in one file that is there whole or not at all, and the position in the
// log up to which they hold what the records did.
//
// A snapshot is written beside its name and renamed when it is synced; the name is synced, too,
// before Finish returns OK. Each blob has a checksum, and the end is marked, so that any change of
// any byte is noticed: such a file is invalid as a whole, and never half used.
//
// Thread: free functions, any; a SnapshotWriter one at a time. No two writers in one folder. Costs:
// a writer holds 1 MiB and one blob, a reader one blob.
#ifndef TIDEMARK_SERVER_STORE_SNAPSHOT_FILE_H_
#define TIDEMARK_SERVER_STORE_SNAPSHOT_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"

namespace tidemark::store {

class SnapshotWriter {
 public:
  /// `log_position`: the last record up to which the blobs hold all effects; 0: there is no log.
  /// Errors: the file system's.
  static absl::StatusOr<SnapshotWriter> Begin(FileSystem& files, const std::string& folder,
                                              std::uint64_t number, std::uint64_t log_position);
  SnapshotWriter(SnapshotWriter&&) = default;
  SnapshotWriter& operator=(SnapshotWriter&&) = delete;
  /// Removes what was written if Finish was not called or failed.
  ~SnapshotWriter();

  /// Blobs of any size, in any order, names not larger than 64 KiB (INVALID_ARGUMENT). After an
  /// error the snapshot is of no use.
  absl::Status Add(std::string_view name, std::string_view blob);
  /// `log_reaches`: the last record of which a blob holds any effect; `log_position` if that is
  /// later. It should be durable before: a log that ends earlier is damaged.
  /// OK: the snapshot is durable, and the newest if `number` is the highest. Otherwise there is
  /// none of that number, or, if the folder could not be synced, perhaps one that is whole.
  absl::Status Finish(std::uint64_t log_reaches = 0);

 private:
  SnapshotWriter(FileSystem& files, std::string folder, SnapshotHeader header)
      : files_(&files), folder_(std::move(folder)), header_(header) {}
  absl::Status AddRecord(RecordKind kind, std::initializer_list<std::string_view> parts);
  absl::Status FlushBuffer();
  std::string Path() const;
  std::string TemporaryPath() const;

  FileSystem* files_;
  std::string folder_;
  SnapshotHeader header_;
  std::unique_ptr<WritableFile> file_;  // null before Begin and after Finish
  std::string buffer_;
  std::uint64_t written_ = 0;  // bytes of the file
  std::uint64_t records_ = 0;
};

using BlobVisitor = std::function<absl::Status(std::string_view name, std::string_view blob)>;

/// Every blob, in the order of Add. Errors: DATA_LOSS with file and offset, FAILED_PRECONDITION for
/// another version, the visitor's, the file system's; what was visited must not be used then.
absl::StatusOr<SnapshotHeader> ReadSnapshot(FileSystem& files, const std::string& folder,
                                            std::uint64_t number, const BlobVisitor& visit);

struct SnapshotInfo {
  SnapshotHeader header;  ///< its number is that of the name if the status is not OK
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;  ///< of the file
  absl::Status status;
};
/// All snapshots of a folder, the newest first, each read and checked.
absl::StatusOr<std::vector<SnapshotInfo>> CheckSnapshots(FileSystem& files,
                                                         const std::string& folder);

struct ChosenSnapshot {
  std::optional<SnapshotHeader> header;  ///< nullopt: there is no snapshot
  std::vector<std::string> notes;        ///< a line for each newer one that is not valid
  std::uint64_t highest_number = 0;      ///< of any, valid or not
};
/// The newest valid one; older ones are not read. Errors: DATA_LOSS if there are snapshots and none
/// is valid, FAILED_PRECONDITION if the newest was written by a newer version, the file system's.
absl::StatusOr<ChosenSnapshot> NewestSnapshot(FileSystem& files, const std::string& folder);

/// Removes snapshots with lower numbers, and what interrupted writers left. The caller keeps the
/// two newest valid ones, and the log from the older one on, so that one damaged file loses
/// nothing.
absl::Status RemoveSnapshotsBefore(FileSystem& files, const std::string& folder,
                                   std::uint64_t number);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_SNAPSHOT_FILE_H_
