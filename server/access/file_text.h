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

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_FILE_TEXT_H_
