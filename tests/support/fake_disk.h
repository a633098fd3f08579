// A disk in memory that fails when told to, fills up, and loses at a crash what was not synced.
//
// What a crash leaves, as hard on the store as disks are: of each write since the last good sync
// nothing, all, a beginning, some of its sectors, or only the file's new length; of the creations,
// renames and removals since the folder's last sync some, in any combination. A failed sync leaves
// the kernel's pages clean: they are read back until the crash, and a later sync does not save
// them.
#ifndef TIDEMARK_TESTS_SUPPORT_FAKE_DISK_H_
#define TIDEMARK_TESTS_SUPPORT_FAKE_DISK_H_

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/file_system.h"

namespace tidemark::testing {

enum class DiskOp { kCreate, kWrite, kSync, kRename, kRemove, kTruncate, kSyncFolder };
inline constexpr std::size_t kDiskOps = 7;

/// One folder's files, whatever it is called. Thread: any.
class FakeDisk final : public store::FileSystem {
 public:
  /// The k-th operation of this kind from now on fails with `error`; k = 1 is the next one.
  void FailAt(DiskOp op, std::uint64_t k, int error = EIO) {
    fail_op_ = op;
    fail_at_ = done_[Index(op)] + k;
    fail_error_ = error;
  }
  /// Every operation from now on that changes something fails; 0: none does.
  void FailAll(int error) {
    const std::lock_guard lock(mutex_);
    fail_all_ = error;
  }
  /// Called before each Create from now on, with the path.
  void OnCreate(std::function<void(const std::string&)> told) { on_create_ = std::move(told); }
  /// While true, a sync of a file takes as long.
  void HoldSyncs(bool held) {
    const std::lock_guard lock(mutex_);
    syncs_held_ = held;
    syncs_go_on_.notify_all();
  }
  /// Bytes that all files together may have.
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  /// The machine stops in the k-th operation from now on, of any kind that changes something: it
  /// and all later ones fail.
  void StopAt(std::uint64_t k) {
    const std::lock_guard lock(mutex_);
    stop_at_ = operations_ + k;
  }
  bool stopped() const { return stop_at_ != 0 && operations_ >= stop_at_; }
  std::uint64_t operations() const { return operations_; }
  std::uint64_t operations(DiskOp op) const { return done_[Index(op)]; }

  /// What is left after a loss of power. Files that are open must not be used any more. The faults
  /// asked for are forgotten.
  void Crash(std::mt19937_64& random) {
    const bool any = random() % 2 == 0;  // or those up to a moment
    std::size_t moment = random() % (folder_changes_.size() + 1);
    for (const FolderChange& change : folder_changes_) {
      const bool kept = any ? random() % 2 == 0 : moment > 0;
      moment -= moment > 0 ? 1 : 0;
      if (!kept) continue;
      if (change.from != change.to) synced_.erase(change.from);
      if (change.file) synced_[change.to] = change.file;
      if (!change.file) synced_.erase(change.to);
    }
    for (auto& [path, file] : synced_) {
      auto left = std::make_shared<Inode>();
      left->live = AfterCrash(*file, random);
      left->synced = left->live;
      file = std::move(left);
    }
    live_ = synced_;
    folder_changes_.clear();
    Heal();
  }
  /// No fault from now on.
  void Heal() {
    const std::lock_guard lock(mutex_);
    fail_at_ = stop_at_ = 0;
    fail_all_ = 0;
    capacity_ = UINT64_MAX;
  }

  /// A file's bytes, to look at or to damage. REQUIRES: there is one.
  std::string& bytes(const std::string& path) { return live_.at(path)->live; }
  void Drop(const std::string& path) { live_.erase(path); }
  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const auto& [path, file] : live_) sum += file->live.size();
    return sum;
  }
  /// A disk with the same files, all synced.
  std::unique_ptr<FakeDisk> Copy() const {
    auto copy = std::make_unique<FakeDisk>();
    for (const auto& [path, file] : live_) {
      auto same = std::make_shared<Inode>();
      same->live = same->synced = file->live;
      copy->live_[path] = copy->synced_[path] = std::move(same);
    }
    return copy;
  }

  absl::StatusOr<std::unique_ptr<store::WritableFile>> Create(const std::string& path) override {
    if (on_create_) on_create_(path);
    const std::lock_guard lock(mutex_);
    if (const int error = Begin(DiskOp::kCreate)) return store::FileError("create", path, error);
    if (live_.contains(path)) return store::FileError("create", path, EEXIST);
    auto file = std::make_shared<Inode>();
    live_[path] = file;
    folder_changes_.push_back({path, path, file});
    return std::make_unique<OpenFile>(*this, path, file);
  }
  absl::StatusOr<std::string> Read(const std::string& path, std::uint64_t offset,
                                   std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(path);
    if (at == live_.end()) return store::FileError("open", path, ENOENT);
    const std::string& all = at->second->live;
    return offset < all.size() ? all.substr(offset, bytes) : std::string();
  }
  absl::StatusOr<std::uint64_t> Size(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto at = live_.find(path);
    if (at == live_.end()) return store::FileError("stat", path, ENOENT);
    return at->second->live.size();
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string&) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [path, file] : live_) names.push_back(path.substr(path.rfind('/') + 1));
    return names;
  }
  absl::Status MakeFolder(const std::string&) override { return absl::OkStatus(); }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (const int error = Begin(DiskOp::kRename)) return store::FileError("rename", from, error);
    const auto at = live_.find(from);
    if (at == live_.end()) return store::FileError("rename", from, ENOENT);
    const std::shared_ptr<Inode> file = at->second;
    live_.erase(at);
    live_[to] = file;
    folder_changes_.push_back({from, to, file});
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (const int error = Begin(DiskOp::kRemove)) return store::FileError("remove", path, error);
    if (live_.erase(path) == 0) return store::FileError("remove", path, ENOENT);
    folder_changes_.push_back({path, path, nullptr});
    return absl::OkStatus();
  }
  absl::Status Truncate(const std::string& path, std::uint64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (const int error = Begin(DiskOp::kTruncate)) {
      return store::FileError("truncate", path, error);
    }
    const auto at = live_.find(path);
    if (at == live_.end()) return store::FileError("truncate", path, ENOENT);
    at->second->live.resize(bytes);
    at->second->changes.push_back({bytes, {}, true, true});
    return absl::OkStatus();
  }
  absl::Status SyncFolder(const std::string& folder) override {
    const std::lock_guard lock(mutex_);
    if (const int error = Begin(DiskOp::kSyncFolder)) {
      return store::FileError("fsync", folder, error);
    }
    synced_ = live_;
    folder_changes_.clear();
    return absl::OkStatus();
  }

 private:
  static constexpr std::size_t kSector = 512;

  struct Change {
    std::uint64_t offset;  // or the new length
    std::string bytes;
    bool truncates;
    bool syncable;  // false: a sync failed since
  };
  struct Inode {
    std::string live;    // as reads see it
    std::string synced;  // what a crash leaves for certain
    std::vector<Change> changes;
  };
  // `file` null: removed.
  struct FolderChange {
    std::string from, to;
    std::shared_ptr<Inode> file;
  };

  class OpenFile final : public store::WritableFile {
   public:
    OpenFile(FakeDisk& disk, std::string path, std::shared_ptr<Inode> file)
        : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}
    absl::Status Write(std::uint64_t offset, std::string_view bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      int error = disk_.Begin(DiskOp::kWrite);
      if (error != 0) bytes = bytes.substr(0, bytes.size() / 2);  // a short write before it
      const std::uint64_t end = offset + bytes.size();
      const std::uint64_t used = disk_.used();
      const std::uint64_t grows = end - std::min<std::uint64_t>(end, file_->live.size());
      const std::uint64_t room = disk_.capacity_ - std::min(disk_.capacity_, used);
      if (grows > room) {
        bytes.remove_suffix(std::min<std::uint64_t>(bytes.size(), grows - room));
        error = ENOSPC;
      }
      Apply(file_->live, offset, bytes);
      file_->changes.push_back({offset, std::string(bytes), false, true});
      return error == 0 ? absl::OkStatus() : store::FileError("write", path_, error);
    }
    absl::Status Sync() override {
      std::unique_lock lock(disk_.mutex_);
      disk_.syncs_go_on_.wait(lock, [&] { return !disk_.syncs_held_; });
      if (const int error = disk_.Begin(DiskOp::kSync)) {
        for (Change& change : file_->changes) change.syncable = false;
        return store::FileError("fdatasync", path_, error);
      }
      for (const Change& change : file_->changes) {
        if (change.syncable) ApplyChange(file_->synced, change);
      }
      std::erase_if(file_->changes, [](const Change& change) { return change.syncable; });
      return absl::OkStatus();
    }

   private:
    FakeDisk& disk_;
    const std::string path_;
    const std::shared_ptr<Inode> file_;
  };

  static std::size_t Index(DiskOp op) { return static_cast<std::size_t>(op); }

  static void Apply(std::string& to, std::uint64_t offset, std::string_view bytes) {
    if (bytes.empty()) return;
    if (to.size() < offset + bytes.size()) to.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  static void ApplyChange(std::string& to, const Change& change) {
    if (change.truncates) {
      to.resize(change.offset);
    } else {
      Apply(to, change.offset, change.bytes);
    }
  }
  static std::string AfterCrash(const Inode& file, std::mt19937_64& random) {
    std::string out = file.synced;
    for (const Change& change : file.changes) {
      const std::string_view bytes = change.bytes;
      switch (random() % 5) {
        case 0:
          break;
        case 1:
          ApplyChange(out, change);
          break;
        case 2:
          if (!change.truncates)
            Apply(out, change.offset, bytes.substr(0, random() % (bytes.size() + 1)));
          break;
        case 3:
          if (!change.truncates) {
            out.resize(std::max<std::uint64_t>(out.size(), change.offset + bytes.size()));
          }
          break;
        default:
          for (std::uint64_t at = 0; at < bytes.size();) {
            const std::uint64_t length = std::min<std::uint64_t>(
                bytes.size() - at, kSector - (change.offset + at) % kSector);
            if (random() % 2 == 0) Apply(out, change.offset + at, bytes.substr(at, length));
            at += length;
          }
          break;
      }
    }
    return out;
  }

  // 0: go on. Otherwise the errno with which the operation fails.
  int Begin(DiskOp op) {
    ++operations_;
    const std::uint64_t number = ++done_[Index(op)];
    if (stopped()) return EIO;
    if (fail_all_ != 0) return fail_all_;
    return fail_at_ == number && fail_op_ == op ? fail_error_ : 0;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Inode>> live_;
  std::map<std::string, std::shared_ptr<Inode>> synced_;
  std::vector<FolderChange> folder_changes_;
  std::array<std::uint64_t, kDiskOps> done_{};
  std::uint64_t operations_ = 0;
  std::uint64_t stop_at_ = 0;
  DiskOp fail_op_ = DiskOp::kWrite;
  std::uint64_t fail_at_ = 0;
  int fail_error_ = EIO;
  std::function<void(const std::string&)> on_create_;
  bool syncs_held_ = false;
  std::condition_variable syncs_go_on_;
  int fail_all_ = 0;
  std::uint64_t capacity_ = UINT64_MAX;
};

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUPPORT_FAKE_DISK_H_
