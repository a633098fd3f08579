// What a damaged log had behind the records that can be used.
#ifndef TIDEMARK_SERVER_STORE_LOST_RECORDS_H_
#define TIDEMARK_SERVER_STORE_LOST_RECORDS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/file_system.h"

namespace tidemark::store {

/// As far as the files of the folder tell. A record that follows a gap may be whole, and is of no
/// use: it may be of a stream whose creation is lost, and the bytes of summaries depend on order.
struct LostRecords {
  std::uint64_t kept = 0;  ///< the last record that can be used
  std::uint64_t highest =
      0;  ///< of those that are known to have been written; kept: none behind it
  std::uint64_t readable = 0;  ///< of those between, which can still be read one by one
  std::uint64_t created = 0, deleted = 0, batches = 0, values = 0;  ///< in the readable ones

  /// A line for people.
  std::string Text() const;
};

/// Thread: any. Costs the memory of one segment, and a number for each record that is found.
/// Errors: the file system's.
absl::StatusOr<LostRecords> FindLostRecords(FileSystem& files, const std::string& folder,
                                            std::uint64_t kept, std::uint64_t reaches);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_LOST_RECORDS_H_
