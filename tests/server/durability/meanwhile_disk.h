// A disk on which something happens while a snapshot is taken, by the thread that takes it.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_MEANWHILE_DISK_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_MEANWHILE_DISK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/file_system.h"

namespace tidemark::server {

class MeanwhileDisk final : public store::FileSystem {
 public:
  explicit MeanwhileDisk(store::FileSystem& disk) : disk_(disk) {}
  /// Once, when a snapshot is begun: after its position and the list of its streams were read, and
  /// before their images are.
  std::function<void()> meanwhile = [] {};
  /// Once, when bytes of a snapshot are written: behind the first image with which they are 1 MiB.
  std::function<void()> written = [] {};

  absl::StatusOr<std::unique_ptr<store::WritableFile>> Create(const std::string& path) override {
    if (path.find("snapshot-") == std::string::npos) return disk_.Create(path);
    std::exchange(meanwhile, [] {})();
    absl::StatusOr<std::unique_ptr<store::WritableFile>> file = disk_.Create(path);
    if (!file.ok()) return file;
    return std::make_unique<SnapshotBeingWritten>(*this, *std::move(file));
  }
  absl::StatusOr<std::string> Read(const std::string& path, std::uint64_t offset,
                                   std::size_t bytes) override {
    return disk_.Read(path, offset, bytes);
  }
  absl::StatusOr<std::uint64_t> Size(const std::string& path) override { return disk_.Size(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return disk_.List(folder);
  }
  absl::Status MakeFolder(const std::string& folder) override { return disk_.MakeFolder(folder); }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return disk_.Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override { return disk_.Remove(path); }
  absl::Status Truncate(const std::string& path, std::uint64_t bytes) override {
    return disk_.Truncate(path, bytes);
  }
  absl::Status SyncFolder(const std::string& folder) override { return disk_.SyncFolder(folder); }

 private:
  class SnapshotBeingWritten final : public store::WritableFile {
   public:
    SnapshotBeingWritten(MeanwhileDisk& disk, std::unique_ptr<store::WritableFile> file)
        : disk_(disk), file_(std::move(file)) {}
    absl::Status Write(std::uint64_t offset, std::string_view bytes) override {
      std::exchange(disk_.written, [] {})();
      return file_->Write(offset, bytes);
    }
    absl::Status Sync() override { return file_->Sync(); }

   private:
    MeanwhileDisk& disk_;
    std::unique_ptr<store::WritableFile> file_;
  };

  store::FileSystem& disk_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_MEANWHILE_DISK_H_
