// Files that are kept for ever and read by every later version.
#ifndef TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_
#define TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tidemark::testing {

/// Whether files that are not there yet are to be written.
inline bool WritesGolden() {
  return std::getenv("TIDEMARK_GOLDEN_WRITE") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

inline std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file that is there is never written again.
inline void WriteIfAbsent(const std::filesystem::path& path, const std::string& contents) {
  if (std::filesystem::exists(path)) return;
  std::ofstream(path, std::ios::binary) << contents;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_
