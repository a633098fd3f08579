// Whose a new file is.
#ifndef TIDEMARK_SERVER_STORE_FOLDER_OWNER_H_
#define TIDEMARK_SERVER_STORE_FOLDER_OWNER_H_

#include <string>

namespace tidemark::store {

/// Gives an open file, just made, to the owner of its folder, where this process may: as root. So a
/// daemon that is not root reads what root's repair wrote. `file`: a descriptor. What fails is left
/// as it is.
void GiveToFolderOwner(int file, const std::string& folder);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_FOLDER_OWNER_H_
