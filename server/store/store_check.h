// What can be done to a store's folder while no daemon uses it: look, print, repair.
//
// Thread: free functions, any. Errors: the file system's; what is wrong with the store is no error
// of these functions but their result.
#ifndef TIDEMARK_SERVER_STORE_STORE_CHECK_H_
#define TIDEMARK_SERVER_STORE_STORE_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_reader.h"
#include "server/store/snapshot_file.h"

namespace tidemark::store {

struct StoreReport {
  std::vector<SnapshotInfo> snapshots;  ///< the newest first
  std::uint64_t log_position = 0;       ///< of the newest valid snapshot; 0: there is none
  std::uint64_t records = 0;            ///< behind it that can be read
  std::uint64_t last_sequence = 0;      ///< of them
  std::vector<std::string> faults;      ///< data that is lost: file, offset, what is lost
  std::vector<std::string> notes;       ///< what is ignored and nothing is lost by it

  bool ok() const { return faults.empty(); }
};
/// Reads all of it and changes nothing. Of the log, what the newest valid snapshot does not cover.
absl::StatusOr<StoreReport> VerifyStore(FileSystem& files, const std::string& folder);

/// A line for each snapshot, blob and record, in this order; damage is a line, too. Values are not
/// printed, their number and bytes are.
absl::Status DumpStore(FileSystem& files, const std::string& folder,
                       const std::function<void(std::string_view line)>& print);

struct RepairReport {
  std::vector<std::string> faults;   ///< as VerifyStore's, before the repair
  std::vector<std::string> actions;  ///< a line for each file that was changed
};
/// Makes the folder one that a daemon starts from: the newest valid snapshot, and the log up to the
/// first damage behind it. Nothing is destroyed: files that are damaged, or cannot be used without
/// what is lost, get ".damaged" after their name. If it fails in the middle, run it again. Nothing
/// is done to a store without faults, nor to one of another version (FAILED_PRECONDITION).
absl::StatusOr<RepairReport> RepairStore(FileSystem& files, const std::string& folder);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_STORE_CHECK_H_
