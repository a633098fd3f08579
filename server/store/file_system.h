// The file operations that the store needs, and no more: the disk's in production, a simulated
// disk's with faults and crashes in tests (tests/support/fake_disk.h).
//
// Every error names operation, file and errno: "write /data/log-1: No space left on device (errno
// 28)". Codes: NOT_FOUND (ENOENT), ALREADY_EXISTS (EEXIST), RESOURCE_EXHAUSTED (ENOSPC, EDQUOT),
// INTERNAL for all others. Whether an operation is worth another try is for the caller to decide.
#ifndef TIDEMARK_SERVER_STORE_FILE_SYSTEM_H_
#define TIDEMARK_SERVER_STORE_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tidemark::store {

/// The status of a failed operation; see above. `error` is an errno.
absl::Status FileError(std::string_view operation, const std::string& path, int error);

/// A file that is being written. Thread: one at a time. The destructor closes it and does not sync.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  /// Appends: all of `bytes` at `offset`, which is where the write before ended, in as many writes
  /// as it takes. After an error an unknown part of them is in the file. They may be seen by a
  /// reader, and outlive the process, only when Sync returned.
  virtual absl::Status Write(std::uint64_t offset, std::string_view bytes) = 0;
  /// What was written, and the file's size, outlive a loss of power once this returned OK. After an
  /// error nothing that was written since the last OK may be relied on, whatever a later Sync says:
  /// the kernel may have marked lost pages as clean.
  virtual absl::Status Sync() = 0;
};

/// Thread: every method from any; the object is stateless or locks. Paths are whole.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new, empty file. ALREADY_EXISTS if there is one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  /// Up to `bytes` from `offset`: fewer only where the file ends.
  virtual absl::StatusOr<std::string> Read(const std::string& path, std::uint64_t offset,
                                           std::size_t bytes) = 0;
  virtual absl::StatusOr<std::uint64_t> Size(const std::string& path) = 0;
  /// Names of the files in a folder, ascending; without folders.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  /// Fine if there is one. Its parent must exist.
  virtual absl::Status MakeFolder(const std::string& folder) = 0;
  /// Replaces `to` if there is one: at any moment, and after a crash, `to` is the old or the new.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::Status Truncate(const std::string& path, std::uint64_t bytes) = 0;
  /// Creations, renames and removals in the folder outlive a loss of power once this returned OK.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
};

/// The machine's own. Files are private to their owner (mode 0600, folders 0700), who is the
/// folder's where root makes them.
FileSystem& PosixFileSystem();

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_FILE_SYSTEM_H_
