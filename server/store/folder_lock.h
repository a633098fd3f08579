// So that two processes do not write one folder, and nobody reads one that is being written.
#ifndef TIDEMARK_SERVER_STORE_FOLDER_LOCK_H_
#define TIDEMARK_SERVER_STORE_FOLDER_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tidemark::store {

/// Held until it is destroyed or the process ends, however that happens. Of the folder's file
/// `lock`, which stays.
class FolderLock {
 public:
  /// For who writes: held by nobody else. Errors: FAILED_PRECONDITION if another process holds it,
  /// INTERNAL if the file cannot be opened.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  /// For who reads: held by readers alone. Writes nothing, so that a folder that cannot be written
  /// will do; without a file `lock` nobody ever wrote there, and nothing is held. Errors: as Take.
  static absl::StatusOr<FolderLock> TakeToRead(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int file) : file_(file) {}
  static absl::StatusOr<FolderLock> Lock(int file, int how, const std::string& folder);
  int file_;  // -1: none
};

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_FOLDER_LOCK_H_
