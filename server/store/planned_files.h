// A file system on which changes can be tried: they are seen through it, and the one below stays as
// it is. What a repair would do is found so, by doing it.
//
// Thread: one. Lifetime: the one below outlives it, and must not be changed meanwhile. Costs: the
// bytes of new files in memory.
#ifndef TIDEMARK_SERVER_STORE_PLANNED_FILES_H_
#define TIDEMARK_SERVER_STORE_PLANNED_FILES_H_

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "server/store/file_system.h"

namespace tidemark::store {

/// Truncate is refused: no repair cuts a file.
class PlannedFiles final : public FileSystem {
 public:
  explicit PlannedFiles(FileSystem& below) : below_(below) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path, std::uint64_t offset,
                                   std::size_t bytes) override;
  absl::StatusOr<std::uint64_t> Size(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status MakeFolder(const std::string&) override { return absl::OkStatus(); }
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status Truncate(const std::string& path, std::uint64_t bytes) override;
  absl::Status SyncFolder(const std::string&) override { return absl::OkStatus(); }

 private:
  struct Gone {};
  using New = std::shared_ptr<std::string>;            // its bytes
  using Place = std::variant<Gone, New, std::string>;  // or its path below

  Place Find(const std::string& path) const;
  bool Exists(const std::string& path);

  FileSystem& below_;
  std::map<std::string, Place> changed_;  // by path
};

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_PLANNED_FILES_H_
