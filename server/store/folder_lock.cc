#include "server/store/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "server/store/file_system.h"
#include "server/store/folder_owner.h"

namespace tidemark::store {
namespace {

std::string LockPath(const std::string& folder) { return folder + "/lock"; }

}  // namespace

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = LockPath(folder);
  // Only what is made here is given away, and no link is followed: whoever may write to the folder
  // could have root give away any file.
  constexpr int kHow = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  int file = ::open(path.c_str(), kHow | O_CREAT | O_EXCL, 0600);
  if (file >= 0) {
    GiveToFolderOwner(file, folder);
  } else if (errno == EEXIST) {
    file = ::open(path.c_str(), kHow);
  }
  if (file < 0) return absl::InternalError(FileError("open", path, errno).message());
  return Lock(file, LOCK_EX, folder);
}

absl::StatusOr<FolderLock> FolderLock::TakeToRead(const std::string& folder) {
  const std::string path = LockPath(folder);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file >= 0) return Lock(file, LOCK_SH, folder);
  if (errno == ENOENT) return FolderLock(-1);
  return absl::InternalError(FileError("open", path, errno).message());
}

absl::StatusOr<FolderLock> FolderLock::Lock(int file, int how, const std::string& folder) {
  if (::flock(file, how | LOCK_NB) == 0) return FolderLock(file);
  const int error = errno;
  ::close(file);
  const std::string path = LockPath(folder);
  if (error == EWOULDBLOCK) {
    return absl::FailedPreconditionError(absl::StrCat("the folder ", folder,
                                                      " is in use by another process, which holds ",
                                                      path, "; expected one that nobody uses"));
  }
  return absl::InternalError(FileError("flock", path, error).message());
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace tidemark::store
