// A folder that is gone with its object.
#ifndef TIDEMARK_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define TIDEMARK_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace tidemark::test {

/// A new folder, removed with what it holds.
/// Errors: throws std::runtime_error if it cannot be made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::filesystem::path& below = std::filesystem::temp_directory_path())
      : path_((below / "tidemark-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("mkdtemp " + path_ + ": " + std::strerror(errno));
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file there; its path.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = *this / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
