// Everything that a store's files hold, one by one, for those who look at it.
#ifndef TIDEMARK_SERVER_STORE_STORE_DUMP_H_
#define TIDEMARK_SERVER_STORE_STORE_DUMP_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"
#include "server/store/snapshot_file.h"

namespace tidemark::store {

/// Told in this order: each snapshot, the newest first, with its blobs; the records of each segment
/// of the log, ascending, those that a snapshot covers and marks included; what is ignored; what is
/// damaged. Views live until the call returns.
class StoreVisitor {
 public:
  virtual ~StoreVisitor() = default;
  virtual void Snapshot(const SnapshotInfo& snapshot) = 0;
  virtual void Blob(const SnapshotInfo& snapshot, std::string_view name, std::string_view blob) = 0;
  /// `segment`: its number; `offset`: of the header in its file. `behind_damage`: whole, but behind
  /// something in its file that is not.
  virtual void Record(std::uint64_t segment, std::uint64_t offset, const RecordHeader& header,
                      std::string_view body, bool behind_damage) = 0;
  /// A line each.
  virtual void Note(std::string_view note) = 0;
  virtual void Fault(std::string_view fault) = 0;
};

/// Changes nothing. Thread: any. Errors: the file system's; damage is told to the visitor.
absl::Status DumpStore(FileSystem& files, const std::string& folder, StoreVisitor& visitor);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_STORE_DUMP_H_
