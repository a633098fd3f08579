#include "server/store/planned_files.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace tidemark::store {
namespace {

class PlannedFile final : public WritableFile {
 public:
  explicit PlannedFile(std::shared_ptr<std::string> bytes) : bytes_(std::move(bytes)) {}
  absl::Status Write(std::uint64_t offset, std::string_view bytes) override {
    bytes_->resize(offset);
    bytes_->append(bytes);
    return absl::OkStatus();
  }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<std::string> bytes_;
};

}  // namespace

PlannedFiles::Place PlannedFiles::Find(const std::string& path) const {
  const auto at = changed_.find(path);
  return at == changed_.end() ? Place(path) : at->second;
}

bool PlannedFiles::Exists(const std::string& path) {
  const Place place = Find(path);
  if (std::holds_alternative<Gone>(place)) return false;
  return std::holds_alternative<New>(place) || below_.Size(std::get<std::string>(place)).ok();
}

absl::StatusOr<std::unique_ptr<WritableFile>> PlannedFiles::Create(const std::string& path) {
  if (Exists(path)) return FileError("create", path, EEXIST);
  const auto bytes = std::make_shared<std::string>();
  changed_[path] = bytes;
  return std::make_unique<PlannedFile>(bytes);
}

absl::StatusOr<std::string> PlannedFiles::Read(const std::string& path, std::uint64_t offset,
                                               std::size_t bytes) {
  const Place place = Find(path);
  if (std::holds_alternative<Gone>(place)) return FileError("open", path, ENOENT);
  if (const auto* made = std::get_if<New>(&place)) {
    return (*made)->substr(std::min<std::uint64_t>(offset, (*made)->size()), bytes);
  }
  return below_.Read(std::get<std::string>(place), offset, bytes);
}

absl::StatusOr<std::uint64_t> PlannedFiles::Size(const std::string& path) {
  const Place place = Find(path);
  if (std::holds_alternative<Gone>(place)) return FileError("stat", path, ENOENT);
  if (const auto* made = std::get_if<New>(&place)) return (*made)->size();
  return below_.Size(std::get<std::string>(place));
}

absl::StatusOr<std::vector<std::string>> PlannedFiles::List(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> below = below_.List(folder);
  if (!below.ok()) return below.status();
  std::set<std::string> names(below->begin(), below->end());
  const std::string prefix = folder + "/";
  for (const auto& [path, place] : changed_) {
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    if (std::holds_alternative<Gone>(place)) {
      names.erase(name);
    } else {
      names.insert(name);
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

absl::Status PlannedFiles::Rename(const std::string& from, const std::string& to) {
  if (!Exists(from)) return FileError("rename", from, ENOENT);
  Place place = Find(from);
  changed_[to] = std::move(place);
  changed_[from] = Gone{};
  return absl::OkStatus();
}

absl::Status PlannedFiles::Remove(const std::string& path) {
  if (!Exists(path)) return FileError("remove", path, ENOENT);
  changed_[path] = Gone{};
  return absl::OkStatus();
}

absl::Status PlannedFiles::Truncate(const std::string& path, std::uint64_t) {
  return FileError("truncate", path, ENOSYS);
}

}  // namespace tidemark::store
