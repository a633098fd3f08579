// Files that are kept for ever and read by every later version.
#ifndef TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_
#define TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

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

/// The folders in a folder, by name.
inline std::vector<std::filesystem::path> FoldersIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Two texts of answers, line by line: the whole is long. A stream begins with a line that is not
/// indented.
inline void ExpectSameAnswers(const std::string& is, const std::string& was) {
  std::istringstream is_lines(is), was_lines(was);
  std::string one, other, stream;
  while (std::getline(is_lines, one) && std::getline(was_lines, other)) {
    if (!other.starts_with(' ')) stream = other;
    ASSERT_EQ(one, other) << "of " << stream;
  }
  EXPECT_EQ(is.size(), was.size()) << "one has more streams";
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUPPORT_GOLDEN_FILES_H_
