#include "server/access/file_text.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace tidemark::server {

// Not by iterators of the stream's buffer: they throw where read() sets a bit.
absl::StatusOr<std::string> ReadFileText(const std::string& path, std::size_t bytes_max) {
  constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  while (file && text.size() <= bytes_max) {
    const std::size_t before = text.size();
    text.resize(before + kPieceBytes);
    file.read(text.data() + before, kPieceBytes);
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || (file.fail() && !file.eof())) {
    return absl::InvalidArgumentError(errno != 0 ? std::strerror(errno) : "read error");
  }
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(fmt::format("larger than {} bytes", bytes_max));
  }
  return text;
}

std::string OpenToOthers(const std::string& path) {
  struct stat found {};
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) ||
      (found.st_mode & kOthers) == 0) {
    return "";
  }
  std::string shown = "-rwxrwxrwx";
  for (std::size_t i = 1; i < shown.size(); ++i) {
    if ((found.st_mode & (mode_t{0400} >> (i - 1))) == 0) shown[i] = '-';
  }
  return shown;
}

}  // namespace tidemark::server
