// The whole of a small file.
#ifndef TIDEMARK_SERVER_ACCESS_FILE_TEXT_H_
#define TIDEMARK_SERVER_ACCESS_FILE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tidemark::server {

/// Errors: INVALID_ARGUMENT and why, for whoever names the file: "No such file or directory", "Is a
/// directory", "larger than 4194304 bytes". Throws nothing, whatever the path leads to. Cost: never
/// more than `bytes_max` of memory, and 64 KiB.
absl::StatusOr<std::string> ReadFileText(const std::string& path, std::size_t bytes_max);

/// For a file that holds a secret: which others than its owner may read or write it, as `ls` shows
/// it
/// ("-rw-r--r--"); empty if none may, or if it is no file.
std::string OpenToOthers(const std::string& path);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_FILE_TEXT_H_
