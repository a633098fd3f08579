// What can be done to a store's folder while no daemon uses it: look, repair. (Print:
// store_dump.h.)
//
// Thread: free functions, any. Errors: the file system's; what is wrong with the store is no error
// of these functions but their result.
#ifndef TIDEMARK_SERVER_STORE_STORE_CHECK_H_
#define TIDEMARK_SERVER_STORE_STORE_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_reader.h"
#include "server/store/snapshot_file.h"

namespace tidemark::store {

enum class SegmentUse : std::uint8_t {
  kLog,    ///< holds records behind the newest valid snapshot, or would
  kOlder,  ///< of the log, covered by that snapshot: for the snapshot before it
  kNone,   ///< counts for nothing any more
};
struct SegmentReport {
  SegmentCheck check;
  SegmentUse use = SegmentUse::kNone;
};

struct StoreReport {
  std::vector<SnapshotInfo> snapshots;  ///< the newest first
  std::vector<SegmentReport> segments;  ///< ascending, every file of one
  std::vector<std::string> others;      ///< names of files that are neither
  std::uint64_t log_position = 0;       ///< of the newest valid snapshot; 0: there is none
  std::uint64_t records = 0;            ///< behind it that can be read
  std::uint64_t last_sequence = 0;      ///< of them
  std::vector<std::string> faults;      ///< what is damaged: file, offset, what it means
  std::vector<std::string> notes;       ///< what is ignored and nothing is lost by it
  std::vector<std::string> lost;        ///< with faults: what a repair does not bring back
  std::vector<std::string> actions;     ///< with faults: what a repair would do

  bool ok() const { return faults.empty(); }
};
/// Reads all of it and changes nothing. Damage of what the newest valid snapshot covers is a note:
/// nothing is lost by it while that snapshot is valid.
absl::StatusOr<StoreReport> VerifyStore(FileSystem& files, const std::string& folder);

struct RepairReport {
  std::vector<std::string> faults;   ///< as VerifyStore's, before the repair
  std::vector<std::string> lost;     ///< as VerifyStore's
  std::vector<std::string> actions;  ///< a line for each file that was changed
};
/// Makes the folder one that a daemon starts from: the newest valid snapshot, and the log up to the
/// first damage behind it. Nothing is destroyed: files that are damaged, or cannot be used without
/// what is lost, get ".damaged" after their name (but the segment in whose middle the damage is,
/// which keeps its name for what is before). If it fails in the middle, run it again. Nothing
/// is done to a store without faults, nor to one of another version (FAILED_PRECONDITION).
absl::StatusOr<RepairReport> RepairStore(FileSystem& files, const std::string& folder);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_STORE_CHECK_H_
