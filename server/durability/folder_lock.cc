#include "server/durability/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "server/window/concat.h"

namespace tidemark::server {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return absl::InternalError(Concat("open ", path, ": ", std::strerror(errno)));
  }
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return FolderLock(file);
  const int error = errno;
  ::close(file);
  if (error == EWOULDBLOCK) {
    return absl::FailedPreconditionError(Concat("the folder ", folder,
                                                " is in use by another process, which holds ", path,
                                                "; expected one of its own"));
  }
  return absl::InternalError(Concat("flock ", path, ": ", std::strerror(error)));
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tidemark::server
