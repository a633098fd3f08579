#include "server/store/folder_owner.h"

#include <sys/stat.h>
#include <unistd.h>

namespace tidemark::store {

void GiveToFolderOwner(int file, const std::string& folder) {
  struct stat owner {};
  if (geteuid() != 0 || stat(folder.c_str(), &owner) != 0) return;
  if (owner.st_uid == 0) return;
  if (fchown(file, owner.st_uid, owner.st_gid) != 0) return;
}

}  // namespace tidemark::store
