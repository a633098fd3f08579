// So that two daemons do not write one folder.
#ifndef TIDEMARK_SERVER_DURABILITY_FOLDER_LOCK_H_
#define TIDEMARK_SERVER_DURABILITY_FOLDER_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tidemark::server {

/// Held until it is destroyed or the process ends, however that happens. Of the folder's file
/// `lock`, which stays.
class FolderLock {
 public:
  /// Errors: FAILED_PRECONDITION if another process holds it, INTERNAL if the file cannot be
  /// opened.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DURABILITY_FOLDER_LOCK_H_
