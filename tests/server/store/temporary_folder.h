// A folder that is gone with its object.
#ifndef TIDEMARK_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_
#define TIDEMARK_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace tidemark::store {

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "tidemark-store-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder: " + path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tidemark::store

#endif  // TIDEMARK_TESTS_SERVER_STORE_TEMPORARY_FOLDER_H_
